/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns_follow.c -- the fields that follow the image: masks, boxes, keypoints, and numbers for each box.
 */
#include <string.h>

#include "base/error.h"
#include "source/columns.h"
#include "source/fields_text.h"

static int make_ragged(struct field *f, stk_dtype t, int ndim, const int64_t *shape, stk_error *e)
{
    f->what = STK_TENSOR;
    return columns_make_tensor(f, t, ndim, shape, e);
}

/* Rows of entries of one shape: as `fields` says, or as the column has them. */
static int make_entries(struct field *f, const struct column *c, const struct field_text *t, stk_dtype dtype,
                        stk_error *e)
{
    const bool points = f->follow == FOLLOW_POINTS;
    int64_t shape[FIELD_DIMS] = {-1, -1, -1};
    int ndim = points ? 3 : 1;
    if (t->shaped && t->ndim >= FIELD_DIMS)
        return error_set(e, STK_EUSAGE, "open", "the field %s has more than %d dimensions", f->name, FIELD_DIMS);
    if (t->shaped) {
        ndim = t->ndim + 1;
        memcpy(shape + 1, t->shape, (size_t)t->ndim * sizeof *shape);
    } else if (c->ndim > 1) {
        ndim = c->ndim;
        memcpy(shape + 1, c->shape + 1, (size_t)(ndim - 1) * sizeof *shape);
    }
    const int64_t last = shape[ndim - 1];
    if (points && (ndim < 2 || ndim > 3 || (last >= 0 && last != 2 && last != 3)))
        return error_set(e, STK_EUSAGE, "open",
                         "the field %s has keypoints, so an entry is a point (2) or (3), or points (17,3)", f->name);
    return make_ragged(f, dtype, ndim, shape, e);
}

/* A mask is an encoded image, the path of one, or numbers. */
static int make_mask(struct field *f, const struct column *c, stk_dtype dtype, stk_error *e)
{
    static const int64_t any[2] = {-1, -1};
    const bool numbers = columns_hold_numbers(c), text = c->kind == STK_JSON || (c->text && c->kind == STK_TENSOR);
    f->mask_dtype = dtype;
    if (numbers && c->ndim != 2)
        return error_set(e, STK_EUSAGE, "open", "the column %s has %d dimensions, but a mask has 2", c->name, c->ndim);
    if (numbers || text)
        return make_ragged(f, numbers ? c->dtype : STK_INT32, 2, any, e);
    f->what = STK_BYTES;
    f->file = c->kind == STK_TEXT;
    columns_make_run(f);
    return STK_OK;
}

int columns_follow(struct field *f, const struct column *c, const struct field_text *t, stk_error *e)
{
    static const int64_t box[2] = {-1, 4}, masks[3] = {-1, -1, -1};
    const bool own = !t->kind;
    f->follow = own ? c->follow : t->follow;
    f->box_format = own ? c->box_format : t->box_format;
    f->relative = own ? c->relative : t->relative;
    switch (f->follow) {
    case FOLLOW_MASK:
        return make_mask(f, c, t->dtype, e);
    case FOLLOW_MASKS:
        return make_ragged(f, STK_UINT8, 3, masks, e);
    case FOLLOW_BOXES:
        return make_ragged(f, STK_FLOAT32, 2, box, e);
    case FOLLOW_POINTS:
        return make_entries(f, c, t, STK_FLOAT32, e);
    default:
        return make_entries(f, c, t, t->dtype ? t->dtype : c->dtype ? c->dtype : STK_INT64, e);
    }
}
