/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_strip.h -- from the coefficients of a JPEG, wherever they come from, to the pixels of a crop.
 *
 * It works on one row of MCUs at a time: the coefficients of a few MCUs, their samples in planes that hold one or two
 * such rows, and pixels as soon as the neighbours of their samples are known. All of it stays in the CPU's caches.
 */
#ifndef JPEG_STRIP_H
#define JPEG_STRIP_H

#include "base/arena.h"
#include "decode/jpeg_entropy.h"

/* Provides the coefficients. */
struct jpeg_giver {
    /* Writes MCUs x to x + n of row y; n is at most JPEG_AT_ONCE. Called from top to bottom and from left to right.
     * Returns false if it cannot. */
    bool (*give)(void *user, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to);
    void *user;
    bool sparse; /* it writes only coefficients that are not 0, into zeroed memory */
};

enum { JPEG_AT_ONCE = 32, JPEG_AT_ONCE_BLOCKS = JPEG_AT_ONCE * 6 }; /* MCUs, and their blocks at most */

/* Divides memory among the runs of blocks of `mcus` MCUs: 64 coefficients and a byte of `last` for each block. */
void jpeg_strip_blocks(struct jpeg_blocks *b, const struct jpeg_frame *f, int mcus, int16_t *coef, uint8_t *last);

/* Bytes of arena that jpeg_strip_run takes for a crop, with any sampling; SIZE_MAX on overflow. */
size_t jpeg_strip_scratch(const struct rect *crop);
/* Makes the crop in the arena. Returns false if the giver fails or the arena is too small. */
bool jpeg_strip_run(const struct jpeg_frame *f, const struct rect *crop, const struct jpeg_kernels *k,
                    const struct jpeg_giver *from, struct arena *a, struct image *out);

#endif
