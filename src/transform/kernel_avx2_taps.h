/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx2_taps.h -- the taps of eight bilinear pixels, for kernel_avx2_warp.c and kernel_avx2_elastic.c.
 */
#ifndef KERNEL_AVX2_TAPS_H
#define KERNEL_AVX2_TAPS_H

#include <immintrin.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

/* Three channels of eight pixels, in fixed point. */
struct eight {
    __m256i v[3];
};

/* Drops fractions of some bits and writes 24 bytes. */
INLINE void put(const struct eight *e, int bits, uint8_t *dst)
{
    const __m256i squeeze = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6,
                                             8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m256i join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    const __m256i r = _mm256_srli_epi32(e->v[0], bits), b = _mm256_srli_epi32(e->v[2], bits);
    const __m256i g = _mm256_slli_epi32(_mm256_srli_epi32(e->v[1], bits), 8);
    const __m256i all = _mm256_or_si256(r, _mm256_or_si256(g, _mm256_slli_epi32(b, 16)));
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(all, squeeze), join);
    _mm_storeu_si128((__m128i *)dst, _mm256_castsi256_si128(bytes));
    _mm_storel_epi64((__m128i *)(dst + 16), _mm256_extracti128_si256(bytes, 1));
}

/* Two pixels next to each other, for eight points: four bytes, and the last two. */
struct pairs {
    __m256i low, high;
};

INLINE __m128i two(const uint8_t *px, const int32_t *at)
{
    const __m128i first = _mm_loadl_epi64((const __m128i *)(px + at[0]));
    return _mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(first), (const __m64 *)(const void *)(px + at[1])));
}

INLINE struct pairs pairs_of(const uint8_t *px, const int32_t *at)
{
    const __m256 a = _mm256_castsi256_ps(_mm256_set_m128i(two(px, at + 4), two(px, at)));
    const __m256 b = _mm256_castsi256_ps(_mm256_set_m128i(two(px, at + 6), two(px, at + 2)));
    return (struct pairs){_mm256_castps_si256(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0))),
                          _mm256_castps_si256(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)))};
}

/* Byte k of every four, as a float. */
INLINE __m256 byte_of(__m256i v, int k)
{
    const __m256i first = _mm256_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12);
    const __m256i pick = _mm256_add_epi32(first, _mm256_set1_epi32((int)0x80808000 + k));
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(v, pick));
}

/* Value k of the six of a pair of pixels. */
INLINE __m256 value_of(const struct pairs *p, int k)
{
    return k < 4 ? byte_of(p->low, k) : byte_of(p->high, k - 4);
}

#endif
