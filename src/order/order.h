/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h -- which positions of an epoch make which batch on this rank, and which sample stands at
 * a position. Pure arithmetic, a function of (seed, epoch, position), but where the caller gives the
 * order himself.
 */
#ifndef ORDER_H
#define ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "order/alias.h"
#include "order/blocks_walk.h"
#include "order/mix.h"
#include "order/perm.h"

/* An epoch as the caller gave it. */
struct given {
    int64_t epoch; /* -1: none */
    int64_t n;     /* positions */
    int64_t *samples;
    int64_t *starts; /* first positions of the batches; NULL: all of batch_size rows */
    int64_t n_batches;
};

struct order {
    int64_t n;          /* positions in an epoch: all ranks together */
    int64_t samples;    /* to choose from */
    int64_t batch_size; /* rows per rank */
    int64_t rank, world;
    uint64_t seed;
    bool shuffle, drop_last, pad_last;
    bool passes;        /* epochs are pieces of a walk through the samples, again and again */
    bool sampled;       /* epochs are as given; n means nothing then */
    struct alias alias; /* with n > 0 every position is a draw by weight */
    struct mix mix;     /* with n > 0 the sources are mixed; epochs are pieces of one walk */
    struct blocks near; /* with n > 0 shuffling keeps near to the blocks */
    struct given given[2];
    /* The epoch that a loaded state begins in the middle: its first position. */
    int64_t resumed_epoch, resumed_at;
};

/* Counts the changes to the order that a seed gives; states record it. */
enum { ORDER_VERSION = 2 };

/* The rows of one batch on this rank: positions first .. first + rows - 1; those from n on are padding. */
struct span {
    int64_t epoch, first, rows;
};

int64_t order_length(const struct order *o, int64_t epoch);  /* positions; -1: not given yet */
int64_t order_batches(const struct order *o, int64_t epoch); /* -1: not given yet */
struct span order_span(const struct order *o, int64_t epoch, int64_t batch);
/* The global position after so many batches of an epoch: what a state holds. */
int64_t order_position(const struct order *o, int64_t epoch, int64_t batches);

/* Whether a shuffle of 2 to PERM_SMALL things takes part in it: version 1 of the order shuffled those otherwise. */
bool order_shuffles_few(const struct order *o);

/* The shuffle of one pass, kept by whoever walks along it. */
struct walk {
    int64_t pass; /* of perm; -1: none */
    struct perm perm;
    int64_t run_at; /* the position that run begins with; -1: none */
    uint64_t run[PERM_RUN];
    struct mix_walk mix;
    struct blocks_walk near;
};

/* Which sample, and which time in this epoch, as far as the order can repeat one. */
struct pick {
    int64_t index, repeat;
};
/* What stands at a position; positions from n on begin anew. */
struct pick order_at(const struct order *o, struct walk *w, int64_t epoch, int64_t position);

/* In a mixture: how many samples of source s came before a position, in this epoch and those before it. */
uint64_t order_mixed(const struct order *o, struct walk *w, int64_t epoch, int64_t position, int s);

/* Takes over an order for an epoch and its memory; what was there for it is freed. */
void order_give(struct order *o, const struct given *g);
const struct given *order_given(const struct order *o, int64_t epoch); /* NULL: none */
/* Forgets the orders given. */
void order_forget(struct order *o);

#endif
