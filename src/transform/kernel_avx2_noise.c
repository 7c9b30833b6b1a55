/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx2_noise.c -- noise: the same code as in C, compiled for AVX2.
 */
#include <immintrin.h>

#include "transform/kernel.h"
#include "transform/noise_loops.h"

static void noise_roots(float *v, int n)
{
    for (int i = 0; i < n; i += 8)
        _mm256_storeu_ps(v + i, _mm256_sqrt_ps(_mm256_loadu_ps(v + i)));
}

static void uniform_avx2(float out[NOISE_CHUNK], uint64_t seed, uint64_t block)
{
    noise_loop_uniform(out, seed, block);
}

static void normal_avx2(float out[NOISE_CHUNK], uint64_t seed, uint64_t block)
{
    noise_loop_normal(out, seed, block);
}

static void add_avx2(uint8_t *dst, const uint8_t *src, const float *noise, float mean, float sigma, size_t n, bool wrap)
{
    noise_loop_add(dst, src, noise, mean, sigma, n, wrap);
}

void kernels_avx2_noise(struct kernels *k)
{
    k->noise = (struct noise_kernels){uniform_avx2, normal_avx2, add_avx2};
}
