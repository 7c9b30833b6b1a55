/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.h -- random numbers that are a function of their names, not of a history.
 *
 * A generator is named by (seed, epoch, sample, repeat, view) and an op's name and its nth use; the
 * numbers it gives are Philox4x32-10 over a counter. So the same pictures come out for any number
 * of threads, and an op put in between leaves the others' numbers alone.
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
double rng_double(struct rng *r);                             /* in [0, 1), 53 bits */
double rng_between(struct rng *r, double low, double high);   /* low + (high - low) * rng_double */
uint64_t rng_below(struct rng *r, uint64_t n);                /* uniform in [0, n), exactly; n > 0 */
bool rng_chance(struct rng *r, double p);                     /* rng_double < p */
uint64_t rng_of_hook(const struct draw *d, const char *hook); /* the one number that a hook of the caller's gets */

#endif
