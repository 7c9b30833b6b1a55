/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blur.h -- Gaussian blur of bytes, one line at a time.
 *
 * torchvision convolves with a square of weights in single precision and rounds. Here the square is a column times a
 * row, in fixed point: the result differs by at most one level. Pixels outside of the image are its reflection.
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
/* An image of w x h pixels, of which the part `from` is available; and the part of a line to make. */
struct blur_source {
    struct image in;
    struct rect from;
    int32_t w, h; /* larger than half of the sizes */
    int32_t x, n; /* from pixel x on, n pixels */
};

/* Bytes of memory that blur_line takes, for kernels up to this size. SIZE_MAX on overflow. */
size_t blur_room(int32_t size, int32_t w, int channels);
/* Writes line y. */
void blur_line(const struct kernels *k, const struct blur *b, const struct blur_source *s, int32_t y, void *room,
               uint8_t *dst);
/* The part that a part of the result takes, for kernels up to these sizes. */
struct rect blur_needs(struct rect need, int32_t size_x, int32_t size_y, int32_t w, int32_t h);

/* For the table of kernels. */
void blur_down_c(int16_t *dst, const uint8_t *const *rows, size_t n, const struct blur_axis *a);
void blur_across_c(uint8_t *dst, const int16_t *src, size_t n, size_t step, const struct blur_axis *a);

#endif
