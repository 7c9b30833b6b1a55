/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_kernel.h -- from the coefficients of a JPEG to RGB, as a table of functions.
 *
 * jpeg_kernels_fill puts plain C into every place and then lets the better instruction sets take over.
 * All give the bits of libjpeg-turbo's accurate IDCT ("islow"), fancy upsampling and colour conversion on x86, also for
 * coefficients that no encoder makes.
 */
#ifndef JPEG_KERNEL_H
#define JPEG_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/dct_block.h"
#include "stoker.h"

enum {
    JPEG_BLOCK = 64, /* coefficients of a block */
    JPEG_CORNER = 9, /* the last zigzag index that has only such of the first four rows and columns before it */
};

/* How the chroma of a picture is stored; libjpeg-turbo upsamples each in its own way. */
enum jpeg_sampling {
    JPEG_GREY, /* there is none */
    JPEG_444,  /* as much as there is luma */
    JPEG_422,  /* half the columns */
    JPEG_420,  /* half the columns and rows */
    JPEG_440,  /* half the rows */
    JPEG_SAMPLINGS
};

/*
 * The samples of one row of pixels. y begins at an even column x of the picture, chroma where its part of x lies (x / 2
 * where columns are halved). Where columns are halved, one chroma sample before the first and one past the last are
 * read as well: at the picture's left and right edge the nearest sample is repeated there. (libjpeg-turbo treats
 * pictures of one or two chroma columns otherwise: those are not for these kernels.)
 *
 * Where rows are halved, row v of the picture lies in chroma row v / 2, and the other row that counts is the one above
 * for an even v, the one below for an odd v; at the picture's top and bottom edge the row itself.
 */
struct jpeg_row {
    const uint8_t *y, *cb, *cr;
    const uint8_t *cb_other, *cr_other; /* only where rows are halved */
    bool odd;                           /* v is odd */
};

/* One row of w pixels, 3 bytes each. May read up to IMAGE_SLACK bytes past the last sample that counts. */
typedef void jpeg_row_fn(uint8_t *rgb, const struct jpeg_row *r, size_t w);

/*
 * n blocks of coefficients in natural order, times q (natural order as well), to 8 x 8 samples each. Block i goes to
 * dst + 8 * i, rows are `stride` apart. Behind zigzag index last[i] all coefficients of block i are 0; or last[i] is
 * JPEG_CORNER, and all but those of its first four rows and columns are.
 */
typedef void jpeg_idct_fn(uint8_t *dst, size_t stride, const int16_t *coef, const uint8_t *last, size_t n,
                          const uint16_t *q);

struct jpeg_kernels {
    jpeg_idct_fn *idct;
    jpeg_idct_fn *small[3]; /* the same to 4 x 4, 2 x 2, 1 x 1: block i goes to dst + 4 * i, 2 * i, i */
    jpeg_row_fn *row[JPEG_SAMPLINGS];
    dct_decode_fn *dct_decode;
    dct_encode_fn *dct_encode;
};

void jpeg_kernels_fill(struct jpeg_kernels *k, stk_cpu cpu);

/* One block, in plain C. */
void jpeg_idct_c(uint8_t *dst, size_t stride, const int16_t *coef, const uint16_t *q);

/* One per instruction set; for jpeg_kernels_fill only. */
void jpeg_kernels_c(struct jpeg_kernels *k);
void jpeg_kernels_avx2(struct jpeg_kernels *k);
void jpeg_kernels_avx512(struct jpeg_kernels *k);

#endif
