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

static int draw_sequence(struct drawing *g, const struct op *o)
{
    drawing_note_open(g, "ops");
    const int rc = draw_all(g, o);
    drawing_note_close(g);
    return rc;
}

/* ------------------------------------------------------------------ RandomChoice, RandomOrder */

enum { TRANSFORMS, WEIGHTS };

static const struct arg_type arg_weights = {"a list with a weight of at least 0 for every op, or None", .high = 1e9,
                                            .counts = (ARG_COUNT(ARG_NUMBERS) << 1) - 2, .none = true};

static int n_children(const struct op *o)
{
    int n = 0;
    for (const struct op *c = o + 1; c < o + o->span; c += c->span)
        n++;
    return n;
}

static const struct op *child(const struct op *o, int i)
{
    const struct op *c = o + 1;
    while (i-- > 0)
        c += c->span;
    return c;
}

static int check_weights(const struct flow *f, const struct op *o, int n)
{
    const struct arg *w = &o->arg[WEIGHTS];
    double sum = 0;
    if (n == 0)
        return text_error(f->text, o->column, "%s: transforms has no op to choose from", op_name(o));
    if (w->n > 0 && w->n != n)
        return text_error(f->text, o->column, "%s: p has %d numbers for %d ops", op_name(o), w->n, n);
    for (int i = 0; i < w->n; i++)
        sum += w->v[i];
    if (w->n > 0 && sum <= 0)
        return text_error(f->text, o->column, "%s: all numbers of p are 0", op_name(o));
    return STK_OK;
}

static int check_choice(struct flow *f, const struct op *o)
{
    const struct flow before = *f;
    const int n = n_children(o);
    int rc = check_weights(f, o, n);
    for (int i = 0; i < n && rc == STK_OK; i++) {
        struct flow one = before;
        one.inside = o;
        rc = flow_op(&one, child(o, i));
        one.inside = before.inside;
        if (rc == STK_OK && i > 0)
            rc = join(f, &one, o);
        else if (rc == STK_OK)
            *f = one;
    }
    return rc;
}

static int choose(const struct op *o, struct rng *r)
{
    const struct arg *w = &o->arg[WEIGHTS];
    double sum = 0;
    if (w->n == 0)
        return (int)rng_below(r, (uint64_t)n_children(o));
    for (int i = 0; i < w->n; i++)
        sum += w->v[i];
    double left = sum * rng_double(r);
    int last = 0;
    for (int i = 0; i < w->n; i++) {
        if (w->v[i] == 0)
            continue;
        last = i;
        left -= w->v[i];
        if (left < 0)
            break;
    }
    return last;
}

static int draw_choice(struct drawing *g, const struct op *o)
{
    struct rng r = drawing_rng(g, o);
    const int i = choose(o, &r);
    drawing_note_int(g, "idx", i);
    drawing_note_open(g, "ops");
    const int rc = drawing_op(g, child(o, i));
    drawing_note_close(g);
    return rc;
}

/* Only ops that keep the size and the channels can come in any order. */
static int check_order(struct flow *f, const struct op *o)
{
    const struct flow before = *f;
    for (const struct op *c = o + 1; c < o + o->span; c += c->span) {
        struct flow one = before;
        one.inside = o;
        const int rc = flow_op(&one, c);
        if (rc)
            return rc;
        if (one.channels != f->channels || one.w != f->w || one.h != f->h)
            return text_error(f->text, c->column,
                              "%s changes the size or the channels, so it cannot be inside %s; move it before that op",
                              op_name(c), op_name(o));
    }
    return STK_OK;
}

static int draw_in_order(struct drawing *g, const struct op *o)
{
    int32_t order[OPS_MAX];
    const int n = n_children(o);
    struct rng r = drawing_rng(g, o);
    int rc = STK_OK;
    drawing_shuffle(&r, order, n);
    drawing_note_ints(g, "order", order, n);
    drawing_note_open(g, "ops");
    for (int i = 0; i < n && rc == STK_OK; i++)
        rc = drawing_op(g, child(o, order[i]));
    drawing_note_close(g);
    return rc;
}

const struct spec ops_choice[] = {
    {"Identity", OP_MOVES, {{0}}, NULL, NULL},
    {"Compose", OP_RANDOM, {{"transforms", &arg_ops, NULL}}, check_all, draw_sequence},
    {"RandomApply", OP_RANDOM, {{"transforms", &arg_ops, NULL}, {"p", &arg_p, "0.5"}}, check_apply, draw_apply},
    {"RandomChoice",
     OP_RANDOM,
     {{"transforms", &arg_ops, NULL}, {"p", &arg_weights, "None"}},
     check_choice,
     draw_choice},
    {"RandomOrder", OP_RANDOM, {{"transforms", &arg_ops, NULL}}, check_order, draw_in_order},
    {0},
};
