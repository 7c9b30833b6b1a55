/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h -- threads that run one function until it returns.
 *
 * Signals for the process stay with the caller's own threads: ours block all but those of a crash and SIGPROF.
 */
#ifndef POOL_H
#define POOL_H

#include <pthread.h>
#include <stdint.h>

#include "stoker.h"

struct pool {
    pthread_t *threads;
    int n;
    void *slots;
};

/* Starts n threads, each running run(user, i). On failure none is left running: stop() is called so
 * that those already started return; it may be NULL when run() returns by itself. */
int pool_open(struct pool *p, int n, void (*run)(void *user, int i), void (*stop)(void *user), void *user,
              stk_error *e);
/* Waits until all have returned. Also for a zeroed pool, also twice. */
void pool_close(struct pool *p);

/* Runs run(user, i) for i in 0..n-1 on up to n_threads threads and returns when all are done. With no
 * thread to be had it does the work in the caller's. */
void pool_for(int n_threads, int64_t n, void (*run)(void *user, int64_t i), void *user);

#endif
