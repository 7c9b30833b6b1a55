/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.c -- boxes and points through steps.
 */
#include "transform/follow.h"

#include <math.h>

/* ------------------------------------------------------------------ one step */

bool follow_step_point(const struct step *s, double *x, double *y)
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

bool follow_step_box(const struct step *s, double box[4])
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++) {
        double at[2] = {box[i % 2 ? 2 : 0], box[i / 2 ? 3 : 1]};
        if (!follow_step_point(s, &at[0], &at[1]))
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

/* ------------------------------------------------------------------ all steps */

static double between(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

static double area(const double box[4])
{
    return (box[2] - box[0]) * (box[3] - box[1]);
}

/* Returns the share of the area that is left. */
static double clamp_box(const struct step *s, double box[4])
{
    const double before = area(box);
    for (int k = 0; k < 4; k++)
        box[k] = between(box[k], 0.0, k % 2 ? s->h : s->w);
    return before > 0.0 ? area(box) / before : 1.0;
}

/* torchvision places an expanded image by its corners; Pillow by its middle, to whole pixels. */
static void from_corner(const struct step *s, double at[2])
{
    double low[2] = {INFINITY, INFINITY};
    for (int i = 0; i < 4; i++) {
        double corner[2] = {i % 2 ? s->in_w : 0.0, i / 2 ? s->in_h : 0.0};
        warp_point(&s->warp, &corner[0], &corner[1]);
        low[0] = fmin(low[0], corner[0]);
        low[1] = fmin(low[1], corner[1]);
    }
    at[0] -= low[0];
    at[1] -= low[1];
}

static bool is_inside(const struct step *s, const double box[4])
{
    const double x = 0.5 * (box[0] + box[2]), y = 0.5 * (box[1] + box[3]);
    return s->x < x && x < s->x + s->w && s->y < y && y < s->y + s->h;
}

/* Returns false if the box goes nowhere. */
static bool warp_box(const struct step *s, double box[4])
{
    if (!follow_step_box(s, box))
        return false;
    if (s->warp.expanded) {
        from_corner(s, box);
        from_corner(s, box + 2);
    }
    return true;
}

/* torchvision rounds corners up to whole pixels. */
static void bend_box(const struct step *s, double box[4])
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++) {
        double x = ceil(box[i % 2 ? 2 : 0]), y = ceil(box[i / 2 ? 3 : 1]);
        elastic_point(&s->elastic, &x, &y);
        low[0] = fmin(low[0], x);
        low[1] = fmin(low[1], y);
        high[0] = fmax(high[0], x);
        high[1] = fmax(high[1], y);
    }
    box[0] = low[0];
    box[1] = low[1];
    box[2] = high[0];
    box[3] = high[1];
}

/* visible: the share of the area that is left. */
static bool suffices(const struct step *s, const double box[4], double visible)
{
    const float l = (float)box[0], t = (float)box[1], r = (float)box[2], b = (float)box[3];
    const float w = r - l, h = b - t, size = (float)s->least.size;
    return visible >= s->least.visible && w >= size && h >= size && w * h >= (float)s->least.area && l >= 0.0f &&
           t >= 0.0f && r >= 0.0f && b >= 0.0f && l <= (float)s->w && r <= (float)s->w && t <= (float)s->h &&
           b <= (float)s->h;
}

/* torchvision multiplies integers by a ratio in single precision, and cuts the fraction off. */
static void resize_whole(const struct step *s, double box[4])
{
    for (int k = 0; k < 4; k++) {
        const double ratio = k % 2 ? (double)s->h / s->in_h : (double)s->w / s->in_w;
        box[k] = (double)truncf((float)box[k] * (float)ratio);
    }
}

bool follow_box(const struct job *j, bool whole, double box[4])
{
    bool cut = false;
    double visible = 1.0; /* of the area since the last SanitizeBoundingBoxes */
    for (const struct step *s = j->steps; s < j->steps + j->n_steps; s++) {
        const bool gone =
            (s->kind == STEP_CROP && s->drops && !is_inside(s, box)) || (s->kind == STEP_WARP && !warp_box(s, box));
        if (s->kind == STEP_SANITIZE_BOXES) {
            if (!suffices(s, box, visible))
                return false;
            visible = 1.0;
        }
        cut |= whole && s->kind == STEP_WHOLE_BOXES;
        if (s->kind == STEP_ELASTIC)
            bend_box(s, box);
        else if (s->kind == STEP_RESIZE && cut)
            resize_whole(s, box);
        else if (s->kind != STEP_WARP)
            follow_step_box(s, box);
        if (s->kind == STEP_CROP || s->kind == STEP_WARP || s->kind == STEP_ELASTIC || s->kind == STEP_CLAMP_BOXES)
            visible *= clamp_box(s, box);
        for (int k = 0; k < 4 && gone; k++)
            box[k] = 0.0;
    }
    return true;
}

bool follow_point(const struct job *j, double at[2])
{
    bool stays = true;
    for (const struct step *s = j->steps; s < j->steps + j->n_steps; s++) {
        follow_step_point(s, &at[0], &at[1]);
        if (s->kind == STEP_FLIP_X)
            at[0] -= 1.0;
        else if (s->kind == STEP_FLIP_Y)
            at[1] -= 1.0;
        else if (s->kind == STEP_WARP && s->warp.expanded)
            from_corner(s, at);
        else if (s->kind == STEP_CLAMP_POINTS) {
            at[0] = between(at[0], 0.0, s->w - 1);
            at[1] = between(at[1], 0.0, s->h - 1);
        } else if (s->kind == STEP_SANITIZE_POINTS)
            stays &= at[0] >= 0.0 && at[1] >= 0.0 && at[0] < s->w && at[1] < s->h;
    }
    return stays;
}
