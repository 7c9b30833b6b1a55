/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c -- threads make results in any order; the caller's thread takes them in order.
 *
 *        taken                started
 *     -----+---------------------+------------------> results
 *          | made, or being made | not started
 *
 * Invariants, under lock:
 *   (1) taken <= started <= taken + n_slots.
 *   (2) slots[k % n_slots] belongs to result k from its start until it is taken: to a thread while it is not ready,
 *       then to the caller.
 *   (3) held is the sum of the bytes of the slots that are ready.
 *   (4) the results before `started` cover the positions before `position`.
 */
#include "base/window.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/pool.h"

struct slot {
    bool ready;
    size_t bytes;
    int64_t n; /* positions */
};

struct window {
    const struct window_job *job;
    pthread_mutex_t lock;
    pthread_cond_t room, ready;
    struct slot *slots;
    int64_t position, started, taken;
    size_t held;
    bool stopped;
};

static bool may_start(const struct window *w)
{
    const struct window_job *j = w->job;
    return w->started == w->taken ||
           (w->started < w->taken + j->n_slots && (j->held_max == 0 || w->held <= j->held_max));
}

static void work(void *user, int thread)
{
    struct window *w = user;
    const struct window_job *j = w->job;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->stopped && w->position < j->end && !may_start(w))
            pthread_cond_wait(&w->room, &w->lock);
        if (w->stopped || w->position >= j->end)
            break;
        const int64_t k = w->started++, position = w->position;
        const int at = (int)(k % j->n_slots);
        struct slot *s = &w->slots[at];
        s->n = j->count ? j->count(j->user, position) : 1;
        w->position += s->n;
        pthread_mutex_unlock(&w->lock);
        const size_t bytes = j->make(j->user, thread, position, s->n, at);
        pthread_mutex_lock(&w->lock);
        s->bytes = bytes;
        s->ready = true;
        w->held += bytes;
        if (k == w->taken)
            pthread_cond_signal(&w->ready);
    }
    pthread_mutex_unlock(&w->lock);
}

static void stop(void *user)
{
    struct window *w = user;
    pthread_mutex_lock(&w->lock);
    w->stopped = true;
    pthread_cond_broadcast(&w->room);
    pthread_mutex_unlock(&w->lock);
}

static int take_all(struct window *w, stk_error *e)
{
    const struct window_job *j = w->job;
    int rc = STK_OK;
    for (int64_t position = j->first; position < j->end && rc == STK_OK;) {
        const int at = (int)(w->taken % j->n_slots); /* only this thread changes taken */
        struct slot *s = &w->slots[at];
        pthread_mutex_lock(&w->lock);
        while (!s->ready)
            pthread_cond_wait(&w->ready, &w->lock);
        pthread_mutex_unlock(&w->lock);
        rc = j->take(j->user, at, e);
        position += s->n;
        pthread_mutex_lock(&w->lock);
        s->ready = false;
        w->held -= s->bytes;
        w->taken++;
        pthread_cond_broadcast(&w->room);
        pthread_mutex_unlock(&w->lock);
    }
    return rc;
}

int window_run(const struct window_job *job, int threads, stk_error *e)
{
    struct window w = {.job = job, .position = job->first};
    struct pool pool;
    w.slots = calloc((size_t)job->n_slots, sizeof *w.slots);
    if (!w.slots)
        return error_nomem(e, "open", (size_t)job->n_slots * sizeof *w.slots);
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.room, NULL);
    pthread_cond_init(&w.ready, NULL);
    int rc = pool_open(&pool, threads, work, stop, &w, e);
    if (rc == STK_OK) {
        rc = take_all(&w, e);
        stop(&w);
        pool_close(&pool);
    }
    pthread_mutex_destroy(&w.lock);
    pthread_cond_destroy(&w.room);
    pthread_cond_destroy(&w.ready);
    free(w.slots);
    return rc;
}
