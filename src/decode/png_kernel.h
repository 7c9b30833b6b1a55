/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_kernel.h -- the inner loops of PNG, as a table of functions.
 *
 * png_kernels_fill sets every entry to plain C; better instruction sets then replace entries. C defines the result; all
 * give the same bits.
 */
#ifndef PNG_KERNEL_H
#define PNG_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

enum {
    UNFILTER_ROWS = 8, /* at once, at most */
    UNFILTER_PAD = 64, /* bytes before and after every row that may be read and written */
    UNFILTER_STEPS = 8,
    FILTERS = 5, /* None, Sub, Up, Average, Paeth: the first byte of a row */
};

/* Makes `rows` rows of n bytes at dst, `stride` apart, from those at src, each after the byte with its filter. The
 * row above the first is at dst - stride. */
typedef void unfilter_fn(uint8_t *dst, size_t stride, const uint8_t *src, size_t n, int rows);

struct png_kernels {
    /* Continues the Adler-32 `sum`, which starts as 1. */
    uint32_t (*adler)(uint32_t sum, const uint8_t *p, size_t n);
    unfilter_fn *unfilter[UNFILTER_STEPS + 1]; /* by bytes per pixel: 1, 2, 3, 4, 6 or 8 */
    /* drop_alpha: the first 3 bytes of each of n pixels of 4. spread_grey: each of n bytes three times. */
    void (*drop_alpha)(uint8_t *dst, const uint8_t *src, size_t n);
    void (*spread_grey)(uint8_t *dst, const uint8_t *src, size_t n);
};

void png_kernels_fill(struct png_kernels *k, stk_cpu cpu);

/* In plain C, for pixels of any size. */
void png_unfilter(uint8_t *dst, size_t stride, const uint8_t *src, size_t n, int rows, size_t step);
/* One per instruction set; for png_kernels_fill only. */
void png_kernels_avx2(struct png_kernels *k);

#endif
