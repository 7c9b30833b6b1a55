/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_trip_loops.h -- the inner loops, in C, to be compiled for every instruction set.
 *
 * They have no branches, so that a compiler uses vectors. All is integer arithmetic, so the result does not depend on
 * that. The steps are those of the Independent JPEG Group: jccolor.c, jcsample.c, jfdctint.c, jidctint.c, jdsample.c
 * and jdcolor.c.
 */
#ifndef JPEG_TRIP_LOOPS_H
#define JPEG_TRIP_LOOPS_H

#include "transform/jpeg_trip.h"

enum { TRIP_CONST = 13, TRIP_PASS = 2 };

/* Constants times 2^13. */
enum {
    F_0_298 = 2446,
    F_0_390 = 3196,
    F_0_541 = 4433,
    F_0_765 = 6270,
    F_0_899 = 7373,
    F_1_175 = 9633,
    F_1_501 = 12299,
    F_1_847 = 15137,
    F_1_961 = 16069,
    F_2_053 = 16819,
    F_2_562 = 20995,
    F_3_072 = 25172
};

static inline int32_t trip_shift(int32_t v, int bits)
{
    return (v + (1 << (bits - 1))) >> bits;
}

/* One pass of the forward transform, down the columns. */
static inline void trip_forward(int32_t d[64], bool last)
{
    const int bits = last ? TRIP_CONST + TRIP_PASS : TRIP_CONST - TRIP_PASS;
    for (int i = 0; i < 8; i++) {
        int32_t *p = d + i;
        const int32_t s0 = p[0] + p[56], s1 = p[8] + p[48], s2 = p[16] + p[40], s3 = p[24] + p[32];
        const int32_t d0 = p[0] - p[56], d1 = p[8] - p[48], d2 = p[16] - p[40], d3 = p[24] - p[32];
        const int32_t a = s0 + s3, b = s1 + s2, c = s0 - s3, e = s1 - s2, turn = (c + e) * F_0_541;
        p[0] = last ? trip_shift(a + b, TRIP_PASS) : (a + b) * (1 << TRIP_PASS);
        p[32] = last ? trip_shift(a - b, TRIP_PASS) : (a - b) * (1 << TRIP_PASS);
        p[16] = trip_shift(turn + c * F_0_765, bits);
        p[48] = trip_shift(turn - e * F_1_847, bits);
        const int32_t z5 = (d3 + d1 + d2 + d0) * F_1_175;
        const int32_t z1 = -(d3 + d0) * F_0_899, z2 = -(d2 + d1) * F_2_562;
        const int32_t z3 = z5 - (d3 + d1) * F_1_961, z4 = z5 - (d2 + d0) * F_0_390;
        p[56] = trip_shift(d3 * F_0_298 + z1 + z3, bits);
        p[40] = trip_shift(d2 * F_2_053 + z2 + z4, bits);
        p[24] = trip_shift(d1 * F_3_072 + z2 + z3, bits);
        p[8] = trip_shift(d0 * F_1_501 + z1 + z4, bits);
    }
}

/* One pass of the inverse transform, down the columns. */
static inline void trip_inverse(int32_t d[64], bool last)
{
    const int bits = last ? TRIP_CONST + TRIP_PASS + 3 : TRIP_CONST - TRIP_PASS;
    for (int i = 0; i < 8; i++) {
        int32_t *p = d + i;
        const int32_t turn = (p[16] + p[48]) * F_0_541;
        const int32_t e2 = turn - p[48] * F_1_847, e3 = turn + p[16] * F_0_765;
        const int32_t e0 = (p[0] + p[32]) * (1 << TRIP_CONST), e1 = (p[0] - p[32]) * (1 << TRIP_CONST);
        const int32_t a = e0 + e3, b = e1 + e2, c = e1 - e2, e = e0 - e3;
        const int32_t z5 = (p[56] + p[24] + p[40] + p[8]) * F_1_175;
        const int32_t z1 = -(p[56] + p[8]) * F_0_899, z2 = -(p[40] + p[24]) * F_2_562;
        const int32_t z3 = z5 - (p[56] + p[24]) * F_1_961, z4 = z5 - (p[40] + p[8]) * F_0_390;
        const int32_t o0 = p[56] * F_0_298 + z1 + z3, o1 = p[40] * F_2_053 + z2 + z4;
        const int32_t o2 = p[24] * F_3_072 + z2 + z3, o3 = p[8] * F_1_501 + z1 + z4;
        p[0] = trip_shift(a + o3, bits);
        p[56] = trip_shift(a - o3, bits);
        p[8] = trip_shift(b + o2, bits);
        p[48] = trip_shift(b - o2, bits);
        p[16] = trip_shift(c + o1, bits);
        p[40] = trip_shift(c - o1, bits);
        p[24] = trip_shift(e + o0, bits);
        p[32] = trip_shift(e - o0, bits);
    }
}

/* To the nearest multiple of the quantiser; the coefficients are eight times as large before. */
static inline void trip_quantise(int32_t d[64], const struct trip_table *t)
{
    for (int i = 0; i < 64; i++) {
        const int32_t sign = d[i] >> 31;
        const uint32_t size = (uint32_t)((d[i] ^ sign) - sign);
        const int32_t level = (int32_t)((size + t->round[i]) * t->factor[i] >> t->shift[i]);
        d[i] = ((level ^ sign) - sign) * t->value[i];
    }
}

/* How a block moves; an instruction set has its own. `gather` and `put` also transpose. */
struct trip_moves {
    void (*gather)(int32_t d[64], const uint8_t *px, size_t stride); /* samples less 128 */
    void (*transpose)(int32_t d[64]);
    void (*put)(uint8_t *px, size_t stride, const int32_t d[64]);
};

/* Lines are transformed first, then columns, as in the originals; and the other way back. */
static inline void trip_blocks(uint8_t *px, size_t stride, int32_t n, const struct trip_table *t,
                               const struct trip_moves m)
{
    _Alignas(64) int32_t d[64];
    for (int32_t i = 0; i < n; i++, px += 8) {
        m.gather(d, px, stride);
        trip_forward(d, false);
        m.transpose(d);
        trip_forward(d, true);
        trip_quantise(d, t);
        trip_inverse(d, false);
        m.transpose(d);
        trip_inverse(d, true);
        m.put(px, stride, d);
    }
}

/* ------------------------------------------------------------------ lines */

enum { TRIP_HALF = 1 << 15, TRIP_OFFSET = 128 << 16, TRIP_RUN = 64 };

static inline void trip_split(uint8_t *restrict luma, uint8_t *restrict cb, uint8_t *restrict cr,
                              const uint8_t *restrict p, int32_t w)
{
    for (int32_t i = 0; i < w; i++) {
        const int32_t r = p[3 * i], g = p[3 * i + 1], b = p[3 * i + 2];
        luma[i] = (uint8_t)((r * 19595 + g * 38470 + b * 7471 + TRIP_HALF) >> 16);
        cb[i] = (uint8_t)((r * -11059 + g * -21709 + b * 32768 + TRIP_OFFSET + TRIP_HALF - 1) >> 16);
        cr[i] = (uint8_t)((r * 32768 + g * -27439 + b * -5329 + TRIP_OFFSET + TRIP_HALF - 1) >> 16);
    }
}

/* Two lines of 2 n become one of n, which is a multiple of eight. The rounding alternates. */
static inline void trip_halve(uint8_t *restrict dst, const uint8_t *restrict a, const uint8_t *restrict b, int32_t n)
{
    for (int32_t x = 0; x < n; x++)
        dst[x] = (uint8_t)((a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1] + 1 + (x & 1)) >> 2);
}

/* A line of n becomes one of 2 n: three parts of the near line and one of the far one, then the same across. A narrow
 * line is repeated instead, as libjpeg does. */
static inline void trip_widen(uint8_t *restrict dst, const uint8_t *restrict near, const uint8_t *restrict far,
                              int32_t n)
{
    int16_t sums[TRIP_RUN + 2];
    for (int32_t x = 0; x < n && n <= 2; x++)
        dst[2 * x] = dst[2 * x + 1] = near[x];
    for (int32_t x = 0; x < n && n > 2; x += TRIP_RUN) {
        const int32_t run = n - x < TRIP_RUN ? n - x : TRIP_RUN, left = x > 0 ? x - 1 : 0;
        const int32_t right = x + run < n ? x + run : n - 1;
        sums[0] = (int16_t)(near[left] * 3 + far[left]);
        sums[run + 1] = (int16_t)(near[right] * 3 + far[right]);
        for (int32_t i = 0; i < run; i++)
            sums[i + 1] = (int16_t)(near[x + i] * 3 + far[x + i]);
        for (int32_t i = 0; i < run; i++) {
            dst[2 * (x + i)] = (uint8_t)((sums[i + 1] * 3 + sums[i] + 8) >> 4);
            dst[2 * (x + i) + 1] = (uint8_t)((sums[i + 1] * 3 + sums[i + 2] + 7) >> 4);
        }
    }
}

static inline uint8_t trip_clip(int32_t v)
{
    v = v < 0 ? 0 : v;
    return (uint8_t)(v > 255 ? 255 : v);
}

static inline void trip_join(uint8_t *restrict dst, const uint8_t *restrict luma, const uint8_t *restrict cb_line,
                             const uint8_t *restrict cr_line, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const int32_t y = luma[i], cb = cb_line[i] - 128, cr = cr_line[i] - 128;
        dst[3 * i] = trip_clip(y + ((cr * 91881 + TRIP_HALF) >> 16));
        dst[3 * i + 1] = trip_clip(y + ((cb * -22554 + cr * -46802 + TRIP_HALF) >> 16));
        dst[3 * i + 2] = trip_clip(y + ((cb * 116130 + TRIP_HALF) >> 16));
    }
}

#endif
