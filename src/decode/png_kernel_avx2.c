/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_kernel_avx2.c -- the inner loops of PNG for AVX2.
 *
 * A pixel depends on the one to its left, so a single row keeps a CPU waiting most of the time. Rows are unfiltered
 * together, each two pixels behind the one above: in turn t, row k is at pixel t - 2k.
 *
 *     row 0   . . . . . X          all X at once, in one vector of 16-bit lanes; what row 1 needs
 *     row 1   . . . X              from above, row 0 computed two turns ago
 *     row 2   . X
 *
 * Every row has its own filter: all guesses are computed, and masks choose. Rows that have not started or are done
 * write into the padding between the rows.
 */
#include "decode/png_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { NONE, SUB, UP, AVERAGE, PAETH };

INLINE __m128i load16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

INLINE __m256i load32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

INLINE void save16(uint8_t *p, __m128i v)
{
    _mm_storeu_si128((__m128i *)(void *)p, v);
}

INLINE void save32(uint8_t *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}

INLINE int32_t get4(const uint8_t *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return v;
}

INLINE int64_t get8(const uint8_t *p)
{
    int64_t v;
    memcpy(&v, p, 8);
    return v;
}

/* ------------------------------------------------------------------ rows together */

enum { LAG = 2 };

/* Rows that are unfiltered together. Pixels of 1 and 3 bytes are read with the byte after them. It has no effect:
 * the next turn overwrites it. */
INLINE int together(int step)
{
    return step <= 2 ? 8 : step <= 4 ? 4 : 2;
}

/* Loads a pixel of every row, `apart` bytes from each other, to lanes of 16 bits. */
INLINE __m256i take(const uint8_t *p, size_t apart, int rows)
{
    __m128i v;
    if (rows == 8) {
        v = _mm_cvtsi32_si128(p[0] | p[1] << 8);
        v = _mm_insert_epi16(v, p[apart] | p[apart + 1] << 8, 1);
        v = _mm_insert_epi16(v, p[2 * apart] | p[2 * apart + 1] << 8, 2);
        v = _mm_insert_epi16(v, p[3 * apart] | p[3 * apart + 1] << 8, 3);
        v = _mm_insert_epi16(v, p[4 * apart] | p[4 * apart + 1] << 8, 4);
        v = _mm_insert_epi16(v, p[5 * apart] | p[5 * apart + 1] << 8, 5);
        v = _mm_insert_epi16(v, p[6 * apart] | p[6 * apart + 1] << 8, 6);
        v = _mm_insert_epi16(v, p[7 * apart] | p[7 * apart + 1] << 8, 7);
    } else if (rows == 4) {
        v = _mm_cvtsi32_si128(get4(p));
        v = _mm_insert_epi32(v, get4(p + apart), 1);
        v = _mm_insert_epi32(v, get4(p + 2 * apart), 2);
        v = _mm_insert_epi32(v, get4(p + 3 * apart), 3);
    } else {
        v = _mm_insert_epi64(_mm_cvtsi64_si128(get8(p)), get8(p + apart), 1);
    }
    return _mm256_cvtepu8_epi16(v);
}

INLINE void put2(uint8_t *p, int v)
{
    const uint16_t pixel = (uint16_t)v;
    memcpy(p, &pixel, 2);
}

INLINE void put4(uint8_t *p, int v)
{
    memcpy(p, &v, 4);
}

INLINE void put8(uint8_t *p, long long v)
{
    memcpy(p, &v, 8);
}

/* The reverse. */
INLINE void put(uint8_t *p, size_t apart, int rows, __m256i lanes)
{
    const __m128i v = _mm_packus_epi16(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    if (rows == 8) {
        put2(p, _mm_extract_epi16(v, 0));
        put2(p + apart, _mm_extract_epi16(v, 1));
        put2(p + 2 * apart, _mm_extract_epi16(v, 2));
        put2(p + 3 * apart, _mm_extract_epi16(v, 3));
        put2(p + 4 * apart, _mm_extract_epi16(v, 4));
        put2(p + 5 * apart, _mm_extract_epi16(v, 5));
        put2(p + 6 * apart, _mm_extract_epi16(v, 6));
        put2(p + 7 * apart, _mm_extract_epi16(v, 7));
    } else if (rows == 4) {
        put4(p, _mm_cvtsi128_si32(v));
        put4(p + apart, _mm_extract_epi32(v, 1));
        put4(p + 2 * apart, _mm_extract_epi32(v, 2));
        put4(p + 3 * apart, _mm_extract_epi32(v, 3));
    } else {
        put8(p, _mm_cvtsi128_si64(v));
        put8(p + apart, _mm_extract_epi64(v, 1));
    }
}

/* Moves every row's pixel to the row below it, and the pixel at `above` to the first row. */
INLINE __m256i hand_down(__m256i v, const uint8_t *above, int rows)
{
    const __m256i first = _mm256_castsi128_si256(
        _mm_cvtepu8_epi16(rows == 2 ? _mm_cvtsi64_si128(get8(above)) : _mm_cvtsi32_si128(get4(above))));
    if (rows == 8)
        return _mm256_blend_epi32(_mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 0, 1, 2, 3, 4, 5, 6)), first, 1);
    if (rows == 4)
        return _mm256_blend_epi32(_mm256_permute4x64_epi64(v, _MM_SHUFFLE(2, 1, 0, 0)), first, 3);
    return _mm256_permute2x128_si256(first, v, 0x20);
}

struct masks {
    __m256i sub, up, average, paeth, start; /* start: the turn in which a row starts */
};

INLINE struct masks masks_of(const uint8_t *src, size_t n, int rows)
{
    uint16_t filter[16], start[16];
    for (int i = 0; i < 16; i++) {
        const int row = i / (16 / rows);
        filter[i] = src[(size_t)row * (n + 1)];
        start[i] = (uint16_t)(row * LAG);
    }
    const __m256i f = load32((const uint8_t *)filter);
    return (struct masks){_mm256_cmpeq_epi16(f, _mm256_set1_epi16(SUB)), _mm256_cmpeq_epi16(f, _mm256_set1_epi16(UP)),
                          _mm256_cmpeq_epi16(f, _mm256_set1_epi16(AVERAGE)),
                          _mm256_cmpeq_epi16(f, _mm256_set1_epi16(PAETH)), load32((const uint8_t *)start)};
}

INLINE __m256i paeth(__m256i a, __m256i b, __m256i c)
{
    const __m256i bc = _mm256_sub_epi16(b, c), ac = _mm256_sub_epi16(a, c);
    const __m256i pa = _mm256_abs_epi16(bc), pb = _mm256_abs_epi16(ac), pc = _mm256_abs_epi16(_mm256_add_epi16(bc, ac));
    const __m256i least = _mm256_min_epi16(pa, _mm256_min_epi16(pb, pc));
    const __m256i b_or_c = _mm256_blendv_epi8(c, b, _mm256_cmpeq_epi16(pb, least));
    return _mm256_blendv_epi8(b_or_c, a, _mm256_cmpeq_epi16(pa, least));
}

INLINE __m256i guess(const struct masks *m, __m256i a, __m256i b, __m256i c)
{
    const __m256i average = _mm256_srli_epi16(_mm256_add_epi16(a, b), 1);
    const __m256i simple = _mm256_or_si256(_mm256_and_si256(a, m->sub), _mm256_and_si256(b, m->up));
    const __m256i other = _mm256_or_si256(simple, _mm256_and_si256(average, m->average));
    return _mm256_or_si256(other, _mm256_and_si256(paeth(a, b, c), m->paeth));
}

INLINE void wave(uint8_t *dst, size_t stride, const uint8_t *src, size_t n, int step, int rows)
{
    const struct masks m = masks_of(src, n, rows);
    const size_t behind = LAG * (size_t)step, from_apart = n + 1 - behind, to_apart = stride - behind;
    const int turns = (int)(n / (size_t)step) + LAG * (rows - 1);
    const uint8_t *above = dst - stride;
    const __m256i bytes = _mm256_set1_epi16(0xff);
    __m256i a = _mm256_setzero_si256(), c = a, before = a;
    src++;
    for (int t = 0; t < turns; t++, src += step, dst += step, above += step) {
        const __m256i b = hand_down(before, above, rows);
        __m256i v = _mm256_and_si256(_mm256_add_epi16(take(src, from_apart, rows), guess(&m, a, b, c)), bytes);
        if (t < LAG * (rows - 1)) /* a first pixel has none to its left */
            v = _mm256_andnot_si256(_mm256_cmpgt_epi16(m.start, _mm256_set1_epi16((short)t)), v);
        put(dst, to_apart, rows, v);
        before = a;
        a = v;
        c = b;
    }
}

/* ------------------------------------------------------------------ rows without a left neighbour */

INLINE void copy_or_add(uint8_t *dst, const uint8_t *above, const uint8_t *src, size_t n, int filter)
{
    size_t i = 0;
    if (filter == NONE) {
        memcpy(dst, src, n);
        return;
    }
    for (; i + 32 <= n; i += 32)
        save32(dst + i, _mm256_add_epi8(load32(src + i), load32(above + i)));
    for (; i < n; i++)
        dst[i] = (uint8_t)(src[i] + above[i]);
}

INLINE int needs_left(const uint8_t *src, size_t n, int rows)
{
    int any = 0;
    for (int y = 0; y < rows; y++)
        any |= src[(size_t)y * (n + 1)] & ~UP;
    return any;
}

enum { NARROW = 16 }; /* pixels; a wave takes more than a narrow row to start */

INLINE void unfilter(uint8_t *dst, size_t stride, const uint8_t *src, size_t n, int rows, int step)
{
    const int group = together(step);
    for (int y = 0; y < rows;) {
        const int left = rows - y, k = left < group ? 1 : group;
        if (!needs_left(src, n, k)) {
            for (int i = 0; i < k; i++)
                copy_or_add(dst + (size_t)i * stride, dst + (size_t)i * stride - stride, src + (size_t)i * (n + 1) + 1,
                            n, src[(size_t)i * (n + 1)]);
        } else if (k == 1 || n < NARROW * (size_t)step) {
            png_unfilter(dst, stride, src, n, k, (size_t)step);
        } else {
            wave(dst, stride, src, n, step, group);
        }
        y += k;
        dst += (size_t)k * stride;
        src += (size_t)k * (n + 1);
    }
}

#define UNFILTER(step)                                                                                                 \
    static void unfilter_##step##_avx2(uint8_t *dst, size_t stride, const uint8_t *src, size_t n, int rows)            \
    {                                                                                                                  \
        unfilter(dst, stride, src, n, rows, step);                                                                     \
    }
UNFILTER(1)
UNFILTER(2)
UNFILTER(3)
UNFILTER(4)
UNFILTER(6)
UNFILTER(8)

/* ------------------------------------------------------------------ pixels */

/* 8 pixels at a time. It writes 32 bytes for 24, so at least 11 pixels must be left. */
static void drop_alpha_avx2(uint8_t *dst, const uint8_t *src, size_t n)
{
    const __m256i three = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6, 8,
                                           9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m256i close = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    for (; n >= 11; n -= 8, src += 32, dst += 24)
        save32(dst, _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(load32(src), three), close));
    for (; n > 0; n--, src += 4, dst += 3)
        memcpy(dst, src, 3);
}

static void spread_grey_avx2(uint8_t *dst, const uint8_t *src, size_t n)
{
    const __m128i first = _mm_setr_epi8(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5),
                  second = _mm_setr_epi8(5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10),
                  third = _mm_setr_epi8(10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15);
    for (; n >= 16; n -= 16, src += 16, dst += 48) {
        const __m128i v = load16(src);
        save16(dst, _mm_shuffle_epi8(v, first));
        save16(dst + 16, _mm_shuffle_epi8(v, second));
        save16(dst + 32, _mm_shuffle_epi8(v, third));
    }
    for (; n > 0; n--, dst += 3)
        memset(dst, *src++, 3);
}

/* ------------------------------------------------------------------ the checksum */

INLINE uint32_t sum_of(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, _MM_SHUFFLE(1, 0, 3, 2)));
    return (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, _MM_SHUFFLE(2, 3, 0, 1))));
}

/* In the second half of the sum, the first of 32 bytes counts 32 times, the last once, and the sum before them 32
 * times. */
static uint32_t adler_avx2(uint32_t sum, const uint8_t *p, size_t n)
{
    enum { PRIME = 65521, RUN = 5536 };
    const __m256i weights = _mm256_setr_epi8(32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14,
                                             13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
    const __m256i zero = _mm256_setzero_si256(), ones = _mm256_set1_epi16(1);
    uint32_t a = sum & 0xffff, b = sum >> 16;
    while (n >= 32) {
        const size_t run = (n < RUN ? n : RUN) / 32 * 32;
        __m256i plain = zero, before = zero, weighted = zero;
        for (size_t i = 0; i < run; i += 32) {
            const __m256i v = load32(p + i);
            before = _mm256_add_epi32(before, plain);
            plain = _mm256_add_epi32(plain, _mm256_sad_epu8(v, zero));
            weighted = _mm256_add_epi32(weighted, _mm256_madd_epi16(_mm256_maddubs_epi16(v, weights), ones));
        }
        b = (b + a * (uint32_t)run + 32 * sum_of(before) + sum_of(weighted)) % PRIME;
        a = (a + sum_of(plain)) % PRIME;
        p += run;
        n -= run;
    }
    for (; n > 0; n--) {
        a += *p++;
        b += a;
    }
    return b % PRIME << 16 | a % PRIME;
}

void png_kernels_avx2(struct png_kernels *k)
{
    k->adler = adler_avx2;
    k->unfilter[1] = unfilter_1_avx2;
    k->unfilter[2] = unfilter_2_avx2;
    k->unfilter[3] = unfilter_3_avx2;
    k->unfilter[4] = unfilter_4_avx2;
    k->unfilter[6] = unfilter_6_avx2;
    k->unfilter[8] = unfilter_8_avx2;
    k->drop_alpha = drop_alpha_avx2;
    k->spread_grey = spread_grey_avx2;
}

#endif
