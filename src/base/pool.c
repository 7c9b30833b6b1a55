/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c -- threads that run one function until it returns.
 */
#include "base/pool.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct slot {
    void (*run)(void *user, int i);
    void *user;
    int i;
};

static void *enter(void *arg)
{
    const struct slot *s = arg;
    s->run(s->user, s->i);
    return NULL;
}

/* The system delivers a signal for the process to any thread that does not block it, so our threads block them. They do
 * not block signals of a crash, which go to the thread that crashed, since its handler would not be called. They do not
 * block SIGPROF, with which a profiler samples the running thread. */
static void fill_asynchronous(sigset_t *set)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF};
    sigfillset(set);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(set, own[i]);
}

/* A new thread inherits the signal mask of the thread that starts it. */
static int start(pthread_t *t, struct slot *s)
{
    sigset_t asynchronous, before;
    fill_asynchronous(&asynchronous);
    pthread_sigmask(SIG_BLOCK, &asynchronous, &before);
    const int rc = pthread_create(t, NULL, enter, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int pool_open(struct pool *p, int n, void (*run)(void *user, int i), void (*stop)(void *user), void *user, stk_error *e)
{
    *p = (struct pool){0};
    struct slot *slots = calloc((size_t)n, sizeof *slots);
    p->threads = calloc((size_t)n, sizeof *p->threads);
    p->slots = slots;
    if (!slots || !p->threads) {
        pool_close(p);
        return error_nomem(e, "open", (size_t)n * sizeof *slots);
    }
    for (; p->n < n; p->n++) {
        slots[p->n] = (struct slot){.run = run, .user = user, .i = p->n};
        const int rc = start(&p->threads[p->n], &slots[p->n]);
        if (rc != 0) {
            const int started = p->n;
            if (stop)
                stop(user);
            pool_close(p);
            return error_os(e, rc, "open", "cannot start thread %d of %d", started + 1, n);
        }
    }
    return STK_OK;
}

void pool_close(struct pool *p)
{
    for (int i = 0; i < p->n; i++)
        pthread_join(p->threads[i], NULL);
    free(p->threads);
    free(p->slots);
    *p = (struct pool){0};
}

struct loop {
    _Atomic int64_t next;
    int64_t n;
    void (*run)(void *user, int64_t i);
    void *user;
};

static void turn(void *user, int thread)
{
    (void)thread;
    struct loop *l = user;
    for (int64_t i; (i = atomic_fetch_add(&l->next, 1)) < l->n;)
        l->run(l->user, i);
}

void pool_for(int n_threads, int64_t n, void (*run)(void *user, int64_t i), void *user)
{
    struct loop l = {.n = n, .run = run, .user = user};
    if (n_threads > n)
        n_threads = (int)n;
    struct pool p = {0};
    if (n_threads > 1)
        pool_open(&p, n_threads - 1, turn, NULL, &l, NULL); /* with fewer threads it only takes longer */
    turn(&l, 0);
    pool_close(&p);
}
