/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noise.h -- fields of random numbers: value i depends on the seed and i only.
 *
 * So a field can be made in parts, and again later from its seed.
 */
#ifndef NOISE_H
#define NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernels;

/* Values first to first + n of the field. */
void noise_uniform(float *out, uint64_t seed, uint64_t first, size_t n); /* in [0, 1), 24 bits */
void noise_normal(float *out, uint64_t seed, uint64_t first, size_t n);  /* mean 0, standard deviation 1 */

enum { NOISE_BLOCKS = 32, NOISE_CHUNK = 4 * NOISE_BLOCKS };

/* A chunk of a field, from a block of four values on. */
typedef void noise_fn(float out[NOISE_CHUNK], uint64_t seed, uint64_t block);
/* The same as above, with a kernel. */
void noise_field(float *out, uint64_t seed, uint64_t first, size_t n, noise_fn *make);

/* For the table of kernels. */
struct noise_kernels {
    noise_fn *uniform, *normal;
    /* Adds noise to bytes, in whole levels. wrap: sums do not end at 0 and 255. */
    void (*add)(uint8_t *dst, const uint8_t *src, const float *noise, float mean, float sigma, size_t n, bool wrap);
};

#endif
