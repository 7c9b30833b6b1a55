/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h -- threads that run one function until it returns.
 *
 * These threads block all signals except those of a crash and SIGPROF, so that the caller's own threads handle the
 * rest.
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

/* Starts n threads that call run(user, i). If one cannot be started, calls stop(), which makes the others return, and
 * waits for them. stop may be NULL if run() returns by itself. */
int pool_open(struct pool *p, int n, void (*run)(void *user, int i), void (*stop)(void *user), void *user,
              stk_error *e);
/* Waits until all threads have returned. The pool may be zeroed, or closed already. */
void pool_close(struct pool *p);

/* Calls run(user, i) for i in 0..n-1 on up to n_threads threads and returns when all are done. If no thread can be
 * started, the caller's thread does the work. */
void pool_for(int n_threads, int64_t n, void (*run)(void *user, int64_t i), void *user);

#endif
