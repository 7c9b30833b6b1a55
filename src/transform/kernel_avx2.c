/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx2.c -- the kernels for AVX2, FMA and F16C.
 *
 * Resampling: a weight c of 23 bits and sign is split into c = h * 2^11 + l. Both halves fit 16 bits, and pmaddwd sums
 * two taps exactly: sum c*p = (sum h*p << 11) + sum l*p. Sums may wrap in between, but the result fits 32 bits, so it
 * equals that of plain integers. A group of four taps is stored as the four words (h0 h1) (l0 l1) (h2 h3) (l2 l3).
 */
#include "transform/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { HALF_BITS = 11 };

static int32_t pair(int32_t low, int32_t high)
{
    return (int32_t)((uint32_t)(uint16_t)low | (uint32_t)high << 16);
}

static void arrange_weights_avx2(int32_t *c, size_t groups)
{
    for (; groups > 0; groups--, c += 4) {
        int32_t h[4], l[4];
        for (int k = 0; k < 4; k++) {
            const int32_t half = 1 << (HALF_BITS - 1);
            l[k] = ((c[k] + half) & (2 * half - 1)) - half;
            h[k] = (c[k] - l[k]) >> HALF_BITS;
        }
        c[0] = pair(h[0], h[1]);
        c[1] = pair(l[0], l[1]);
        c[2] = pair(h[2], h[3]);
        c[3] = pair(l[2], l[3]);
    }
}

INLINE __m128i load16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

INLINE __m256i load32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

INLINE __m256i two16(const uint8_t *a, const uint8_t *b)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(a)), load16(b), 1);
}

INLINE __m256i both(__m128i v)
{
    return _mm256_broadcastsi128_si256(v);
}

/* The sums of high and low halves to pixels in 32 bits, before clipping. */
INLINE __m256i finish(__m256i high, __m256i low)
{
    const __m256i round = _mm256_set1_epi32(1 << (RESAMPLE_BITS - 1));
    const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, HALF_BITS), _mm256_add_epi32(low, round));
    return _mm256_srai_epi32(sum, RESAMPLE_BITS);
}

/* Writes 12 bytes of v, or what is left of the row; up to 16 if the row continues. */
INLINE void put12(uint8_t *dst, __m128i v, size_t left)
{
    if (left >= 16) {
        _mm_storeu_si128((__m128i *)(void *)dst, v);
    } else {
        uint8_t part[16];
        _mm_storeu_si128((__m128i *)(void *)part, v);
        memcpy(dst, part, left < 12 ? left : 12);
    }
}

/* One output pixel of two rows: the words R G B and an unused one in each lane. */
INLINE __m256i across3_pixel(const uint8_t *a, const uint8_t *b, const int32_t *c, int32_t groups)
{
    const __m256i taps01 = both(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
    const __m256i taps23 = both(_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
    __m256i high = _mm256_setzero_si256(), low = high;
    for (int32_t g = 0; g < groups; g++, c += 4) {
        const __m256i v = two16(a + 12 * (size_t)g, b + 12 * (size_t)g);
        const __m256i v01 = _mm256_shuffle_epi8(v, taps01), v23 = _mm256_shuffle_epi8(v, taps23);
        high = _mm256_add_epi32(high, _mm256_madd_epi16(v01, _mm256_set1_epi32(c[0])));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(v01, _mm256_set1_epi32(c[1])));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(v23, _mm256_set1_epi32(c[2])));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(v23, _mm256_set1_epi32(c[3])));
    }
    return finish(high, low);
}

INLINE void across3_pair(uint8_t *da, uint8_t *db, const uint8_t *a, const uint8_t *b, const struct taps *t,
                         int32_t groups)
{
    const __m256i squeeze = both(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    const size_t step = 4 * (size_t)groups;
    for (int32_t i = 0; i < t->n; i += 4) {
        __m256i q[4];
        for (int32_t j = 0; j < 4; j++) {
            const int32_t at = i + j < t->n ? i + j : t->n - 1;
            const size_t x = 3 * (size_t)t->first[at];
            q[j] = across3_pixel(a + x, b + x, t->c + step * (size_t)at, groups);
        }
        const __m256i wide = _mm256_packs_epi32(q[0], q[1]), wide2 = _mm256_packs_epi32(q[2], q[3]);
        const __m256i v = _mm256_shuffle_epi8(_mm256_packus_epi16(wide, wide2), squeeze);
        const size_t at = 3 * (size_t)i, left = 3 * (size_t)t->n - at;
        put12(da + at, _mm256_castsi256_si128(v), left);
        put12(db + at, _mm256_extracti128_si256(v, 1), left);
    }
}

static void across3_u8_avx2(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t rows,
                            const struct taps *t)
{
    for (; rows > 0; rows -= 2, dst += 2 * dst_stride, src += 2 * src_stride) {
        /* An odd last row is computed twice. */
        const size_t to = rows > 1 ? dst_stride : 0, from = rows > 1 ? src_stride : 0;
        if (t->groups == 1)
            across3_pair(dst, dst + to, src, src + from, t, 1);
        else
            across3_pair(dst, dst + to, src, src + from, t, t->groups);
    }
}

/* Two outputs, one per lane: the four words of their sums, high halves already shifted. */
INLINE __m256i across1_two(const uint8_t *src, const struct taps *t, int32_t i)
{
    const __m256i spread = both(_mm_setr_epi8(0, -1, 1, -1, 0, -1, 1, -1, 2, -1, 3, -1, 2, -1, 3, -1));
    const int32_t j = i + 1 < t->n ? i + 1 : t->n - 1;
    const int32_t *ci = t->c + 4 * (size_t)t->groups * (size_t)i, *cj = t->c + 4 * (size_t)t->groups * (size_t)j;
    __m256i sum = _mm256_setzero_si256();
    for (int32_t g = 0; g < t->groups; g++) {
        int32_t pi, pj;
        memcpy(&pi, src + t->first[i] + 4 * (size_t)g, 4);
        memcpy(&pj, src + t->first[j] + 4 * (size_t)g, 4);
        const __m256i v = _mm256_set_m128i(_mm_set1_epi32(pj), _mm_set1_epi32(pi));
        const __m256i c = two16((const uint8_t *)(ci + 4 * (size_t)g), (const uint8_t *)(cj + 4 * (size_t)g));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(v, spread), c));
    }
    return _mm256_sllv_epi32(sum, both(_mm_setr_epi32(HALF_BITS, 0, HALF_BITS, 0)));
}

static void across1_row(uint8_t *dst, const uint8_t *src, const struct taps *t)
{
    const __m256i round = _mm256_set1_epi32(1 << (RESAMPLE_BITS - 1));
    for (int32_t i = 0; i < t->n; i += 4) {
        const __m256i first = across1_two(src, t, i);
        const __m256i second = across1_two(src, t, i + 2 < t->n ? i + 2 : i);
        __m256i v = _mm256_hadd_epi32(first, second); /* lanes: outputs 0 0 2 2, 1 1 3 3 */
        v = _mm256_hadd_epi32(v, v);
        v = _mm256_srai_epi32(_mm256_add_epi32(v, round), RESAMPLE_BITS);
        const __m128i even = _mm256_castsi256_si128(v), odd = _mm256_extracti128_si256(v, 1);
        const __m128i all = _mm_unpacklo_epi32(even, odd), words = _mm_packs_epi32(all, all);
        const int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
        memcpy(dst + i, &four, t->n - i < 4 ? (size_t)(t->n - i) : 4);
    }
}

static void across1_u8_avx2(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t rows,
                            const struct taps *t)
{
    for (; rows > 0; rows--, dst += dst_stride, src += src_stride)
        across1_row(dst, src, t);
}

/* Adds two rows of 32 columns, interleaved to pairs of 16 bits, to the sums. */
INLINE void down_pair(__m256i high[4], __m256i low[4], __m256i a, __m256i b, const int32_t *c)
{
    const __m256i zero = _mm256_setzero_si256(), h = _mm256_set1_epi32(c[0]), l = _mm256_set1_epi32(c[1]);
    const __m256i left = _mm256_unpacklo_epi8(a, b), right = _mm256_unpackhi_epi8(a, b);
    const __m256i v[4] = {_mm256_unpacklo_epi8(left, zero), _mm256_unpackhi_epi8(left, zero),
                          _mm256_unpacklo_epi8(right, zero), _mm256_unpackhi_epi8(right, zero)};
    for (int k = 0; k < 4; k++) {
        high[k] = _mm256_add_epi32(high[k], _mm256_madd_epi16(v[k], h));
        low[k] = _mm256_add_epi32(low[k], _mm256_madd_epi16(v[k], l));
    }
}

/* 32 columns. Rows past n_taps have weight 0 and may not exist: the first row replaces them. */
INLINE __m256i down_block(const uint8_t *src, size_t stride, const int32_t *c, int32_t groups, int32_t n_taps)
{
    __m256i high[4], low[4];
    for (int k = 0; k < 4; k++)
        high[k] = low[k] = _mm256_setzero_si256();
    for (int32_t r = 0; r < 4 * groups; r += 2, c += 2) {
        const __m256i a = load32(src + (r < n_taps ? (size_t)r * stride : 0));
        const __m256i b = load32(src + (r + 1 < n_taps ? (size_t)(r + 1) * stride : 0));
        down_pair(high, low, a, b, c);
    }
    const __m256i wide = _mm256_packs_epi32(finish(high[0], low[0]), finish(high[1], low[1]));
    const __m256i wide2 = _mm256_packs_epi32(finish(high[2], low[2]), finish(high[3], low[3]));
    return _mm256_packus_epi16(wide, wide2);
}

INLINE void down_row(uint8_t *dst, const uint8_t *src, size_t stride, size_t n, const int32_t *c, int32_t groups,
                     int32_t n_taps)
{
    size_t x = 0;
    for (; x + 32 <= n; x += 32)
        _mm256_storeu_si256((__m256i *)(void *)(dst + x), down_block(src + x, stride, c, groups, n_taps));
    if (x < n) {
        uint8_t part[32];
        _mm256_storeu_si256((__m256i *)(void *)part, down_block(src + x, stride, c, groups, n_taps));
        memcpy(dst + x, part, n - x);
    }
}

static void down_u8_avx2(uint8_t *dst, const uint8_t *src, size_t stride, size_t n, const struct taps *t, int32_t i)
{
    const int32_t *c = t->c + (size_t)i * 4 * (size_t)t->groups;
    src += (size_t)t->first[i] * stride;
    if (t->groups == 1 && t->rows >= 4)
        down_row(dst, src, stride, n, c, 1, 4);
    else
        down_row(dst, src, stride, n, c, t->groups, t->rows);
}

/* Eight pixels at a time: red with half of green, and the other half of green with blue. */
static void grey_u8_avx2(uint8_t *dst, const uint8_t *src, int32_t w)
{
    const __m256i rg = both(_mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1));
    const __m256i gb = both(_mm_setr_epi8(1, -1, 2, -1, 4, -1, 5, -1, 7, -1, 8, -1, 10, -1, 11, -1));
    /* 38470 needs 17 bits with its sign, so each product has half of it. */
    const __m256i c_rg = _mm256_set1_epi32(19235 << 16 | 19595), c_gb = _mm256_set1_epi32(7471 << 16 | 19235);
    for (int32_t x = 0; x < w; x += 8, src += 24) {
        const __m256i v = two16(src, src + 12);
        const __m256i sum = _mm256_add_epi32(_mm256_madd_epi16(_mm256_shuffle_epi8(v, rg), c_rg),
                                             _mm256_madd_epi16(_mm256_shuffle_epi8(v, gb), c_gb));
        const __m256i y = _mm256_srli_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(0x8000)), 16);
        const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
        uint8_t part[16];
        _mm_storeu_si128((__m128i *)(void *)part, _mm_packus_epi16(words, words));
        memcpy(dst + x, part, w - x < 8 ? (size_t)(w - x) : 8);
    }
}

static void mirror3_u8_avx2(uint8_t *dst, const uint8_t *src, int32_t w)
{
    const __m128i turn = _mm_setr_epi8(9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2, -1, -1, -1, -1);
    const size_t n = 3 * (size_t)w;
    size_t x = 0;
    for (; x + 12 <= n; x += 12)
        put12(dst + x, _mm_shuffle_epi8(load16(src + n - 12 - x), turn), n - x);
    for (; x < n; x += 3)
        memcpy(dst + x, src + n - 3 - x, 3);
}

void kernels_avx2(struct kernels *k)
{
    k->arrange_weights = arrange_weights_avx2;
    k->across1 = across1_u8_avx2;
    k->across3 = across3_u8_avx2;
    k->down = down_u8_avx2;
    k->grey = grey_u8_avx2;
    k->mirror3 = mirror3_u8_avx2;
}
#endif
