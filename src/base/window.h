/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h -- threads make results in any order; the caller's thread takes them in order.
 *
 * The work is a range of positions. A thread makes one result from one or several positions, in a slot that the caller
 * of window_run() owns.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

struct window_job {
    void *user;
    int64_t first, end; /* positions */
    int n_slots;        /* how many results can wait to be taken, or be in the making */
    /* No thread starts a result while those that wait hold more bytes than this, except the one that is taken next.
     * 0: no limit. */
    size_t held_max;
    /* How many positions from this one on make one result. NULL: one. Called under a lock. */
    int64_t (*count)(void *user, int64_t position);
    /* Makes the result of n positions in a slot and returns the bytes that it holds. Called by any thread. */
    size_t (*make)(void *user, int thread, int64_t position, int64_t n, int slot);
    /* Takes the result in a slot, in order, in the caller's thread. Anything but STK_OK ends the run. */
    int (*take)(void *user, int slot, stk_error *e);
};

/* Returns when everything has been taken, or with what take() returned. */
int window_run(const struct window_job *job, int threads, stk_error *e);

#endif
