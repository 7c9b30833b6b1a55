/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show_marks.c -- the masks, boxes and keypoints of a batch, as marks over its images.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "show.h"

/* The rows of a ragged field that belong to one row of the batch; 0: also if the row has several images. */
static int64_t rows_of(const stk_batch *b, const stk_array *x, int64_t row, int64_t *first)
{
    char name[256];
    snprintf(name, sizeof name, "%s.offsets", x->name);
    const stk_array *offsets = stk_field(b, name);
    if (!offsets || offsets->shape[0] != stk_samples(b) + 1)
        return 0;
    *first = ((const int64_t *)offsets->data)[row];
    return ((const int64_t *)offsets->data)[row + 1] - *first;
}

static void mask_of(const struct show_view *v, const stk_array *x, int64_t row, struct marks *m)
{
    const int bytes = x->dtype == STK_UINT8 || x->dtype == STK_BOOL ? 1 : x->dtype == STK_UINT16 ? 2 : 4;
    const int64_t pixels = (int64_t)v->first.w * v->first.h;
    const int64_t there = x->ndim == 3 ? x->shape[1] * x->shape[2] : x->ndim == 1 ? x->shape[0] : 0;
    if (there != pixels) /* of another size, or several images of a sample */
        return;
    m->mask = (const uint8_t *)x->data + row * pixels * bytes;
    m->mask_bytes = bytes;
}

/* Masks of boxes; if the ops leave the size of images open, x is flat, and the batch has one row. */
static int masks_of(const struct show_view *v, const stk_array *x, int64_t row, struct marks *m)
{
    int64_t first = 0, n = 0;
    const int64_t pixels = (int64_t)v->first.w * v->first.h;
    if (x->ndim == 3 && x->shape[1] * x->shape[2] == pixels)
        n = rows_of(v->batch, x, row, &first);
    else if (x->ndim == 1 && v->n == 1 && x->shape[0] % pixels == 0)
        n = x->shape[0] / pixels;
    m->each = (const uint8_t *)x->data + first * pixels;
    m->n_each = (int)n;
    return n > 0;
}

static void points_of(const stk_batch *b, const stk_array *x, int64_t row, struct marks *m)
{
    int64_t first = 0, each = 1;
    const int64_t n = rows_of(b, x, row, &first);
    for (int d = 1; d < x->ndim; d++)
        each *= x->shape[d];
    m->point_numbers = (int)x->shape[x->ndim - 1];
    m->n_points = (int)(n * each / m->point_numbers);
    m->points = (const float *)x->data + first * each;
}

int show_has_boxes(const stk_batch *b)
{
    for (int f = 0; f < stk_batch_n_fields(b); f++)
        if (stk_field_at(b, f)->kind == STK_BOXES)
            return 1;
    return 0;
}

/* Whether a field belongs to the view of this image: in other views its name starts with theirs. */
static int is_of(const stk_batch *b, const stk_array *x, const stk_array *image)
{
    for (int f = 0; f < stk_batch_n_fields(b); f++) {
        const stk_array *y = stk_field_at(b, f);
        const size_t n = strlen(y->name);
        if (y->kind == STK_IMAGE && y != image && strncmp(x->name, y->name, n) == 0 && x->name[n] == '.')
            return 0;
    }
    return 1;
}

/* The field of class indices, one for each box. */
static const stk_array *labels_of(const stk_batch *b, const stk_array *image)
{
    char name[256];
    snprintf(name, sizeof name, "%s.labels", image->name);
    const stk_array *x = stk_field(b, name);
    return x ? x : stk_field(b, "labels");
}

int show_marks(const struct show_view *v, int64_t row, struct marks *m)
{
    int64_t first = 0, n = 0;
    int some = 0;
    const stk_array *image = show_image(v->batch), *labels = labels_of(v->batch, image);
    *m = (struct marks){0};
    for (int f = 0; f < stk_batch_n_fields(v->batch); f++) {
        const stk_array *x = stk_field_at(v->batch, f);
        if (!is_of(v->batch, x, image))
            continue;
        if (x->kind == STK_MASK) {
            mask_of(v, x, row, m);
        } else if (x->kind == STK_POINTS) {
            points_of(v->batch, x, row, m);
        } else if (x->kind == STK_BOXES) {
            n = rows_of(v->batch, x, row, &first);
            m->boxes = (const float *)x->data + 4 * first;
            m->n_boxes = (int)n;
        } else if (x->kind == STK_MASKS && masks_of(v, x, row, m)) {
            n = m->n_each;
        } else {
            continue;
        }
        some = 1;
    }
    if (some && labels && labels->dtype == STK_INT64 && labels->ndim == 1 &&
        rows_of(v->batch, labels, row, &first) == n)
        m->labels = (const int64_t *)labels->data + first;
    return some;
}

void show_collect(const struct show_view *v, struct marks_seen *seen)
{
    struct marks m;
    if (show_marks(v, 0, &m))
        marks_collect(seen, &m, v->first.w, v->first.h);
}

const char *show_label(void *user, int64_t label)
{
    const stk_source *s = stk_loader_source(user);
    return label < stk_source_n_classes(s) ? stk_source_class(s, (int)label) : NULL;
}
