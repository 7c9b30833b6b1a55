/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orient.h -- the eight EXIF orientations: rectangles and pixels between stored and upright.
 */
#ifndef ORIENT_H
#define ORIENT_H

#include "base/sample.h"

/* The rectangle of the stored picture (w x h) that holds r of the upright one. */
struct rect orient_stored(int orientation, int32_t w, int32_t h, struct rect r);
/* Writes src (3 channels) upright to dst, dense rows: src.w x src.h, or the other way round for 5 to 8. */
void orient_pixels(int orientation, const struct image *src, uint8_t *dst);

#endif
