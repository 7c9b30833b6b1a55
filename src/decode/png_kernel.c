/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_kernel.c -- the inner loops of PNG in plain C, which define the result, and the table of kernels for a CPU.
 *
 * A filter stores a byte as its difference to a guess. The guess is made of the bytes one pixel to the left (a), above
 * (b) and above left (c). Outside of the image they are 0.
 */
#include "decode/png_kernel.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NONE, SUB, UP, AVERAGE, PAETH };

static uint8_t paeth(int a, int b, int c)
{
    const int pa = abs(b - c), pb = abs(a - c), pc = abs(a + b - 2 * c);
    return (uint8_t)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

/* Unfilters the first pixel, which has none to its left. */
static void first(uint8_t *dst, const uint8_t *above, const uint8_t *src, size_t step, int filter)
{
    for (size_t i = 0; i < step; i++) {
        const int b = above[i], guess = filter == UP || filter == PAETH ? b : filter == AVERAGE ? b / 2 : 0;
        dst[i] = (uint8_t)(src[i] + guess);
    }
}

static void row(uint8_t *dst, const uint8_t *above, const uint8_t *src, size_t n, size_t step, int filter)
{
    first(dst, above, src, step, filter);
    switch (filter) {
    case SUB:
        for (size_t i = step; i < n; i++)
            dst[i] = (uint8_t)(src[i] + dst[i - step]);
        return;
    case UP:
        for (size_t i = step; i < n; i++)
            dst[i] = (uint8_t)(src[i] + above[i]);
        return;
    case AVERAGE:
        for (size_t i = step; i < n; i++)
            dst[i] = (uint8_t)(src[i] + (dst[i - step] + above[i]) / 2);
        return;
    case PAETH:
        for (size_t i = step; i < n; i++)
            dst[i] = (uint8_t)(src[i] + paeth(dst[i - step], above[i], above[i - step]));
        return;
    default:
        memcpy(dst + step, src + step, n - step);
    }
}

static inline void rows_of(uint8_t *dst, size_t stride, const uint8_t *src, size_t n, int rows, size_t step)
{
    for (int y = 0; y < rows; y++, dst += stride, src += n + 1)
        row(dst, dst - stride, src + 1, n, step, src[0]);
}

void png_unfilter(uint8_t *dst, size_t stride, const uint8_t *src, size_t n, int rows, size_t step)
{
    rows_of(dst, stride, src, n, rows, step);
}

#define UNFILTER(step)                                                                                                 \
    static void unfilter_##step(uint8_t *dst, size_t stride, const uint8_t *src, size_t n, int rows)                   \
    {                                                                                                                  \
        rows_of(dst, stride, src, n, rows, step);                                                                      \
    }
UNFILTER(1)
UNFILTER(2)
UNFILTER(3)
UNFILTER(4)
UNFILTER(6)
UNFILTER(8)

static uint32_t adler(uint32_t sum, const uint8_t *p, size_t n)
{
    enum { PRIME = 65521, RUN = 5552 }; /* as many bytes as 32 bits can sum before they must be reduced */
    uint32_t a = sum & 0xffff, b = sum >> 16;
    while (n > 0) {
        const size_t run = n < RUN ? n : RUN;
        for (size_t i = 0; i < run; i++) {
            a += p[i];
            b += a;
        }
        a %= PRIME;
        b %= PRIME;
        p += run;
        n -= run;
    }
    return b << 16 | a;
}

static void drop_alpha(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (; n > 0; n--, dst += 3, src += 4)
        memcpy(dst, src, 3);
}

static void spread_grey(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (; n > 0; n--, dst += 3)
        memset(dst, *src++, 3);
}

void png_kernels_fill(struct png_kernels *k, stk_cpu cpu)
{
    *k = (struct png_kernels){
        .adler = adler,
        .unfilter = {[1] = unfilter_1,
                     [2] = unfilter_2,
                     [3] = unfilter_3,
                     [4] = unfilter_4,
                     [6] = unfilter_6,
                     [8] = unfilter_8},
        .drop_alpha = drop_alpha,
        .spread_grey = spread_grey,
    };
#if defined(__x86_64__)
    if (cpu == STK_CPU_AVX2 || cpu == STK_CPU_AVX512)
        png_kernels_avx2(k);
#else
    (void)cpu;
#endif
}
