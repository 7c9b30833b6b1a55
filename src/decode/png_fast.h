/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_fast.h -- the pixels of a PNG about which nothing is odd, without libpng.
 *
 * Where anything is (interlaced, damaged, more or less data than there should be, a wrong checksum anywhere near), it
 * makes nothing of it and leaves the picture to libpng: so it never judges, and a picture has the same pixels and
 * the same verdict either way.
 */
#ifndef PNG_FAST_H
#define PNG_FAST_H

#include "decode/codec.h"
#include "decode/png_chunks.h"
#include "decode/png_rows.h"

struct png_fast;

struct png_fast *png_fast_new(stk_cpu cpu); /* NULL: no memory */
void png_fast_free(struct png_fast *f);     /* also NULL */

const struct png_kernels *png_fast_kernels(const struct png_fast *f);

/* Arena it takes besides the pixels, for rows of this many bytes; 0: such a picture is not for it. */
size_t png_fast_scratch(const struct head *h, size_t row_bytes);
/* The crop into px, three bytes a pixel; false: left to libpng, px may hold anything, the arena is as it was. */
bool png_fast_pixels(struct png_fast *f, const struct picture_job *job, const struct png_chunks *c,
                     const struct png_rows *how, uint8_t *px);
/* The same picture through libpng alone, as the codec gives it: for tests, which compare. */
int png_slow_pixels(struct png_fast *f, const struct picture_job *job, struct image *out, int *warnings, stk_error *e);

#endif
