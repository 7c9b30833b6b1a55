/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h -- samples that are best read together: those of a compressed file, or of a table's row group.
 *
 * A source says what its blocks are; order/blocks_walk.h shuffles them.
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdint.h>

struct blocks {
    int64_t n;       /* 0: no blocks; samples may be read in any order */
    int64_t *starts; /* n + 1: the first sample of each block, then the number of samples */
    int64_t window;  /* positions that are shuffled together */
};

/* The blocks of the first n samples of subset (NULL: of all samples). Returns 0, or -1 if there is no memory. */
int blocks_init(struct blocks *b, const struct blocks *all, const int64_t *subset, int64_t n);
/* The blocks of several sources, one after the other. Source i has the samples from first[i] on; parts[i] may be NULL.
 */
int blocks_join(struct blocks *b, const struct blocks *const *parts, const int64_t *first, int n);
void blocks_done(struct blocks *b); /* accepts a zeroed struct; may be called twice */

#endif
