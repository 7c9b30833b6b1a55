/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_check.c -- checks that ops fit together: sizes, channels and types, from the first op to the last.
 */
#include "transform/ops_spec.h"

bool op_draws(const struct op *o)
{
    const struct arg *p = op_arg(o, &arg_p);
    if (o->spec->flags & OP_BY_P)
        return p->v[0] > 0 && p->v[0] < 1;
    return o->spec->flags & OP_RANDOM;
}

bool op_blends(const struct op *o)
{
    bool all = o->span > 1;
    for (const struct op *c = o + 1; c < o + o->span; c += c->span)
        all &= op_blends(c);
    return all || o->spec->flags & OP_BATCH;
}

int flow_check_fill(const struct flow *f, const struct op *o)
{
    const struct arg *fill = op_arg(o, &arg_fill);
    if (fill && fill->n > 1 && fill->n != f->channels)
        return text_error(f->text, o->column, "%s: fill has %d numbers, but the image has %d channel here", op_name(o),
                          fill->n, f->channels);
    return STK_OK;
}

/* Only an op that moves pixels and fills with 0 gives the same result on floats as on bytes. */
static bool only_moves(const struct op *o)
{
    const struct arg *fill = op_arg(o, &arg_fill);
    for (int i = 0; fill && i < fill->n; i++)
        if (fill->v[i] != 0)
            return false;
    return o->spec->flags & (OP_MOVES | OP_TYPES);
}

int flow_op(struct flow *f, const struct op *o)
{
    const bool blends = op_blends(o);
    const bool leaves = o->spec->flags & (OP_BOXES | OP_POINTS) && !(o->spec->flags & OP_RANDOM);
    if (leaves && !(f->inside && o->spec->flags & OP_TYPES))
        return STK_OK;
    if (f->blends && !f->inside)
        return text_error(f->text, o->column,
                          "%s comes after %s, which combines the rows of a batch; move it before that op", op_name(o),
                          op_name(f->blends));
    if (f->ops->erases && !(o->spec->flags & (OP_LATE | OP_TYPES)) && !blends)
        return text_error(f->text, o->column,
                          "%s comes after %s, which works on the finished row; move it before that op", op_name(o),
                          op_name(f->ops->erases));
    if (f->ops->normalize && !(o->spec->flags & OP_LATE) && !blends)
        return text_error(f->text, o->column, "%s comes after Normalize; move it before Normalize", op_name(o));
    if (f->floats && !blends && !only_moves(o))
        return text_error(f->text, o->column, "%s comes after %s, which makes floats; move it before that op",
                          op_name(o), op_name(f->floats));
    if (f->inside && o->spec->flags & OP_TYPES)
        return text_error(f->text, o->column, "%s cannot be inside %s; move it after that op", op_name(o),
                          op_name(f->inside));
    return o->spec->check ? o->spec->check(f, o) : STK_OK;
}

/* A request for bytes agrees with the result's type, unless floats are made of them. */
static int check_bytes(const struct flow *f)
{
    if (!f->bytes || f->floats || f->ops->normalize || f->dtype == STK_UINT8)
        return STK_OK;
    return text_error(f->text, f->bytes->column, "%s(uint8), but the dtype of the loader is %s: make them equal",
                      op_name(f->bytes), dtype_name(f->dtype));
}

int ops_check(struct ops *ops, struct text *t, stk_dtype dtype, bool open)
{
    struct flow f = {.ops = ops, .text = t, .dtype = dtype, .w = ops->w, .h = ops->h, .channels = 3};
    int rc = STK_OK;
    bool tensor = false;
    for (struct op *o = ops->op; o < ops->op + ops->n && rc == STK_OK; o += o->span) {
        rc = flow_op(&f, o);
        o->channels = f.channels;
        for (int i = 0; i < o->span; i++)
            o[i].tensor = tensor;
        tensor |= o->spec->flags & OP_TENSOR;
    }
    if (rc == STK_OK)
        rc = check_bytes(&f);
    if (rc)
        return rc;
    if (f.w == 0 && !open)
        return error_set(
            t->e, STK_EUSAGE, "ops",
            "ops: the results can differ in size, but a batch needs one size: end with CenterCrop(224), "
            "give Resize both sides, as in Resize((224, 224)), use batch_size 1, or set sizes to pad or list");
    if (f.w > OPS_SIDE || f.h > OPS_SIDE)
        return error_set(t->e, STK_EUSAGE, "ops", "ops: the images have %d x %d pixels; a side may have at most %d",
                         (int)f.w, (int)f.h, OPS_SIDE);
    ops->w = f.w;
    ops->h = f.h;
    ops->channels = f.channels;
    return STK_OK;
}
