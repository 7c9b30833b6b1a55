/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noise.c -- fields of random numbers: Philox over the index, and the Box-Muller transform.
 *
 * Four values come from one block of the generator; for normal numbers, each half of a block makes two. The loops work
 * on a chunk of blocks at a time and have no branches, so that a compiler can use vectors. Every operation rounds alike
 * in any width, so the result does not depend on that.
 */
#include "transform/noise.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

enum { BLOCKS = 32, CHUNK = 4 * BLOCKS };

static float unit(uint32_t x)
{
    return (float)(int32_t)(x >> 8) * 0x1p-24f;
}

static void make_uniform(float out[CHUNK], uint64_t seed, uint64_t block)
{
    uint32_t bits[CHUNK];
    rng_blocks(bits, seed, block, BLOCKS);
    for (int i = 0; i < CHUNK; i++)
        out[i] = unit(bits[i]);
}

/* The natural logarithm of x, which is normal and above 0, within two units in the last place. */
static float log_of(float x)
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
static void sine_of(float turn, float *sine, float *cosine)
{
    const float quarters = turn * 4.0f;
    const int32_t q = (int32_t)(quarters + 0.5f);
    const float x = (quarters - (float)q) * 1.57079632679f, square = x * x;
    const float s = x + x * square * (-1.6666654611e-1f + square * (8.3321608736e-3f - square * 1.9515295891e-4f));
    const float c =
        1.0f - 0.5f * square +
        square * square * (4.166664568298827e-2f + square * (-1.388731625493765e-3f + square * 2.443315711809948e-5f));
    const float a = q & 1 ? c : s, b = q & 1 ? s : c;
    *sine = q & 2 ? -a : a;
    *cosine = (q + 1) & 2 ? -b : b;
}

static void make_normal(float out[CHUNK], uint64_t seed, uint64_t block)
{
    uint32_t bits[CHUNK];
    float length[CHUNK / 2];
    rng_blocks(bits, seed, block, BLOCKS);
    for (int i = 0; i < CHUNK / 2; i++)
        length[i] = -2.0f * log_of(unit(bits[2 * i]) + 0x1p-24f);
    for (int i = 0; i < CHUNK / 2; i++)
        length[i] = sqrtf(length[i] > 0.0f ? length[i] : 0.0f);
    for (int i = 0; i < CHUNK / 2; i++) {
        float sine, cosine;
        sine_of(unit(bits[2 * i + 1]), &sine, &cosine);
        out[2 * i] = length[i] * cosine;
        out[2 * i + 1] = length[i] * sine;
    }
}

typedef void make_fn(float out[CHUNK], uint64_t seed, uint64_t block);

/* Makes whole chunks, and copies the part that is wanted of the first and the last. */
static void make_field(float *out, uint64_t seed, uint64_t first, size_t n, make_fn *make)
{
    while (n > 0) {
        float chunk[CHUNK];
        const size_t skip = first % CHUNK, some = n < CHUNK - skip ? n : CHUNK - skip;
        make(chunk, seed, first / CHUNK * BLOCKS);
        memcpy(out, chunk + skip, some * sizeof *out);
        out += some;
        first += some;
        n -= some;
    }
}

void noise_uniform(float *out, uint64_t seed, uint64_t first, size_t n)
{
    make_field(out, seed, first, n, make_uniform);
}

void noise_normal(float *out, uint64_t seed, uint64_t first, size_t n)
{
    make_field(out, seed, first, n, make_normal);
}
