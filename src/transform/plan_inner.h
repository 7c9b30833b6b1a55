/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_inner.h -- the contents of a plan, for plan*.c.
 */
#ifndef PLAN_INNER_H
#define PLAN_INNER_H

#include "transform/kernel.h"
#include "transform/ops.h"
#include "transform/plan.h"

struct plan {
    struct ops ops;
    struct kernels kernels;
    struct levels levels;
    store_fn *store, *stream; /* stream: NULL if it does not pay or does not fit */
    size_t element;           /* bytes of one value */
    size_t row_bytes;         /* of a whole row of the batch; 0: rows differ */
    stk_layout layout;
    bool draft;
    int head; /* count of ops before the first that draws */
    char text[OPS_TEXT];
};

/* Bytes of one line of w pixels of a row. */
static inline size_t plan_pitch(const struct plan *p, int32_t w)
{
    return (size_t)w * p->element * (p->layout == STK_NHWC ? (size_t)p->ops.channels : 1);
}

/* What was drawn for one op; its kind determines which members are used. */
struct drawn {
    struct rect crop;   /* in the image before the op, not yet padded */
    int32_t padding[4]; /* left, top, right, bottom */
    bool flip;
    int32_t w, h; /* of the image after the op */
};

/* The steps as the ops say, each on the whole image; the steps of plan_draw give the same bits. drawn: what was
 * drawn for every op; may be NULL. */
int plan_steps(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out,
               struct drawn drawn[OPS_MAX], stk_error *e);

/* The index of the pixel at i of n, where i may be outside; -1: the fill. */
int32_t plan_pad_index(int32_t i, int32_t n, enum pad_mode mode);
/* The part of its input that a step needs. */
struct rect plan_needs(const struct step *s);
/* One direction of a resize. */
struct axis plan_axis_x(const struct step *s);
struct axis plan_axis_y(const struct step *s);

#endif
