/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.h -- an image or a mask through a map, as torchvision does it on tensors: with torch's grid_sample, in single
 * precision. warp.h has the same maps with Pillow's arithmetic.
 */
#ifndef GRID_H
#define GRID_H

#include "transform/warp.h"

/* For line y of the result, the points of the input that its pixels are made of; 0 is the middle of the first pixel.
 * Both arrays have room for a line. */
void grid_line(const struct warp *w, int32_t y, float *x_of, float *y_of);
/* The nearest pixel, or -1 outside; n: the pixels of that side. */
int32_t grid_nearest(float at, int32_t n);
/* Makes n pixels of an image from points of the whole input. */
void grid_pixels(const struct warp *w, const struct image *in, const float *x_of, const float *y_of, int32_t n,
                 uint8_t *dst);

#endif
