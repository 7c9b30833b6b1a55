/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noise.c -- fields of random numbers: Philox over the index, and the Box-Muller transform.
 */
#include "transform/noise.h"

#include <math.h>

#include "transform/kernel.h"
#include "transform/noise_loops.h"

static void noise_roots(float *v, int n)
{
    for (int i = 0; i < n; i++)
        v[i] = sqrtf(v[i]);
}

static void uniform_c(float out[NOISE_CHUNK], uint64_t seed, uint64_t block)
{
    noise_loop_uniform(out, seed, block);
}

static void normal_c(float out[NOISE_CHUNK], uint64_t seed, uint64_t block)
{
    noise_loop_normal(out, seed, block);
}

static void add_c(uint8_t *dst, const uint8_t *src, const float *noise, float mean, float sigma, size_t n, bool wrap)
{
    noise_loop_add(dst, src, noise, mean, sigma, n, wrap);
}

void kernels_c_noise(struct kernels *k)
{
    k->noise = (struct noise_kernels){uniform_c, normal_c, add_c};
}

/* Makes whole chunks, and copies the part that is wanted of the first and the last. */
void noise_field(float *out, uint64_t seed, uint64_t first, size_t n, noise_fn *make)
{
    while (n > 0) {
        float chunk[NOISE_CHUNK];
        const size_t skip = first % NOISE_CHUNK, some = n < NOISE_CHUNK - skip ? n : NOISE_CHUNK - skip;
        make(chunk, seed, first / NOISE_CHUNK * NOISE_BLOCKS);
        memcpy(out, chunk + skip, some * sizeof *out);
        out += some;
        first += some;
        n -= some;
    }
}

void noise_uniform(float *out, uint64_t seed, uint64_t first, size_t n)
{
    noise_field(out, seed, first, n, uniform_c);
}

void noise_normal(float *out, uint64_t seed, uint64_t first, size_t n)
{
    noise_field(out, seed, first, n, normal_c);
}
