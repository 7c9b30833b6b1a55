/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_follow.c -- makes the fields that follow the image.
 *
 *     read -> boxes -> draw -> image -> the same draws again, for the followers -> boxes -> masks, points, each
 *
 * Boxes are read before the ops are drawn, because the draws of RandomIoUCrop depend on them. They are transformed
 * first: if SanitizeBoundingBoxes removes a box, its masks, keypoints and numbers are removed as well.
 *
 * Coordinates are those of the upright image, or of the image as stored if EXIF is ignored.
 */
#include "loader_follow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loader.h"
#include "source/field.h"
#include "transform/follow.h"

static const char stage[] = "transform";

/* ------------------------------------------------------------------ open and close */

/* The size of masks is that of the image. */
static void describe_mask(const struct stk_loader *l, struct field *f)
{
    const bool small = f->what == STK_BYTES || f->dtype == STK_UINT8 || f->dtype == STK_BOOL;
    const bool open = plan_is_open(l->plan);
    f->dtype = f->mask_dtype ? f->mask_dtype : small ? STK_UINT8 : STK_INT32;
    f->what = STK_MASK;
    f->kind = open ? FIELD_OPEN : FIELD_TENSOR;
    f->ndim = 2;
    plan_size(l->plan, &f->shape[1], &f->shape[0]);
    f->bytes = dtype_bytes(f->dtype) * (open ? 1 : (size_t)f->shape[0] * (size_t)f->shape[1]);
    f->pad = false;
    if (l->options.sizes != STK_SIZES_SAME)
        loader_fields_frame(l, f, 1);
}

static void describe_masks(const struct stk_loader *l, struct field *f)
{
    f->what = STK_MASKS;
    if (plan_is_open(l->plan))
        return;
    plan_size(l->plan, &f->shape[2], &f->shape[1]);
    f->bytes = (size_t)f->shape[1] * (size_t)f->shape[2];
}

static int check_ops(const struct stk_loader *l, bool points, stk_error *e)
{
    const char *op = l->copies > 1 ? "several views" : plan_not_followed(l->plan);
    if (l->follow.n > 0 && op)
        return error_set(e, STK_EUSAGE, "open",
                         "%s cannot be combined with masks, boxes and keypoints; remove it from the ops, or leave them "
                         "out of fields",
                         op);
    op = plan_needs_boxes(l->plan);
    if (op && l->follow.boxes < 0)
        return error_set(e, STK_EUSAGE, "open",
                         "%s needs boxes, and the samples have none; declare a column as boxes: "
                         "fields=\"image, bbox:boxes(xywh)\"",
                         op);
    op = plan_needs_points(l->plan);
    if (op && !points)
        return error_set(e, STK_EUSAGE, "open",
                         "%s needs keypoints, and the samples have none; declare a column as keypoints: "
                         "fields=\"image, points:keypoints(17,3)\"",
                         op);
    return STK_OK;
}

/* Without an image to follow, these fields are as the source has them. */
static int describe_alone(const struct field *fields, int n, stk_error *e)
{
    for (int i = 0; i < n; i++)
        if (fields[i].follow == FOLLOW_MASK)
            return error_set(e, STK_EUSAGE, "open", "the mask %s belongs to an image: add the image to fields",
                             fields[i].name);
    return STK_OK;
}

int loader_follow_open(struct stk_loader *l, struct field *fields, int n, stk_error *e)
{
    bool points = false;
    l->follow.boxes = -1;
    if (l->image < 0)
        return describe_alone(fields, n, e);
    for (int i = 0; i < n; i++) {
        struct field *f = &fields[i];
        l->follow.n += f->follow != FOLLOW_NONE;
        points |= f->follow == FOLLOW_POINTS;
        if (f->follow == FOLLOW_BOXES && l->follow.boxes >= 0)
            return error_set(e, STK_EUSAGE, "open", "%s and %s are both boxes; only one field can have this kind",
                             fields[l->follow.boxes].name, f->name);
        if (f->follow == FOLLOW_BOXES) {
            l->follow.boxes = i;
            l->follow.format = f->box_format = plan_box_format(l->plan, f->box_format);
            f->what = STK_BOXES;
        } else if (f->follow == FOLLOW_POINTS)
            f->what = STK_POINTS;
        else if (f->follow == FOLLOW_MASK)
            describe_mask(l, f);
        else if (f->follow == FOLLOW_MASKS)
            describe_masks(l, f);
    }
    return check_ops(l, points, e);
}

int following_init(struct following *f, const struct stk_loader *l, stk_error *e)
{
    *f = (struct following){0};
    if (l->follow.n == 0)
        return STK_OK;
    f->job = calloc(1, sizeof *f->job);
    return f->job ? STK_OK : error_nomem(e, "open", sizeof *f->job);
}

void following_done(struct following *f)
{
    ragged_row_done(&f->raw);
    free(f->job);
    free(f->at);
    free(f->keep);
    *f = (struct following){0};
}

void following_trim(struct following *f, const struct budget *b)
{
    if (b && f->raw.cap > b->share / 8)
        ragged_row_done(&f->raw);
}

size_t following_held(const struct following *f)
{
    return f->raw.cap + (size_t)f->n_most * (sizeof *f->at + 1);
}

/* ------------------------------------------------------------------ boxes before the ops */

static int reserve_boxes(struct following *f, int64_t n, stk_error *e)
{
    if (n <= f->n_most)
        return STK_OK;
    const int64_t most = n + n / 4 + 16;
    const size_t bytes = (size_t)most * sizeof *f->at;
    void *at = realloc(f->at, bytes), *keep = realloc(f->keep, (size_t)most);
    f->at = at ? at : f->at;
    f->keep = keep ? keep : f->keep;
    if (!at || !keep)
        return error_nomem(e, stage, bytes);
    f->n_most = most;
    return STK_OK;
}

/* To left, top, right and bottom. */
static void box_to_corners(enum box_format format, const float in[4], double box[4])
{
    const double x = (double)in[0], y = (double)in[1], w = (double)in[2], h = (double)in[3];
    const bool middle = format == BOX_CXCYWH;
    box[0] = middle ? x - 0.5 * w : x;
    box[1] = middle ? y - 0.5 * h : y;
    box[2] = format == BOX_XYXY ? w : box[0] + w;
    box[3] = format == BOX_XYXY ? h : box[1] + h;
}

static void box_from_corners(enum box_format format, const double box[4], float out[4])
{
    const double w = box[2] - box[0], h = box[3] - box[1];
    const bool middle = format == BOX_CXCYWH;
    out[0] = (float)(middle ? 0.5 * (box[0] + box[2]) : box[0]);
    out[1] = (float)(middle ? 0.5 * (box[1] + box[3]) : box[1]);
    out[2] = (float)(format == BOX_XYXY ? box[2] : w);
    out[3] = (float)(format == BOX_XYXY ? box[3] : h);
}

static int take_box(struct following *f, const struct field *of, int64_t i, const float in[4], stk_error *e)
{
    double box[4];
    box_to_corners(of->box_format, in, box);
    for (int k = 0; k < 4; k++) {
        box[k] *= !of->relative ? 1.0 : k % 2 ? f->h : f->w;
        f->at[i][k] = (float)box[k];
        if (!isfinite(f->at[i][k]))
            return error_set(e, STK_EDATA, stage, "%s: box %lld has a number that is not finite", of->name,
                             (long long)i);
    }
    if (f->at[i][2] < f->at[i][0] || f->at[i][3] < f->at[i][1])
        return error_set(e, STK_EDATA, stage,
                         "%s: box %lld goes from (%g, %g) to (%g, %g), so its size is negative; its format is taken as "
                         "%s; fields can set another: %s:boxes(%s)",
                         of->name, (long long)i, (double)f->at[i][0], (double)f->at[i][1], (double)f->at[i][2],
                         (double)f->at[i][3],
                         of->box_format == BOX_XYXY   ? "xyxy"
                         : of->box_format == BOX_XYWH ? "xywh"
                                                      : "cxcywh",
                         of->name, of->box_format == BOX_XYXY ? "xywh" : "xyxy");
    return STK_OK;
}

int loader_follow_begin(struct stk_loader *l, struct worker *w, int64_t sample, int32_t wide, int32_t high,
                        stk_error *e)
{
    struct following *f = &w->follow;
    f->w = wide;
    f->h = high;
    f->boxes = (struct boxes){0};
    if (l->follow.boxes < 0)
        return STK_OK;
    const struct field *of = source_field_at(l->source, sample, l->follow.boxes);
    int rc = field_ragged_row(of, &w->desk.reading.cells[l->follow.boxes], &f->raw, e);
    const int64_t n = rc == STK_OK ? (int64_t)(f->raw.n / (4 * sizeof(float))) : 0;
    if (rc == STK_OK)
        rc = reserve_boxes(f, n, e);
    for (int64_t i = 0; i < n && rc == STK_OK; i++)
        rc = take_box(f, of, i, (const float *)(const void *)f->raw.data + 4 * i, e);
    f->boxes = (struct boxes){.n = (int)n, .at = (const float(*)[4])f->at};
    return rc;
}

/* ------------------------------------------------------------------ rows */

const struct cell *following_cell(const struct making_row *m)
{
    return &m->w->desk.reading.cells[m->f];
}

static int make_boxes(const struct making_row *m, stk_error *e)
{
    struct following *f = &m->w->follow;
    struct ragged_row *to = batch_open_ragged(m->b, m->f, m->row);
    const size_t bytes = (size_t)f->boxes.n * 4 * sizeof(float);
    int64_t n = 0;
    int rc = STK_OK;
    if (to && ragged_row_reserve(to, bytes))
        rc = error_nomem(e, stage, bytes);
    for (int i = 0; i < f->boxes.n && rc == STK_OK; i++) {
        double box[4];
        for (int k = 0; k < 4; k++)
            box[k] = (double)f->at[i][k];
        f->keep[i] = follow_box(f->job, box);
        if (to && f->keep[i])
            box_from_corners(m->l->follow.format, box, (float *)(void *)to->data + 4 * n);
        n += f->keep[i];
    }
    if (!to)
        return rc;
    to->n = rc == STK_OK ? (size_t)n * 4 * sizeof(float) : 0;
    memset(to->shape, 0, sizeof to->shape);
    to->shape[0] = rc == STK_OK ? n : 0;
    to->shape[1] = 4;
    batch_close_ragged(m->b, to);
    return rc;
}

int following_check_count(const struct making_row *m, int64_t n, stk_error *e)
{
    if (m->l->follow.boxes < 0 || n == m->w->follow.boxes.n)
        return STK_OK;
    return error_set(e, STK_EDATA, stage, "%s has %lld entries, but the sample has %d boxes", m->of->name, (long long)n,
                     m->w->follow.boxes.n);
}

/* Removes the entries of boxes that were removed. */
static void keep_entries(const struct making_row *m, struct ragged_row *to)
{
    const int64_t all = to->shape[0];
    const size_t size = all > 0 ? to->n / (size_t)all : 0;
    int64_t n = 0;
    for (int64_t i = 0; i < all && m->l->follow.boxes >= 0; i++) {
        if (!m->w->follow.keep[i])
            continue;
        if (n != i)
            memcpy(to->data + (size_t)n * size, to->data + (size_t)i * size, size);
        n++;
    }
    if (m->l->follow.boxes < 0)
        return;
    to->shape[0] = n;
    to->n = (size_t)n * size;
}

static int make_each(const struct making_row *m, struct ragged_row *to, stk_error *e)
{
    int rc = field_ragged_row(m->of, following_cell(m), to, e);
    if (rc == STK_OK)
        rc = following_check_count(m, to->shape[0], e);
    if (rc == STK_OK)
        keep_entries(m, to);
    return rc;
}

/* An entry of `count` points; false: SanitizeKeyPoints removes it. */
static int make_entry(const struct making_row *m, float *at, int64_t count, int64_t step, bool *stays, stk_error *e)
{
    const struct following *f = &m->w->follow;
    *stays = true;
    for (int64_t i = 0; i < count; i++, at += step) {
        double p[2] = {(double)at[0] * (m->of->relative ? f->w : 1), (double)at[1] * (m->of->relative ? f->h : 1)};
        if (!isfinite(p[0]) || !isfinite(p[1]))
            return error_set(e, STK_EDATA, stage, "%s has a number that is not finite", m->of->name);
        *stays &= follow_point(f->job, p);
        at[0] = (float)p[0];
        at[1] = (float)p[1];
    }
    return STK_OK;
}

static int make_points(const struct making_row *m, struct ragged_row *to, stk_error *e)
{
    int rc = field_ragged_row(m->of, following_cell(m), to, e);
    const bool groups = m->of->ndim == 3;
    const int64_t step = to->shape[groups ? 2 : 1], count = groups ? to->shape[1] : 1;
    if (rc == STK_OK && to->shape[0] > 0 && step != 2 && step != 3)
        rc = error_set(e, STK_EDATA, stage, "%s: a point has %lld numbers, not 2 or 3", m->of->name, (long long)step);
    if (rc == STK_OK && groups)
        rc = following_check_count(m, to->shape[0], e);
    if (rc == STK_OK && groups)
        keep_entries(m, to);
    float *const at = (float *)(void *)to->data;
    const int64_t all = rc == STK_OK ? to->shape[0] : 0, size = count * step;
    int64_t n = 0;
    for (int64_t i = 0; i < all && rc == STK_OK; i++) {
        bool stays;
        rc = make_entry(m, at + i * size, count, step, &stays, e);
        if (n != i && stays)
            memcpy(at + n * size, at + i * size, (size_t)size * sizeof *at);
        n += stays;
    }
    to->shape[0] = n;
    to->n = (size_t)(n * size) * sizeof *at;
    return rc;
}

/* ------------------------------------------------------------------ all of them */

static int make_ragged(const struct making_row *m, stk_error *e)
{
    struct ragged_row *to = batch_open_ragged(m->b, m->f, m->row);
    if (!to)
        return STK_OK; /* the whole batch will be refused */
    to->n = 0;
    memset(to->shape, 0, sizeof to->shape);
    const int rc = m->of->follow == FOLLOW_EACH     ? make_each(m, to, e)
                   : m->of->follow == FOLLOW_POINTS ? make_points(m, to, e)
                                                    : following_masks(m, to, e);
    if (rc != STK_OK)
        to->n = 0;
    batch_close_ragged(m->b, to);
    return rc;
}

int loader_follow_make(struct stk_loader *l, struct worker *w, const struct draw *d, struct stk_batch *b, int64_t row,
                       stk_error *e)
{
    struct making_row m = {.l = l, .w = w, .b = b, .sample = (int64_t)d->sample, .row = row, .f = l->follow.boxes};
    int rc = plan_follow(l->plan, d, w->follow.w, w->follow.h, w->follow.job, e);
    if (rc == STK_OK && m.f >= 0)
        rc = make_boxes(&m, e);
    for (m.f = 0; m.f < source_n_fields(l->source) && rc == STK_OK; m.f++) {
        m.of = source_field_at(l->source, m.sample, m.f);
        if (m.of->follow == FOLLOW_MASK)
            rc = following_mask(&m, e);
        else if (m.of->follow != FOLLOW_NONE && m.of->follow != FOLLOW_BOXES)
            rc = make_ragged(&m, e);
    }
    return rc;
}
