/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h -- a shuffle that stays near: for samples that lie in files which are packed as a whole, where going to and
 * fro would mean unpacking without end.
 *
 * The blocks (files) come in shuffled order, and in the row of samples that this makes each window of so many
 * positions is shuffled for itself. Both are functions of (seed, pass, position), as the shuffle of all samples is.
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdint.h>

#include "base/perm.h"

struct blocks {
    int64_t n;       /* 0: none; samples may be had in any order */
    int64_t *starts; /* n + 1: the first sample of each, and how many there are */
    int64_t window;  /* positions */
};

/* Those of the first n samples of subset (NULL: of all), which counts samples of `all`. 0, or -1: no memory. */
int blocks_init(struct blocks *b, const struct blocks *all, const int64_t *subset, int64_t n);
/* Those of several sources, one after the other; source i has the samples from first[i] on, and parts[i] or NULL. */
int blocks_join(struct blocks *b, const struct blocks *const *parts, const int64_t *first, int n);
void blocks_done(struct blocks *b); /* also zeroed, also twice */

/* What one who walks along a pass keeps of it. */
struct blocks_walk {
    int64_t pass; /* of order; meaningless before */
    int64_t near; /* which window `within` is of */
    struct perm order, within;
    int64_t *begins; /* where each block in that order begins; NULL: counted anew every time */
};

/* Takes the memory that makes blocks_at fast. Without any it is slow. */
void blocks_walk_init(struct blocks_walk *w, const struct blocks *b);
void blocks_walk_done(struct blocks_walk *w);

/* The sample at position i of a pass. */
int64_t blocks_at(const struct blocks *b, struct blocks_walk *w, uint64_t seed, int64_t pass, int64_t i);

#endif
