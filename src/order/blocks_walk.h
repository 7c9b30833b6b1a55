/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks_walk.h -- shuffles samples that come in blocks, such as compressed files. Jumping between blocks would
 * decompress them again and again.
 *
 * The blocks come in shuffled order. In the sequence of samples that results, each window is shuffled separately. Both
 * shuffles are functions of (seed, pass, position), like the shuffle of all samples.
 */
#ifndef BLOCKS_WALK_H
#define BLOCKS_WALK_H

#include "base/blocks.h"
#include "order/perm.h"

/* State that makes consecutive calls of blocks_at fast. */
struct blocks_walk {
    int64_t pass; /* the pass that order shuffles */
    int64_t near; /* the window that `within` shuffles */
    struct perm order, within;
    int64_t *begins; /* where each block begins in that order; NULL: computed on every call */
};

/* Allocates memory that makes blocks_at() fast. Without it blocks_at() is slow, but works. */
void blocks_walk_init(struct blocks_walk *w, const struct blocks *b);
void blocks_walk_done(struct blocks_walk *w);

/* The sample at position i of a pass. */
int64_t blocks_at(const struct blocks *b, struct blocks_walk *w, uint64_t seed, int64_t pass, int64_t i);

#endif
