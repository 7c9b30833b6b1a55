/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx2_trip.c -- blocks of a JPEG there and back. The arithmetic is compiled from the C version; moving and
 * transposing have instructions of their own.
 */
#include <immintrin.h>

#include "transform/jpeg_trip_loops.h"
#include "transform/kernel.h"

struct eight {
    __m256i row[8];
};

static inline struct eight transposed(struct eight e)
{
    __m256i a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_epi32(e.row[i], e.row[i + 1]);
        a[i + 1] = _mm256_unpackhi_epi32(e.row[i], e.row[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; k++) {
            b[i + 2 * k] = _mm256_unpacklo_epi64(a[i + k], a[i + k + 2]);
            b[i + 2 * k + 1] = _mm256_unpackhi_epi64(a[i + k], a[i + k + 2]);
        }
    for (int i = 0; i < 4; i++) {
        e.row[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
        e.row[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
    }
    return e;
}

static inline struct eight loaded(const int32_t d[64])
{
    struct eight e;
    for (int i = 0; i < 8; i++)
        e.row[i] = _mm256_load_si256((const __m256i *)(d + 8 * i));
    return e;
}

static inline void stored(int32_t d[64], struct eight e)
{
    for (int i = 0; i < 8; i++)
        _mm256_store_si256((__m256i *)(d + 8 * i), e.row[i]);
}

static inline void gather_avx2(int32_t d[64], const uint8_t *px, size_t stride)
{
    struct eight e;
    for (int y = 0; y < 8; y++) {
        const __m128i bytes = _mm_loadl_epi64((const __m128i *)(px + (size_t)y * stride));
        e.row[y] = _mm256_sub_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_set1_epi32(128));
    }
    stored(d, transposed(e));
}

static inline void transpose_avx2(int32_t d[64])
{
    stored(d, transposed(loaded(d)));
}

static inline void put_avx2(uint8_t *px, size_t stride, const int32_t d[64])
{
    const struct eight e = transposed(loaded(d));
    for (int y = 0; y < 8; y++) {
        const __m256i v = _mm256_add_epi32(e.row[y], _mm256_set1_epi32(128));
        const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        _mm_storel_epi64((__m128i *)(px + (size_t)y * stride), _mm_packus_epi16(words, words));
    }
}

static void blocks_avx2(uint8_t *px, size_t stride, int32_t n, const struct trip_table *t)
{
    trip_blocks(px, stride, n, t, (struct trip_moves){gather_avx2, transpose_avx2, put_avx2});
}

static void split_avx2(uint8_t *luma, uint8_t *cb, uint8_t *cr, const uint8_t *p, int32_t w)
{
    trip_split(luma, cb, cr, p, w);
}

static void halve_avx2(uint8_t *dst, const uint8_t *a, const uint8_t *b, int32_t n)
{
    trip_halve(dst, a, b, n);
}

static void widen_avx2(uint8_t *dst, const uint8_t *near, const uint8_t *far, int32_t n)
{
    trip_widen(dst, near, far, n);
}

static void join_avx2(uint8_t *dst, const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, int32_t n)
{
    trip_join(dst, luma, cb, cr, n);
}

void kernels_avx2_trip(struct kernels *k)
{
    k->trip = (struct trip_kernels){blocks_avx2, split_avx2, halve_avx2, widen_avx2, join_avx2};
}
