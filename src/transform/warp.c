/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warp.c -- samples an image through a map, with the arithmetic of Pillow's Geometry.c, operation by operation.
 *
 * Nearest works in three ways, as in Pillow: see enum warp_way. Bilinear and bicubic compute in double precision and
 * drop the fraction. A vector version must give the same bytes, also for values that are close to a whole number.
 */
#include "transform/warp.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "transform/kernel.h"

/* ------------------------------------------------------------------ which way, which part */

/* Pillow's test whether a corner fits into fixed point. */
static bool fits(const double a[8], int32_t x, int32_t y)
{
    return fabs(x * a[0] + y * a[1] + a[2]) < 32768.0 && fabs(x * a[3] + y * a[4] + a[5]) < 32768.0;
}

void warp_choose(struct warp *w)
{
    const double *a = w->a;
    if (w->perspective || w->filter != FILTER_NEAREST)
        w->way = WARP_POINT;
    else if (a[1] == 0 && a[3] == 0)
        w->way = WARP_SCALE;
    else if (fits(a, 0, 0) && fits(a, w->w, w->h) && fits(a, 0, w->h) && fits(a, w->w, 0))
        w->way = WARP_FIXED;
    else
        w->way = WARP_SUM;
}

/* Where an output point comes from. */
static void source_of(const struct warp *w, double x, double y, double *from_x, double *from_y)
{
    const double *a = w->a;
    *from_x = a[0] * x + a[1] * y + a[2];
    *from_y = a[3] * x + a[4] * y + a[5];
    if (w->perspective) {
        const double d = a[6] * x + a[7] * y + 1;
        *from_x /= d;
        *from_y /= d;
    }
}

/* The pixels from lo to high with what filters and rounding add, at least one. */
static struct reach clipped(double low, double high, int32_t n)
{
    const double margin = 4.0;
    low = floor(low) - margin;
    high = floor(high) + margin;
    const int32_t first = low > 0.0 ? low < n - 1.0 ? (int32_t)low : n - 1 : 0;
    const int32_t last = high < n - 1.0 ? high > first ? (int32_t)high : first : n - 1;
    return (struct reach){first, last - first + 1};
}

/* A line stays a line, so the corners are the extremes, as long as the horizon is outside. */
struct rect warp_needs(const struct warp *w, struct rect need)
{
    const struct rect all = {0, 0, w->in_w, w->in_h};
    double low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY;
    for (int i = 0; i < 4; i++) {
        const double x = need.x + (i % 2 ? need.w - 0.5 : 0.5), y = need.y + (i / 2 ? need.h - 0.5 : 0.5);
        double from_x, from_y;
        source_of(w, x, y, &from_x, &from_y);
        if (w->perspective && !(w->a[6] * x + w->a[7] * y + 1 > 1e-3))
            return all;
        if (!isfinite(from_x) || !isfinite(from_y))
            return all;
        low_x = fmin(low_x, from_x);
        high_x = fmax(high_x, from_x);
        low_y = fmin(low_y, from_y);
        high_y = fmax(high_y, from_y);
    }
    const struct reach x = clipped(low_x, high_x, w->in_w), y = clipped(low_y, high_y, w->in_h);
    return (struct rect){x.lo, y.lo, x.n, y.n};
}

bool warp_point(const struct warp *w, double *x, double *y)
{
    /* The inverse of the matrix (a0 a1 a2; a3 a4 a5; a6 a7 1), by cofactors. */
    const double *a = w->a, g = w->perspective ? a[6] : 0.0, h = w->perspective ? a[7] : 0.0;
    const double px = (a[4] - a[5] * h) * *x + (a[2] * h - a[1]) * *y + (a[1] * a[5] - a[2] * a[4]);
    const double py = (a[5] * g - a[3]) * *x + (a[0] - a[2] * g) * *y + (a[2] * a[3] - a[0] * a[5]);
    const double pd = (a[3] * h - a[4] * g) * *x + (a[1] * g - a[0] * h) * *y + (a[0] * a[4] - a[1] * a[3]);
    if (pd == 0.0)
        return false;
    *x = px / pd;
    *y = py / pd;
    return true;
}

/* ------------------------------------------------------------------ nearest */

/* Pillow's COORD: negative numbers do not round to 0. */
static int32_t coord(double v, int32_t n)
{
    return v >= 0.0 && v < (double)n ? (int32_t)v : -1;
}

size_t warp_table(const struct warp *w)
{
    if (w->way == WARP_SCALE)
        return size_mul(sizeof(int32_t), (size_t)w->w + (size_t)w->h);
    return w->way == WARP_SUM ? size_mul(2 * sizeof(double), (size_t)w->h) : 0;
}

static void sum_indices(int32_t *to, int32_t n, double at, double step, int32_t limit)
{
    for (int32_t i = 0; i < n; i++, at += step)
        to[i] = coord(at, limit);
}

void warp_begin(const struct warp *w, void *table)
{
    const double *a = w->a;
    if (w->way == WARP_SCALE) {
        sum_indices(table, w->w, a[2] + a[0] * 0.5, a[0], w->in_w);
        sum_indices((int32_t *)table + w->w, w->h, a[5] + a[4] * 0.5, a[4], w->in_h);
    } else if (w->way == WARP_SUM) {
        double *starts = table, x = a[2] + a[1] * 0.5 + a[0] * 0.5, y = a[5] + a[4] * 0.5 + a[3] * 0.5;
        for (int32_t i = 0; i < w->h; i++, x += a[1], y += a[4]) {
            starts[2 * i] = x;
            starts[2 * i + 1] = y;
        }
    }
}

static const uint8_t *pixel_at(const struct warp_source *s, int32_t x, int32_t y)
{
    return s->in.px + (size_t)(y - s->from.y) * s->in.stride + (size_t)(x - s->from.x) * (size_t)s->in.channels;
}

void warp_fill(const struct warp_source *s, int32_t n, uint8_t *dst)
{
    const uint8_t *fill = s->warp->fill;
    if (s->in.channels == 1 || (fill[0] == fill[1] && fill[0] == fill[2])) {
        memset(dst, fill[0], (size_t)n * (size_t)s->in.channels);
        return;
    }
    for (int32_t i = 0; i < n; i++, dst += 3)
        memcpy(dst, fill, 3);
}

/* One pixel by its indices; a negative one is outside. */
static void put_pixel(const struct warp_source *s, int32_t x, int32_t y, uint8_t *dst)
{
    if (x < 0 || y < 0)
        warp_fill(s, 1, dst);
    else
        memcpy(dst, pixel_at(s, x, y), (size_t)s->in.channels);
}

static void scale_line(const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst)
{
    const int32_t *columns = s->table, row = columns[s->warp->w + y];
    for (int32_t i = 0; i < n; i++, dst += s->in.channels)
        put_pixel(s, columns[x + i], row, dst);
}

static void sum_line(const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst)
{
    const struct warp *w = s->warp;
    const double *start = (const double *)s->table + 2 * (size_t)y;
    double at_x = start[0], at_y = start[1];
    for (int32_t i = 0; i < x; i++) {
        at_x += w->a[0];
        at_y += w->a[3];
    }
    for (int32_t i = 0; i < n; i++, dst += s->in.channels, at_x += w->a[0], at_y += w->a[3])
        put_pixel(s, coord(at_x, w->in_w), coord(at_y, w->in_h), dst);
}

static int32_t fixed(double v)
{
    return (int32_t)floor(v * 65536.0 + 0.5);
}

/* Shrinks [*lo, *end) to the i with 0 <= start + i * step < limit. */
static void inside(int64_t start, int64_t step, int64_t limit, int64_t *lo, int64_t *end)
{
    if (step < 0) { /* the same sequence, upside down */
        start = limit - 1 - start;
        step = -step;
    }
    int64_t first = 0, last = INT32_MAX;
    if (step == 0)
        last = start >= 0 && start < limit ? last : 0;
    else {
        first = start >= 0 ? 0 : (step - 1 - start) / step;
        last = start >= limit ? 0 : (limit - start + step - 1) / step;
    }
    *lo = first > *lo ? first : *lo;
    *end = last < *end ? last : *end;
    *end = *end > *lo ? *end : *lo;
}

static void fixed_line(const struct kernels *k, const struct warp_source *s, int32_t x, int32_t y, int32_t n,
                       uint8_t *dst)
{
    const struct warp *w = s->warp;
    const double *a = w->a;
    const int64_t a0 = fixed(a[0]), a3 = fixed(a[3]);
    int64_t at_x = fixed(a[2] + a[0] * 0.5 + a[1] * 0.5) + (int64_t)y * fixed(a[1]) + x * a0;
    int64_t at_y = fixed(a[5] + a[3] * 0.5 + a[4] * 0.5) + (int64_t)y * fixed(a[4]) + x * a3;
    int64_t lo = 0, end = n;
    inside(at_x, a0, (int64_t)w->in_w << 16, &lo, &end);
    inside(at_y, a3, (int64_t)w->in_h << 16, &lo, &end);
    if (lo > n)
        lo = end = n;
    warp_fill(s, (int32_t)lo, dst);
    at_x += lo * a0 - ((int64_t)s->from.x << 16);
    at_y += lo * a3 - ((int64_t)s->from.y << 16);
    dst += lo * s->in.channels;
    if (s->in.channels == 3 && lo < end) {
        const int32_t at[2] = {(int32_t)at_x, (int32_t)at_y}, step[2] = {(int32_t)a0, (int32_t)a3};
        k->nearest3(dst, s->in.px, s->in.stride, at, step, (int32_t)(end - lo));
        dst += 3 * (end - lo);
    } else {
        for (int64_t i = lo; i < end; i++, dst++, at_x += a0, at_y += a3)
            *dst = s->in.px[(size_t)(at_y >> 16) * s->in.stride + (size_t)(at_x >> 16)];
    }
    warp_fill(s, n - (int32_t)end, dst);
}

void warp_nearest3_c(uint8_t *dst, const uint8_t *px, size_t stride, const int32_t at[2], const int32_t step[2],
                     int32_t n)
{
    for (int32_t i = 0; i < n; i++, dst += 3) {
        const int64_t x = at[0] + (int64_t)i * step[0], y = at[1] + (int64_t)i * step[1];
        memcpy(dst, px + (size_t)(y >> 16) * stride + 3 * (size_t)(x >> 16), 3);
    }
}

static void perspective_line(const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst)
{
    const struct warp *w = s->warp;
    for (int32_t i = 0; i < n; i++, dst += s->in.channels) {
        double at_x, at_y;
        source_of(w, x + i + 0.5, y + 0.5, &at_x, &at_y);
        put_pixel(s, coord(at_x, w->in_w), coord(at_y, w->in_h), dst);
    }
}

/* ------------------------------------------------------------------ by points */

/* Where a pixel comes from: the first of its taps, and how far it is from there. */
struct spot {
    int32_t x, y;
    double dx, dy;
};

static bool spot_of(const struct warp *w, int32_t x, int32_t y, struct spot *to)
{
    double at_x, at_y;
    source_of(w, x + 0.5, y + 0.5, &at_x, &at_y);
    if (!(at_x >= 0.0 && at_x < w->in_w && at_y >= 0.0 && at_y < w->in_h))
        return false;
    at_x -= 0.5;
    at_y -= 0.5;
    to->x = at_x < 0.0 ? -1 : (int32_t)at_x;
    to->y = at_y < 0.0 ? -1 : (int32_t)at_y;
    to->dx = at_x - to->x;
    to->dy = at_y - to->y;
    return true;
}

static int32_t clamp(int32_t i, int32_t n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

static double linear(double a, double b, double d)
{
    return a + (b - a) * d;
}

static double cubic(double v1, double v2, double v3, double v4, double d)
{
    const double p2 = -v1 + v3, p3 = 2 * (v1 - v2) + v3 - v4, p4 = -v1 + v2 - v3 + v4;
    return v2 + d * (p2 + d * (p3 + d * p4));
}

static void linear_pixel(const struct warp_source *s, const struct spot *at, uint8_t *dst)
{
    const struct warp *w = s->warp;
    const int32_t x[2] = {clamp(at->x, w->in_w), clamp(at->x + 1, w->in_w)};
    const int32_t y[2] = {clamp(at->y, w->in_h), clamp(at->y + 1, w->in_h)};
    const uint8_t *a = pixel_at(s, x[0], y[0]), *b = pixel_at(s, x[1], y[0]);
    const uint8_t *c = pixel_at(s, x[0], y[1]), *d = pixel_at(s, x[1], y[1]);
    for (int ch = 0; ch < s->in.channels; ch++)
        dst[ch] = (uint8_t)linear(linear(a[ch], b[ch], at->dx), linear(c[ch], d[ch], at->dx), at->dy);
}

static void cubic_pixel(const struct warp_source *s, const struct spot *at, uint8_t *dst)
{
    const struct warp *w = s->warp;
    for (int ch = 0; ch < s->in.channels; ch++) {
        double v[4];
        for (int k = 0; k < 4; k++) {
            const int32_t y = clamp(at->y - 1 + k, w->in_h);
            double tap[4];
            for (int j = 0; j < 4; j++)
                tap[j] = pixel_at(s, clamp(at->x - 1 + j, w->in_w), y)[ch];
            v[k] = cubic(tap[0], tap[1], tap[2], tap[3], at->dx);
        }
        const double sum = cubic(v[0], v[1], v[2], v[3], at->dy);
        dst[ch] = sum <= 0.0 ? 0 : sum >= 255.0 ? 255 : (uint8_t)sum;
    }
}

void warp_pixel(const struct warp_source *s, int32_t x, int32_t y, uint8_t *dst)
{
    struct spot at;
    if (!spot_of(s->warp, x, y, &at))
        warp_fill(s, 1, dst);
    else if (s->warp->filter == FILTER_BILINEAR)
        linear_pixel(s, &at, dst);
    else
        cubic_pixel(s, &at, dst);
}

void warp_pixels_c(const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst)
{
    for (int32_t i = 0; i < n; i++, dst += s->in.channels)
        warp_pixel(s, x + i, y, dst);
}

/* Whether the input moves by whole pixels: then every point is a pixel. */
static bool moves(const struct warp *w)
{
    const double *a = w->a, most = 1 << 20;
    return !w->perspective && a[0] == 1.0 && a[1] == 0.0 && a[3] == 0.0 && a[4] == 1.0 && fabs(a[2]) < most &&
           fabs(a[5]) < most && a[2] == floor(a[2]) && a[5] == floor(a[5]);
}

static void moved_line(const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst)
{
    const struct warp *w = s->warp;
    const int32_t from_x = x + (int32_t)w->a[2], from_y = y + (int32_t)w->a[5];
    const int32_t before = from_x < 0 ? (-from_x < n ? -from_x : n) : 0, left = w->in_w - from_x;
    const int32_t end = left < n ? (left > before ? left : before) : n;
    const size_t bytes = (size_t)s->in.channels;
    if (from_y < 0 || from_y >= w->in_h || before == end) {
        warp_fill(s, n, dst);
        return;
    }
    warp_fill(s, before, dst);
    memcpy(dst + (size_t)before * bytes, pixel_at(s, from_x + before, from_y), (size_t)(end - before) * bytes);
    warp_fill(s, n - end, dst + (size_t)end * bytes);
}

/* Whether the vector versions may work in single precision: their bound on the error needs moderate numbers. */
static bool moderate(const struct warp *w)
{
    const double most = 1 << 20;
    const double *a = w->a;
    return fabs(a[0]) * w->w + fabs(a[1]) * w->h + fabs(a[2]) < most &&
           fabs(a[3]) * w->w + fabs(a[4]) * w->h + fabs(a[5]) < most;
}

void warp_line(const struct kernels *k, const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst)
{
    const struct warp *w = s->warp;
    if (w->way == WARP_SCALE)
        scale_line(s, x, y, n, dst);
    else if (w->way == WARP_FIXED)
        fixed_line(k, s, x, y, n, dst);
    else if (w->way == WARP_SUM)
        sum_line(s, x, y, n, dst);
    else if (w->filter == FILTER_NEAREST)
        perspective_line(s, x, y, n, dst);
    else if (moves(w))
        moved_line(s, x, y, n, dst);
    else if (s->in.channels == 3 && moderate(w))
        (w->filter == FILTER_BILINEAR ? k->warp_linear3 : k->warp_cubic3)(s, x, y, n, dst);
    else
        warp_pixels_c(s, x, y, n, dst);
}
