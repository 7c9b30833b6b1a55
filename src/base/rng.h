/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.h -- random numbers that depend on what they are for, not on which were drawn before.
 *
 * A generator is keyed by (seed, epoch, sample, repeat, view), an op's name, and the op's index among those of the same
 * name. Its numbers are Philox4x32-10 over a counter. So images do not depend on the number of threads, and inserting
 * an op does not change the numbers of the others.
 */
#ifndef RNG_H
#define RNG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sample.h"

struct rng {
    uint64_t key, counter;
    uint32_t block[4];
    int left; /* unused words of block */
};

void rng_init(struct rng *r, const struct draw *d, const char *op, int nth);
uint32_t rng_u32(struct rng *r);
uint64_t rng_u64(struct rng *r);
double rng_double(struct rng *r);                           /* in [0, 1), 53 bits */
double rng_between(struct rng *r, double low, double high); /* low + (high - low) * rng_double */
uint64_t rng_below(struct rng *r, uint64_t n);              /* uniform in [0, n), exactly; n > 0 */
bool rng_chance(struct rng *r, double p);                   /* rng_double < p */
double rng_normal(struct rng *r);                           /* mean 0, standard deviation 1 */
/* The logarithm of a gamma variate: small shapes give values that underflow. */
double rng_log_gamma(struct rng *r, double shape);
uint64_t rng_of_hook(const struct draw *d, const char *hook); /* the number that a user's hook gets */

#endif
