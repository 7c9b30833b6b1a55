/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_choice.c -- ops that have ops as their argument.
 */
#include "transform/drawing.h"

/* Ops inside others must agree: a result has the same channels whichever ops are chosen, or the batch would not. Sizes
 * that differ leave the size open. */
static int join(struct flow *f, const struct flow *other, const struct op *o)
{
    if (f->channels != other->channels)
        return text_error(f->text, o->column, "%s: the image has %d or %d channels, depending on the draw", op_name(o),
                          f->channels, other->channels);
    if (f->w != other->w || f->h != other->h)
        f->w = f->h = 0;
    return STK_OK;
}

static int check_all(struct flow *f, const struct op *o)
{
    const struct op *outer = f->inside;
    int rc = STK_OK;
    f->inside = o;
    for (const struct op *c = o + 1; c < o + o->span && rc == STK_OK; c += c->span)
        rc = flow_op(f, c);
    f->inside = outer;
    return rc;
}

static int check_apply(struct flow *f, const struct op *o)
{
    const struct flow before = *f;
    const double p = op_arg(o, &arg_p)->v[0];
    const int rc = check_all(f, o);
    return rc || p == 1 ? rc : join(f, &before, o);
}

static int draw_all(struct drawing *g, const struct op *o)
{
    int rc = STK_OK;
    for (const struct op *c = o + 1; c < o + o->span && rc == STK_OK; c += c->span)
        rc = drawing_op(g, c);
    return rc;
}

static int draw_apply(struct drawing *g, const struct op *o)
{
    struct rng r = drawing_rng(g, o);
    const bool yes = drawing_chance(g, o, &r);
    drawing_note_open(g, "ops");
    const int rc = yes ? draw_all(g, o) : STK_OK;
    drawing_note_close(g);
    return rc;
}

const struct spec ops_choice[] = {
    {"RandomApply", OP_RANDOM, {{"transforms", &arg_ops, NULL}, {"p", &arg_p, "0.5"}}, check_apply, draw_apply},
    {0},
};
