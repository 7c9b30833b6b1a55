/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c -- the ring of batches between the workers and the caller.
 *
 * Workers fill rows in any order; the caller takes whole batches in order. Batches are numbered
 * through all epochs, so that the next epoch is prefetched while one ends; batch b lives in
 * slots[b % n_slots] and moves through the ring so:
 *
 *        head                         tail
 *     ----+----------------------------+---------------> batches
 *      gone | ready or being filled     | not begun
 *
 * Invariants, under lock:
 *   (1) head <= tail <= head + pace.depth <= head + n_slots; tickets are handed out of batch tail - 1
 *       only, from `row` on.
 *   (2) slots[b].missing counts the rows of b that were not given back; the batch is ready when it
 *       is 0.
 *   (3) between ring_take and ring_give a run of rows belongs to one worker, without lock.
 *   (4) `in` is the place of batch tail, `out` of batch head.
 *   (5) while paused no ticket is handed out; ring_restart waits until in_flight is 0.
 *   (6) a serial names one row for ever: rows that were foreseen and then dropped keep theirs.
 */
#include "batch/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"

int ring_init(struct ring *r, int threads, int64_t depth, int64_t n_slots, struct depot *d, struct ring_plan plan,
              stk_error *e)
{
    *r = (struct ring){.n_slots = n_slots, .depot = d, .plan = plan};
    r->slots = calloc((size_t)n_slots, sizeof *r->slots);
    if (!r->slots)
        return error_nomem(e, "open", (size_t)n_slots * sizeof *r->slots);
    pace_init(&r->pace, threads, depth, n_slots);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->work, NULL);
    pthread_cond_init(&r->ready, &monotonic);
    pthread_cond_init(&r->quiet, NULL);
    pthread_condattr_destroy(&monotonic);
    return STK_OK;
}

void bads_free(struct bad *b)
{
    for (struct bad *next; b; b = next) {
        next = b->next;
        free(b);
    }
}

static struct slot *slot_of(struct ring *r, int64_t batch)
{
    return &r->slots[batch % r->n_slots];
}

static void drop_all(struct ring *r)
{
    for (int64_t b = r->head; b < r->tail; b++) {
        struct slot *s = slot_of(r, b);
        stk_release(s->batch);
        bads_free(s->bads);
        *s = (struct slot){0};
    }
    r->head = r->tail = r->row = 0;
}

void ring_done(struct ring *r)
{
    if (!r->slots)
        return;
    drop_all(r);
    free(r->slots);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->work);
    pthread_cond_destroy(&r->ready);
    pthread_cond_destroy(&r->quiet);
    *r = (struct ring){0};
}

/* ------------------------------------------------------------------ workers */

/* Steps over epochs that have no batch; false when none has (an order of that kind has none for
 * ever after its first two epochs). */
static bool find_batch(const struct ring *r, struct place *at)
{
    for (int tries = 0; tries < 3; tries++) {
        const int64_t n = r->plan.batches(r->plan.user, at->epoch);
        if (n < 0) /* nobody knows yet: ring_change will say so */
            return false;
        if (at->batch < n)
            return true;
        *at = (struct place){.epoch = at->epoch + 1};
    }
    return false;
}

/* Begins batch tail; false when there is no room, nothing to do, or no memory. */
static bool begin_batch(struct ring *r)
{
    if (r->tail - r->head >= r->pace.depth || (r->tail > r->head && depot_is_full(r->depot))) {
        pace_full(&r->pace);
        return false;
    }
    const struct place before = r->in;
    if (!find_batch(r, &r->in)) {
        r->in = before;
        return false;
    }
    struct slot *s = slot_of(r, r->tail);
    s->batch = depot_take(r->depot);
    if (!s->batch) /* tried again when a batch comes back; the caller hears of it when he runs dry */
        return false;
    int64_t first = 0;
    r->plan.span(r->plan.user, r->in, &first, &s->rows);
    s->batch->epoch = r->in.epoch;
    s->batch->first = first;
    s->missing = s->rows;
    s->bads = NULL;
    r->in.batch++;
    r->tail++;
    r->row = 0;
    if (s->missing == 0)
        pthread_cond_broadcast(&r->ready);
    return true;
}

static bool has_rows(struct ring *r)
{
    return r->tail > r->head && r->row < slot_of(r, r->tail - 1)->rows;
}

static bool find_rows(struct ring *r)
{
    if (r->paused)
        return false;
    while (!has_rows(r))
        if (!begin_batch(r))
            return false;
    return true;
}

bool ring_take(struct ring *r, int worker, int64_t max_rows, struct ticket *out)
{
    pthread_mutex_lock(&r->lock);
    while (!r->stopped && (worker >= r->pace.active || !find_rows(r)))
        pthread_cond_wait(&r->work, &r->lock);
    if (r->stopped) {
        pthread_mutex_unlock(&r->lock);
        return false;
    }
    const int64_t b = r->tail - 1;
    const struct slot *s = slot_of(r, b);
    const int64_t left = s->rows - r->row;
    *out = (struct ticket){
        .batch = b,
        .to = s->batch,
        .epoch = s->batch->epoch,
        .first = s->batch->first,
        .row = r->row,
        .rows = left < max_rows ? left : max_rows,
        .serial = r->serial,
    };
    r->row += out->rows;
    r->serial += out->rows;
    r->in_flight++;
    pthread_mutex_unlock(&r->lock);
    return true;
}

void ring_give(struct ring *r, struct ticket *t)
{
    pthread_mutex_lock(&r->lock);
    struct slot *s = slot_of(r, t->batch);
    while (t->bads) {
        struct bad *b = t->bads;
        t->bads = b->next;
        b->next = s->bads;
        s->bads = b;
    }
    s->no_memory |= t->no_memory;
    s->missing -= t->rows;
    r->in_flight--;
    const bool whole = s->missing == 0;
    if (r->paused && r->in_flight == 0)
        pthread_cond_broadcast(&r->quiet);
    pthread_mutex_unlock(&r->lock);
    if (whole) /* without the lock, which a caller on this CPU would wake up for and have to wait for again */
        pthread_cond_broadcast(&r->ready);
}

bool ring_wants_back(struct ring *r)
{
    return atomic_load_explicit(&r->dropping, memory_order_relaxed) != 0;
}

/* ------------------------------------------------------------------ foresight */

/* The walk begins anew where the tickets are. */
static void catch_up(struct ring *r, struct foresight *f)
{
    *f = (struct foresight){.serial = r->serial, .born = r->born, .next = r->in};
    if (!has_rows(r))
        return;
    const struct slot *s = slot_of(r, r->tail - 1);
    f->epoch = s->batch->epoch;
    f->first = s->batch->first;
    f->row = r->row;
    f->rows = s->rows;
}

static bool next_batch(struct ring *r, struct foresight *f)
{
    struct place at = f->next;
    if (!find_batch(r, &at))
        return false;
    f->epoch = at.epoch;
    f->row = 0;
    r->plan.span(r->plan.user, at, &f->first, &f->rows);
    f->next = (struct place){.epoch = at.epoch, .batch = at.batch + 1};
    return true;
}

int64_t ring_foresee(struct ring *r, struct foresight *f, int64_t max,
                     void (*each)(void *user, int64_t serial, int64_t epoch, int64_t position), void *user)
{
    int64_t n = 0;
    pthread_mutex_lock(&r->lock);
    if (f->serial < r->serial || f->born != r->born || f->next.epoch < r->out.epoch)
        catch_up(r, f);
    int empty = 0; /* a rank without samples has batches without rows, for ever */
    while (n < max && empty < 4 && !r->paused && !r->stopped) {
        if (f->row < f->rows) {
            each(user, f->serial++, f->epoch, f->first + f->row++);
            n++;
        } else if (next_batch(r, f)) {
            empty = f->rows > 0 ? 0 : empty + 1;
        } else {
            break;
        }
    }
    if (f->serial > r->foreseen)
        r->foreseen = f->serial;
    pthread_mutex_unlock(&r->lock);
    return n;
}

/* ------------------------------------------------------------------ callers */

/* Nothing is under way and no batch can be begun: there is no memory for one. */
static bool is_dry(struct ring *r)
{
    if (r->head < r->tail || r->in_flight > 0 || r->paused)
        return false;
    if (!begin_batch(r))
        return true;
    pthread_cond_broadcast(&r->work);
    return false;
}

/* STK_AGAIN: nothing to say yet. */
static int look(struct ring *r, struct stk_batch **out, int64_t *rows, struct bad **bads)
{
    if (r->stopped)
        return STK_STOPPED;
    if (r->paused) /* rows that were dropped count as given back: a batch may look ready, and is not made */
        return STK_AGAIN;
    const int64_t n = r->plan.batches(r->plan.user, r->out.epoch);
    if (n < 0)
        return STK_EUSAGE;
    if (r->out.batch >= n) {
        r->out = (struct place){.epoch = r->out.epoch + 1};
        if (r->in.epoch < r->out.epoch) /* the plan may forget an epoch that is over */
            r->in = r->out;
        return STK_END;
    }
    if (is_dry(r))
        return STK_ENOMEM;
    struct slot *s = slot_of(r, r->head);
    if (r->head == r->tail || s->missing > 0)
        return STK_AGAIN;
    const struct slot taken = *s;
    *s = (struct slot){0};
    r->head++;
    r->out.batch++;
    pthread_cond_broadcast(&r->work);
    if (taken.no_memory) {
        stk_release(taken.batch);
        bads_free(taken.bads);
        return STK_ENOMEM;
    }
    *out = taken.batch;
    *rows = taken.rows;
    *bads = taken.bads;
    return STK_OK;
}

/* The caller has to wait: what slept for want of work may be of use again. */
static void hurry(struct ring *r)
{
    pace_waits(&r->pace);
    depot_keep(r->depot, (int)r->pace.depth + 1);
    pthread_cond_broadcast(&r->work);
}

static struct timespec deadline_in(int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

int ring_deliver(struct ring *r, int ms, struct stk_batch **out, int64_t *rows, struct bad **bads)
{
    const struct timespec deadline = deadline_in(ms < 0 ? 0 : ms);
    pthread_mutex_lock(&r->lock);
    int rc = look(r, out, rows, bads);
    if (rc == STK_AGAIN)
        hurry(r);
    else if (rc == STK_OK)
        pace_served(&r->pace);
    bool late = false;
    while (rc == STK_AGAIN && !late) {
        if (ms < 0)
            pthread_cond_wait(&r->ready, &r->lock);
        else
            late = pthread_cond_timedwait(&r->ready, &r->lock, &deadline) == ETIMEDOUT;
        rc = look(r, out, rows, bads);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

/* ------------------------------------------------------------------ control */

void ring_stop(struct ring *r)
{
    pthread_mutex_lock(&r->lock);
    r->stopped = true;
    atomic_store_explicit(&r->dropping, 1, memory_order_relaxed);
    pthread_cond_broadcast(&r->work);
    pthread_cond_broadcast(&r->ready);
    pthread_mutex_unlock(&r->lock);
}

void ring_restart(struct ring *r, struct place at, void (*set)(void *user), void *user)
{
    pthread_mutex_lock(&r->lock);
    while (r->paused) /* another restart is under way */
        pthread_cond_wait(&r->quiet, &r->lock);
    r->paused = true;
    atomic_store_explicit(&r->dropping, 1, memory_order_relaxed);
    while (r->in_flight > 0)
        pthread_cond_wait(&r->quiet, &r->lock);
    drop_all(r);
    r->in = r->out = at;
    r->serial = r->born = r->foreseen > r->serial ? r->foreseen : r->serial;
    if (set)
        set(user);
    r->paused = false;
    atomic_store_explicit(&r->dropping, r->stopped, memory_order_relaxed);
    pthread_cond_broadcast(&r->quiet);
    pthread_cond_broadcast(&r->work);
    pthread_cond_broadcast(&r->ready);
    pthread_mutex_unlock(&r->lock);
}

int ring_change(struct ring *r, int (*set)(void *user, struct place out), void *user)
{
    pthread_mutex_lock(&r->lock);
    const int rc = set(user, r->out);
    pthread_cond_broadcast(&r->work);
    pthread_cond_broadcast(&r->ready);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

struct pace ring_pace(struct ring *r)
{
    pthread_mutex_lock(&r->lock);
    const struct pace p = r->pace;
    pthread_mutex_unlock(&r->lock);
    return p;
}

struct place ring_place(struct ring *r)
{
    pthread_mutex_lock(&r->lock);
    const struct place at = r->out;
    pthread_mutex_unlock(&r->lock);
    return at;
}
