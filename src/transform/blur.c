/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blur.c -- Gaussian blur: a pass down to a line of 16-bit values, then a pass across to bytes.
 *
 * Weights that round to 0 are left out, so a wide kernel with a small sigma costs no more than a narrow one.
 */
#include "transform/blur.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "transform/kernel.h"

void blur_axis_init(struct blur_axis *a, int32_t size, double sigma)
{
    const int32_t half = size / 2;
    double weight[BLUR_HALF + 1], sum = 0.0;
    for (int32_t k = 0; k <= half; k++) {
        weight[k] = exp(-0.5 * (k / sigma) * (k / sigma));
        sum += k ? 2.0 * weight[k] : weight[k];
    }
    memset(a->weight, 0, sizeof a->weight);
    a->half = 0;
    int32_t rest = 1 << BLUR_BITS;
    for (int32_t k = 1; k <= half; k++) {
        a->weight[k] = (int16_t)lrint(weight[k] / sum * (1 << BLUR_BITS));
        a->half = a->weight[k] ? k : a->half;
        rest -= 2 * a->weight[k];
    }
    a->weight[0] = (int16_t)rest; /* so that flat areas stay as they are */
}

void blur_down_c(int16_t *dst, const uint8_t *const *rows, size_t n, const struct blur_axis *a)
{
    const uint8_t *const *middle = rows + a->half;
    for (size_t i = 0; i < n; i++) {
        int32_t sum = 1 << (BLUR_BITS - BLUR_BETWEEN - 1);
        sum += a->weight[0] * middle[0][i];
        for (int32_t k = 1; k <= a->half; k++)
            sum += a->weight[k] * (middle[-k][i] + middle[k][i]);
        dst[i] = (int16_t)(sum >> (BLUR_BITS - BLUR_BETWEEN));
    }
}

void blur_across_c(uint8_t *dst, const int16_t *src, size_t n, size_t step, const struct blur_axis *a)
{
    for (size_t i = 0; i < n; i++) {
        const int16_t *left = src + i, *right = left;
        int32_t sum = 1 << (BLUR_BITS + BLUR_BETWEEN - 1);
        sum += a->weight[0] * *left;
        for (int32_t k = 1; k <= a->half; k++)
            sum += a->weight[k] * (*(left -= step) + *(right += step));
        dst[i] = (uint8_t)(sum >> (BLUR_BITS + BLUR_BETWEEN));
    }
}

/* The reflection of i in 0 to n - 1. */
static int32_t reflect(int32_t i, int32_t n)
{
    return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i;
}

size_t blur_room(int32_t size, int32_t w, int channels)
{
    return size_mul(((size_t)w + (size_t)size) * (size_t)channels, sizeof(int16_t));
}

static struct reach widened(int32_t lo, int32_t n, int32_t half, int32_t size)
{
    const int32_t first = lo > half ? lo - half : 0, end = lo + n + half;
    return (struct reach){first, (end < size ? end : size) - first};
}

struct rect blur_needs(struct rect need, int32_t size_x, int32_t size_y, int32_t w, int32_t h)
{
    const struct reach x = widened(need.x, need.w, size_x / 2, w), y = widened(need.y, need.h, size_y / 2, h);
    return (struct rect){x.lo, y.lo, x.n, y.n};
}

/* Reflects the pixels of a line beyond its ends, if they are the ends of the image. */
static void extend(int16_t *line, const struct blur_source *s, int32_t half)
{
    const size_t channels = (size_t)s->in.channels, bytes = channels * sizeof *line;
    int16_t *last = line + (size_t)(s->from.w - 1) * channels;
    for (int32_t k = 1; k <= half && s->from.x == 0; k++)
        memcpy(line - (size_t)k * channels, line + (size_t)k * channels, bytes);
    for (int32_t k = 1; k <= half && s->from.x + s->from.w == s->w; k++)
        memcpy(last + (size_t)k * channels, last - (size_t)k * channels, bytes);
}

void blur_line(const struct kernels *k, const struct blur *b, const struct blur_source *s, int32_t y, void *room,
               uint8_t *dst)
{
    const size_t channels = (size_t)s->in.channels;
    const uint8_t *rows[2 * BLUR_HALF + 1];
    for (int32_t i = -b->y.half; i <= b->y.half; i++)
        rows[i + b->y.half] = s->in.px + (size_t)(reflect(y + i, s->h) - s->from.y) * s->in.stride;
    int16_t *line = (int16_t *)room + (size_t)b->x.half * channels;
    k->blur_down(line, rows, (size_t)s->from.w * channels, &b->y);
    extend(line, s, b->x.half);
    k->blur_across(dst, line + (size_t)(s->x - s->from.x) * channels, (size_t)s->n * channels, channels, &b->x);
}
