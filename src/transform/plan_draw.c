/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_draw.c -- draws what is random and turns ops into steps on an image of known size.
 *
 * plan_steps goes forward: every op adds its steps. trim then makes them cheap without changing a bit of the result:
 *   (1) flips move behind crops, which are mirrored, and behind steps that do the same to a mirrored image, and end in
 *       the store. They stay before a resize, because a mirrored resize rounds differently;
 *   (2) backwards from the result, every step learns which part of its output is needed, and which part of its input
 *       that takes. The part that the first step takes is what the decoder is asked for;
 *   (3) a crop that only selects a part of its input is no longer a step.
 *
 * plan_drawn writes what was drawn, in the terms of torchvision's functions:
 *
 *     "ops": [{"op": "RandomResizedCrop", "top": 3, "left": 5, "height": 100, "width": 90, "size": [224, 224]},
 *             {"op": "RandomHorizontalFlip", "flip": true}, {"op": "Normalize"}]
 *
 * Sizes are height and width; paddings are left, top, right and bottom. The crop of RandomCrop is in the padded image.
 * That of CenterCrop is in the image before it: if it pads, top and left are negative.
 */
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "transform/drawing.h"
#include "transform/plan_inner.h"
#include "transform/stage.h"

static const struct draw no_draw; /* for ops that do not draw */

/* Draws the ops from `first` to `end` on an image of the size and channels of `in`. */
static int draw_ops(const struct plan *p, const struct draw *d, int first, int end, struct image in, struct job *out,
                    struct json *notes, stk_error *e)
{
    struct drawing g = {
        .ops = &p->ops, .draw = d, .job = out, .w = in.w, .h = in.h, .channels = in.channels, .notes = notes, .e = e};
    out->want = (struct want){.crop = {0, 0, in.w, in.h}};
    out->n_steps = out->n_erases = 0;
    out->flip_x = out->flip_y = out->plain = false;
    if (in.w < 1 || in.h < 1 || in.w > OPS_FAR || in.h > OPS_FAR)
        return error_set(e, STK_EDATA, "transform", "an image of %d x %d pixels cannot be transformed", (int)in.w,
                         (int)in.h);
    for (const struct op *o = p->ops.op + first; o < p->ops.op + end; o += o->span) {
        const int rc = drawing_op(&g, o);
        if (rc)
            return rc;
    }
    if (g.full)
        return error_set(e, STK_EUSAGE, "transform", "the ops make more than %d steps; use fewer ops", JOB_STEPS - 1);
    out->w = g.w;
    out->h = g.h;
    out->in = in.channels;
    out->channels = g.channels;
    if (end == p->ops.n && !plan_is_open(p) && (g.w != p->ops.w || g.h != p->ops.h)) /* not the size that all have */
        return error_set(e, STK_EBUG, "transform", "%d x %d pixels become %d x %d, not %d x %d", (int)in.w, (int)in.h,
                         (int)g.w, (int)g.h, (int)p->ops.w, (int)p->ops.h);
    return STK_OK;
}

/* Keeps the steps for which `test` is `value`. */
static void keep(struct job *j, bool (*test)(const struct step *s), bool value)
{
    int n = 0;
    for (int i = 0; i < j->n_steps; i++) {
        if (test(&j->steps[i]) != value)
            continue;
        if (n != i)
            j->steps[n] = j->steps[i];
        n++;
    }
    j->n_steps = n;
}

static bool leaves_pixels(const struct step *s)
{
    return s->kind >= STEP_CLAMP_BOXES;
}

static bool concerns_followers(const struct step *s)
{
    return leaves_pixels(s) || s->kind == STEP_CROP || s->kind == STEP_RESIZE || s->kind == STEP_FLIP_X ||
           s->kind == STEP_FLIP_Y || s->kind == STEP_WARP || s->kind == STEP_ELASTIC || s->kind == STEP_FORK;
}

/* Draws all ops. Steps that leave the image alone are not part of its job. */
static int draw_all(const struct plan *p, const struct draw *d, int32_t w, int32_t h, bool follow, struct job *out,
                    struct json *notes, stk_error *e)
{
    const int rc = draw_ops(p, d, 0, p->ops.n, (struct image){.w = w, .h = h, .channels = 3}, out, notes, e);
    if (rc == STK_OK)
        keep(out, follow ? concerns_followers : leaves_pixels, follow);
    return rc;
}

int plan_steps(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out, struct json *notes,
               stk_error *e)
{
    return draw_all(p, d, w, h, false, out, notes, e);
}

int plan_drawn(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct json *j, stk_error *e)
{
    struct job job;
    json_open(j, "ops", '[');
    const int rc = plan_steps(p, d, w, h, &job, j, e);
    json_close(j, ']');
    return rc;
}

/* ------------------------------------------------------------------ trimming */

static struct step flip_of(enum step_kind kind, const struct step *next)
{
    const struct rect all = {0, 0, next->in_w, next->in_h};
    return (struct step){.kind = kind,
                         .in_w = all.w,
                         .in_h = all.h,
                         .w = all.w,
                         .h = all.h,
                         .from = all,
                         .need = all,
                         .in = next->in,
                         .channels = next->in};
}

/* (1) The list never grows: a flip that is written again was removed before. */
static void move_flips(struct job *j)
{
    bool x = false, y = false;
    int n = 0;
    for (int i = 0; i < j->n_steps; i++) {
        struct step s = j->steps[i];
        x ^= s.kind == STEP_FLIP_X;
        y ^= s.kind == STEP_FLIP_Y;
        if (s.kind == STEP_FLIP_X || s.kind == STEP_FLIP_Y)
            continue;
        if (s.kind == STEP_CROP) {
            s.x = x ? s.in_w - s.x - s.w : s.x;
            s.y = y ? s.in_h - s.y - s.h : s.y;
        } else if (!step_functions[s.kind].symmetric) {
            if (x)
                j->steps[n++] = flip_of(STEP_FLIP_X, &s);
            if (y)
                j->steps[n++] = flip_of(STEP_FLIP_Y, &s);
            x = y = false;
        }
        j->steps[n++] = s;
    }
    j->n_steps = n;
    j->flip_x = x;
    j->flip_y = y;
}

/* Whether a crop has nothing to pad, and so nothing to do. */
static bool only_looks(const struct step *s)
{
    return s->kind == STEP_CROP && s->from.x == s->x + s->need.x && s->from.y == s->y + s->need.y &&
           s->from.w == s->need.w && s->from.h == s->need.h;
}

/* The same with only the pixels that matter, and with flips moved to the end. */
static void trim(struct job *j)
{
    move_flips(j);
    struct rect need = j->n_steps ? j->steps[j->n_steps - 1].need : j->want.crop;
    for (int i = j->n_steps - 1; i >= 0; i--) { /* (2) */
        struct step *s = &j->steps[i];
        s->need = need;
        s->from = need = step_needs(s);
    }
    j->want.crop = need;
    int n = 0;
    for (int i = 0; i < j->n_steps; i++) /* (3) */
        if (!only_looks(&j->steps[i]))
            j->steps[n++] = j->steps[i];
    j->n_steps = n;
}

int plan_draw(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out, stk_error *e)
{
    const int rc = plan_steps(p, d, w, h, out, NULL, e);
    if (rc == STK_OK)
        trim(out);
    return rc;
}

int plan_follow(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out, stk_error *e)
{
    const int rc = draw_all(p, d, w, h, true, out, NULL, e);
    if (rc != STK_OK)
        return rc;
    for (int i = 0; i < out->n_steps; i++)
        if (out->steps[i].kind == STEP_FORK)
            return error_set(
                e, STK_EUSAGE, "transform",
                "ops that mix images, such as AugMix, cannot be combined with masks, boxes and keypoints; use others");
    return STK_OK;
}

int plan_follow_own(const struct plan *p, const struct job *before, struct job *out, stk_error *e)
{
    const int n = before->n_steps;
    const int rc = draw_all(p, &no_draw, before->w, before->h, true, out, NULL, e);
    if (rc != STK_OK)
        return rc;
    if (n + out->n_steps >= JOB_STEPS)
        return error_set(e, STK_EUSAGE, "transform", "the ops make more than %d steps; use fewer ops", JOB_STEPS - 1);
    memmove(out->steps + n, out->steps, (size_t)out->n_steps * sizeof *out->steps);
    memcpy(out->steps, before->steps, (size_t)n * sizeof *out->steps);
    out->n_steps += n;
    return STK_OK;
}

/* An op without steps does nothing, which is what Identity is for. */
const char *plan_not_own(const struct plan *p)
{
    enum { SIDE = 64 }; /* of an image to try the ops on */
    struct job j;
    for (const struct op *o = p->ops.op; o < p->ops.op + p->ops.n; o += o->span) {
        const int at = (int)(o - p->ops.op);
        const struct image in = {.w = SIDE, .h = SIDE, .channels = 3};
        if (op_draws(o) || (o->spec->flags & (OP_ALONE | OP_BATCH)) ||
            (o->spec->flags & (OP_TYPES | OP_BOXES)) == OP_TYPES)
            return op_name(o);
        draw_ops(p, &no_draw, at, at + o->span, in, &j, NULL, NULL); /* may fail because of this size */
        for (int i = 0; i < j.n_steps; i++)
            if (!concerns_followers(&j.steps[i]))
                return op_name(o);
    }
    return NULL;
}

int plan_draw_head(const struct plan *p, int32_t w, int32_t h, struct job *out, stk_error *e)
{
    const int rc = draw_ops(p, &no_draw, 0, p->head, (struct image){.w = w, .h = h, .channels = 3}, out, NULL, e);
    if (rc == STK_OK) {
        keep(out, leaves_pixels, false);
        trim(out);
    }
    out->plain = true;
    return rc;
}

int plan_draw_rest(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out, stk_error *e)
{
    const struct image in = {.w = w, .h = h, .channels = plan_head_channels(p)};
    const int rc = draw_ops(p, d, p->head, p->ops.n, in, out, NULL, e);
    if (rc == STK_OK) {
        keep(out, leaves_pixels, false);
        trim(out);
    }
    return rc;
}
