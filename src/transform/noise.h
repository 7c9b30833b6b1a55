/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noise.h -- fields of random numbers: value i depends on the seed and i only.
 *
 * So a field can be made in parts, and again later from its seed.
 */
#ifndef NOISE_H
#define NOISE_H

#include <stddef.h>
#include <stdint.h>

/* Values first to first + n of the field. */
void noise_uniform(float *out, uint64_t seed, uint64_t first, size_t n); /* in [0, 1), 24 bits */
void noise_normal(float *out, uint64_t seed, uint64_t first, size_t n);  /* mean 0, standard deviation 1 */

#endif
