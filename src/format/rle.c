/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle.c -- run lengths and polygons to masks.
 *
 * Pixels are counted down the columns. A polygon is drawn as pycocotools draws it: its edges are walked in steps of a
 * fifth of a pixel; where the walk passes the centre of a column, the mask changes from there on; changes at the same
 * pixel cancel each other. All roundings are those of pycocotools.
 */
#include "format/rle.h"

#include <math.h>
#include <stdlib.h>

const char RLE_NO_MEMORY[] = "out of memory";

enum { SCALE = 5 };
#define COORDINATE_MOST 1e7    /* pixels from the corner */
enum { STEPS_MOST = 1 << 26 }; /* of the edges of one mask, so that it cannot take minutes */

/* ------------------------------------------------------------------ runs */

/* Sets the pixels from..to - 1, which are in one column. */
static void fill_column(const struct rle_mask *m, uint64_t x, uint64_t from, uint64_t to)
{
    uint8_t *p = m->px + from * (uint64_t)m->w + x;
    for (uint64_t y = from; y < to; y++, p += m->w)
        *p = 1;
}

static void fill(const struct rle_mask *m, uint64_t from, uint64_t to)
{
    const uint64_t h = (uint64_t)m->h;
    while (from < to) {
        const uint64_t x = from / h, y = from % h, n = to - from < h - y ? to - from : h - y;
        fill_column(m, x, y, y + n);
        from += n;
    }
}

static uint64_t area(const struct rle_mask *m)
{
    return (uint64_t)m->w * (uint64_t)m->h;
}

const char *rle_run(struct rle_mask *m, uint64_t n)
{
    if (n > area(m) - m->at)
        return "its runs are longer than the image";
    if (m->inside)
        fill(m, m->at, m->at + n);
    m->at += n;
    m->inside = !m->inside;
    return NULL;
}

const char *rle_end(const struct rle_mask *m)
{
    return m->at < area(m) ? "its runs are shorter than the image" : NULL;
}

/* A run is a number of 5-bit groups, least significant first, each in a character from '0' on; bit 5: more follow. From
 * the fourth run on it is the difference to the run before the previous one. */
const char *rle_string(struct rle_mask *m, const char *text, size_t n)
{
    int64_t before[2] = {0, 0}; /* the previous run, and the one before */
    size_t at = 0;
    for (int64_t i = 0; at < n; i++) {
        uint64_t bits = 0;
        unsigned c, shift = 0;
        do {
            c = at < n ? (unsigned)(uint8_t)text[at++] - '0' : 64;
            if (c > 63 || shift > 50)
                return "its compressed runs are damaged";
            bits |= (uint64_t)(c & 31) << shift;
            shift += 5;
        } while (c & 32);
        if (c & 16)
            bits |= ~UINT64_C(0) << shift;
        const int64_t run = (int64_t)bits + (i > 2 ? before[1] : 0);
        const char *problem = run < 0 ? "a run has a negative length" : rle_run(m, (uint64_t)run);
        if (problem)
            return problem;
        before[1] = before[0];
        before[0] = run;
    }
    return rle_end(m);
}

/* ------------------------------------------------------------------ polygons */

struct walk {
    const struct rle_mask *m;
    struct buf *changes; /* uint64_t: pixels where the mask changes */
    bool begun;
    int32_t u, v; /* the last step */
};

static int cross(struct walk *w, int32_t u, int32_t v)
{
    const double scale = SCALE, height = w->m->h;
    const double x = ((double)(u < w->u ? u : u - 1) + .5) / scale - .5;
    if (floor(x) != x || x < 0 || x > w->m->w - 1)
        return 0;
    double y = ((double)(v < w->v ? v : w->v) + .5) / scale - .5;
    y = ceil(y < 0 ? 0 : y > height ? height : y);
    const uint64_t at = (uint64_t)x * (uint64_t)w->m->h + (uint64_t)y;
    return at < area(w->m) ? buf_add(w->changes, &at, sizeof at) : 0;
}

static int step(struct walk *w, int32_t u, int32_t v)
{
    const int rc = w->begun && u != w->u ? cross(w, u, v) : 0;
    w->u = u;
    w->v = v;
    w->begun = true;
    return rc;
}

static int32_t distance(int32_t a, int32_t b)
{
    return a < b ? b - a : a - b;
}

/* Walks from a to b, along the longer axis. The other coordinate is always computed from the same end. */
static int edge(struct walk *w, const int32_t a[2], const int32_t b[2])
{
    const int32_t dx = distance(a[0], b[0]), dy = distance(a[1], b[1]), n = dx >= dy ? dx : dy;
    const bool flat = dx >= dy, flip = flat ? a[0] > b[0] : a[1] > b[1];
    const int32_t *from = flip ? b : a, *to = flip ? a : b;
    const double slope = n == 0 ? 0 : flat ? (double)(to[1] - from[1]) / dx : (double)(to[0] - from[0]) / dy;
    for (int32_t d = 0; d <= n; d++) {
        const int32_t t = flip ? n - d : d;
        const int32_t along = (flat ? from[0] : from[1]) + t;
        const int32_t across = (int32_t)((flat ? from[1] : from[0]) + slope * t + .5);
        if (step(w, flat ? along : across, flat ? across : along))
            return -1;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void scaled(const double *xy, int32_t to[2])
{
    to[0] = (int32_t)(SCALE * xy[0] + .5);
    to[1] = (int32_t)(SCALE * xy[1] + .5);
}

static const char *check_points(struct rle_mask *m, const double *xy, size_t n)
{
    if (n < 3)
        return "a polygon has fewer than 3 points";
    for (size_t i = 0; i < 2 * n; i++)
        if (!(fabs(xy[i]) <= COORDINATE_MOST))
            return isfinite(xy[i]) ? "a polygon is far outside the image"
                                   : "a polygon has a coordinate that is not a finite number";
    for (size_t i = 0; i < n; i++) {
        int32_t a[2], b[2];
        scaled(xy + 2 * i, a);
        scaled(xy + 2 * (i + 1 < n ? i + 1 : 0), b);
        const int32_t dx = distance(a[0], b[0]), dy = distance(a[1], b[1]);
        m->steps += (size_t)(dx > dy ? dx : dy) + 1;
        if (m->steps > STEPS_MOST)
            return "the outlines of its polygons are too long";
    }
    return NULL;
}

const char *rle_polygon(struct rle_mask *m, const double *xy, size_t n, struct buf *scratch)
{
    struct walk w = {.m = m, .changes = scratch};
    const char *problem = check_points(m, xy, n);
    scratch->len = 0;
    for (size_t i = 0; i < n && !problem; i++) {
        int32_t a[2], b[2];
        scaled(xy + 2 * i, a);
        scaled(xy + 2 * (i + 1 < n ? i + 1 : 0), b);
        problem = edge(&w, a, b) ? RLE_NO_MEMORY : NULL;
    }
    if (problem)
        return problem;
    uint64_t *at = (uint64_t *)(void *)scratch->data;
    const size_t n_changes = scratch->len / sizeof *at;
    if (n_changes > 1)
        qsort(at, n_changes, sizeof *at, compare);
    for (size_t i = 0; i < n_changes; i += 2)
        fill(m, at[i], i + 1 < n_changes ? at[i + 1] : area(m));
    return NULL;
}
