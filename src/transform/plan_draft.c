/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_draft.c -- fidelity draft: an image that is resized to less than half is decoded smaller.
 *
 * Images decoded at a half, a quarter or an eighth have a grid that starts at the corner of the image. A crop seldom
 * starts at a pixel of that grid. So the resize uses a box that starts and ends between pixels: the result is neither
 * moved nor stretched.
 */
#include <math.h>

#include "transform/plan_inner.h"
#include "transform/stage.h"

/* The largest power of two up to `most` by which the input can shrink and still has at least as many pixels as the
 * output. */
static int shrink_of(const struct step *s, int most)
{
    int by = 1;
    while (2 * by <= most && s->in_w >= 2 * by * s->w && s->in_h >= 2 * by * s->h)
        by *= 2;
    return by;
}

/* Maps n pixels from `at` on to the grid: returns how many grid pixels they touch, and sets where in them they
 * start. */
static int32_t onto_grid(int32_t at, int32_t n, int by, int32_t *first, double *box, double *box_n)
{
    *first = at / by;
    *box = (double)at / by - *first;
    *box_n = (double)n / by;
    return (at + n + by - 1) / by - *first;
}

void plan_draft(const struct plan *p, struct job *j, int32_t w, int32_t h, int most)
{
    struct step *s = &j->steps[0];
    if (!p->draft || j->n_steps == 0 || s->kind != STEP_RESIZE || !s->antialias || s->filter == FILTER_NEAREST)
        return;
    const int by = shrink_of(s, most);
    const int32_t x = j->want.crop.x - s->from.x, y = j->want.crop.y - s->from.y; /* of the step's input in the image */
    if (by == 1 || x < 0 || y < 0 || s->in_w > w - x || s->in_h > h - y)
        return;
    int32_t left, top;
    s->in_w = onto_grid(x, s->in_w, by, &left, &s->box.x, &s->box.w);
    s->in_h = onto_grid(y, s->in_h, by, &top, &s->box.y, &s->box.h);
    s->from = step_needs(s);
    j->want.crop = (struct rect){left + s->from.x, top + s->from.y, s->from.w, s->from.h};
    j->want.shrink = by;
}
