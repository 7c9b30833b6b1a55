/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx2_nearest.c -- the nearest pixels along a line through an image, with AVX2.
 *
 * Pixels are read one by one into a block, which is then copied. Writing them one by one to the result costs up to
 * twice the time: a CPU compares the low 12 bits of addresses to find out whether a load depends on an earlier store,
 * and a rotated line often passes places with the same bits as the line that is written.
 */
#include <immintrin.h>
#include <string.h>

#include "transform/kernel.h"

enum { BLOCK = 64 };

/* Offsets in bytes of eight pixels; wraps around only behind the last one. */
static inline __m256i offsets(__m256i x, __m256i y, __m256i stride)
{
    const __m256i column = _mm256_srai_epi32(x, 16), row = _mm256_srai_epi32(y, 16);
    const __m256i bytes = _mm256_add_epi32(column, _mm256_slli_epi32(column, 1));
    return _mm256_add_epi32(bytes, _mm256_mullo_epi32(row, stride));
}

/* Drops every fourth byte of eight pixels. */
static inline void drop_fourth(uint8_t *dst, const uint32_t *from)
{
    const __m256i squeeze = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6,
                                             8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m256i join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    const __m256i all = _mm256_load_si256((const __m256i *)(const void *)from);
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(all, squeeze), join);
    _mm_storeu_si128((__m128i *)(void *)dst, _mm256_castsi256_si128(bytes));
    _mm_storel_epi64((__m128i *)(void *)(dst + 16), _mm256_extracti128_si256(bytes, 1));
}

static void block(uint8_t *dst, const uint8_t *px, const int32_t *from, int32_t n)
{
    _Alignas(32) uint32_t got[BLOCK];
    uint8_t last[24];
    int32_t k = 0;
    for (int32_t i = 0; i < n; i++)
        memcpy(&got[i], px + from[i], 4);
    for (; k + 8 <= n; k += 8)
        drop_fourth(dst + 3 * (size_t)k, got + k);
    if (k == n)
        return;
    for (int32_t i = n; i < k + 8; i++)
        got[i] = 0;
    drop_fourth(last, got + k);
    memcpy(dst + 3 * (size_t)k, last, 3 * (size_t)(n - k));
}

static void nearest3_avx2(uint8_t *dst, const uint8_t *px, size_t stride, const int32_t at[2], const int32_t step[2],
                          int32_t n)
{
    const int64_t last_y = at[1] + (int64_t)(n - 1) * step[1], far = last_y > at[1] ? last_y : at[1];
    if (((uint64_t)(far >> 16) + 1) * stride > INT32_MAX) {
        warp_nearest3_c(dst, px, stride, at, step, n);
        return;
    }
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), pitch = _mm256_set1_epi32((int32_t)stride);
    const __m256i dx = _mm256_set1_epi32(step[0]), dy = _mm256_set1_epi32(step[1]);
    const __m256i next_x = _mm256_slli_epi32(dx, 3), next_y = _mm256_slli_epi32(dy, 3);
    __m256i x = _mm256_add_epi32(_mm256_set1_epi32(at[0]), _mm256_mullo_epi32(lane, dx));
    __m256i y = _mm256_add_epi32(_mm256_set1_epi32(at[1]), _mm256_mullo_epi32(lane, dy));
    for (int32_t i = 0; i < n; i += BLOCK) {
        _Alignas(32) int32_t from[BLOCK];
        const int32_t some = n - i < BLOCK ? n - i : BLOCK;
        for (int32_t k = 0; k < some; k += 8) {
            _mm256_store_si256((__m256i *)(void *)(from + k), offsets(x, y, pitch));
            x = _mm256_add_epi32(x, next_x);
            y = _mm256_add_epi32(y, next_y);
        }
        block(dst + 3 * (size_t)i, px, from, some);
    }
}

void kernels_avx2_nearest(struct kernels *k)
{
    k->nearest3 = nearest3_avx2;
}
