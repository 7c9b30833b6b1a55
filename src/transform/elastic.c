/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic.c -- the random field, and sampling along it with the rules of torch's grid_sample.
 *
 * A tap outside of the image counts as 0, and the weights of the taps inside are added up: their sum mixes the result
 * with the fill. All is in single precision, as in torch, whose sums have another order. The result differs by at most
 * one level, except where nearest hits the middle between two pixels.
 */
#include "transform/elastic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "transform/kernel.h"

enum { ELASTIC_HALF = 4 * ELASTIC_SIGMA + 1 };

/* The weights of one blur: weight[0] is in the middle. */
struct gauss {
    int32_t half;
    float weight[ELASTIC_HALF + 1];
};

/* One direction of the field, line by line. */
struct shifts {
    struct gauss down, across;
    int32_t next; /* line of noise that comes next */
    float *ring;  /* lines of noise: line y is at y % lines */
    float *line;  /* one line after the pass down, with what the pass across takes on either side */
    float *shift; /* one line of the field, in pixels */
};

struct elastic_room {
    struct rect need;
    int32_t reach, first, wide; /* columns of noise: `wide` from `first` on */
    struct shifts field[2];
};

/* torchvision's size of the kernel for a sigma. */
static int32_t half_of(double sigma)
{
    return sigma > 0.0 ? ((int32_t)(8.0 * sigma + 1.0) | 1) / 2 : 0;
}

int32_t elastic_reach(const struct elastic *e)
{
    const int32_t x = half_of(e->sigma[0]), y = half_of(e->sigma[1]);
    return x > y ? x : y;
}

static struct reach widened(int32_t lo, int32_t n, int32_t by, int32_t size)
{
    const int32_t first = lo > by ? lo - by : 0, end = by < size - lo - n ? lo + n + by : size;
    return (struct reach){first, end - first};
}

struct rect elastic_needs(const struct elastic *e, struct rect need)
{
    const double most_x = e->alpha[0] / 2.0 + 4.0, most_y = e->alpha[1] / 2.0 + 4.0;
    const struct reach x = widened(need.x, need.w, most_x < e->w ? (int32_t)most_x : e->w, e->w);
    const struct reach y = widened(need.y, need.h, most_y < e->h ? (int32_t)most_y : e->h, e->h);
    return (struct rect){x.lo, y.lo, x.n, y.n};
}

/* ------------------------------------------------------------------ the field */

static void gauss_init(struct gauss *g, int32_t half, double sigma)
{
    double weight[ELASTIC_HALF + 1] = {1.0}, sum = 1.0;
    g->half = half;
    for (int32_t k = 1; k <= half; k++) {
        weight[k] = exp(-0.5 * (k / sigma) * (k / sigma));
        sum += 2.0 * weight[k];
    }
    for (int32_t k = 0; k <= half; k++)
        g->weight[k] = (float)(weight[k] / sum);
}

/* The room, if `at` is not NULL; its size in bytes. */
static size_t lay(const struct elastic *e, struct rect need, struct elastic_room *at)
{
    const int32_t reach = elastic_reach(e);
    const struct reach columns = widened(need.x, need.w, reach, e->w);
    const size_t wide = (size_t)columns.n, line = wide + 2 * (size_t)reach,
                 ring = size_mul(2 * (size_t)reach + 1, wide);
    const size_t floats = size_mul(2, size_add(ring, line + wide));
    if (at) {
        float *next = (float *)(at + 1);
        *at = (struct elastic_room){.need = need, .reach = reach, .first = columns.lo, .wide = columns.n};
        for (int i = 0; i < 2; i++) {
            struct shifts *f = &at->field[i];
            f->ring = next;
            f->line = next + ring + reach;
            f->shift = next + ring + line;
            next += ring + line + wide;
        }
    }
    return size_add(sizeof *at, size_mul(floats, sizeof(float)));
}

size_t elastic_room(const struct elastic *e, struct rect need)
{
    return lay(e, need, NULL);
}

void elastic_begin(const struct elastic *e, struct rect need, void *room)
{
    struct elastic_room *at = room;
    lay(e, need, at);
    for (int i = 0; i < 2; i++) { /* torchvision: the size of the kernel is the same in both directions */
        const int32_t half = half_of(e->sigma[i]), top = need.y - half;
        gauss_init(&at->field[i].across, half, e->sigma[0]);
        gauss_init(&at->field[i].down, half, e->sigma[1]);
        at->field[i].next = top > 0 ? top : 0;
    }
}

static float *noise_line(const struct elastic_room *at, const struct shifts *f, int32_t y)
{
    return f->ring + (size_t)(y % (2 * at->reach + 1)) * (size_t)at->wide;
}

/* Makes noise up to line `last`. */
static void make_noise(const struct kernels *kernels, const struct elastic *e, const struct elastic_room *at,
                       struct shifts *f, int which, int32_t last)
{
    for (; f->next <= last; f->next++) {
        const uint64_t row = (uint64_t)which * (uint64_t)e->h + (uint64_t)f->next;
        float *line = noise_line(at, f, f->next);
        noise_field(line, e->seed, row * (uint64_t)e->w + (uint64_t)at->first, (size_t)at->wide,
                    kernels->noise.uniform);
        for (int32_t i = 0; i < at->wide; i++)
            line[i] = line[i] * 2.0f - 1.0f;
    }
}

static int32_t reflect(int32_t i, int32_t n)
{
    return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i;
}

void elastic_gauss_c(float *dst, const float *const *rows, size_t n, const float *weight, int32_t half, float scale)
{
    const float *const *middle = rows + half;
    for (size_t i = 0; i < n; i++) {
        float sum = middle[0][i] * weight[0];
        for (int32_t k = 1; k <= half; k++)
            sum += (middle[-k][i] + middle[k][i]) * weight[k];
        dst[i] = sum * scale;
    }
}

static void blur_down(const struct kernels *kernels, const struct elastic *e, const struct elastic_room *at,
                      struct shifts *f, int32_t y)
{
    const float *rows[2 * ELASTIC_HALF + 1];
    const int32_t half = f->down.half;
    for (int32_t k = -half; k <= half; k++)
        rows[half + k] = noise_line(at, f, reflect(y + k, e->h));
    kernels->gauss(f->line, rows, (size_t)at->wide, f->down.weight, half, 1.0f);
}

static void blur_across(const struct kernels *kernels, const struct elastic *e, const struct elastic_room *at,
                        struct shifts *f, float scale)
{
    const float *rows[2 * ELASTIC_HALF + 1], *from = f->line + (at->need.x - at->first);
    const int32_t half = f->across.half;
    float *last = f->line + at->wide - 1;
    for (int32_t k = 1; k <= half && at->first == 0; k++)
        f->line[-k] = f->line[k];
    for (int32_t k = 1; k <= half && at->first + at->wide == e->w; k++)
        last[k] = last[-k];
    for (int32_t k = -half; k <= half; k++)
        rows[half + k] = from + k;
    kernels->gauss(f->shift, rows, (size_t)at->need.w, f->across.weight, half, scale);
}

static void make_field(const struct kernels *k, const struct elastic *e, struct elastic_room *at, int32_t y)
{
    for (int i = 0; i < 2; i++) {
        struct shifts *f = &at->field[i];
        const int32_t last = y + f->down.half < e->h ? y + f->down.half : e->h - 1;
        make_noise(k, e, at, f, i, last);
        blur_down(k, e, at, f, y);
        blur_across(k, e, at, f, (float)(e->alpha[i] / 2.0));
    }
}

/* One value of the field, from as much noise as it takes. */
static double shift_at(const struct elastic *e, int which, int32_t x, int32_t y)
{
    const int32_t half = half_of(e->sigma[which]);
    struct gauss across, down;
    gauss_init(&across, half, e->sigma[0]);
    gauss_init(&down, half, e->sigma[1]);
    double sum = 0.0;
    for (int32_t i = -half; i <= half; i++)
        for (int32_t k = -half; k <= half; k++) {
            const uint64_t row = (uint64_t)which * (uint64_t)e->h + (uint64_t)reflect(y + i, e->h);
            float noise;
            noise_uniform(&noise, e->seed, row * (uint64_t)e->w + (uint64_t)reflect(x + k, e->w), 1);
            sum += (double)(noise * 2.0f - 1.0f) * (double)down.weight[abs(i)] * (double)across.weight[abs(k)];
        }
    return sum * e->alpha[which] / 2.0;
}

static int32_t pixel_of(double at, int32_t n)
{
    return at < 0.0 ? 0 : at < n ? (int32_t)at : n - 1;
}

void elastic_point(const struct elastic *e, double *x, double *y)
{
    const int32_t px = pixel_of(*x, e->w), py = pixel_of(*y, e->h);
    *x = px - shift_at(e, 0, px, py);
    *y = py - shift_at(e, 1, px, py);
}

/* ------------------------------------------------------------------ sampling */

/* Up to four taps in one direction. */
struct taps4 {
    int32_t first;
    float weight[4];
};

static void cubic_weights(float t, float w[4])
{
    const float a = -0.75f, x0 = t + 1.0f, x2 = 1.0f - t, x3 = 2.0f - t;
    w[0] = ((a * x0 - 5.0f * a) * x0 + 8.0f * a) * x0 - 4.0f * a;
    w[1] = ((a + 2.0f) * t - (a + 3.0f)) * t * t + 1.0f;
    w[2] = ((a + 2.0f) * x2 - (a + 3.0f)) * x2 * x2 + 1.0f;
    w[3] = ((a * x3 - 5.0f * a) * x3 + 8.0f * a) * x3 - 4.0f * a;
}

static int taps_of(struct taps4 *t, float at, enum filter filter)
{
    const float whole = filter == FILTER_NEAREST ? nearbyintf(at) : floorf(at), rest = at - whole;
    t->first = (int32_t)whole - (filter == FILTER_BICUBIC);
    if (filter == FILTER_NEAREST) {
        t->weight[0] = 1.0f;
        return 1;
    }
    if (filter == FILTER_BICUBIC) {
        cubic_weights(rest, t->weight);
        return 4;
    }
    t->weight[0] = 1.0f - rest;
    t->weight[1] = rest;
    return 2;
}

static uint8_t byte_of(float v)
{
    return v <= 0.0f ? 0 : v >= 255.0f ? 255 : (uint8_t)lrintf(v);
}

/* Any pixel: taps outside of the image do not count. */
static void mix_pixel(const struct elastic *e, const struct image *in, struct rect from, const struct taps4 *x,
                      const struct taps4 *y, int taps, uint8_t *dst)
{
    float sum[3] = {0}, inside = 0.0f;
    for (int i = 0; i < taps; i++)
        for (int k = 0; k < taps; k++) {
            const int32_t px = x->first + k, py = y->first + i;
            if (px < 0 || py < 0 || px >= e->w || py >= e->h)
                continue;
            const uint8_t *p =
                in->px + (size_t)(py - from.y) * in->stride + (size_t)(px - from.x) * (size_t)in->channels;
            const float w = x->weight[k] * y->weight[i];
            inside += w;
            for (int ch = 0; ch < in->channels; ch++)
                sum[ch] += w * p[ch];
        }
    for (int ch = 0; ch < in->channels; ch++)
        dst[ch] = byte_of((sum[ch] - e->fill[ch]) * inside + e->fill[ch]);
}

static void linear_pixels(uint8_t *dst, const uint8_t *px, size_t stride, const float *x, const float *y, int32_t n,
                          size_t channels)
{
    for (int32_t i = 0; i < n; i++, dst += channels) {
        const int32_t ix = (int32_t)x[i], iy = (int32_t)y[i];
        const float dx = x[i] - (float)ix, dy = y[i] - (float)iy;
        const uint8_t *p = px + (size_t)iy * stride + channels * (size_t)ix, *q = p + stride;
        for (size_t ch = 0; ch < channels; ch++) {
            const float top = p[ch] + (float)(p[ch + channels] - p[ch]) * dx;
            const float bottom = q[ch] + (float)(q[ch + channels] - q[ch]) * dx;
            dst[ch] = (uint8_t)lrintf(top + (bottom - top) * dy);
        }
    }
}

void elastic_linear3_c(uint8_t *dst, const uint8_t *px, size_t stride, const float *x, const float *y, int32_t n)
{
    linear_pixels(dst, px, stride, x, y, n, 3);
}

/* Does the pixels from i on, of n, whose four taps are all inside, if it is bilinear. Returns their count. */
static int32_t inner_pixels(const struct kernels *k, const struct elastic *e, const struct image *in, struct rect from,
                            float *x, float *y, int32_t n, uint8_t *dst)
{
    const float right = (float)(e->w - 1), bottom = (float)(e->h - 1);
    int32_t run = 0;
    for (; run < n && x[run] >= 0.0f && y[run] >= 0.0f && x[run] < right && y[run] < bottom; run++) {
        x[run] -= (float)from.x; /* exact */
        y[run] -= (float)from.y;
    }
    if (in->channels == 3 && (uint64_t)in->h * in->stride <= INT32_MAX)
        k->linear3(dst, in->px, in->stride, x, y, run);
    else
        linear_pixels(dst, in->px, in->stride, x, y, run, (size_t)in->channels);
    return run;
}

void elastic_line(const struct kernels *k, const struct elastic *e, const struct image *in, struct rect from, int32_t y,
                  void *room, uint8_t *dst)
{
    struct elastic_room *at = room;
    float *px = at->field[0].shift, *py = at->field[1].shift;
    const size_t channels = (size_t)in->channels;
    make_field(k, e, at, y);
    for (int32_t i = 0; i < at->need.w; i++) {
        px[i] += (float)(at->need.x + i);
        py[i] += (float)y;
    }
    for (int32_t i = 0; i < at->need.w; i++) {
        if (e->filter == FILTER_BILINEAR)
            i += inner_pixels(k, e, in, from, px + i, py + i, at->need.w - i, dst + (size_t)i * channels);
        if (i == at->need.w)
            return;
        struct taps4 across, down;
        const int taps = taps_of(&across, px[i], e->filter);
        taps_of(&down, py[i], e->filter);
        mix_pixel(e, in, from, &across, &down, taps, dst + (size_t)i * channels);
    }
}

void elastic_indices(const struct kernels *k, const struct elastic *e, int32_t y, void *room, int32_t *x_of,
                     int32_t *y_of)
{
    struct elastic_room *at = room;
    make_field(k, e, at, y);
    for (int32_t i = 0; i < e->w; i++) {
        const float px = nearbyintf((float)i + at->field[0].shift[i]);
        const float py = nearbyintf((float)y + at->field[1].shift[i]);
        const bool inside = px >= 0.0f && py >= 0.0f && px < (float)e->w && py < (float)e->h;
        x_of[i] = inside ? (int32_t)px : -1;
        y_of[i] = inside ? (int32_t)py : -1;
    }
}
