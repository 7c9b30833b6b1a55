/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alias.h -- draws samples by weight in constant time: the alias method.
 */
#ifndef ALIAS_H
#define ALIAS_H

#include <stdint.h>

#include "stoker.h"

struct alias {
    int64_t n;
    double *keep;   /* the share of slot i that belongs to sample i */
    int64_t *other; /* the sample that owns the rest of it */
    uint64_t hash;  /* of the weights */
};

/* Weights need not sum to 1. Negative weights, NaN, infinities, and weights that are all 0 are refused. */
int alias_init(struct alias *a, const double *weights, int64_t n, stk_error *e);
void alias_done(struct alias *a); /* accepts a zeroed struct; may be called twice */
/* The sample drawn at a position of an epoch. It depends on nothing else. */
int64_t alias_at(const struct alias *a, uint64_t seed, int64_t epoch, int64_t position);

#endif
