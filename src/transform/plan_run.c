/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_run.c -- carries out a job: pixels in, a row of the batch out.
 *
 * Every step but the last is done at once for the whole part that is needed. The last one makes a few lines at a time
 * in a buffer that stays in the L1 cache, and from there they go into the row:
 *
 *     image -> step -> ... -> step -> lines -> grey -> mirror -> store
 *
 * A resize has up to two passes, in Pillow's order. Across before down: the first pass is done for all lines at once,
 * the second line by line. Down before across: both are done a few lines at a time.
 *
 * One function lays out the memory. It either takes it from an arena or only counts it.
 */
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "transform/plan_inner.h"

enum { LINES = 16 }; /* in the buffers at a time */

/* Memory, or its cost. */
struct room {
    struct arena *arena; /* NULL: count only */
    size_t total;
    bool failed;
};

/* One step with its memory. */
struct stage {
    const struct step *s;
    struct image in, out;
    bool across, down, across_first, mirrored; /* resize: its passes */
    struct taps x, y;
    double *weights;
    struct image between; /* between the passes */
};

struct run {
    const struct plan *p;
    const struct job *j;
    struct room room;
    struct stage stages[JOB_STEPS];
    int tail;              /* the last stage that is not a grey; -1: none */
    struct image lines[2]; /* LINES of the width of the result */
    bool mirror;           /* flip_x is not done yet */
};

static void *take(struct room *r, size_t bytes)
{
    const size_t cost = arena_cost(bytes);
    r->failed |= cost > SIZE_MAX - r->total;
    if (r->failed)
        return NULL;
    r->total += cost;
    if (!r->arena)
        return NULL;
    void *p = arena_alloc(r->arena, bytes);
    r->failed |= !p;
    return p;
}

/* Lines start at cache lines. */
static struct image take_image(struct room *r, int32_t w, int32_t h, int32_t channels)
{
    const size_t line = size_mul((size_t)w, (size_t)channels), stride = (line + 63) / 64 * 64;
    return (struct image){
        .px = take(r, size_mul(stride, (size_t)h)), .stride = stride, .w = w, .h = h, .channels = channels};
}

static void take_taps(struct room *r, struct taps *t, const struct axis *a, struct reach out)
{
    const size_t n = ((size_t)out.n + TAPS_ROUND - 1) / TAPS_ROUND * TAPS_ROUND;
    t->groups = resample_groups(a, out);
    t->first = take(r, size_mul(n, sizeof *t->first));
    t->c = take(r, size_mul(n, size_mul((size_t)t->groups, 4 * sizeof *t->c)));
}

/* Pillow 13: down first if the height loses more than twice as many pixels as the width. */
static bool across_first(const struct step *s)
{
    const int64_t lost_w = (int64_t)s->in_w - s->w, lost_h = (int64_t)s->in_h - s->h;
    return !(lost_h > 0 && lost_h > 2 * lost_w);
}

static void lay_resize(struct room *r, struct stage *st)
{
    const struct step *s = st->s;
    const struct axis x = plan_axis_x(s), y = plan_axis_y(s);
    st->across = s->in_w != s->w || s->box_w > 0.0;
    st->down = s->in_h != s->h || s->box_h > 0.0;
    st->across_first = x.plain || across_first(s); /* torch: always */
    if (st->across)
        take_taps(r, &st->x, &x, (struct reach){s->need.x, s->need.w});
    if (st->down)
        take_taps(r, &st->y, &y, (struct reach){s->need.y, s->need.h});
    const int32_t groups = st->x.groups > st->y.groups ? st->x.groups : st->y.groups;
    st->weights = take(r, size_mul((size_t)groups, 4 * sizeof *st->weights));
    if (st->across && st->down)
        st->between = st->across_first ? take_image(r, s->need.w, s->from.h, st->in.channels)
                                       : take_image(r, s->from.w, LINES, st->in.channels);
}

/* Lays out everything that plan_run needs, in the same order for counting and for taking. */
static void lay(struct run *r)
{
    struct image in = {.channels = r->j->in};
    r->tail = -1;
    for (int i = 0; i < r->j->n_steps; i++)
        if (r->j->steps[i].kind != STEP_GREY)
            r->tail = i;
    for (int i = 0; i < r->j->n_steps; i++) {
        struct stage *st = &r->stages[i];
        *st = (struct stage){.s = &r->j->steps[i], .in = in};
        if (st->s->kind == STEP_RESIZE)
            lay_resize(&r->room, st);
        if (i < r->tail)
            st->out = take_image(&r->room, st->s->need.w, st->s->need.h, st->s->channels);
        in.channels = st->s->channels;
    }
    for (int k = 0; k < 2; k++)
        r->lines[k] = take_image(&r->room, r->j->w, LINES, 3);
}

size_t plan_scratch(const struct plan *p, const struct job *j)
{
    struct run r = {.p = p, .j = j};
    lay(&r);
    return r.room.failed ? 0 : r.room.total;
}

static uint8_t *line_of(const struct image *im, int32_t y)
{
    return im->px + (size_t)y * im->stride;
}

static void fill_pixels(uint8_t *dst, int32_t n, const struct step *s)
{
    for (int32_t i = 0; i < n; i++)
        for (int ch = 0; ch < s->channels; ch++)
            *dst++ = s->fill[ch];
}

/* Writes pixels lo to end, in coordinates of the input, all of which are outside. */
static uint8_t *pad_pixels(uint8_t *dst, const uint8_t *src, int32_t lo, int32_t end, const struct step *s)
{
    const size_t bytes = (size_t)s->channels;
    for (int32_t i = lo; i < end; i++, dst += bytes) {
        const int32_t at = plan_pad_index(i, s->in_w, (enum pad_mode)s->pad_mode);
        if (at < 0)
            fill_pixels(dst, 1, s);
        else
            memcpy(dst, src + (size_t)(at - s->from.x) * bytes, bytes);
    }
    return dst;
}

static void crop_line(const struct stage *st, int32_t y, uint8_t *dst)
{
    const struct step *s = st->s;
    const int32_t at = plan_pad_index(s->y + s->need.y + y, s->in_h, (enum pad_mode)s->pad_mode);
    if (at < 0) {
        fill_pixels(dst, s->need.w, s);
        return;
    }
    const int32_t lo = s->x + s->need.x, end = lo + s->need.w; /* in three parts: before, inside, after */
    const int32_t a = lo > 0 ? lo : 0, b = end < s->in_w ? end : s->in_w;
    const uint8_t *src = line_of(&st->in, at - s->from.y);
    dst = pad_pixels(dst, src, lo, end < 0 ? end : lo < 0 ? 0 : lo, s);
    if (b > a) {
        const size_t bytes = (size_t)(b - a) * (size_t)s->channels;
        memcpy(dst, src + (size_t)(a - s->from.x) * (size_t)s->channels, bytes);
        dst += bytes;
    }
    pad_pixels(dst, src, lo > s->in_w ? lo : end > s->in_w ? s->in_w : end, end, s);
}

static void mirror_line(const struct kernels *k, uint8_t *dst, const uint8_t *src, int32_t w, int channels)
{
    if (channels == 3)
        k->mirror3(dst, src, w);
    else
        k->mirror1(dst, src, w);
}

static void across_lines(const struct kernels *k, const struct stage *st, uint8_t *dst, size_t stride,
                         const uint8_t *src, size_t src_stride, int32_t n)
{
    (st->in.channels == 3 ? k->across3 : k->across1)(dst, stride, src, src_stride, n, &st->x);
}

/* Fills the tables, and runs the first pass if it is across. */
static void resize_begin(const struct kernels *k, struct stage *st)
{
    const struct step *s = st->s;
    const struct axis x = plan_axis_x(s), y = plan_axis_y(s);
    if (st->across) {
        resample_fill(&st->x, &x, (struct reach){s->need.x, s->need.w}, (struct reach){s->from.x, s->from.w},
                      st->mirrored, st->weights);
        k->arrange_weights(st->x.c,
                           ((size_t)st->x.n + TAPS_ROUND - 1) / TAPS_ROUND * TAPS_ROUND * (size_t)st->x.groups);
    }
    if (st->down) {
        resample_fill(&st->y, &y, (struct reach){s->need.y, s->need.h}, (struct reach){s->from.y, s->from.h}, false,
                      st->weights);
        k->arrange_weights(st->y.c, (size_t)st->y.n * (size_t)st->y.groups);
    }
    if (st->across && st->down && st->across_first)
        across_lines(k, st, st->between.px, st->between.stride, st->in.px, st->in.stride, s->from.h);
}

static void down_lines(const struct kernels *k, const struct stage *st, int32_t y, int32_t n, uint8_t *dst,
                       size_t stride, const struct image *from)
{
    const size_t bytes = (size_t)from->w * (size_t)from->channels;
    for (int32_t i = 0; i < n; i++, dst += stride)
        k->down(dst, from->px, from->stride, bytes, &st->y, y + i);
}

/* Makes lines y to y + n of the result; n is at most LINES unless across comes first. */
static void resize_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    if (!st->down) {
        across_lines(k, st, dst, stride, line_of(&st->in, y), st->in.stride, n);
    } else if (!st->across) {
        down_lines(k, st, y, n, dst, stride, &st->in);
    } else if (st->across_first) {
        down_lines(k, st, y, n, dst, stride, &st->between);
    } else {
        down_lines(k, st, y, n, st->between.px, st->between.stride, &st->in);
        across_lines(k, st, dst, stride, st->between.px, st->between.stride, n);
    }
}

static void grey_line(const struct kernels *k, uint8_t *dst, const uint8_t *src, int32_t w, int from, int to)
{
    if (from == 3)
        k->grey(dst, src, w);
    else
        memcpy(dst, src, (size_t)w);
    for (int32_t x = w - 1; to == 3 && x >= 0; x--) /* from the end, so that nothing is overwritten early */
        memset(dst + 3 * (size_t)x, dst[x], 3);
}

static void stage_begin(const struct kernels *k, struct stage *st)
{
    if (st->s->kind == STEP_RESIZE)
        resize_begin(k, st);
}

/* Makes lines y to y + n of the step's result; n is at most LINES. */
static void stage_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const struct step *s = st->s;
    const struct image *in = &st->in;
    if (s->kind == STEP_RESIZE) {
        resize_lines(k, st, y, n, dst, stride);
        return;
    }
    for (int32_t end = y + n; y < end; y++, dst += stride) {
        if (s->kind == STEP_CROP)
            crop_line(st, y, dst);
        else if (s->kind == STEP_GREY)
            grey_line(k, dst, line_of(in, y), in->w, in->channels, s->channels);
        else if (s->kind == STEP_FLIP_X)
            mirror_line(k, dst, line_of(in, y), in->w, in->channels);
        else
            memcpy(dst, line_of(in, in->h - 1 - y), (size_t)in->w * (size_t)in->channels);
    }
}

/* Runs all steps before the tail, each as a whole. Returns the input of the tail. */
static struct image do_heads(struct run *r, const struct image *in)
{
    const struct kernels *k = &r->p->kernels;
    struct image now = *in;
    for (int i = 0; i < r->tail; i++) {
        struct stage *st = &r->stages[i];
        st->in = now;
        stage_begin(k, st);
        for (int32_t y = 0; y < st->out.h; y += LINES) {
            const int32_t n = st->out.h - y < LINES ? st->out.h - y : LINES;
            stage_lines(k, st, y, n, line_of(&st->out, y), st->out.stride);
        }
        now = st->out;
    }
    return now;
}

/* Returns lines y to y + n as they are to be stored, in one of the two buffers or, unchanged, in the image. */
static struct image do_lines(struct run *r, const struct image *in, int32_t y, int32_t n)
{
    const struct kernels *k = &r->p->kernels;
    struct image now = {.px = line_of(in, y), .stride = in->stride, .w = in->w, .h = n, .channels = in->channels};
    int spare = 0;
    if (r->tail >= 0) {
        now = r->lines[spare];
        spare ^= 1;
        now.channels = r->stages[r->tail].s->channels;
        stage_lines(k, &r->stages[r->tail], y, n, now.px, now.stride);
    }
    for (int i = r->tail + 1; i <= r->j->n_steps; i++) {
        const bool last = i == r->j->n_steps;
        if (last && !r->mirror)
            break;
        struct image next = r->lines[spare];
        next.channels = last ? now.channels : r->j->steps[i].channels;
        for (int32_t l = 0; l < n; l++)
            if (last)
                mirror_line(k, line_of(&next, l), line_of(&now, l), next.w, next.channels);
            else
                grey_line(k, line_of(&next, l), line_of(&now, l), next.w, now.channels, next.channels);
        now = next;
        spare ^= 1;
    }
    return now;
}

/* Writes a line of the row, or of the image of the head. */
static void put_line(const struct run *r, store_fn *store, uint8_t *row, int32_t y, const uint8_t *line)
{
    const struct plan *p = r->p;
    const struct job *j = r->j;
    const size_t bytes = (size_t)j->w * (size_t)j->channels;
    if (j->plain)
        memcpy(row + (size_t)y * bytes, line, bytes);
    else
        store(row + (size_t)y * plan_pitch(p, j->w), (size_t)j->w * (size_t)j->h, line, j->w, &p->levels);
}

static void do_tail(struct run *r, const struct image *in, uint8_t *row)
{
    const struct plan *p = r->p;
    const int32_t h = r->j->h;
    store_fn *store = p->stream && (uintptr_t)row % STREAM_ALIGN == 0 ? p->stream : p->store;
    for (int32_t y = 0; y < h; y += LINES) {
        const int32_t n = h - y < LINES ? h - y : LINES;
        const struct image now = do_lines(r, in, y, n);
        for (int32_t l = 0; l < n; l++)
            put_line(r, store, row, r->j->flip_y ? h - 1 - (y + l) : y + l, line_of(&now, l));
    }
    p->kernels.fence();
}

int plan_run(const struct plan *p, const struct job *j, const struct image *in, struct arena *a, void *row,
             stk_error *e)
{
    const struct rect want = j->want.crop;
    struct run r = {.p = p, .j = j, .room = {.arena = a}, .mirror = j->flip_x};
    if (in->w != want.w || in->h != want.h || in->channels != j->in)
        return error_set(e, STK_EBUG, "transform", "got %d x %d pixels with %d channels instead of %d x %d with %d",
                         (int)in->w, (int)in->h, (int)in->channels, (int)want.w, (int)want.h, j->in);
    lay(&r);
    if (r.room.failed)
        return error_set(e, STK_EBUG, "transform", "the arena has no room for %zu bytes", r.room.total);
    const struct image now = do_heads(&r, in);
    if (r.tail >= 0) {
        struct stage *st = &r.stages[r.tail];
        st->in = now;
        st->mirrored = j->flip_x && st->across; /* by reversing the table, at no cost */
        r.mirror = j->flip_x && !st->across;
        stage_begin(&p->kernels, st);
    }
    do_tail(&r, &now, row);
    return STK_OK;
}
