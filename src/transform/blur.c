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

/* Values past the end, which vector versions read and do not use. */
enum { SLACK = 64 };

size_t blur_room(const struct blur *b, int32_t w, int channels)
{
    return size_add(size_mul((size_t)w + 2 * (size_t)b->x.half, (size_t)channels), SLACK);
}

/* Repeats the pixels of a line beyond both ends. */
static void extend(int16_t *line, int32_t w, int32_t half, size_t channels)
{
    for (int32_t k = 1; k <= half; k++) {
        memcpy(line - (size_t)k * channels, line + (size_t)k * channels, channels * sizeof *line);
        memcpy(line + (size_t)(w - 1 + k) * channels, line + (size_t)(w - 1 - k) * channels, channels * sizeof *line);
    }
}

void blur_line(const struct kernels *k, const struct blur *b, const struct image *in, int32_t y, int16_t *room,
               uint8_t *dst)
{
    const size_t channels = (size_t)in->channels, n = (size_t)in->w * channels;
    const uint8_t *rows[2 * BLUR_HALF + 1];
    for (int32_t i = -b->y.half; i <= b->y.half; i++)
        rows[i + b->y.half] = in->px + (size_t)reflect(y + i, in->h) * in->stride;
    int16_t *line = room + (size_t)b->x.half * channels;
    k->blur_down(line, rows, n, &b->y);
    extend(line, in->w, b->x.half, channels);
    k->blur_across(dst, line, n, channels, &b->x);
}
