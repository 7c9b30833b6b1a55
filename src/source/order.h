/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h -- which positions of an epoch make which batch on this rank, and which sample stands at
 * a position. Pure arithmetic: a function of (seed, epoch, position).
 */
#ifndef ORDER_H
#define ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/perm.h"

struct order {
    int64_t n;          /* positions in an epoch: all ranks together */
    int64_t batch_size; /* rows per rank */
    int64_t rank, world;
    uint64_t seed;
    bool shuffle, drop_last, pad_last;
    /* The epoch that a loaded state begins in the middle: its first position. */
    int64_t resumed_epoch, resumed_at;
};

/* The rows of one batch on this rank: positions first .. first + rows - 1; those from n on are padding. */
struct span {
    int64_t epoch, first, rows;
};

int64_t order_batches(const struct order *o, int64_t epoch);
struct span order_span(const struct order *o, int64_t epoch, int64_t batch);
/* The global position after so many batches of an epoch: what a state holds. */
int64_t order_position(const struct order *o, int64_t epoch, int64_t batches);

/* The shuffle of one epoch, kept by whoever walks along it. */
struct walk {
    int64_t epoch; /* of perm; -1: none */
    struct perm perm;
};
/* Index of the sample at a position; positions from n on begin anew. */
int64_t order_at(const struct order *o, struct walk *w, int64_t epoch, int64_t position);

#endif
