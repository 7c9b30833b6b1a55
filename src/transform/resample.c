/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resample.c -- tables of weights.
 *
 * With antialias the arithmetic is that of Pillow's precompute_coeffs, operation by operation in double precision.
 * Another order of the same operations would move a weight by one unit and a pixel by one level. Nearest is Pillow's
 * affine transform, whose coordinate is a running sum. Without antialias, bilinear and bicubic are what torch does with
 * uint8 tensors: weights have as many bits as keep the largest under 2^15.
 */
#include "transform/resample.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

static double box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double hamming(double x)
{
    x = fabs(x);
    if (x == 0.0)
        return 1.0;
    if (x >= 1.0)
        return 0.0;
    x *= pi;
    return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x));
}

static double cubic(double x, double a)
{
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

static double bicubic(double x)
{
    return cubic(x, -0.5);
}

static double sinc(double x)
{
    if (x == 0.0)
        return 1.0;
    x *= pi;
    return sin(x) / x;
}

static double lanczos(double x)
{
    return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

static const struct {
    double (*weight)(double x);
    double support;
} filters[FILTER_COUNT] = {
    [FILTER_BOX] = {box, 0.5},         [FILTER_BILINEAR] = {bilinear, 1.0}, [FILTER_HAMMING] = {hamming, 1.0},
    [FILTER_BICUBIC] = {bicubic, 2.0}, [FILTER_LANCZOS] = {lanczos, 3.0},
};

/* The taps of one output: inputs from first to first + count. */
struct window {
    int32_t first, count;
};

static struct window window_of(double first, double end, int32_t in)
{
    const int32_t a = first < 0.0 ? 0 : first < (double)in ? (int32_t)first : in - 1;
    return (struct window){a, (end < (double)in ? (int32_t)end : in) - a};
}

static double center_of(const struct axis *a, int32_t i)
{
    return a->start + ((double)i + 0.5) * a->scale;
}

/* torch clamps the coordinate of bilinear at 0, but not that of bicubic. */
static double plain_center(const struct axis *a, int32_t i)
{
    const double x = center_of(a, i) - 0.5;
    return a->filter == FILTER_BILINEAR && x < 0.0 ? 0.0 : x;
}

static struct window window_at(const struct axis *a, int32_t i)
{
    if (a->plain) {
        const int reach = a->filter == FILTER_BILINEAR ? 0 : 1;
        const double x = floor(plain_center(a, i));
        return window_of(x - reach, x + 2 + reach, a->in);
    }
    const double center = center_of(a, i);
    return window_of(center - a->support + 0.5, center + a->support + 0.5, a->in);
}

/* Taps beyond the border use the pixel at the border. Returns the largest weight on the way. */
static double plain_weights(const struct axis *a, int32_t i, struct window w, double *weights)
{
    const double center = plain_center(a, i), base = floor(center), rest = center - base;
    const int reach = a->filter == FILTER_BILINEAR ? 0 : 1;
    double most = 0.0;
    memset(weights, 0, sizeof *weights * (size_t)w.count);
    for (int k = -reach; k < 2 + reach; k++) {
        const double at = base + k - w.first;
        const int32_t slot = at < 0.0 ? 0 : at > w.count - 1 ? w.count - 1 : (int32_t)at;
        weights[slot] += a->filter == FILTER_BILINEAR ? bilinear(k - rest) : cubic(k - rest, -0.75);
        most = fmax(most, weights[slot]);
    }
    return most;
}

/* Bits after the binary point that torch has left in weights of 16 bits. */
static int plain_bits(const struct axis *a)
{
    double most = 0.0, weights[4];
    int bits = 0;
    for (int32_t i = 0; i < a->out; i++)
        most = fmax(most, plain_weights(a, i, window_at(a, i), weights));
    while (bits < RESAMPLE_BITS && (int32_t)(0.5 + most * (1 << (bits + 1))) < 1 << 15)
        bits++;
    return bits;
}

struct axis resample_axis(enum filter f, bool antialias, int32_t in, int32_t out)
{
    struct axis a = resample_axis_box(f, in, 0.0, in, out);
    a.plain = !antialias && (f == FILTER_BILINEAR || f == FILTER_BICUBIC);
    if (a.plain)
        a.bits = plain_bits(&a);
    return a;
}

struct axis resample_axis_box(enum filter f, int32_t in, double start, double size, int32_t out)
{
    const double scale = size / out, stretch = scale < 1.0 ? 1.0 : scale;
    return (struct axis){
        .filter = f,
        .in = in,
        .out = out,
        .start = start,
        .scale = scale,
        .support = filters[f].support * stretch,
        .shrink = 1.0 / stretch,
        .bits = RESAMPLE_BITS,
    };
}

/* Pillow adds up the coordinate from pixel to pixel, including rounding errors. */
static double nearest_start(const struct axis *a, int32_t i)
{
    double x = a->scale * 0.5;
    for (int32_t k = 0; k < i; k++)
        x += a->scale;
    return x;
}

static struct window nearest_window(const struct axis *a, double x)
{
    return x < (double)a->in ? (struct window){(int32_t)x, 1} : (struct window){a->in - 1, 0};
}

struct reach resample_needs(const struct axis *a, struct reach out)
{
    struct window first, last;
    if (a->filter == FILTER_NEAREST) {
        first = nearest_window(a, nearest_start(a, out.lo));
        last = nearest_window(a, nearest_start(a, out.lo + out.n - 1));
        last.count = 1;
    } else {
        first = window_at(a, out.lo);
        last = window_at(a, out.lo + out.n - 1);
    }
    return (struct reach){first.first, last.first + last.count - first.first};
}

int32_t resample_groups(const struct axis *a, struct reach out)
{
    int32_t most = 1;
    if (a->filter == FILTER_NEAREST || a->plain || 2.0 * a->support <= 3.0) /* up to four taps */
        return most;
    for (int32_t i = 0; i < out.n; i++) {
        const int32_t count = window_at(a, out.lo + i).count;
        most = count > most ? count : most;
    }
    return (most + 3) / 4;
}

static int32_t fixed(double w, int bits)
{
    const double x = w * (1 << bits);
    return (int32_t)(w < 0.0 ? -0.5 + x : 0.5 + x) * (1 << (RESAMPLE_BITS - bits));
}

/* The four taps of nearly all bilinear resizing, from input `start` on: as below, but in registers. */
static void bilinear_four(const struct axis *a, int32_t i, struct window w, int32_t start, int32_t *c)
{
    const double center = center_of(a, i), first = w.first, end = w.first + w.count;
    double weights[4], sum = 0.0;
    for (int k = 0; k < 4; k++) {
        const double at = start + k, x = fabs((at - center + 0.5) * a->shrink);
        const bool in = (x < 1.0) & (at >= first) & (at < end);
        weights[k] = in ? 1.0 - x : 0.0;
        sum += weights[k];
    }
    for (int k = 0; k < 4; k++)
        c[k] = (int32_t)(0.5 + weights[k] / sum * (1 << RESAMPLE_BITS));
}

/* The weights of the window, scaled to a sum of 1. */
static void soft_weights(const struct axis *a, int32_t i, struct window w, double *weights)
{
    const double center = center_of(a, i);
    double sum = 0.0;
    for (int32_t k = 0; k < w.count; k++) {
        weights[k] = filters[a->filter].weight(((double)(k + w.first) - center + 0.5) * a->shrink);
        sum += weights[k];
    }
    for (int32_t k = 0; k < w.count && sum != 0.0; k++)
        weights[k] /= sum;
}

static void any_taps(const struct axis *a, int32_t i, struct window w, int32_t start, int32_t *c, int32_t n,
                     double *weights)
{
    if (a->filter == FILTER_NEAREST)
        weights[0] = 1.0;
    else if (a->plain)
        plain_weights(a, i, w, weights);
    else
        soft_weights(a, i, w, weights);
    memset(c, 0, sizeof *c * (size_t)n);
    for (int32_t k = 0; k < w.count; k++)
        c[w.first - start + k] = fixed(weights[k], a->bits);
}

/* The first tap, such that all 4 * groups taps are within the available input, if they fit. */
static int32_t start_of(const struct taps *t, int32_t first, int32_t lo)
{
    const int32_t width = 4 * t->groups, room = t->rows > width ? t->rows - width : 0;
    return first - lo < room ? first : lo + room;
}

void resample_fill(struct taps *t, const struct axis *a, struct reach out, struct reach in, bool reverse,
                   double *weights)
{
    const int32_t width = 4 * t->groups;
    const bool four = a->filter == FILTER_BILINEAR && !a->plain && width == 4;
    double x = a->filter == FILTER_NEAREST ? nearest_start(a, out.lo) : 0.0;
    t->n = out.n;
    t->rows = in.n;
    for (int32_t i = 0; i < out.n; i++, x += a->scale) {
        const struct window w = a->filter == FILTER_NEAREST ? nearest_window(a, x) : window_at(a, out.lo + i);
        const int32_t slot = reverse ? out.n - 1 - i : i, start = start_of(t, w.first, in.lo);
        int32_t *c = t->c + (size_t)slot * (size_t)width;
        if (four)
            bilinear_four(a, out.lo + i, w, start, c);
        else
            any_taps(a, out.lo + i, w, start, c, width, weights);
        t->first[slot] = start - in.lo;
    }
    for (int32_t i = out.n; i % TAPS_ROUND != 0; i++) { /* readable, without effect */
        t->first[i] = t->first[out.n - 1];
        memset(t->c + (size_t)i * (size_t)width, 0, sizeof *t->c * (size_t)width);
    }
}
