/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_small.h -- IDCTs to 4 x 4, 2 x 2 and 1 x 1 samples, as in libjpeg-turbo for images at a half, a quarter and an
 * eighth of their size.
 *
 * The file of every instruction set compiles it for itself. Compilers vectorise the loops, and integers are the same in
 * all. Overflow wraps. libjpeg-turbo differs there, but only damaged files overflow.
 */
#ifndef JPEG_SMALL_H
#define JPEG_SMALL_H

#include <string.h>

enum {
    SMALL_BITS = 13,
    SMALL_PASS1 = 2,
    SMALL_ROWS = SMALL_BITS + SMALL_PASS1 + 3,
    SMALL_COLUMNS = SMALL_BITS - SMALL_PASS1
};

static inline int32_t small_times(int32_t a, int32_t k)
{
    return (int32_t)((uint32_t)a * (uint32_t)k);
}

static inline int32_t small_sum(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t small_descale(int32_t v, int bits)
{
    return small_sum(v, 1 << (bits - 1)) >> bits;
}

static inline uint8_t small_sample(int32_t v)
{
    v = v < -128 ? -128 : v > 127 ? 127 : v;
    return (uint8_t)(v + 128);
}

/* Four numbers from eight, in[i * step]; the middle one is not used. */
static inline void small_four(const int32_t *in, int step, int32_t out[4], int bits)
{
    const int32_t first = small_times(in[0], 1 << (SMALL_BITS + 1));
    const int32_t even = small_sum(small_times(in[2 * step], 15137), small_times(in[6 * step], -6270));
    const int32_t a = small_sum(first, even), b = small_sum(first, -even);
    const int32_t i1 = in[step], i3 = in[3 * step], i5 = in[5 * step], i7 = in[7 * step];
    const int32_t inner = small_sum(small_sum(small_times(i7, -1730), small_times(i5, 11893)),
                                    small_sum(small_times(i3, -17799), small_times(i1, 8697)));
    const int32_t outer = small_sum(small_sum(small_times(i7, -4176), small_times(i5, -4926)),
                                    small_sum(small_times(i3, 7373), small_times(i1, 20995)));
    out[0] = small_descale(small_sum(a, outer), bits + 1);
    out[1] = small_descale(small_sum(b, inner), bits + 1);
    out[2] = small_descale(small_sum(b, -inner), bits + 1);
    out[3] = small_descale(small_sum(a, -outer), bits + 1);
}

/* Two numbers from eight, of which the first and the odd ones are used. */
static inline void small_two(const int32_t *in, int step, int32_t out[2], int bits)
{
    const int32_t first = small_times(in[0], 1 << (SMALL_BITS + 2));
    const int32_t odd = small_sum(small_sum(small_times(in[7 * step], -5906), small_times(in[5 * step], 6967)),
                                  small_sum(small_times(in[3 * step], -10426), small_times(in[step], 29692)));
    out[0] = small_descale(small_sum(first, odd), bits + 2);
    out[1] = small_descale(small_sum(first, -odd), bits + 2);
}

static inline void small_dequantise(int32_t *out, const int16_t *coef, const uint16_t *q)
{
    for (int i = 0; i < JPEG_BLOCK; i++)
        out[i] = coef[i] * (int16_t)q[i];
}

/* A block with DC alone. */
static inline void small_flat(uint8_t *dst, size_t stride, int16_t dc, uint16_t q, int side)
{
    const uint8_t level = small_sample(small_descale(dc * (int16_t)q, 3));
    for (int y = 0; y < side; y++, dst += stride)
        memset(dst, level, (size_t)side);
}

static inline void small_block4(uint8_t *dst, size_t stride, const int16_t *coef, const uint16_t *q)
{
    int32_t in[JPEG_BLOCK], between[4 * 8];
    small_dequantise(in, coef, q);
    for (int x = 0; x < 8; x++) {
        int32_t out[4];
        small_four(in + x, 8, out, SMALL_COLUMNS);
        for (int y = 0; y < 4; y++)
            between[8 * y + x] = out[y];
    }
    for (int y = 0; y < 4; y++, dst += stride) {
        int32_t out[4];
        small_four(between + 8 * y, 1, out, SMALL_ROWS);
        for (int x = 0; x < 4; x++)
            dst[x] = small_sample(out[x]);
    }
}

static inline void small_block2(uint8_t *dst, size_t stride, const int16_t *coef, const uint16_t *q)
{
    int32_t in[JPEG_BLOCK], between[2 * 8];
    small_dequantise(in, coef, q);
    for (int x = 0; x < 8; x++) {
        int32_t out[2];
        small_two(in + x, 8, out, SMALL_COLUMNS);
        between[x] = out[0];
        between[8 + x] = out[1];
    }
    for (int y = 0; y < 2; y++, dst += stride) {
        int32_t out[2];
        small_two(between + 8 * y, 1, out, SMALL_ROWS);
        dst[0] = small_sample(out[0]);
        dst[1] = small_sample(out[1]);
    }
}

/* side is a constant once this is inlined. */
static inline void small_blocks(uint8_t *dst, size_t stride, const int16_t *coef, const uint8_t *last, size_t n,
                                const uint16_t *q, int side)
{
    for (size_t i = 0; i < n; i++, dst += side, coef += JPEG_BLOCK) {
        if (last[i] == 0)
            small_flat(dst, stride, coef[0], q[0], side);
        else if (side == 4)
            small_block4(dst, stride, coef, q);
        else
            small_block2(dst, stride, coef, q);
    }
}

static void small4(uint8_t *dst, size_t stride, const int16_t *coef, const uint8_t *last, size_t n, const uint16_t *q)
{
    small_blocks(dst, stride, coef, last, n, q, 4);
}

static void small2(uint8_t *dst, size_t stride, const int16_t *coef, const uint8_t *last, size_t n, const uint16_t *q)
{
    small_blocks(dst, stride, coef, last, n, q, 2);
}

static void small1(uint8_t *dst, size_t stride, const int16_t *coef, const uint8_t *last, size_t n, const uint16_t *q)
{
    (void)stride;
    (void)last;
    for (size_t i = 0; i < n; i++, coef += JPEG_BLOCK)
        dst[i] = small_sample(small_descale(coef[0] * (int16_t)q[0], 3));
}

static inline void small_fill(struct jpeg_kernels *k)
{
    k->small[0] = small4;
    k->small[1] = small2;
    k->small[2] = small1;
}

#endif
