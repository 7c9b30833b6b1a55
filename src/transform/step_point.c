/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_point.c -- points and boxes through steps.
 */
#include "transform/step_point.h"

#include <math.h>

bool step_point(const struct step *s, double *x, double *y)
{
    const bool part = s->kind == STEP_RESIZE && s->box.w > 0.0;
    switch (s->kind) {
    case STEP_CROP:
        *x -= s->x;
        *y -= s->y;
        return true;
    case STEP_RESIZE:
        *x = part ? (*x - s->box.x) * s->w / s->box.w : *x * s->w / s->in_w;
        *y = part ? (*y - s->box.y) * s->h / s->box.h : *y * s->h / s->in_h;
        return true;
    case STEP_FLIP_X:
        *x = s->in_w - *x;
        return true;
    case STEP_FLIP_Y:
        *y = s->in_h - *y;
        return true;
    case STEP_WARP:
        return warp_point(&s->warp, x, y);
    case STEP_ELASTIC:
        elastic_point(&s->elastic, x, y);
        return true;
    default:
        return true;
    }
}

bool step_box(const struct step *s, double box[4])
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++) {
        double at[2] = {box[i % 2 ? 2 : 0], box[i / 2 ? 3 : 1]};
        if (!step_point(s, &at[0], &at[1]))
            return false;
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], at[k]);
            high[k] = fmax(high[k], at[k]);
        }
    }
    for (int k = 0; k < 2; k++) {
        box[k] = low[k];
        box[k + 2] = high[k];
    }
    return true;
}
