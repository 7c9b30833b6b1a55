/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_check.c -- checks that ops fit together: sizes, channels and types, from the first op to the last.
 */
#include "transform/ops_check.h"

/* The image between two ops. */
struct flow {
    struct ops *ops;
    struct text *text;
    stk_dtype dtype; /* of the result */
    int32_t w, h;    /* 0: open */
    int channels;
    const struct op *floats; /* the op that converts bytes to floats; NULL: none yet */
    const struct op *bytes;  /* the op that asks for bytes; NULL: none yet */
};

bool op_resized(const struct op *o, int32_t w, int32_t h, int32_t *out_w, int32_t *out_h)
{
    const bool tall = w <= h;
    const double few = tall ? w : h, many = tall ? h : w;
    double low = o->h, high = (double)o->h * many;
    high = (double)(int64_t)(high / few);
    if (o->max_size && high > o->max_size) {
        low = (double)(int64_t)((double)o->max_size * low / high);
        high = o->max_size;
    }
    if (o->w) {
        *out_w = o->w;
        *out_h = o->h;
        return true;
    }
    if (low < 1 || high > OPS_FAR)
        return false;
    *out_w = (int32_t)(tall ? low : high);
    *out_h = (int32_t)(tall ? high : low);
    return true;
}

static int check_resize(struct flow *f, const struct op *o)
{
    if (o->max_size && o->w)
        return text_error(f->text, o->column, "Resize: max_size is allowed only if size is one number");
    if (o->max_size && o->max_size <= o->h)
        return text_error(f->text, o->column, "Resize: max_size %d must be larger than size %d", o->max_size, o->h);
    if (o->w || f->w == 0) {
        f->w = o->w;
        f->h = o->w ? o->h : 0;
        return STK_OK;
    }
    if (!op_resized(o, f->w, f->h, &f->w, &f->h) || f->w > OPS_SIDE || f->h > OPS_SIDE)
        return text_error(f->text, o->column, "Resize: the longer side becomes more than %d", OPS_SIDE);
    return STK_OK;
}

static int check_fill(struct flow *f, const struct op *o)
{
    if (o->n_fill != 1 && o->n_fill != f->channels)
        return text_error(f->text, o->column, "%s: fill has %d numbers, but the image has %d channel here",
                          op_name(o->kind), o->n_fill, f->channels);
    return STK_OK;
}

static int check_pad(struct flow *f, const struct op *o)
{
    if (f->w == 0)
        return check_fill(f, o);
    f->w += o->pad.left + o->pad.right;
    f->h += o->pad.top + o->pad.bottom;
    if (f->w > OPS_SIDE || f->h > OPS_SIDE)
        return text_error(f->text, o->column, "Pad: a side becomes more than %d", OPS_SIDE);
    return check_fill(f, o);
}

static int check_normalize(struct flow *f, const struct op *o)
{
    if (f->dtype == STK_UINT8)
        return text_error(f->text, o->column,
                          "Normalize gives floats, but the dtype is uint8: leave it out, or ask for "
                          "float32, float16 or bfloat16");
    if (o->n_std == 0)
        return text_error(f->text, o->column, "Normalize: std is missing");
    const int n = o->n_mean != 1 ? o->n_mean : o->n_std;
    if ((o->n_mean != 1 && o->n_mean != f->channels) || (o->n_std != 1 && o->n_std != f->channels))
        return text_error(f->text, o->column, "Normalize has values for %d channels, but the image has %d here", n,
                          f->channels);
    f->ops->normalize = (int)(o - f->ops->op);
    return STK_OK;
}

static int check_to_tensor(struct flow *f, const struct op *o)
{
    if (f->dtype == STK_UINT8)
        return text_error(f->text, o->column,
                          "ToTensor gives floats from 0 to 1, but the dtype is uint8: leave it out, or "
                          "ask for float32, float16 or bfloat16");
    if (!f->floats)
        f->floats = o;
    return STK_OK;
}

static int disagree(const struct flow *f, const struct op *o)
{
    return text_error(f->text, o->column, "ToDtype(%s), but the dtype of the loader is %s: make them equal",
                      dtype_name(o->dtype), dtype_name(f->dtype));
}

static int check_to_dtype(struct flow *f, const struct op *o)
{
    if (o->dtype == STK_UINT8 && f->floats)
        return text_error(f->text, o->column,
                          "ToDtype(uint8) comes after %s: floats cannot become bytes again; remove one of them",
                          op_name(f->floats->kind));
    if (o->dtype == STK_UINT8) {
        f->bytes = o;
        return STK_OK;
    }
    if (o->dtype != f->dtype)
        return disagree(f, o);
    if (!f->floats) {
        f->floats = o;
        f->ops->unit = o->scaled ? UNIT_TIMES : UNIT_KEEP;
    }
    return STK_OK;
}

/* Whether an op only moves pixels. Only such an op gives the same result on floats as on bytes. */
static bool only_moves(const struct op *o)
{
    switch (o->kind) {
    case OP_PAD:
    case OP_RANDOM_CROP:
        return (o->fill[0] | o->fill[1] | o->fill[2]) == 0;
    case OP_RESIZE:
    case OP_RANDOM_RESIZED_CROP:
    case OP_GREY:
        return false;
    default:
        return true;
    }
}

static int check_op(struct flow *f, const struct op *o)
{
    if (f->ops->normalize >= 0)
        return text_error(f->text, o->column, "%s comes after Normalize: put it before", op_name(o->kind));
    if (f->floats && !only_moves(o))
        return text_error(f->text, o->column, "%s comes after %s, which makes floats: put it before", op_name(o->kind),
                          op_name(f->floats->kind));
    switch (o->kind) {
    case OP_RESIZE:
        return check_resize(f, o);
    case OP_CENTER_CROP:
    case OP_RANDOM_CROP:
    case OP_RANDOM_RESIZED_CROP:
        f->w = o->w;
        f->h = o->h;
        return check_fill(f, o);
    case OP_PAD:
        return check_pad(f, o);
    case OP_GREY:
        f->channels = o->channels;
        return STK_OK;
    case OP_NORMALIZE:
        return check_normalize(f, o);
    case OP_TO_TENSOR:
        return check_to_tensor(f, o);
    case OP_TO_DTYPE:
        return check_to_dtype(f, o);
    default:
        return STK_OK;
    }
}

int ops_check(struct ops *ops, struct text *t, stk_dtype dtype, bool open)
{
    struct flow f = {.ops = ops, .text = t, .dtype = dtype, .w = ops->w, .h = ops->h, .channels = 3};
    for (int i = 0; i < ops->n; i++) {
        const int rc = check_op(&f, &ops->op[i]);
        if (rc)
            return rc;
    }
    if (f.bytes && !f.floats && ops->normalize < 0 && dtype != STK_UINT8)
        return disagree(&f, f.bytes);
    if (f.w == 0 && !open)
        return error_set(t->e, STK_EUSAGE, "ops",
                         "ops: the results can differ in size, but a batch needs one size: end with CenterCrop(224), "
                         "give Resize both sides, as in Resize((224, 224)), or use batch_size 1");
    if (f.w > OPS_SIDE || f.h > OPS_SIDE)
        return error_set(t->e, STK_EUSAGE, "ops", "ops: the images have %d x %d pixels; a side may have at most %d",
                         (int)f.w, (int)f.h, OPS_SIDE);
    ops->w = f.w;
    ops->h = f.h;
    ops->channels = f.channels;
    return STK_OK;
}
