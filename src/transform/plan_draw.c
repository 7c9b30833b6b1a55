/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_draw.c -- draws what is random and turns ops into steps on an image of known size.
 *
 * plan_steps goes forward and writes the steps as the ops say. trim then makes them cheap without changing a bit of the
 * result:
 *   (1) flips move behind crops, which are mirrored, and behind greys, and end in the store. They stay only before a
 *       resize, because a mirrored resize rounds differently;
 *   (2) backwards from the result, every step learns which part of its output is needed, and which part of its input
 * that takes. The part that the first step takes is what the decoder is asked for; (3) a crop that only selects a part
 * of its input is no longer a step.
 */
#include <limits.h>
#include <math.h>

#include "base/error.h"
#include "base/rng.h"
#include "transform/plan_inner.h"

/* The image between two ops. */
struct drawing {
    const struct draw *draw;
    struct job *job;
    int32_t w, h;
    int channels;
    struct drawn *drawn; /* of the current op */
    stk_error *e;
};

static int refuse(const struct drawing *g, const struct op *o, const char *why)
{
    return error_set(g->e, STK_EDATA, "transform", "%s: the image has %d x %d pixels here, %s", op_name(o->kind),
                     (int)g->w, (int)g->h, why);
}

static struct step *add(struct drawing *g, enum step_kind kind, int32_t w, int32_t h)
{
    struct step *s = &g->job->steps[g->job->n_steps++];
    *s = (struct step){.kind = kind,
                       .in_w = g->w,
                       .in_h = g->h,
                       .w = w,
                       .h = h,
                       .from = {0, 0, g->w, g->h},
                       .need = {0, 0, w, h},
                       .channels = (int8_t)g->channels};
    g->w = w;
    g->h = h;
    return s;
}

static void add_crop(struct drawing *g, int32_t x, int32_t y, int32_t w, int32_t h, const struct op *o)
{
    g->drawn->crop = (struct rect){x, y, w, h};
    if (x == 0 && y == 0 && w == g->w && h == g->h)
        return;
    struct step *s = add(g, STEP_CROP, w, h);
    s->x = x;
    s->y = y;
    s->pad_mode = (int8_t)o->pad_mode;
    for (int i = 0; i < 3; i++)
        s->fill[i] = o->fill[i];
}

static void add_resize(struct drawing *g, int32_t w, int32_t h, const struct op *o)
{
    if (w == g->w && h == g->h)
        return;
    struct step *s = add(g, STEP_RESIZE, w, h);
    s->filter = (int8_t)o->filter;
    s->antialias = o->antialias;
}

/* Python's round: halves to even. */
static int32_t even_round(double x)
{
    const double low = floor(x), rest = x - low;
    const bool up = rest > 0.5 || (rest == 0.5 && fmod(low, 2.0) != 0.0);
    return (int32_t)(up ? low + 1.0 : low);
}

static int draw_resize(struct drawing *g, const struct op *o)
{
    int32_t w, h;
    if (!op_resized(o, g->w, g->h, &w, &h))
        return refuse(g, o, "which is too long and narrow to resize");
    add_resize(g, w, h, o);
    return STK_OK;
}

/* Crops half of the excess on either side, or pads half of what is missing. */
static int32_t center(int32_t have, int32_t want)
{
    return want > have ? -((want - have) / 2) : even_round((have - want) / 2.0);
}

static int draw_center_crop(struct drawing *g, const struct op *o)
{
    add_crop(g, center(g->w, o->w), center(g->h, o->h), o->w, o->h, o);
    return STK_OK;
}

static int check_padding(const struct drawing *g, const struct op *o, int32_t left, int32_t top, int32_t right,
                         int32_t bottom)
{
    const int32_t across = left > right ? left : right, down = top > bottom ? top : bottom;
    if (o->pad_mode == PAD_REFLECT && (across >= g->w || down >= g->h))
        return refuse(g, o, "but padding_mode=reflect needs more pixels than it pads; use edge or symmetric");
    if ((int64_t)g->w + left + right > OPS_FAR || (int64_t)g->h + top + bottom > OPS_FAR)
        return refuse(g, o, "which is too large to pad");
    return STK_OK;
}

static int draw_pad(struct drawing *g, const struct op *o)
{
    const int rc = check_padding(g, o, o->pad.left, o->pad.top, o->pad.right, o->pad.bottom);
    if (rc == STK_OK)
        add_crop(g, -o->pad.left, -o->pad.top, g->w + o->pad.left + o->pad.right, g->h + o->pad.top + o->pad.bottom, o);
    return rc;
}

static int draw_random_crop(struct drawing *g, const struct op *o)
{
    int32_t left = o->pad.left, right = o->pad.right, top = o->pad.top, bottom = o->pad.bottom;
    const int32_t lack_w = o->w - (g->w + left + right), lack_h = o->h - (g->h + top + bottom);
    if (!o->pad_if_needed && (lack_w > 0 || lack_h > 0))
        return refuse(g, o, "fewer than the crop; use pad_if_needed=True to pad it");
    if (lack_w > 0) {
        left += lack_w;
        right += lack_w;
    }
    if (lack_h > 0) {
        top += lack_h;
        bottom += lack_h;
    }
    const int rc = check_padding(g, o, left, top, right, bottom);
    if (rc)
        return rc;
    g->drawn->padding[0] = left;
    g->drawn->padding[1] = top;
    g->drawn->padding[2] = right;
    g->drawn->padding[3] = bottom;
    struct rng r;
    rng_init(&r, g->draw, op_name(o->kind), o->nth);
    const int32_t y = (int32_t)rng_below(&r, (uint64_t)(g->h + top + bottom - o->h) + 1);
    const int32_t x = (int32_t)rng_below(&r, (uint64_t)(g->w + left + right - o->w) + 1);
    add_crop(g, x - left, y - top, o->w, o->h, o);
    return STK_OK;
}

/* The central crop whose aspect ratio is nearest to the wanted ones. */
static struct rect middle(const struct drawing *g, const struct op *o)
{
    const double ratio = (double)g->w / g->h;
    int32_t w = g->w, h = g->h;
    if (ratio < o->ratio[0])
        h = even_round(w / o->ratio[0]);
    else if (ratio > o->ratio[1])
        w = even_round(h * o->ratio[1]);
    w = w < 1 ? 1 : w;
    h = h < 1 ? 1 : h;
    return (struct rect){(g->w - w) / 2, (g->h - h) / 2, w, h};
}

/* A random share of the area with a random aspect ratio. If it does not fit, draws again, at most ten times. */
static struct rect random_rect(const struct drawing *g, const struct op *o)
{
    const double area = (double)g->w * g->h, low = log(o->ratio[0]), high = log(o->ratio[1]);
    struct rng r;
    rng_init(&r, g->draw, op_name(o->kind), o->nth);
    for (int i = 0; i < 10; i++) {
        const double target = area * rng_between(&r, o->scale[0], o->scale[1]);
        const double ratio = exp(rng_between(&r, low, high));
        const double w = sqrt(target * ratio), h = sqrt(target / ratio);
        if (w > g->w + 1.0 || h > g->h + 1.0)
            continue;
        const struct rect c = {0, 0, even_round(w), even_round(h)};
        if (c.w < 1 || c.w > g->w || c.h < 1 || c.h > g->h)
            continue;
        const int32_t y = (int32_t)rng_below(&r, (uint64_t)(g->h - c.h) + 1);
        const int32_t x = (int32_t)rng_below(&r, (uint64_t)(g->w - c.w) + 1);
        return (struct rect){x, y, c.w, c.h};
    }
    return middle(g, o);
}

static int draw_random_resized_crop(struct drawing *g, const struct op *o)
{
    const struct rect c = random_rect(g, o);
    add_crop(g, c.x, c.y, c.w, c.h, o);
    add_resize(g, o->w, o->h, o);
    return STK_OK;
}

static int draw_flip(struct drawing *g, const struct op *o)
{
    struct rng r;
    rng_init(&r, g->draw, op_name(o->kind), o->nth);
    g->drawn->flip = rng_chance(&r, o->p);
    if (g->drawn->flip)
        add(g, o->kind == OP_FLIP_X ? STEP_FLIP_X : STEP_FLIP_Y, g->w, g->h);
    return STK_OK;
}

static int draw_grey(struct drawing *g, const struct op *o)
{
    g->channels = o->channels;
    add(g, STEP_GREY, g->w, g->h);
    return STK_OK;
}

static int draw_op(struct drawing *g, const struct op *o)
{
    switch (o->kind) {
    case OP_RESIZE:
        return draw_resize(g, o);
    case OP_CENTER_CROP:
        return draw_center_crop(g, o);
    case OP_RANDOM_CROP:
        return draw_random_crop(g, o);
    case OP_RANDOM_RESIZED_CROP:
        return draw_random_resized_crop(g, o);
    case OP_PAD:
        return draw_pad(g, o);
    case OP_FLIP_X:
    case OP_FLIP_Y:
        return draw_flip(g, o);
    case OP_GREY:
        return draw_grey(g, o);
    default:
        return STK_OK; /* the plan determines what becomes of the bytes */
    }
}

/* Draws the ops from `first` to `end` on an image of the size and channels of `in`. */
static int draw_ops(const struct plan *p, const struct draw *d, int first, int end, struct image in, struct job *out,
                    struct drawn *drawn, stk_error *e)
{
    struct drawing g = {.draw = d, .job = out, .w = in.w, .h = in.h, .channels = in.channels, .e = e};
    out->want = (struct want){.crop = {0, 0, in.w, in.h}};
    out->n_steps = 0;
    out->flip_x = out->flip_y = out->plain = false;
    if (in.w < 1 || in.h < 1 || in.w > OPS_FAR || in.h > OPS_FAR)
        return error_set(e, STK_EDATA, "transform", "an image of %d x %d pixels cannot be transformed", (int)in.w,
                         (int)in.h);
    for (int i = first; i < end; i++) {
        struct drawn unseen;
        g.drawn = drawn ? &drawn[i] : &unseen;
        const int rc = draw_op(&g, &p->ops.op[i]);
        if (rc)
            return rc;
        g.drawn->w = g.w;
        g.drawn->h = g.h;
    }
    out->w = g.w;
    out->h = g.h;
    out->in = in.channels;
    out->channels = g.channels;
    if (end == p->ops.n && !plan_is_open(p) && (g.w != p->ops.w || g.h != p->ops.h)) /* not the size that all have */
        return error_set(e, STK_EBUG, "transform", "%d x %d pixels become %d x %d, not %d x %d", (int)in.w, (int)in.h,
                         (int)g.w, (int)g.h, (int)p->ops.w, (int)p->ops.h);
    return STK_OK;
}

int plan_steps(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out,
               struct drawn drawn[OPS_MAX], stk_error *e)
{
    return draw_ops(p, d, 0, p->ops.n, (struct image){.w = w, .h = h, .channels = 3}, out, drawn, e);
}

int32_t plan_pad_index(int32_t i, int32_t n, enum pad_mode mode)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == PAD_CONSTANT)
        return -1;
    if (mode == PAD_EDGE)
        return i < 0 ? 0 : n - 1;
    const int32_t skip = mode == PAD_REFLECT, period = 2 * (n - skip); /* there and back */
    const int32_t at = (i % period + period) % period;
    return at < n ? at : period - 1 + skip - at;
}

struct axis plan_axis_x(const struct step *s)
{
    const enum filter f = (enum filter)s->filter;
    return s->box_w > 0.0 ? resample_axis_box(f, s->in_w, s->box_x, s->box_w, s->w)
                          : resample_axis(f, s->antialias, s->in_w, s->w);
}

struct axis plan_axis_y(const struct step *s)
{
    const enum filter f = (enum filter)s->filter;
    return s->box_h > 0.0 ? resample_axis_box(f, s->in_h, s->box_y, s->box_h, s->h)
                          : resample_axis(f, s->antialias, s->in_h, s->h);
}

static struct step flip_of(enum step_kind kind, const struct step *next, int channels)
{
    const struct rect all = {0, 0, next->in_w, next->in_h};
    return (struct step){.kind = kind,
                         .in_w = all.w,
                         .in_h = all.h,
                         .w = all.w,
                         .h = all.h,
                         .from = all,
                         .need = all,
                         .channels = (int8_t)channels};
}

/* (1) The list never grows: a flip that is written again was removed before. */
static void move_flips(struct job *j)
{
    bool x = false, y = false;
    int n = 0, channels = j->in;
    for (int i = 0; i < j->n_steps; i++) {
        struct step s = j->steps[i];
        x ^= s.kind == STEP_FLIP_X;
        y ^= s.kind == STEP_FLIP_Y;
        if (s.kind == STEP_FLIP_X || s.kind == STEP_FLIP_Y)
            continue;
        if (s.kind == STEP_CROP) {
            s.x = x ? s.in_w - s.x - s.w : s.x;
            s.y = y ? s.in_h - s.y - s.h : s.y;
        } else if (s.kind == STEP_RESIZE) {
            if (x)
                j->steps[n++] = flip_of(STEP_FLIP_X, &s, channels);
            if (y)
                j->steps[n++] = flip_of(STEP_FLIP_Y, &s, channels);
            x = y = false;
        }
        channels = s.channels;
        j->steps[n++] = s;
    }
    j->n_steps = n;
    j->flip_x = x;
    j->flip_y = y;
}

/* The inputs of n outputs from lo on, which may be outside: at least one. */
static struct reach crop_needs(int32_t lo, int32_t n, int32_t in, enum pad_mode mode)
{
    int32_t first = INT32_MAX, last = -1;
    if (lo >= 0 && n <= in - lo)
        return (struct reach){lo, n};
    for (int32_t i = lo; i < lo + n; i++) {
        const int32_t at = plan_pad_index(i, in, mode);
        if (at >= 0) {
            first = at < first ? at : first;
            last = at > last ? at : last;
        }
    }
    return last < 0 ? (struct reach){0, 1} : (struct reach){first, last - first + 1};
}

static struct reach resize_needs(const struct axis *a, struct reach out)
{
    return a->in == a->out && a->scale == 1.0 && a->start == 0.0 ? out : resample_needs(a, out);
}

struct rect plan_needs(const struct step *s)
{
    const struct rect n = s->need;
    struct reach x = {n.x, n.w}, y = {n.y, n.h};
    if (s->kind == STEP_CROP) {
        x = crop_needs(s->x + n.x, n.w, s->in_w, (enum pad_mode)s->pad_mode);
        y = crop_needs(s->y + n.y, n.h, s->in_h, (enum pad_mode)s->pad_mode);
    } else if (s->kind == STEP_RESIZE) {
        const struct axis across = plan_axis_x(s), down = plan_axis_y(s);
        x = resize_needs(&across, x);
        y = resize_needs(&down, y);
    } else if (s->kind == STEP_FLIP_X) {
        x.lo = s->w - n.x - n.w;
    } else if (s->kind == STEP_FLIP_Y) {
        y.lo = s->h - n.y - n.h;
    }
    return (struct rect){x.lo, y.lo, x.n, y.n};
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
        s->from = need = plan_needs(s);
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

int plan_draw_head(const struct plan *p, int32_t w, int32_t h, struct job *out, stk_error *e)
{
    static const struct draw none; /* no op of the head uses it */
    const int rc = draw_ops(p, &none, 0, p->head, (struct image){.w = w, .h = h, .channels = 3}, out, NULL, e);
    if (rc == STK_OK)
        trim(out);
    out->plain = true;
    return rc;
}

int plan_draw_rest(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out, stk_error *e)
{
    const struct image in = {.w = w, .h = h, .channels = plan_head_channels(p)};
    const int rc = draw_ops(p, d, p->head, p->ops.n, in, out, NULL, e);
    if (rc == STK_OK)
        trim(out);
    return rc;
}
