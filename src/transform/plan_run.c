/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_run.c -- carries out a job: pixels in, a row of the batch out.
 *
 * The steps are grouped into stages: a step that makes an image, and the point steps that follow it. Every stage but
 * the last, the tail, makes the whole part that is needed. The tail makes a few lines at a time in buffers that stay in
 * the L1 cache, and from there they go into the row:
 *
 *     image -> stage -> ... -> stage -> lines -> points -> mirror -> store
 *
 * A table that depends on the whole image starts a new stage, so that the stage before it can gather what the table
 * depends on.
 *
 * One function lays out the memory. It either takes it from an arena or only counts it.
 */
#include <string.h>

#include "base/error.h"
#include "transform/plan_inner.h"
#include "transform/stage.h"

struct run {
    const struct plan *p;
    const struct job *j;
    struct room room;
    int n; /* stages; the last one is the tail */
    struct stage stages[JOB_STEPS + 1];
    struct point points[JOB_STEPS]; /* of all stages */
    struct gather *gather;          /* by a stage for the next one; NULL: none needs it */
    struct image lines[2];          /* STAGE_LINES of the width of the result */
    bool mirror;                    /* flip_x is not done yet */
};

/* ------------------------------------------------------------------ layout */

/* Whether a point step is done on the lines of the stage before it. One that changes the count of channels needs other
 * memory for its result, which only the tail has. */
static bool joins(const struct step *s, bool tail)
{
    return step_is_point(s) && step_gathers(s) == GATHERS_NONE && (tail || s->in == s->channels);
}

/* The index of the last step that starts a stage; those after it belong to the tail. */
static int last_start(const struct job *j)
{
    int last = 0;
    for (int i = 1; i < j->n_steps; i++)
        if (!joins(&j->steps[i], true))
            last = i;
    return last;
}

static bool any_gathers(const struct job *j)
{
    for (int i = 0; i < j->n_steps; i++)
        if (step_gathers(&j->steps[i]) != GATHERS_NONE)
            return true;
    return false;
}

/* Adds the stage of the steps from first to end. owned: its input is not the decoder's. */
static void lay_stage(struct run *r, int first, int end, bool owned)
{
    const struct step *s = &r->j->steps[first], *last = &r->j->steps[end - 1];
    const bool point = step_is_point(s);
    struct stage *st = &r->stages[r->n++];
    *st = (struct stage){.s = point ? NULL : s};
    st->part = (struct rect){s->need.x - s->from.x, s->need.y - s->from.y, s->need.w, s->need.h};
    if (!point && step_functions[s->kind].lay)
        step_functions[s->kind].lay(&r->room, st);
    st->points = points_lay(&r->room, &r->points[first], s + !point, end - first - !point);
    if (end == r->j->n_steps)
        return;
    st->gathers = step_gathers(last + 1);
    st->in_place = point && owned && s->in == s->channels;
    if (!st->in_place)
        st->out = room_image(&r->room, last->need.w, last->need.h, last->channels);
}

/* Lays out everything that plan_run needs, in the same order for counting and for taking. Members of *r that are not
 * set here are set when they are needed: it is too large to be cleared for every image. */
static void lay(struct run *r, const struct plan *p, const struct job *j, struct arena *a)
{
    const int last = last_start(j);
    r->p = p;
    r->j = j;
    r->room = (struct room){.arena = a};
    r->n = 0;
    r->gather = NULL;
    if (any_gathers(j))
        r->gather = room_take(&r->room, sizeof *r->gather);
    if (j->n_steps > 0 && step_gathers(&j->steps[0]) != GATHERS_NONE) /* a stage that only gathers */
        r->stages[r->n++] =
            (struct stage){.part = j->steps[0].from, .in_place = true, .gathers = step_gathers(&j->steps[0])};
    for (int i = 0, end; i < j->n_steps; i = end) {
        for (end = i + 1; end < j->n_steps && joins(&j->steps[end], end > last);)
            end++;
        lay_stage(r, i, end, i > 0);
    }
    for (int k = 0; k < 2; k++)
        r->lines[k] = room_image(&r->room, j->w, STAGE_LINES, 3);
}

size_t plan_scratch(const struct plan *p, const struct job *j)
{
    struct run r;
    lay(&r, p, j, NULL);
    return r.room.failed ? 0 : r.room.total;
}

/* A stage that mirrors at no cost does so, if the rest works on whole lines. */
static void place_mirror(struct run *r)
{
    r->mirror = r->j->flip_x;
    for (int i = r->n - 1; i >= 0 && r->mirror; i--) {
        struct stage *st = &r->stages[i];
        if (st->s) {
            st->mirrored = stage_mirrors(st);
            r->mirror = !st->mirrored;
            return;
        }
        if (st->points.n > 0 && st->points.p[0].s->from.w != st->part.w)
            return;
    }
}

/* ------------------------------------------------------------------ stages */

static struct image part_of(const struct image *im, struct rect c)
{
    return (struct image){.px = image_line(im, c.y) + (size_t)c.x * (size_t)im->channels,
                          .stride = im->stride,
                          .w = c.w,
                          .h = c.h,
                          .channels = im->channels};
}

static struct image lines_of(const struct image *im, int32_t y, int32_t n)
{
    return part_of(im, (struct rect){0, y, im->w, n});
}

static void stage_begin(struct run *r, struct stage *st, const struct image *in)
{
    const struct kernels *k = &r->p->kernels;
    st->in = st->s ? *in : part_of(in, st->part);
    if (st->in_place)
        st->out = st->in;
    if (st->s && step_functions[st->s->kind].begin)
        step_functions[st->s->kind].begin(k, st);
    points_begin(&st->points, r->gather);
    if (st->gathers != GATHERS_NONE)
        gather_init(r->gather, st->gathers);
}

/* Makes lines of a stage that is not the tail. */
static void head_lines(struct run *r, struct stage *st, int32_t y, int32_t n)
{
    const struct kernels *k = &r->p->kernels;
    const struct image out = lines_of(&st->out, y, n);
    struct image in = out;
    if (st->s)
        step_functions[st->s->kind].lines(k, st, y, n, out.px, out.stride);
    else
        in = lines_of(&st->in, y, n);
    for (int i = 0; i < st->points.n; i++) {
        point_lines(k, &st->points.p[i], &out, &in);
        in = out;
    }
    if (st->gathers != GATHERS_NONE)
        gather_lines(k, r->gather, &out);
}

/* Runs all stages before the tail, each as a whole. Returns the input of the tail. */
static struct image do_heads(struct run *r, const struct image *in)
{
    struct image now = *in;
    for (int i = 0; i < r->n - 1; i++) {
        struct stage *st = &r->stages[i];
        stage_begin(r, st, &now);
        for (int32_t y = 0; y < st->out.h; y += STAGE_LINES)
            head_lines(r, st, y, st->out.h - y < STAGE_LINES ? st->out.h - y : STAGE_LINES);
        now = st->out;
    }
    return now;
}

/* Where the lines of the tail go: two buffers in turn, and from the last of `left` operations to the row, if its lines
 * are bytes of interleaved channels. */
struct targets {
    struct image buffers[2], row; /* row.px: NULL if lines need another form */
    int left, spare;
};

static struct image next_target(struct targets *t, int32_t channels)
{
    struct image to = t->left-- == 1 && t->row.px ? t->row : t->buffers[t->spare];
    t->spare ^= 1;
    to.channels = channels;
    return to;
}

/* Returns lines y to y + n as they are to be stored: in a buffer, in the row or, unchanged, in the image. */
static struct image do_lines(struct run *r, const struct image *in, int32_t y, int32_t n, struct image row)
{
    const struct kernels *k = &r->p->kernels;
    struct stage *st = r->n > 0 ? &r->stages[r->n - 1] : NULL;
    const bool step = st && st->s;
    struct targets t = {.buffers = {lines_of(&r->lines[0], 0, n), lines_of(&r->lines[1], 0, n)},
                        .row = row,
                        .left = step + (st ? st->points.n : 0) + r->mirror};
    struct image now;
    if (step) {
        now = next_target(&t, st->s->channels);
        step_functions[st->s->kind].lines(k, st, y, n, now.px, now.stride);
    } else {
        now = lines_of(in, y, n);
    }
    for (int i = 0; st && i < st->points.n; i++) {
        const struct image next = next_target(&t, st->points.p[i].s->channels);
        point_lines(k, &st->points.p[i], &next, &now);
        now = next;
    }
    if (!r->mirror)
        return now;
    const struct image next = next_target(&t, now.channels);
    for (int32_t l = 0; l < n; l++)
        kernels_mirror(k, image_line(&next, l), image_line(&now, l), next.w, next.channels);
    return next;
}

/* The lines of the row, or of the image of the head, if they are bytes of interleaved channels. */
static struct image row_lines(const struct run *r, uint8_t *row)
{
    const struct plan *p = r->p;
    const struct job *j = r->j;
    const bool bytes = j->plain || (p->element == 1 && (p->layout == STK_NHWC || p->ops.channels == 1));
    const size_t stride = (size_t)j->w * (size_t)j->channels;
    return (struct image){.px = bytes ? row : NULL, .stride = stride, .w = j->w, .h = j->h, .channels = j->channels};
}

static void do_tail(struct run *r, const struct image *in, uint8_t *row)
{
    const struct plan *p = r->p;
    const int32_t w = r->j->w, h = r->j->h;
    const bool flip = r->j->flip_y;
    const struct image to = row_lines(r, row);
    const size_t plane = (size_t)w * (size_t)h, pitch = to.px ? to.stride : plan_pitch(p, w);
    store_fn *store = p->stream && (uintptr_t)row % STREAM_ALIGN == 0 ? p->stream : p->store;
    if (r->n > 0) {
        stage_begin(r, &r->stages[r->n - 1], in);
        in = &r->stages[r->n - 1].in;
    }
    for (int32_t y = 0; y < h; y += STAGE_LINES) {
        const int32_t n = h - y < STAGE_LINES ? h - y : STAGE_LINES;
        const bool direct = to.px && !flip;
        const struct image now = do_lines(r, in, y, n, direct ? lines_of(&to, y, n) : (struct image){0});
        for (int32_t l = 0; l < n; l++) {
            uint8_t *line = row + (size_t)(flip ? h - 1 - (y + l) : y + l) * pitch;
            if (!to.px)
                store(line, plane, image_line(&now, l), w, &p->levels);
            else if (line != image_line(&now, l))
                memcpy(line, image_line(&now, l), pitch);
        }
    }
    p->kernels.fence();
}

int plan_run(const struct plan *p, const struct job *j, const struct image *in, struct arena *a, void *row,
             stk_error *e)
{
    const struct rect want = j->want.crop;
    struct run r;
    if (in->w != want.w || in->h != want.h || in->channels != j->in)
        return error_set(e, STK_EBUG, "transform", "got %d x %d pixels with %d channels instead of %d x %d with %d",
                         (int)in->w, (int)in->h, (int)in->channels, (int)want.w, (int)want.h, j->in);
    lay(&r, p, j, a);
    if (r.room.failed)
        return error_set(e, STK_EBUG, "transform", "the arena has no room for %zu bytes; please report this",
                         r.room.total);
    place_mirror(&r);
    const struct image now = do_heads(&r, in);
    do_tail(&r, &now, row);
    for (int i = 0; i < j->n_erases; i++)
        plan_erase(p, j, &j->erases[i], row);
    return STK_OK;
}
