/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orient.h -- the eight EXIF orientations: rectangles and pixels between stored and upright.
 */
#ifndef ORIENT_H
#define ORIENT_H

#include "base/sample.h"

/* The rectangle of the stored image (w x h) that contains r of the upright one. */
struct rect orient_stored(int orientation, int32_t w, int32_t h, struct rect r);
/* Writes src (3 channels) upright to dst in dense rows: src.w x src.h, or src.h x src.w for 5 to 8. */
void orient_pixels(int orientation, const struct image *src, uint8_t *dst);

#endif
