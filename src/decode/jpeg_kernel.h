/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_kernel.h -- from the coefficients of a JPEG to RGB, as a table of functions.
 *
 * jpeg_kernels_fill sets every entry to plain C; better instruction sets then replace entries. All give the bits of
 * libjpeg-turbo's accurate IDCT ("islow"), fancy upsampling and colour conversion on x86, even for coefficients that no
 * encoder makes.
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
    JPEG_CORNER = 9, /* the last zigzag index before which all are in the first four rows and columns */
};

/* How chroma is stored; libjpeg-turbo upsamples each kind in its own way. */
enum jpeg_sampling {
    JPEG_GREY, /* none */
    JPEG_444,  /* as much as luma */
    JPEG_422,  /* half the columns */
    JPEG_420,  /* half the columns and rows */
    JPEG_440,  /* half the rows */
    JPEG_SAMPLINGS
};

/*
 * The samples of one row of pixels. y starts at an even column x of the image, chroma at its sample of x (x / 2 if
 * columns are halved). If columns are halved, one chroma sample before the first and one past the last are also read.
 * At the left and right edge of the image the nearest sample is repeated there. (libjpeg-turbo treats images of one or
 * two chroma columns differently; these kernels do not decode them.)
 *
 * If rows are halved, row v of the image is in chroma row v / 2. The other row that is used is the one above for an
 * even v and the one below for an odd v; at the top and bottom edge of the image it is the row itself.
 */
struct jpeg_row {
    const uint8_t *y, *cb, *cr;
    const uint8_t *cb_other, *cr_other; /* only if rows are halved */
    bool odd;                           /* v is odd */
};

/* Makes one row of w pixels, 3 bytes each. May read up to IMAGE_SLACK bytes past the last sample that is used. */
typedef void jpeg_row_fn(uint8_t *rgb, const struct jpeg_row *r, size_t w);

/*
 * Turns n blocks of coefficients, multiplied by q, into 8 x 8 samples each; both are in natural order. Block i goes to
 * dst + 8 * i, rows are `stride` apart. All coefficients of block i after zigzag index last[i] are 0; or last[i] is
 * JPEG_CORNER, and all outside of the first four rows and columns are 0.
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
