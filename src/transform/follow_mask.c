/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow_mask.c -- masks through steps, by the indices of the pixels that they take.
 *
 * Crops, flips and resizes treat columns and rows separately. So a run of them is two maps: for each column of the
 * result the column that it takes, and the same for rows. A warp or an elastic step ends the run. It takes its pixels
 * through the maps of the run before it and makes a plane, on which the next run works:
 *
 *     mask -> maps -> warp -> plane -> maps -> result
 *
 * An index below 0 is the fill of step -1 - index. If column and row have different fills, the later step decides.
 *
 * Resizing takes the pixel at floor(i * scale), as torch's nearest does, and not as Pillow's does. grid.c has the maps.
 */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "transform/follow.h"
#include "transform/grid.h"
#include "transform/plan_inner.h"
#include "transform/stage.h"

/* A run of steps, and the step that ends it. */
struct run {
    int32_t *x, *y;         /* w and h indices */
    int32_t w, h;           /* of its result */
    const struct step *end; /* NULL: none, this is the last run */
    void *plane, *room;     /* what `end` makes, and its memory */
};

struct follow_masks {
    const struct plan *plan;
    const struct job *job;
    size_t element;
    int n;
    struct run *runs;
    int32_t *line[2]; /* of indices, as long as the longest line */
};

/* ------------------------------------------------------------------ maps */

static void start(int32_t *map, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        map[i] = i;
}

static void flip(int32_t *map, int32_t n)
{
    for (int32_t i = 0; i < n / 2; i++) {
        const int32_t one = map[i];
        map[i] = map[n - 1 - i];
        map[n - 1 - i] = one;
    }
}

static void crop(int32_t *to, const int32_t *from, int32_t first, int32_t n, int32_t in, enum pad_mode mode, int step)
{
    for (int32_t i = 0; i < n; i++) {
        const int32_t at = stage_pad_index(first + i, in, mode);
        to[i] = at < 0 ? -1 - step : from[at];
    }
}

static void resize(int32_t *to, const int32_t *from, int32_t in, int32_t n)
{
    const float scale = (float)in / (float)n;
    for (int32_t i = 0; i < n; i++) {
        const int32_t at = (int32_t)floorf((float)i * scale);
        to[i] = from[at < in ? at : in - 1];
    }
}

static bool ends_run(const struct step *s)
{
    return s->kind == STEP_WARP || s->kind == STEP_ELASTIC;
}

/* Fills the maps of a run with the steps from `first` on; spare: room for one map. */
static void fill_maps(struct run *r, const struct job *j, int first, int end, int32_t w, int32_t h, int32_t *spare)
{
    start(r->x, w);
    start(r->y, h);
    for (int i = first; i < end; i++) {
        const struct step *s = &j->steps[i];
        const enum pad_mode mode = (enum pad_mode)s->pad_mode;
        if (s->kind == STEP_FLIP_X)
            flip(r->x, s->w);
        else if (s->kind == STEP_FLIP_Y)
            flip(r->y, s->h);
        for (int k = 0; k < 2 && (s->kind == STEP_CROP || s->kind == STEP_RESIZE); k++) {
            int32_t *map = k ? r->y : r->x;
            const int32_t in = k ? s->in_h : s->in_w, n = k ? s->h : s->w;
            if (s->kind == STEP_CROP)
                crop(spare, map, k ? s->y : s->x, n, in, mode, i);
            else
                resize(spare, map, in, n);
            memcpy(map, spare, (size_t)n * sizeof *map);
        }
    }
}

/* ------------------------------------------------------------------ layout */

/* The longest that the maps of any run become. */
static int32_t longest(const struct job *j, int32_t w, int32_t h)
{
    int32_t most = w > h ? w : h;
    for (int i = 0; i < j->n_steps; i++) {
        const int32_t one = j->steps[i].w > j->steps[i].h ? j->steps[i].w : j->steps[i].h;
        most = one > most ? one : most;
    }
    return most;
}

static int count_runs(const struct job *j)
{
    int n = 1;
    for (int i = 0; i < j->n_steps; i++)
        n += ends_run(&j->steps[i]);
    return n;
}

static void lay_end(struct room *m, struct run *r, size_t element)
{
    const struct step *s = r->end;
    r->plane = room_take(m, size_mul(size_mul((size_t)s->w, (size_t)s->h), element));
    r->room = room_take(m, s->kind == STEP_ELASTIC ? elastic_room(&s->elastic, (struct rect){0, 0, s->w, s->h})
                                                   : size_mul(2 * sizeof(float), (size_t)s->w));
}

/* Takes the memory, or counts it. */
static void lay(struct follow_masks *f, struct room *m, const struct plan *p, const struct job *j, int32_t w, int32_t h,
                size_t element)
{
    const size_t map = size_mul((size_t)longest(j, w, h), sizeof(int32_t));
    const int n = count_runs(j);
    struct run *runs = room_take(m, (size_t)n * sizeof *runs), one;
    *f = (struct follow_masks){.plan = p, .job = j, .element = element, .n = n, .runs = runs};
    for (int k = 0; k < 2; k++)
        f->line[k] = room_take(m, map);
    int i = 0;
    for (int k = 0; k < n; k++) {
        struct run *r = runs ? &runs[k] : &one;
        *r = (struct run){.x = room_take(m, map), .y = room_take(m, map)};
        const int first = i;
        while (i < j->n_steps && !ends_run(&j->steps[i]))
            i++;
        r->w = i > 0 ? j->steps[i - 1].w : w;
        r->h = i > 0 ? j->steps[i - 1].h : h;
        r->end = i < j->n_steps ? &j->steps[i] : NULL;
        if (m->arena && !m->failed)
            fill_maps(r, j, first, i, first > 0 ? j->steps[first - 1].w : w, first > 0 ? j->steps[first - 1].h : h,
                      f->line[0]);
        if (r->end)
            lay_end(m, r, element);
        i++;
    }
}

size_t follow_masks_scratch(const struct plan *p, const struct job *j, int32_t w, int32_t h, size_t element)
{
    struct room m = {0};
    struct follow_masks f;
    room_take(&m, sizeof f);
    lay(&f, &m, p, j, w, h, element);
    return m.failed ? 0 : m.total;
}

struct follow_masks *follow_masks_begin(const struct plan *p, const struct job *j, int32_t w, int32_t h, size_t element,
                                        struct arena *a)
{
    struct room m = {.arena = a};
    struct follow_masks *f = room_take(&m, sizeof *f);
    if (f)
        lay(f, &m, p, j, w, h, element);
    return m.failed ? NULL : f;
}

/* ------------------------------------------------------------------ pixels */

static int32_t load(const struct mask *in, int32_t x, int32_t y)
{
    const uint8_t *line = (const uint8_t *)in->px + (size_t)y * in->stride;
    return in->element == 1 ? line[x] : ((const int32_t *)(const void *)line)[x];
}

static int32_t fill_of(const struct job *j, int32_t x, int32_t y)
{
    return j->steps[-1 - (x < y ? x : y)].mask_fill;
}

/* Pixel (x, y) of a run's result. */
static int32_t pixel(const struct follow_masks *f, const struct run *r, const struct mask *in, int32_t x, int32_t y)
{
    const int32_t from_x = r->x[x], from_y = r->y[y];
    return from_x >= 0 && from_y >= 0 ? load(in, from_x, from_y)
                                      : fill_of(f->job, from_x < 0 ? from_x : 0, from_y < 0 ? from_y : 0);
}

/* The pixels that line y of a warp takes. */
static void warp_indices(const struct warp *w, int32_t y, float *at, int32_t *x_of, int32_t *y_of)
{
    grid_line(w, y, at, at + w->w);
    for (int32_t x = 0; x < w->w; x++) {
        const int32_t px = grid_nearest(at[x], w->in_w), py = grid_nearest(at[w->w + x], w->in_h);
        x_of[x] = px >= 0 && py >= 0 ? px : -1;
        y_of[x] = py;
    }
}

/* Makes the plane of the step that ends a run. */
static struct mask make_plane(struct follow_masks *f, struct run *r, const struct mask *in)
{
    const struct step *s = r->end;
    const struct mask out = {
        .px = r->plane, .stride = (size_t)s->w * f->element, .w = s->w, .h = s->h, .element = f->element};
    uint8_t *bytes = r->plane;
    int32_t *numbers = r->plane;
    if (s->kind == STEP_ELASTIC)
        elastic_begin(&s->elastic, (struct rect){0, 0, s->w, s->h}, r->room);
    for (int32_t y = 0; y < s->h; y++) {
        if (s->kind == STEP_WARP)
            warp_indices(&s->warp, y, r->room, f->line[0], f->line[1]);
        else
            elastic_indices(&f->plan->kernels, &s->elastic, y, r->room, f->line[0], f->line[1]);
        for (int32_t x = 0; x < s->w; x++) {
            const int32_t v = f->line[0][x] < 0 ? s->mask_fill : pixel(f, r, in, f->line[0][x], f->line[1][x]);
            if (f->element == 1)
                *bytes++ = (uint8_t)v;
            else
                *numbers++ = v;
        }
    }
    return out;
}

/* Writes n numbers, and returns whether all fit. */
static bool store(const int32_t *from, int32_t n, stk_dtype t, void *to, int32_t *value)
{
    uint8_t *bytes = to;
    int64_t *wide = to;
    if (t == STK_INT32)
        memcpy(to, from, (size_t)n * sizeof *from);
    for (int32_t i = 0; i < n && t == STK_INT64; i++)
        wide[i] = from[i];
    for (int32_t i = 0; i < n && t == STK_UINT8; i++) {
        bytes[i] = (uint8_t)from[i];
        if (bytes[i] != from[i]) {
            *value = from[i];
            return false;
        }
    }
    return true;
}

/* A line of the result, if its row is inside: most lines. */
static void take_line(const struct follow_masks *f, const struct run *r, const struct mask *in, int32_t from_y,
                      int32_t *to)
{
    const uint8_t *line = (const uint8_t *)in->px + (size_t)from_y * in->stride;
    const int32_t *wide = (const int32_t *)(const void *)line;
    const bool small = f->element == 1;
    for (int32_t x = 0; x < r->w; x++) {
        const int32_t from = r->x[x];
        to[x] = from < 0 ? fill_of(f->job, from, 0) : small ? line[from] : wide[from];
    }
}

bool follow_mask(struct follow_masks *f, const struct mask *in, stk_dtype t, void *out, int32_t *value)
{
    struct mask now = *in;
    for (int i = 0; i < f->n - 1; i++)
        now = make_plane(f, &f->runs[i], &now);
    const struct run *r = &f->runs[f->n - 1];
    uint8_t *to = out;
    for (int32_t y = 0; y < r->h; y++, to += (size_t)r->w * dtype_bytes(t)) {
        int32_t *line = f->line[0];
        if (r->y[y] >= 0)
            take_line(f, r, &now, r->y[y], line);
        else
            for (int32_t x = 0; x < r->w; x++)
                line[x] = pixel(f, r, &now, x, y);
        if (!store(line, r->w, t, to, value))
            return false;
    }
    return true;
}
