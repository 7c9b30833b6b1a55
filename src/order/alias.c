/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alias.c -- Walker's alias method, built as Vose does it.
 *
 * Every sample has a slot of equal width. A light sample leaves part of its slot free. A heavy sample takes that part,
 * and its own weight shrinks by as much. So each slot has at most two owners. A draw picks a slot and then one of its
 * owners.
 */
#include "order/alias.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"

static int sum_of(const double *weights, int64_t n, double *sum, stk_error *e)
{
    *sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(weights[i]) || weights[i] < 0)
            return error_set(e, STK_EUSAGE, "open",
                             "the weight of sample %lld is %g; weights must be finite and not negative", (long long)i,
                             weights[i]);
        *sum += weights[i];
    }
    if (!(*sum > 0) || !isfinite(*sum))
        return error_set(e, STK_EUSAGE, "open", "the weights sum to %g; at least one must be greater than 0", *sum);
    return STK_OK;
}

/* keep[] contains the weights, scaled to a mean of 1. stack has room for n samples. */
static void pair_up(struct alias *a, int64_t *stack)
{
    int64_t light = 0, heavy = a->n; /* light samples from the left, heavy ones from the right */
    for (int64_t i = 0; i < a->n; i++)
        stack[a->keep[i] < 1 ? light++ : --heavy] = i;
    while (light > 0 && heavy < a->n) {
        const int64_t small = stack[--light], large = stack[heavy];
        a->other[small] = large;
        a->keep[large] -= 1 - a->keep[small];
        if (a->keep[large] < 1) {
            heavy++;
            stack[light++] = large;
        }
    }
    /* The rest is 1, except for rounding. */
    while (light > 0)
        a->keep[stack[--light]] = 1;
    while (heavy < a->n)
        a->keep[stack[heavy++]] = 1;
}

int alias_init(struct alias *a, const double *weights, int64_t n, stk_error *e)
{
    *a = (struct alias){.n = n};
    double sum;
    const int rc = sum_of(weights, n, &sum, e);
    if (rc != STK_OK)
        return rc;
    a->keep = malloc((size_t)n * sizeof *a->keep);
    a->other = malloc((size_t)n * sizeof *a->other);
    int64_t *stack = malloc((size_t)n * sizeof *stack);
    if (!a->keep || !a->other || !stack) {
        free(stack);
        alias_done(a);
        return error_nomem(e, "open", (size_t)n * 3 * sizeof *stack);
    }
    for (int64_t i = 0; i < n; i++) {
        a->keep[i] = weights[i] / sum * (double)n;
        a->other[i] = i;
    }
    pair_up(a, stack);
    free(stack);
    a->hash = hash_bytes(weights, (size_t)n * sizeof *weights, 1);
    return STK_OK;
}

void alias_done(struct alias *a)
{
    free(a->keep);
    free(a->other);
    *a = (struct alias){0};
}

int64_t alias_at(const struct alias *a, uint64_t seed, int64_t epoch, int64_t position)
{
    const struct draw d = {.seed = seed, .epoch = (uint64_t)epoch, .repeat = (uint64_t)position};
    struct rng r;
    rng_init(&r, &d, "weights", 0);
    const int64_t slot = (int64_t)rng_below(&r, (uint64_t)a->n);
    return rng_double(&r) < a->keep[slot] ? slot : a->other[slot];
}
