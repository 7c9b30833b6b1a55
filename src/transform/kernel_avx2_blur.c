/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx2_blur.c -- the two passes of a blur, 32 values at a time, with AVX2.
 *
 * One instruction multiplies two values with two weights and adds the products. So values v[0], v[1], v[2], ... are
 * taken in pairs, where v[0] is the pixel itself and v[k] the sum of both pixels k away.
 */
#include <immintrin.h>
#include <string.h>

#include "transform/kernel.h"

#define INLINE static inline __attribute__((always_inline))

enum { WIDTH = 32 };

struct sums {
    __m256i v[4]; /* low and high halves of 16 values, twice */
};

INLINE struct sums sums_of(int32_t start)
{
    const __m256i v = _mm256_set1_epi32(start);
    return (struct sums){{v, v, v, v}};
}

/* Two values with their weights; i: which 16 of the 32. */
INLINE void add_pair(struct sums *s, int i, __m256i a, __m256i b, __m256i weights)
{
    const __m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weights);
    const __m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weights);
    s->v[2 * i] = _mm256_add_epi32(s->v[2 * i], low);
    s->v[2 * i + 1] = _mm256_add_epi32(s->v[2 * i + 1], high);
}

INLINE __m256i weights_at(const struct blur_axis *a, int32_t k)
{
    int32_t both;
    memcpy(&both, a->weight + k, sizeof both);
    return _mm256_set1_epi32(both);
}

INLINE __m256i joined(const struct sums *s, int i, int shift)
{
    return _mm256_packs_epi32(_mm256_srai_epi32(s->v[2 * i], shift), _mm256_srai_epi32(s->v[2 * i + 1], shift));
}

INLINE __m256i bytes(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
}

/* The values k away from those at `at`. */
INLINE __m256i rows_sum(const uint8_t *const *middle, int32_t k, size_t at)
{
    return _mm256_add_epi16(bytes(middle[-k] + at), bytes(middle[k] + at));
}

INLINE void down_some(int16_t *dst, const uint8_t *const *rows, size_t at, const struct blur_axis *a, int32_t half)
{
    const uint8_t *const *middle = rows + half;
    struct sums s = sums_of(1 << (BLUR_BITS - BLUR_BETWEEN - 1));
    for (int32_t k = 0; k <= half; k += 2) {
        const __m256i w = weights_at(a, k);
        for (int i = 0; i < 2; i++) {
            const size_t from = at + 16 * (size_t)i;
            const __m256i first = k ? rows_sum(middle, k, from) : bytes(middle[0] + from);
            const __m256i second = k < half ? rows_sum(middle, k + 1, from) : _mm256_setzero_si256();
            add_pair(&s, i, first, second, w);
        }
    }
    for (int i = 0; i < 2; i++)
        _mm256_storeu_si256((__m256i *)(dst + at + 16 * i), joined(&s, i, BLUR_BITS - BLUR_BETWEEN));
}

INLINE void down_line(int16_t *dst, const uint8_t *const *rows, size_t n, const struct blur_axis *a, int32_t half)
{
    for (size_t at = 0; at < n - WIDTH; at += WIDTH)
        down_some(dst, rows, at, a, half);
    down_some(dst, rows, n - WIDTH, a, half);
}

static void down_avx2(int16_t *dst, const uint8_t *const *rows, size_t n, const struct blur_axis *a)
{
    if (n < WIDTH) {
        blur_down_c(dst, rows, n, a);
        return;
    }
    if (a->half == 2)
        down_line(dst, rows, n, a, 2);
    else
        down_line(dst, rows, n, a, a->half);
}

INLINE __m256i words(const int16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE __m256i steps_sum(const int16_t *p, size_t far)
{
    return _mm256_add_epi16(words(p - far), words(p + far));
}

INLINE void across_some(uint8_t *dst, const int16_t *src, size_t step, const struct blur_axis *a, int32_t half)
{
    struct sums s = sums_of(1 << (BLUR_BITS + BLUR_BETWEEN - 1));
    for (int32_t k = 0; k <= half; k += 2) {
        const __m256i w = weights_at(a, k);
        const size_t far = (size_t)k * step;
        for (int i = 0; i < 2; i++) {
            const int16_t *p = src + 16 * i;
            const __m256i first = k ? steps_sum(p, far) : words(p);
            const __m256i second = k < half ? steps_sum(p, far + step) : _mm256_setzero_si256();
            add_pair(&s, i, first, second, w);
        }
    }
    const int shift = BLUR_BITS + BLUR_BETWEEN;
    const __m256i all = _mm256_packus_epi16(joined(&s, 0, shift), joined(&s, 1, shift));
    _mm256_storeu_si256((__m256i *)dst, _mm256_permute4x64_epi64(all, _MM_SHUFFLE(3, 1, 2, 0)));
}

INLINE void across_line(uint8_t *dst, const int16_t *src, size_t n, size_t step, const struct blur_axis *a,
                        int32_t half)
{
    for (size_t at = 0; at < n - WIDTH; at += WIDTH)
        across_some(dst + at, src + at, step, a, half);
    across_some(dst + n - WIDTH, src + n - WIDTH, step, a, half);
}

static void across_avx2(uint8_t *dst, const int16_t *src, size_t n, size_t step, const struct blur_axis *a)
{
    if (n < WIDTH) {
        blur_across_c(dst, src, n, step, a);
        return;
    }
    if (a->half == 2)
        across_line(dst, src, n, step, a, 2);
    else
        across_line(dst, src, n, step, a, a->half);
}

void kernels_avx2_blur(struct kernels *k)
{
    k->blur_down = down_avx2;
    k->blur_across = across_avx2;
}
