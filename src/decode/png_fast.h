/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_fast.h -- the pixels of a plain PNG, without libpng.
 *
 * It declines any image that is not plain (interlaced, damaged, too much or too little data, a wrong checksum nearby)
 * and leaves it to libpng. So it never judges, and an image has the same pixels and the same verdict either way.
 */
#ifndef PNG_FAST_H
#define PNG_FAST_H

#include "decode/codec.h"
#include "decode/png_chunks.h"
#include "decode/png_rows.h"

struct png_fast;

struct png_fast *png_fast_new(stk_cpu cpu); /* NULL: no memory */
void png_fast_free(struct png_fast *f);     /* accepts NULL */

const struct png_kernels *png_fast_kernels(const struct png_fast *f);

/* Bytes of arena besides the pixels, for rows of this many bytes; 0: it declines such an image. */
size_t png_fast_scratch(const struct head *h, size_t row_bytes);
/* Decodes the crop into px, three bytes per pixel. Returns false if it declines: px may then hold anything, and the
 * arena is unchanged. */
bool png_fast_pixels(struct png_fast *f, const struct image_job *job, const struct png_chunks *c,
                     const struct png_rows *how, uint8_t *px);
/* The same image through libpng alone, for tests that compare. */
int png_slow_pixels(struct png_fast *f, const struct image_job *job, struct image *out, int *warnings, stk_error *e);

#endif
