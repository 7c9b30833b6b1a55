/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_cells.c -- reads the annotations of an image from a file in COCO's format, and turns them into cells.
 */
#include "source/coco_cells.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "base/size.h"
#include "format/coco.h"

#define MASKS_MOST ((size_t)1 << 30) /* bytes of one sample */

/* The values of one sample in r->derived: the columns that are wanted, then the text of some annotations. */
struct sample {
    const struct coco *c;
    struct reading *r;
    int64_t i;               /* image */
    uint64_t first, n;       /* its annotations */
    size_t at[COCO_COLUMNS]; /* offset of a column; SIZE_MAX: it is not wanted */
    size_t captions_bytes;   /* so far */
    size_t text;             /* offset of the text */
};

static int bad_annotation(const struct coco *c, const struct coco_annotation *a, const struct coco_text *n,
                          const char *problem, stk_error *e)
{
    if (problem == COCO_NO_MEMORY)
        return error_nomem(e, "read", n->bytes);
    if (!a->has_id)
        return error_set(e, STK_EDATA, "read", "the annotation at byte %lld of %.200s: %s", (long long)n->at, c->path,
                         problem);
    return error_set(e, STK_EDATA, "read", "annotation %lld of %.200s: %s", (long long)a->id, c->path, problem);
}

static size_t mask_bytes(const struct sample *s)
{
    const int32_t *size = s->c->x.sizes[s->i];
    return size_mul((size_t)size[0], (size_t)size[1]);
}

/* The bytes of a column. */
static size_t column_bytes(const struct sample *s, enum coco_column w)
{
    switch (w) {
    case COCO_BOXES:
        return s->n * 4 * sizeof(float);
    case COCO_AREA:
        return s->n * sizeof(float);
    case COCO_KEYPOINTS:
        return size_mul(s->n * 3 * sizeof(float), (size_t)s->c->x.keypoints);
    case COCO_MASKS:
        return size_mul(s->n, mask_bytes(s));
    case COCO_IMAGE_ID:
        return sizeof(int64_t);
    default:
        return s->n * sizeof(int64_t);
    }
}

/* The first annotation that is not read together with `first`, because it is far away in the file. */
static uint64_t group_end(const struct sample *s, uint64_t first, size_t *bytes)
{
    enum { GAP = 4096, MOST = 1 << 20 };
    const struct coco_text *annotations = s->c->x.annotations;
    const int64_t begin = annotations[first].at;
    int64_t end = begin + annotations[first].bytes;
    uint64_t k = first + 1;
    for (; k < s->first + s->n; k++) {
        if (annotations[k].at < end || annotations[k].at - end > GAP ||
            annotations[k].at + annotations[k].bytes - begin > MOST)
            break;
        end = annotations[k].at + annotations[k].bytes;
    }
    *bytes = (size_t)(end - begin);
    return k;
}

static int check_masks(const struct sample *s, stk_error *e)
{
    const int32_t *size = s->c->x.sizes[s->i];
    if (size[0] <= 0 || size[1] <= 0)
        return error_set(e, STK_EDATA, "read", "image %lld of %.200s has no width and height, which masks need",
                         (long long)s->c->x.ids[s->i], s->c->path);
    if (column_bytes(s, COCO_MASKS) > MASKS_MOST)
        return error_set(e, STK_EDATA, "read",
                         "image %lld of %.200s has %lld masks of %d x %d, more than fit into 1 GiB",
                         (long long)s->c->x.ids[s->i], s->c->path, (long long)s->n, (int)size[0], (int)size[1]);
    return STK_OK;
}

/* Gives the columns their places. */
static int lay_out(struct sample *s, const struct source *from, stk_error *e)
{
    size_t end = 0, longest = 0, captions = 2;
    for (int w = 0; w < COCO_COLUMNS; w++)
        s->at[w] = SIZE_MAX;
    for (int f = 0; f < from->n_fields; f++) {
        const enum coco_column w = from->fields[f].column < 1 ? COCO_IMAGE : s->c->whats[from->fields[f].column];
        if (w == COCO_IMAGE || s->at[w] != SIZE_MAX)
            continue;
        const int rc = w == COCO_MASKS ? check_masks(s, e) : STK_OK;
        if (rc != STK_OK)
            return rc;
        s->at[w] = end;
        if (w != COCO_CAPTIONS)
            end = (size_add(end, column_bytes(s, w)) + 7) & ~(size_t)7;
    }
    for (uint64_t k = s->first; k < s->first + s->n;) {
        size_t bytes;
        k = group_end(s, k, &bytes);
        longest = bytes > longest ? bytes : longest;
        captions += bytes + 1;
    }
    if (s->at[COCO_CAPTIONS] != SIZE_MAX) {
        s->at[COCO_CAPTIONS] = end;
        end = size_add(end, captions);
    }
    s->text = end;
    const size_t all = size_add(end, longest + 1);
    const int rc = s->r->allow ? s->r->allow(s->r->user, size_add(s->r->rest ? 0 : s->r->n_bytes, all), e) : STK_OK;
    if (rc == STK_OK && buf_reserve(&s->r->derived, all))
        return error_nomem(e, "read", all);
    if (rc == STK_OK && s->at[COCO_MASKS] != SIZE_MAX)
        memset(s->r->derived.data + s->at[COCO_MASKS], 0, column_bytes(s, COCO_MASKS));
    return rc;
}

static uint8_t *place(const struct sample *s, enum coco_column w, uint64_t k, size_t bytes)
{
    return s->at[w] == SIZE_MAX ? NULL : s->r->derived.data + s->at[w] + k * bytes;
}

static void put_integer(const struct sample *s, enum coco_column w, uint64_t k, int64_t value)
{
    uint8_t *const to = place(s, w, k, sizeof value);
    if (to)
        memcpy(to, &value, sizeof value);
}

static const char *put_box(const struct sample *s, uint64_t k, const struct coco_annotation *a)
{
    double box[4], area;
    float stored[4];
    const int32_t *size = s->c->x.sizes[s->i];
    if (s->at[COCO_BOXES] == SIZE_MAX && s->at[COCO_AREA] == SIZE_MAX)
        return NULL;
    const char *problem = coco_box(a->bbox, box);
    if (problem)
        return problem;
    if (size[0] > 0 && size[1] > 0 &&
        (box[0] > size[0] || box[1] > size[1] || box[0] + box[2] < 0 || box[1] + box[3] < 0))
        return "its bbox is outside the image";
    area = box[2] * box[3];
    if (a->area.n > 0 && (coco_number(a->area, &area) || !isfinite((float)area)))
        return "its area is not a finite number";
    for (int d = 0; d < 4; d++)
        stored[d] = (float)box[d];
    const float small = (float)area;
    uint8_t *const to = place(s, COCO_BOXES, k, sizeof stored), *const to_area = place(s, COCO_AREA, k, sizeof small);
    if (to)
        memcpy(to, stored, sizeof stored);
    if (to_area)
        memcpy(to_area, &small, sizeof small);
    return NULL;
}

static const char *put_label(const struct sample *s, uint64_t k, const struct coco_annotation *a)
{
    const struct coco *c = s->c;
    if (s->at[COCO_LABELS] == SIZE_MAX && s->at[COCO_CATEGORY_ID] == SIZE_MAX)
        return NULL;
    if (!a->has_category)
        return "its category_id is missing or is not an integer";
    const int64_t category = coco_index_category(&c->x, a->category_id);
    const int64_t label = c->x.n_categories == 0 ? a->category_id : category < 0 ? -1 : c->labels[category];
    put_integer(s, COCO_CATEGORY_ID, k, a->category_id);
    put_integer(s, COCO_LABELS, k, label);
    return label < 0 && s->at[COCO_LABELS] != SIZE_MAX ? "its category is not among the given classes" : NULL;
}

/* Annotations without keypoints have zeros, which COCO's files mean by "not labelled". */
static const char *put_keypoints(const struct sample *s, uint64_t k, const struct coco_annotation *a)
{
    const size_t n = (size_t)s->c->x.keypoints * 3;
    uint8_t *to = place(s, COCO_KEYPOINTS, k, n * sizeof(float));
    struct buf *numbers = &s->r->spare[0];
    if (!to)
        return NULL;
    memset(to, 0, n * sizeof(float));
    if (a->keypoints.n == 0)
        return NULL;
    numbers->len = 0;
    const char *problem = coco_numbers(a->keypoints, numbers);
    if (problem)
        return problem == COCO_NO_MEMORY ? problem : "its keypoints are not a list of numbers";
    if (numbers->len != n * sizeof(double))
        return "its number of keypoints differs from that of its category";
    for (size_t i = 0; i < n; i++, to += sizeof(float)) {
        double v;
        memcpy(&v, numbers->data + i * sizeof v, sizeof v);
        if (!isfinite((float)v))
            return "its keypoints have a value that is not a finite number";
        const float small = (float)v;
        memcpy(to, &small, sizeof small);
    }
    return NULL;
}

static const char *put_caption(struct sample *s, const struct coco_annotation *a)
{
    if (s->at[COCO_CAPTIONS] == SIZE_MAX)
        return NULL;
    if (a->caption.n == 0 || *a->caption.p != '"')
        return "it has no caption";
    uint8_t *const to = s->r->derived.data + s->at[COCO_CAPTIONS] + s->captions_bytes;
    *to = s->captions_bytes == 0 ? '[' : ',';
    memcpy(to + 1, a->caption.p, a->caption.n);
    s->captions_bytes += a->caption.n + 1;
    return NULL;
}

static const char *put_mask(const struct sample *s, uint64_t k, const struct coco_annotation *a)
{
    const int32_t *size = s->c->x.sizes[s->i];
    struct rle_mask m = {.px = place(s, COCO_MASKS, k, mask_bytes(s)), .w = size[0], .h = size[1]};
    return m.px ? coco_mask(a->segmentation, &m, &s->r->spare[0], &s->r->spare[1]) : NULL;
}

static int put_annotation(struct sample *s, uint64_t k, struct slice text, stk_error *e)
{
    const struct coco_text *at = &s->c->x.annotations[s->first + k];
    struct coco_annotation a;
    double crowd = 0;
    const char *problem = coco_annotation(text, &a);
    if (problem || a.image_id != s->c->x.ids[s->i])
        return error_set(e, STK_EDATA, "read", "%.200s changed while it was in use; open it again", s->c->path);
    put_integer(s, COCO_ID, k, a.id);
    problem = put_box(s, k, &a);
    if (!problem)
        problem = put_label(s, k, &a);
    if (!problem)
        problem = put_keypoints(s, k, &a);
    if (!problem)
        problem = put_caption(s, &a);
    if (!problem && a.iscrowd.n > 0 && coco_number(a.iscrowd, &crowd))
        problem = memcmp(a.iscrowd.p, "true", 4) == 0 || memcmp(a.iscrowd.p, "fals", 4) == 0
                      ? NULL
                      : "its iscrowd is not a number";
    put_integer(s, COCO_ISCROWD, k, crowd != 0 || (a.iscrowd.n > 0 && *a.iscrowd.p == 't'));
    if (!problem)
        problem = put_mask(s, k, &a);
    return problem ? bad_annotation(s->c, &a, at, problem, e) : STK_OK;
}

/* Reads the annotations that are near each other with one call. */
static int put_annotations(struct sample *s, stk_error *e)
{
    const struct coco_text *annotations = s->c->x.annotations;
    char *const text = (char *)s->r->derived.data + s->text;
    int rc = STK_OK;
    for (uint64_t k = s->first; k < s->first + s->n && rc == STK_OK;) {
        size_t bytes;
        const uint64_t end = group_end(s, k, &bytes);
        const int64_t at = annotations[k].at;
        const ssize_t got = io_pread(s->c->fd, text, bytes, at);
        if (got < 0)
            return error_os(e, errno, "read", "%.200s cannot be read", s->c->path);
        if ((size_t)got < bytes)
            return error_set(e, STK_EDATA, "read", "%.200s changed while it was in use; open it again", s->c->path);
        text[bytes] = 0;
        for (; k < end && rc == STK_OK; k++)
            rc = put_annotation(s, k - s->first, (struct slice){text + (annotations[k].at - at), annotations[k].bytes},
                                e);
    }
    return rc;
}

static struct cell cell_of(const struct sample *s, enum coco_column w)
{
    struct cell c = {.bytes = s->r->derived.data + s->at[w],
                     .n = column_bytes(s, w),
                     .dtype = STK_INT64,
                     .ndim = w == COCO_IMAGE_ID ? 0 : 1,
                     .shape = {(int64_t)s->n}};
    if (w == COCO_BOXES || w == COCO_AREA || w == COCO_KEYPOINTS)
        c.dtype = STK_FLOAT32;
    if (w == COCO_BOXES) {
        c.ndim = 2;
        c.shape[1] = 4;
    } else if (w == COCO_KEYPOINTS) {
        c.ndim = 3;
        c.shape[1] = s->c->x.keypoints;
        c.shape[2] = 3;
    } else if (w == COCO_MASKS) {
        c.dtype = STK_UINT8;
        c.ndim = 3;
        c.shape[1] = s->c->x.sizes[s->i][1];
        c.shape[2] = s->c->x.sizes[s->i][0];
    } else if (w == COCO_CAPTIONS) {
        c = (struct cell){.bytes = c.bytes, .n = s->captions_bytes};
    }
    return c;
}

int coco_cells_read(const void *state, const struct source *from, struct reading *r, int64_t i, stk_error *e)
{
    const struct coco *c = state;
    struct sample s = {.c = c, .r = r, .i = i, .first = c->x.starts[i], .n = c->x.starts[i + 1] - c->x.starts[i]};
    int rc = lay_out(&s, from, e);
    if (rc == STK_OK)
        rc = put_annotations(&s, e);
    if (rc != STK_OK)
        return rc;
    put_integer(&s, COCO_IMAGE_ID, 0, c->x.ids[i]);
    if (s.at[COCO_CAPTIONS] != SIZE_MAX) {
        uint8_t *const to = r->derived.data + s.at[COCO_CAPTIONS];
        if (s.captions_bytes == 0)
            to[s.captions_bytes++] = '[';
        to[s.captions_bytes++] = ']';
    }
    for (int f = 0; f < from->n_fields; f++)
        if (from->fields[f].column >= 1)
            r->cells[f] = cell_of(&s, c->whats[from->fields[f].column]);
    return STK_OK;
}
