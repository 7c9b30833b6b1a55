/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_resize.c -- the resize step, in up to two passes, in Pillow's order.
 *
 * Across before down: the first pass is done for all lines at once, the second line by line. Down before across: both
 * are done a few lines at a time.
 */
#include "base/size.h"
#include "transform/stage.h"

static struct axis axis_x(const struct step *s)
{
    const enum filter f = (enum filter)s->filter;
    return s->box.w > 0.0 ? resample_axis_box(f, s->in_w, s->box.x, s->box.w, s->w)
                          : resample_axis(f, s->antialias, s->in_w, s->w);
}

static struct axis axis_y(const struct step *s)
{
    const enum filter f = (enum filter)s->filter;
    return s->box.h > 0.0 ? resample_axis_box(f, s->in_h, s->box.y, s->box.h, s->h)
                          : resample_axis(f, s->antialias, s->in_h, s->h);
}

static struct reach axis_needs(const struct axis *a, struct reach out)
{
    return a->in == a->out && a->scale == 1.0 && a->start == 0.0 ? out : resample_needs(a, out);
}

struct rect resize_needs(const struct step *s)
{
    const struct axis across = axis_x(s), down = axis_y(s);
    const struct reach x = axis_needs(&across, (struct reach){s->need.x, s->need.w});
    const struct reach y = axis_needs(&down, (struct reach){s->need.y, s->need.h});
    return (struct rect){x.lo, y.lo, x.n, y.n};
}

static void take_taps(struct room *r, struct taps *t, const struct axis *a, struct reach out)
{
    const size_t n = ((size_t)out.n + TAPS_ROUND - 1) / TAPS_ROUND * TAPS_ROUND;
    t->groups = resample_groups(a, out);
    t->first = room_take(r, size_mul(n, sizeof *t->first));
    t->c = room_take(r, size_mul(n, size_mul((size_t)t->groups, 4 * sizeof *t->c)));
}

/* Pillow 13: down first if the height loses more than twice as many pixels as the width. */
static bool across_first(const struct step *s)
{
    const int64_t lost_w = (int64_t)s->in_w - s->w, lost_h = (int64_t)s->in_h - s->h;
    return !(lost_h > 0 && lost_h > 2 * lost_w);
}

static bool needs_across(const struct step *s)
{
    return s->in_w != s->w || s->box.w > 0.0;
}

static bool needs_down(const struct step *s)
{
    return s->in_h != s->h || s->box.h > 0.0;
}

void resize_lay(struct room *r, struct stage *st)
{
    const struct step *s = st->s;
    const struct axis x = axis_x(s), y = axis_y(s);
    st->resize.across = needs_across(s);
    st->resize.down = needs_down(s);
    st->resize.across_first = x.plain || across_first(s); /* torch: always */
    if (st->resize.across)
        take_taps(r, &st->resize.x, &x, (struct reach){s->need.x, s->need.w});
    if (st->resize.down)
        take_taps(r, &st->resize.y, &y, (struct reach){s->need.y, s->need.h});
    const int32_t groups = st->resize.x.groups > st->resize.y.groups ? st->resize.x.groups : st->resize.y.groups;
    st->resize.weights = room_take(r, size_mul((size_t)groups, 4 * sizeof *st->resize.weights));
    if (st->resize.across && st->resize.down)
        st->resize.between = st->resize.across_first ? room_image(r, s->need.w, s->from.h, s->in)
                                                     : room_image(r, s->from.w, STAGE_LINES, s->in);
}

bool stage_mirrors(const struct stage *st)
{
    return st->s && st->s->kind == STEP_RESIZE && st->resize.across;
}

static void across_lines(const struct kernels *k, const struct stage *st, uint8_t *dst, size_t stride,
                         const uint8_t *src, size_t src_stride, int32_t n)
{
    (st->in.channels == 3 ? k->across3 : k->across1)(dst, stride, src, src_stride, n, &st->resize.x);
}

/* Fills the tables, and runs the first pass if it is across. */
void resize_begin(const struct kernels *k, struct stage *st)
{
    const struct step *s = st->s;
    const struct axis x = axis_x(s), y = axis_y(s);
    struct taps *tx = &st->resize.x, *ty = &st->resize.y;
    if (st->resize.across) {
        resample_fill(tx, &x, (struct reach){s->need.x, s->need.w}, (struct reach){s->from.x, s->from.w}, st->mirrored,
                      st->resize.weights);
        k->arrange_weights(tx->c, ((size_t)tx->n + TAPS_ROUND - 1) / TAPS_ROUND * TAPS_ROUND * (size_t)tx->groups);
    }
    if (st->resize.down) {
        resample_fill(ty, &y, (struct reach){s->need.y, s->need.h}, (struct reach){s->from.y, s->from.h}, false,
                      st->resize.weights);
        k->arrange_weights(ty->c, (size_t)ty->n * (size_t)ty->groups);
    }
    if (st->resize.across && st->resize.down && st->resize.across_first)
        across_lines(k, st, st->resize.between.px, st->resize.between.stride, st->in.px, st->in.stride, s->from.h);
}

static void down_lines(const struct kernels *k, const struct stage *st, int32_t y, int32_t n, uint8_t *dst,
                       size_t stride, const struct image *from)
{
    const size_t bytes = (size_t)from->w * (size_t)from->channels;
    for (int32_t i = 0; i < n; i++, dst += stride)
        k->down(dst, from->px, from->stride, bytes, &st->resize.y, y + i);
}

void resize_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const struct image *between = &st->resize.between;
    if (!st->resize.down) {
        across_lines(k, st, dst, stride, image_line(&st->in, y), st->in.stride, n);
    } else if (!st->resize.across) {
        down_lines(k, st, y, n, dst, stride, &st->in);
    } else if (st->resize.across_first) {
        down_lines(k, st, y, n, dst, stride, between);
    } else {
        down_lines(k, st, y, n, between->px, between->stride, &st->in);
        across_lines(k, st, dst, stride, between->px, between->stride, n);
    }
}

/* ------------------------------------------------------------------ tables for a device */

/* Writes one table at to + out->first. `weights`, which is scratch, comes last. */
static bool write_pass(struct plan_pass *p, const struct axis *a, struct reach out, struct reach in, bool reverse,
                       uint8_t *to, size_t room, size_t *used)
{
    const size_t n = ((size_t)out.n + TAPS_ROUND - 1) / TAPS_ROUND * TAPS_ROUND, at = *used;
    struct taps t = {.groups = resample_groups(a, out)};
    const size_t taps = 4 * (size_t)t.groups, firsts = n * sizeof *t.first, weights = n * taps * sizeof *t.c;
    if (at > room || room - at < firsts + weights + taps * sizeof(double))
        return false;
    t.first = (int32_t *)(void *)(to + at);
    t.c = (int32_t *)(void *)(to + at + firsts);
    resample_fill(&t, a, out, in, reverse, (double *)(void *)(to + at + firsts + weights));
    *p = (struct plan_pass){.first = (uint32_t)at, .weights = (uint32_t)(at + firsts), .taps = (int32_t)taps};
    *used = at + firsts + weights;
    return true;
}

bool plan_passes(const struct job *j, uint8_t *to, size_t room, struct plan_passes *out)
{
    const struct step *s = &j->steps[0];
    *out = (struct plan_passes){0};
    if (j->n_erases > 0 || j->plain || j->in != 3 || j->channels != 3 || j->n_steps > 1)
        return false;
    if (j->n_steps == 0)
        return j->want.crop.w == j->w && j->want.crop.h == j->h;
    if (s->kind != STEP_RESIZE || s->need.w != j->w || s->need.h != j->h || s->from.w != j->want.crop.w ||
        s->from.h != j->want.crop.h)
        return false;
    const struct axis x = axis_x(s), y = axis_y(s);
    out->across_first = x.plain || across_first(s);
    return (!needs_across(s) || write_pass(&out->x, &x, (struct reach){s->need.x, s->need.w},
                                           (struct reach){s->from.x, s->from.w}, j->flip_x, to, room, &out->used)) &&
           (!needs_down(s) || write_pass(&out->y, &y, (struct reach){s->need.y, s->need.h},
                                         (struct reach){s->from.y, s->from.h}, false, to, room, &out->used));
}
