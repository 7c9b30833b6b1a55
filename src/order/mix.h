/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix.h -- mixes several sources by weight: which source has a position, and which of its samples.
 */
#ifndef MIX_H
#define MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "stoker.h"

enum { MIX_SOURCES = 256, MIX_BLOCK = 4096 };

struct mix_source {
    int64_t first, count; /* samples */
    int share;            /* places in every block */
};

struct mix {
    int n;     /* sources; 0: they are not mixed */
    int block; /* places in a block */
    struct mix_source *sources;
    uint8_t *spread; /* the source at every place of a block, before it is shuffled */
    uint64_t hash;   /* of shares and counts */
};

/* The last block that was used. One per thread. */
struct mix_walk {
    uint64_t next;             /* the block after it; 0: none */
    uint8_t source[MIX_BLOCK]; /* at every place */
    uint16_t nth[MIX_BLOCK];   /* of that source in this block */
};

/* Source s has the samples first[s] to first[s + 1] - 1. Weights need not sum to 1. A source with weight 0 never comes.
 */
int mix_init(struct mix *m, const double *weights, int n, const int64_t *first, stk_error *e);
void mix_done(struct mix *m); /* accepts a zeroed struct; may be called twice */

/* The sample at place q of an endless walk. It depends only on (seed, shuffle, q). */
int64_t mix_at(const struct mix *m, struct mix_walk *w, uint64_t seed, bool shuffle, uint64_t q);
/* How many samples of source s come before place q. */
uint64_t mix_before(const struct mix *m, struct mix_walk *w, uint64_t seed, bool shuffle, uint64_t q, int s);

#endif
