/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx2_elastic.c -- the blur of a random field, and bilinear pixels along it, with AVX2. No steps are fused: the
 * definition (elastic.c) rounds after each.
 */
#include <string.h>

#include "transform/kernel.h"
#include "transform/kernel_avx2_taps.h"

INLINE void gauss_some(float *dst, const float *const *rows, size_t at, const float *weight, int32_t half, float scale,
                       int n)
{
    const float *const *middle = rows + half;
    __m256 sum[4];
    for (int i = 0; i < n; i++)
        sum[i] = _mm256_mul_ps(_mm256_loadu_ps(middle[0] + at + 8 * i), _mm256_set1_ps(weight[0]));
    for (int32_t k = 1; k <= half; k++) {
        const float *a = middle[-k] + at, *b = middle[k] + at;
        const __m256 w = _mm256_broadcast_ss(weight + k);
        for (int i = 0; i < n; i++) {
            const __m256 both = _mm256_add_ps(_mm256_loadu_ps(a + 8 * i), _mm256_loadu_ps(b + 8 * i));
            sum[i] = _mm256_add_ps(sum[i], _mm256_mul_ps(both, w));
        }
    }
    for (int i = 0; i < n; i++)
        _mm256_storeu_ps(dst + at + 8 * i, _mm256_mul_ps(sum[i], _mm256_set1_ps(scale)));
}

/* dst is none of the rows, so the last values may be made twice. */
static void gauss_avx2(float *dst, const float *const *rows, size_t n, const float *weight, int32_t half, float scale)
{
    size_t at = 0;
    if (n < 8) {
        elastic_gauss_c(dst, rows, n, weight, half, scale);
        return;
    }
    for (; at + 32 <= n; at += 32)
        gauss_some(dst, rows, at, weight, half, scale, 4);
    for (; at + 8 <= n; at += 8)
        gauss_some(dst, rows, at, weight, half, scale, 1);
    gauss_some(dst, rows, n - 8, weight, half, scale, 1);
}

INLINE __m256 mixed(__m256 a, __m256 b, __m256 d)
{
    return _mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), d));
}

INLINE void linear3_eight(uint8_t *dst, const uint8_t *px, size_t stride, const float *x, const float *y)
{
    const __m256 at_x = _mm256_loadu_ps(x), at_y = _mm256_loadu_ps(y);
    const __m256i ix = _mm256_cvttps_epi32(at_x), iy = _mm256_cvttps_epi32(at_y);
    const __m256 dx = _mm256_sub_ps(at_x, _mm256_cvtepi32_ps(ix)), dy = _mm256_sub_ps(at_y, _mm256_cvtepi32_ps(iy));
    const __m256i down = _mm256_mullo_epi32(iy, _mm256_set1_epi32((int32_t)stride));
    int32_t at[8];
    _mm256_storeu_si256((__m256i *)at, _mm256_add_epi32(down, _mm256_add_epi32(ix, _mm256_add_epi32(ix, ix))));
    const struct pairs top = pairs_of(px, at), bottom = pairs_of(px + stride, at);
    struct eight e;
    for (int ch = 0; ch < 3; ch++) {
        const __m256 a = mixed(value_of(&top, ch), value_of(&top, ch + 3), dx);
        const __m256 b = mixed(value_of(&bottom, ch), value_of(&bottom, ch + 3), dx);
        e.v[ch] = _mm256_cvtps_epi32(mixed(a, b, dy));
    }
    put(&e, 0, dst);
}

/* Offsets have 32 bits. Pixels that do not fill a vector go through buffers. */
static void linear3_avx2(uint8_t *dst, const uint8_t *px, size_t stride, const float *x, const float *y, int32_t n)
{
    int32_t i = 0;
    for (; i + 8 <= n; i += 8)
        linear3_eight(dst + 3 * (size_t)i, px, stride, x + i, y + i);
    if (i < n) {
        float last_x[8] = {0}, last_y[8] = {0};
        uint8_t bytes[24];
        memcpy(last_x, x + i, (size_t)(n - i) * sizeof *x);
        memcpy(last_y, y + i, (size_t)(n - i) * sizeof *y);
        linear3_eight(bytes, px, stride, last_x, last_y);
        memcpy(dst + 3 * (size_t)i, bytes, 3 * (size_t)(n - i));
    }
}

void kernels_avx2_elastic(struct kernels *k)
{
    k->gauss = gauss_avx2;
    k->linear3 = linear3_avx2;
}
