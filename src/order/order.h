/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h -- which positions of an epoch belong to which batch on this rank, and which sample each position has.
 *
 * Everything is a function of (seed, epoch, position), except where the caller gives the order.
 */
#ifndef ORDER_H
#define ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "order/alias.h"
#include "order/blocks_walk.h"
#include "order/mix.h"
#include "order/perm.h"

/* The order of one epoch, given by the caller. */
struct given {
    int64_t epoch; /* -1: none */
    int64_t n;     /* positions */
    int64_t *samples;
    int64_t *starts; /* the first position of each batch; NULL: every batch has batch_size rows */
    int64_t n_batches;
};

struct order {
    int64_t n;          /* positions in an epoch, over all ranks */
    int64_t samples;    /* samples to choose from */
    int64_t *subset;    /* which samples of the source these are; NULL: the first ones */
    int64_t batch_size; /* rows per rank */
    int64_t rank, world;
    uint64_t seed;
    bool shuffle, drop_last, pad_last;
    bool passes;        /* epochs are consecutive pieces of one walk that passes over the samples again and again */
    bool sampled;       /* the caller gives the order of every epoch; n is unused */
    int64_t mine, all;  /* with sampled: rank and number of ranks, so that a repeated sample differs by rank */
    struct alias alias; /* alias.n > 0: every position is drawn by weight */
    struct mix mix;     /* mix.n > 0: sources are mixed, and epochs are consecutive pieces of one walk */
    struct blocks near; /* near.n > 0: shuffling stays within windows over shuffled blocks */
    struct given given[2];
    /* The epoch that a loaded state resumes in the middle, and the position where it resumes. */
    int64_t resumed_epoch, resumed_at;
};

void order_done(struct order *o); /* accepts a zeroed struct; may be called twice */

/* The version of the order that a seed produces. States record it. */
enum { ORDER_VERSION = 2 };

/* The rows of one batch on this rank: positions first .. first + rows - 1. Positions from n on are padding. */
struct span {
    int64_t epoch, first, rows;
};

int64_t order_length(const struct order *o, int64_t epoch);  /* positions; -1: not given yet */
int64_t order_batches(const struct order *o, int64_t epoch); /* -1: not given yet */
/* Which repeat of its sample a position of a given order is: another one on every rank. */
int64_t order_repeat(const struct order *o, int64_t position);
struct span order_span(const struct order *o, int64_t epoch, int64_t batch);
/* The global position after this many batches of an epoch. States record it. */
int64_t order_position(const struct order *o, int64_t epoch, int64_t batches);

/* Whether the order shuffles 2 to PERM_SMALL things. Version 1 shuffled those differently. */
bool order_shuffles_few(const struct order *o);

/* State that makes consecutive calls of order_at fast. One per thread. */
struct walk {
    int64_t pass; /* the pass that perm shuffles; -1: none */
    struct perm perm;
    int64_t run_at; /* the first position in run; -1: none */
    uint64_t run[PERM_RUN];
    struct mix_walk mix;
    struct blocks_walk near;
};

/* A sample of the source; if the order can repeat samples, how many times it came earlier in this epoch. */
struct pick {
    int64_t index, repeat;
};
/* The sample at a position. Positions from n on start over. */
struct pick order_at(const struct order *o, struct walk *w, int64_t epoch, int64_t position);
/* Sample i of those to choose from, as the source counts. */
int64_t order_sample(const struct order *o, int64_t i);

/* In a mixture: how many samples of source s came before a position, in this epoch and all earlier ones. */
uint64_t order_mixed(const struct order *o, struct walk *w, int64_t epoch, int64_t position, int s);

/* Takes ownership of an order for one epoch and frees the order that had its place. */
void order_give(struct order *o, const struct given *g);
const struct given *order_given(const struct order *o, int64_t epoch); /* NULL: none */
/* Frees the orders that were given. */
void order_forget(struct order *o);

#endif
