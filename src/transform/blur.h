/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blur.h -- Gaussian blur of bytes, one line at a time.
 *
 * torchvision convolves with a square of weights in single precision and rounds. Here the square is a column times a
 * row, in fixed point: the result differs by one level at the most. Pixels outside of the image are its reflection.
 */
#ifndef BLUR_H
#define BLUR_H

#include "base/sample.h"

struct kernels;

/* BLUR_BITS: after the binary point of weights. BLUR_BETWEEN: of values between the passes; the sum of two of them
 * must fit into 16 bits. */
enum { BLUR_MOST = 511, BLUR_HALF = BLUR_MOST / 2, BLUR_BITS = 14, BLUR_BETWEEN = 6 };

/* One direction: weight[0] is that of the pixel itself, weight[k] that of both pixels k away. All add up to
 * 1 << BLUR_BITS. */
struct blur_axis {
    int32_t half; /* the last weight that is not 0 */
    int16_t weight[BLUR_HALF + 3];
};

struct blur {
    struct blur_axis x, y;
};

/* size: odd, at most BLUR_MOST. */
void blur_axis_init(struct blur_axis *a, int32_t size, double sigma);
/* int16 values of memory that blur_line takes. */
size_t blur_room(const struct blur *b, int32_t w, int channels); /* SIZE_MAX on overflow */
/* Writes line y. The whole image must be there; its sides are larger than both halves. */
void blur_line(const struct kernels *k, const struct blur *b, const struct image *in, int32_t y, int16_t *room,
               uint8_t *dst);

/* For the table of kernels. */
void blur_down_c(int16_t *dst, const uint8_t *const *rows, size_t n, const struct blur_axis *a);
void blur_across_c(uint8_t *dst, const int16_t *src, size_t n, size_t step, const struct blur_axis *a);

#endif
