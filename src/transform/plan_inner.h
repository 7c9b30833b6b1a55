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
    blend_fn *blend;          /* NULL: the type is not a float */
    store_fn *store, *stream; /* stream: NULL if it does not pay or does not fit */
    size_t element;           /* bytes of one value */
    size_t row_bytes;         /* of a whole row of the batch; 0: rows differ */
    stk_layout layout;
    stk_dtype dtype;
    bool bytes; /* rows are bytes with interleaved channels, whatever the type and the layout */
    bool draft;
    int head; /* index of the first op that draws; ops.n: none */
    char text[OPS_TEXT];
};

/* Bytes of one line of w pixels of a row. */
static inline size_t plan_pitch(const struct plan *p, int32_t w)
{
    return (size_t)w * p->element * (p->layout == STK_NHWC ? (size_t)p->ops.channels : 1);
}

/* The steps as the ops say, each on the whole image; the steps of plan_draw give the same bits. notes: gets what was
 * drawn, as JSON; may be NULL. Steps that move pixels apply to a mask or to boxes of the image as well. */
int plan_steps(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out, struct json *notes,
               stk_error *e);

/* Overwrites a rectangle of the row. */
void plan_erase(const struct plan *p, const struct job *j, const struct erase *e, uint8_t *row);

#endif
