/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noise_loops.h -- the inner loops of noise, in C, to be compiled for every instruction set.
 *
 * They work on a chunk of blocks at a time and have no branches, so that a compiler uses vectors. Every operation
 * rounds alike in any width, so the result does not depend on that. A file that includes this defines noise_roots(),
 * which replaces n numbers by their square roots.
 */
#ifndef NOISE_LOOPS_H
#define NOISE_LOOPS_H

#include <string.h>

#include "transform/noise.h"

static void noise_roots(float *v, int n);

/* NOISE_BLOCKS blocks of Philox4x32-10 (base/rng.c), with the index of the block in the first two words. */
static inline void noise_bits(uint32_t out[NOISE_CHUNK], uint64_t seed, uint64_t block)
{
    uint32_t c[4][NOISE_BLOCKS];
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int i = 0; i < NOISE_BLOCKS; i++) {
        c[0][i] = (uint32_t)(block + (uint64_t)i);
        c[1][i] = (uint32_t)((block + (uint64_t)i) >> 32);
        c[2][i] = c[3][i] = 0;
    }
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u)
        for (int i = 0; i < NOISE_BLOCKS; i++) {
            const uint64_t a = (uint64_t)c[0][i] * 0xd2511f53u, b = (uint64_t)c[2][i] * 0xcd9e8d57u;
            c[0][i] = (uint32_t)(b >> 32) ^ c[1][i] ^ k0;
            c[1][i] = (uint32_t)b;
            c[2][i] = (uint32_t)(a >> 32) ^ c[3][i] ^ k1;
            c[3][i] = (uint32_t)a;
        }
    for (int i = 0; i < NOISE_BLOCKS; i++)
        for (int k = 0; k < 4; k++)
            out[4 * i + k] = c[k][i];
}

static inline float noise_unit(uint32_t x)
{
    return (float)(int32_t)(x >> 8) * 0x1p-24f;
}

static inline void noise_loop_uniform(float out[NOISE_CHUNK], uint64_t seed, uint64_t block)
{
    uint32_t bits[NOISE_CHUNK];
    noise_bits(bits, seed, block);
    for (int i = 0; i < NOISE_CHUNK; i++)
        out[i] = noise_unit(bits[i]);
}

/* The natural logarithm of x, which is normal and above 0, within two units in the last place. */
static inline float noise_log(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    const uint32_t shifted = u - 0x3f3504f3; /* the mantissa from sqrt(1/2) to sqrt(2) */
    const float exponent = (float)((int32_t)shifted >> 23);
    u = (shifted & 0x7fffff) + 0x3f3504f3;
    memcpy(&x, &u, sizeof u);
    const float z = x - 1.0f, square = z * z;
    float p = 7.0376836292e-2f;
    p = p * z - 1.1514610310e-1f;
    p = p * z + 1.1676998740e-1f;
    p = p * z - 1.2420140846e-1f;
    p = p * z + 1.4249322787e-1f;
    p = p * z - 1.6668057665e-1f;
    p = p * z + 2.0000714765e-1f;
    p = p * z - 2.4999993993e-1f;
    p = p * z + 3.3333331174e-1f;
    return z + (p * z * square - 0.5f * square + exponent * 0.693147180559945f);
}

/* Sine and cosine of turn whole circles, 0 <= turn < 1. */
static inline void noise_sine(float turn, float *sine, float *cosine)
{
    const float quarters = turn * 4.0f;
    const int32_t q = (int32_t)(quarters + 0.5f);
    const float x = (quarters - (float)q) * 1.57079632679f, square = x * x;
    const float s = x + x * square * (-1.6666654611e-1f + square * (8.3321608736e-3f - square * 1.9515295891e-4f));
    const float even = square * (-1.388731625493765e-3f + square * 2.443315711809948e-5f);
    const float c = 1.0f - 0.5f * square + square * square * (4.166664568298827e-2f + even);
    const float a = q & 1 ? c : s, b = q & 1 ? s : c;
    *sine = q & 2 ? -a : a;
    *cosine = (q + 1) & 2 ? -b : b;
}

/* Box and Muller: each half of a block makes two numbers. */
static inline void noise_loop_normal(float out[NOISE_CHUNK], uint64_t seed, uint64_t block)
{
    uint32_t bits[NOISE_CHUNK];
    float length[NOISE_CHUNK / 2];
    noise_bits(bits, seed, block);
    for (int i = 0; i < NOISE_CHUNK / 2; i++) {
        const float square = -2.0f * noise_log(noise_unit(bits[2 * i]) + 0x1p-24f);
        length[i] = square > 0.0f ? square : 0.0f;
    }
    noise_roots(length, NOISE_CHUNK / 2);
    for (int i = 0; i < NOISE_CHUNK / 2; i++) {
        float sine, cosine;
        noise_sine(noise_unit(bits[2 * i + 1]), &sine, &cosine);
        out[2 * i] = length[i] * cosine;
        out[2 * i + 1] = length[i] * sine;
    }
}

/* As torchvision does with uint8: noise is cut to whole levels, then added. wrap: sums do not end at 0 and 255. */
static inline void noise_loop_add(uint8_t *restrict dst, const uint8_t *restrict src, const float *restrict noise,
                                  float mean, float sigma, size_t n, bool wrap)
{
    for (size_t i = 0; i < n; i++) {
        const int32_t sum = src[i] + (int32_t)(mean + noise[i] * sigma);
        const int32_t low = sum < 0 ? 0 : sum, clipped = low > 255 ? 255 : low;
        dst[i] = (uint8_t)(wrap ? sum : clipped);
    }
}

#endif
