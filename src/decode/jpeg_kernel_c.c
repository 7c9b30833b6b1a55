/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_kernel_c.c -- the JPEG kernels in plain C, which define the result, and the table of kernels for a CPU.
 *
 * The IDCT is Loeffler's with 13-bit constants, first over columns, then over rows, with two extra bits in between.
 * Overflow follows libjpeg-turbo's vector code: coefficients and their sums wrap at 16 bits, products and their sums at
 * 32, and results saturate. No encoder comes near that, but damaged files do.
 */
#include "decode/jpeg_kernel.h"

#include "base/cpu.h"
#include "decode/jpeg_small.h"

/* ------------------------------------------------------------------ IDCT */

enum { CONST_BITS = 13, PASS1_BITS = 2 };

static int16_t wrap16(int32_t v)
{
    return (int16_t)(uint16_t)v;
}

static int32_t clip(int32_t v, int32_t low, int32_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* a * ka + b * kb, wrapping. */
static uint32_t products(int16_t a, int32_t ka, int16_t b, int32_t kb)
{
    return (uint32_t)(a * ka) + (uint32_t)(b * kb);
}

/* v / 2^bits, rounded. */
static int32_t descale(uint32_t v, int bits)
{
    return (int32_t)(v + (1u << (bits - 1))) >> bits;
}

/* Transforms eight numbers, `step` apart. */
static void idct_line(const int16_t *in, int16_t *out, int step, int bits)
{
    const int16_t i1 = in[step], i2 = in[2 * step], i3 = in[3 * step], i5 = in[5 * step], i6 = in[6 * step],
                  i7 = in[7 * step];
    const uint32_t sum = (uint32_t)(wrap16(in[0] + in[4 * step]) * (1 << CONST_BITS));
    const uint32_t difference = (uint32_t)(wrap16(in[0] - in[4 * step]) * (1 << CONST_BITS));
    const uint32_t e2 = products(i2, 4433, i6, 4433 - 15137), e3 = products(i2, 4433 + 6270, i6, 4433);
    const uint32_t even[4] = {sum + e3, difference + e2, difference - e2, sum - e3};

    const int16_t z3 = wrap16(i7 + i3), z4 = wrap16(i5 + i1);
    const uint32_t o3 = products(z3, 9633 - 16069, z4, 9633), o4 = products(z3, 9633, z4, 9633 - 3196);
    const uint32_t odd[4] = {
        products(i7, -7373, i1, 12299 - 7373) + o4,
        products(i5, -20995, i3, 25172 - 20995) + o3,
        products(i5, 16819 - 20995, i3, -20995) + o4,
        products(i7, 2446 - 7373, i1, -7373) + o3,
    };
    for (int i = 0; i < 4; i++) {
        out[i * step] = (int16_t)clip(descale(even[i] + odd[i], bits), INT16_MIN, INT16_MAX);
        out[(7 - i) * step] = (int16_t)clip(descale(even[i] - odd[i], bits), INT16_MIN, INT16_MAX);
    }
}

static bool only_first_row(const int16_t *coef)
{
    int all = 0;
    for (int i = 8; i < JPEG_BLOCK; i++)
        all |= coef[i];
    return all == 0;
}

static void idct_columns(int16_t *v, const int16_t *coef, const uint16_t *q)
{
    int16_t in[JPEG_BLOCK];
    for (int i = 0; i < JPEG_BLOCK; i++)
        in[i] = wrap16((int16_t)q[i] * coef[i]);
    if (only_first_row(coef))
        for (int i = 0; i < JPEG_BLOCK; i++)
            v[i] = wrap16(in[i % 8] * (1 << PASS1_BITS));
    else
        for (int x = 0; x < 8; x++)
            idct_line(in + x, v + x, 8, CONST_BITS - PASS1_BITS);
}

void jpeg_idct_c(uint8_t *dst, size_t stride, const int16_t *coef, const uint16_t *q)
{
    int16_t v[JPEG_BLOCK];
    idct_columns(v, coef, q);
    for (int y = 0; y < 8; y++, dst += stride) {
        int16_t line[8];
        idct_line(v + 8 * y, line, 1, CONST_BITS + PASS1_BITS + 3);
        for (int x = 0; x < 8; x++)
            dst[x] = (uint8_t)(clip(line[x], -128, 127) + 128);
    }
}

/* A block with DC alone. */
static void flat(uint8_t *dst, size_t stride, int16_t dc, uint16_t q)
{
    const int16_t v = wrap16(wrap16((int16_t)q * dc) * (1 << PASS1_BITS));
    const uint8_t level = (uint8_t)(clip((v + 16) >> (PASS1_BITS + 3), -128, 127) + 128);
    for (int y = 0; y < 8; y++, dst += stride)
        for (int x = 0; x < 8; x++)
            dst[x] = level;
}

static void idct_c(uint8_t *dst, size_t stride, const int16_t *coef, const uint8_t *last, size_t n, const uint16_t *q)
{
    for (size_t i = 0; i < n; i++, dst += 8, coef += JPEG_BLOCK) {
        if (last[i] == 0)
            flat(dst, stride, coef[0], q[0]);
        else
            jpeg_idct_c(dst, stride, coef, q);
    }
}

/* ------------------------------------------------------------------ colour */

static uint8_t level_of(int v)
{
    return (uint8_t)clip(v, 0, 255);
}

/* 16-bit fractions of 1.402, 1.772, 0.34414 and 0.71414. */
static void put(uint8_t *rgb, int y, int cb, int cr)
{
    const int half = 1 << 15;
    cb -= 128;
    cr -= 128;
    rgb[0] = level_of(y + ((91881 * cr + half) >> 16));
    rgb[1] = level_of(y + ((-22554 * cb - 46802 * cr + half) >> 16));
    rgb[2] = level_of(y + ((116130 * cb + half) >> 16));
}

static void row_grey_c(uint8_t *rgb, const struct jpeg_row *r, size_t w)
{
    for (size_t x = 0; x < w; x++, rgb += 3)
        rgb[0] = rgb[1] = rgb[2] = r->y[x];
}

static void row_444_c(uint8_t *rgb, const struct jpeg_row *r, size_t w)
{
    for (size_t x = 0; x < w; x++, rgb += 3)
        put(rgb, r->y[x], r->cb[x], r->cr[x]);
}

/* ------------------------------------------------------------------ upsampling
 *
 * A pixel takes three parts of the nearest chroma sample and one of the next nearest, in either direction. Halves are
 * rounded up and down in turn.
 */

/* The chroma of a row at pixel x. */
static int between(const uint8_t *c, size_t x)
{
    const uint8_t *const at = c + x / 2;
    return x % 2 ? (3 * at[0] + at[1] + 2) >> 2 : (3 * at[0] + at[-1] + 1) >> 2;
}

static void row_422_c(uint8_t *rgb, const struct jpeg_row *r, size_t w)
{
    for (size_t x = 0; x < w; x++, rgb += 3)
        put(rgb, r->y[x], between(r->cb, x), between(r->cr, x));
}

static int between4(const uint8_t *c, const uint8_t *other, size_t x)
{
    const uint8_t *const a = c + x / 2, *const b = other + x / 2;
    const int here = 3 * a[0] + b[0];
    return x % 2 ? (3 * here + 3 * a[1] + b[1] + 7) >> 4 : (3 * here + 3 * a[-1] + b[-1] + 8) >> 4;
}

static void row_420_c(uint8_t *rgb, const struct jpeg_row *r, size_t w)
{
    for (size_t x = 0; x < w; x++, rgb += 3)
        put(rgb, r->y[x], between4(r->cb, r->cb_other, x), between4(r->cr, r->cr_other, x));
}

static void row_440_c(uint8_t *rgb, const struct jpeg_row *r, size_t w)
{
    const int round = r->odd ? 2 : 1;
    for (size_t x = 0; x < w; x++, rgb += 3)
        put(rgb, r->y[x], (3 * r->cb[x] + r->cb_other[x] + round) >> 2, (3 * r->cr[x] + r->cr_other[x] + round) >> 2);
}

void jpeg_kernels_c(struct jpeg_kernels *k)
{
    *k = (struct jpeg_kernels){
        .idct = idct_c,
        .row = {[JPEG_GREY] = row_grey_c,
                [JPEG_444] = row_444_c,
                [JPEG_422] = row_422_c,
                [JPEG_420] = row_420_c,
                [JPEG_440] = row_440_c},
        .dct_decode = dct_decode_c,
        .dct_encode = dct_encode_c,
    };
    small_fill(k);
}

void jpeg_kernels_fill(struct jpeg_kernels *k, stk_cpu cpu)
{
    jpeg_kernels_c(k);
#if defined(__x86_64__)
    if (cpu == STK_CPU_AVX2 || cpu == STK_CPU_AVX512)
        jpeg_kernels_avx2(k);
    if (cpu == STK_CPU_AVX512)
        jpeg_kernels_avx512(k);
    if (cpu == STK_CPU_AVX512 && cpu_has_vbmi()) {
        k->dct_decode = dct_decode_vbmi;
        k->dct_encode = dct_encode_vbmi;
    }
#else
    (void)cpu;
#endif
}
