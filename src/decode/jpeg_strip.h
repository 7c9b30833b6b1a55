/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_strip.h -- from the coefficients of a JPEG, wherever they come from, to the pixels of a crop.
 *
 * A row of MCUs at a time: coefficients of a few MCUs, their samples into planes that hold one or two such rows, pixels
 * from there as soon as their neighbours are known. All of it stays in the caches.
 */
#ifndef JPEG_STRIP_H
#define JPEG_STRIP_H

#include "base/arena.h"
#include "decode/jpeg_entropy.h"

/* Who has the coefficients. */
struct jpeg_giver {
    /* MCUs x to x + n of row y, n at most JPEG_AT_ONCE. Asked for from top to bottom, from left to right. false: it
     * cannot. */
    bool (*give)(void *user, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to);
    void *user;
    bool sparse; /* it writes only what is not 0, and is given zeros */
};

enum { JPEG_AT_ONCE = 32 };

/* Arena that jpeg_strip_run takes for a crop of any sampling; SIZE_MAX when it overflows. */
size_t jpeg_strip_scratch(const struct rect *crop);
/* The crop, in the arena. false: the giver could not, or the arena is too small. */
bool jpeg_strip_run(const struct jpeg_frame *f, const struct rect *crop, const struct jpeg_kernels *k,
                    const struct jpeg_giver *from, struct arena *a, struct image *out);

#endif
