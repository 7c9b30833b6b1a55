/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c -- the ring of batches between the workers and the caller.
 *
 * Workers fill rows in any order; the caller takes whole batches in order. Batches are counted through all epochs, so
 * that the next epoch is prefetched while one ends. Batch b uses slots[b % n_slots] and moves through the ring:
 *
 *              head                    tail
 *     -----------+-----------------------+--------------> batches
 *      delivered | ready or being filled | not started
 *
 * Invariants, under lock:
 *   (1) head <= tail <= head + pace.depth <= head + n_slots. Only rows of batch tail - 1 are handed out, from `row` on.
 *   (2) slots[b].missing counts the rows of b that were not given back, or is 1 while a worker completes the
 *       batch. The batch is ready when it is 0.
 *   (3) Between ring_take and ring_give a run of rows belongs to one worker, which needs no lock.
 *   (4) `in` is the place of batch tail, `out` that of batch head.
 *   (5) While paused, no ticket is handed out and the order does not change; orders given meanwhile are in `late`.
 *       ring_restart waits until in_flight and in_delivery are 0.
 *   (6) A serial is never used twice: rows that were foreseen and then dropped keep theirs.
 */
#include "batch/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"

int ring_init(struct ring *r, int threads, int64_t depth, int64_t n_slots, struct depot *d, struct order *order,
              stk_error *e)
{
    *r = (struct ring){.n_slots = n_slots, .depot = d, .order = order};
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

/* Skips epochs without batches. false: no epoch has any, since only the first two epochs can differ from the rest. */
static bool find_batch(const struct ring *r, struct place *at)
{
    for (int tries = 0; tries < 3; tries++) {
        const int64_t n = order_batches(r->order, at->epoch);
        if (n < 0) /* no order yet: ring_give_order wakes us */
            return false;
        if (at->batch < n)
            return true;
        *at = (struct place){.epoch = at->epoch + 1};
    }
    return false;
}

/* Starts batch tail. false: no room, nothing to do, or no memory. */
static bool start_batch(struct ring *r)
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
    if (!s->batch) /* tried again when a batch comes back; reported when the ring is empty */
        return false;
    const struct span span = order_span(r->order, r->in.epoch, r->in.batch);
    s->batch->epoch = span.epoch;
    s->batch->first = span.first;
    s->missing = s->rows = span.rows;
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
    if (r->paused || r->idle)
        return false;
    while (!has_rows(r))
        if (!start_batch(r))
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
        .all_rows = s->rows,
        .serial = r->serial,
    };
    r->row += out->rows;
    r->serial += out->rows;
    r->in_flight++;
    pthread_mutex_unlock(&r->lock);
    return true;
}

/* The batch is ready, or a restart waits for the worker. */
static void wake(struct ring *r, bool ready)
{
    r->in_flight--;
    if (r->paused && r->in_flight == 0)
        pthread_cond_broadcast(&r->quiet);
    pthread_mutex_unlock(&r->lock);
    if (ready) /* after unlocking: a caller that wakes up on this CPU would have to wait for the lock */
        pthread_cond_broadcast(&r->ready);
}

bool ring_give(struct ring *r, struct ticket *t)
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
    if (s->missing == 0 && r->completes) {
        s->missing = 1; /* until ring_complete */
        t->flawless = !s->bads && !s->no_memory;
        pthread_mutex_unlock(&r->lock);
        return true;
    }
    wake(r, s->missing == 0);
    return false;
}

void ring_complete(struct ring *r, const struct ticket *t)
{
    pthread_mutex_lock(&r->lock);
    slot_of(r, t->batch)->missing = 0;
    wake(r, true);
}

bool ring_wants_back(struct ring *r)
{
    return atomic_load_explicit(&r->dropping, memory_order_relaxed) != 0;
}

/* ------------------------------------------------------------------ foresight */

/* Moves the walk to where the tickets are. */
static void catch_up(struct ring *r, struct foresight *f)
{
    f->serial = r->serial;
    f->born = r->born;
    f->next = r->in;
    f->row = f->rows = 0;
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
    const struct span span = order_span(r->order, at.epoch, at.batch);
    f->epoch = span.epoch;
    f->first = span.first;
    f->row = 0;
    f->rows = span.rows;
    f->next = (struct place){.epoch = at.epoch, .batch = at.batch + 1};
    return true;
}

int ring_foresee(struct ring *r, struct foresight *f, struct foreseen *rows, int max)
{
    int n = 0;
    pthread_mutex_lock(&r->lock);
    if (f->serial < r->serial || f->born != r->born || f->next.epoch < r->out.epoch)
        catch_up(r, f);
    int empty = 0; /* a rank without samples only has batches without rows */
    while (n < max && empty < 4 && !r->paused && !r->stopped) {
        if (f->row < f->rows) {
            const int64_t position = f->first + f->row++;
            rows[n++] = (struct foreseen){.serial = f->serial++,
                                          .epoch = f->epoch,
                                          .position = position,
                                          .pick = order_at(r->order, &f->walk, f->epoch, position)};
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

/* ------------------------------------------------------------------ the caller */

/* Nothing is under way, and no batch can be started for lack of memory. */
static bool is_dry(struct ring *r)
{
    if (r->head < r->tail || r->in_flight > 0 || r->paused)
        return false;
    if (!start_batch(r))
        return true;
    pthread_cond_broadcast(&r->work);
    return false;
}

/* STK_OK: the epoch has another batch. STK_END moves on to the next epoch. */
static int is_due(struct ring *r)
{
    const int64_t n = order_batches(r->order, r->out.epoch);
    if (n < 0)
        return STK_EUSAGE;
    if (r->out.batch < n)
        return STK_OK;
    r->out = (struct place){.epoch = r->out.epoch + 1};
    if (r->in.epoch < r->out.epoch) /* the order of an epoch that is over may be gone */
        r->in = r->out;
    return STK_END;
}

/* STK_AGAIN: the next batch is not ready. */
static int look(struct ring *r, struct stk_batch **out, int64_t *rows, struct bad **bads)
{
    if (r->stopped)
        return STK_STOPPED;
    if (r->paused) /* dropped rows count as given back, so a batch may look ready without having been made */
        return STK_AGAIN;
    const int due = is_due(r);
    if (due != STK_OK)
        return due;
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
    r->in_delivery += r->amends;
    *out = taken.batch;
    *rows = taken.rows;
    *bads = taken.bads;
    return STK_OK;
}

static struct timespec deadline_in(int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int64_t ns = t.tv_nsec + ms % 1000 * 1000000;
    return (struct timespec){.tv_sec = t.tv_sec + ms / 1000 + ns / 1000000000, .tv_nsec = ns % 1000000000};
}

int ring_deliver(struct ring *r, int ms, struct stk_batch **out, int64_t *rows, struct bad **bads)
{
    const struct timespec deadline = deadline_in(ms < 0 ? 0 : ms);
    pthread_mutex_lock(&r->lock);
    r->idle = false;
    int rc = look(r, out, rows, bads);
    if (rc == STK_AGAIN) { /* the caller has to wait: all threads wake up, and may be more batches ahead */
        pace_waits(&r->pace);
        depot_keep(r->depot, (int)r->pace.depth + 1);
        pthread_cond_broadcast(&r->work);
    } else if (rc == STK_OK) {
        pace_served(&r->pace);
    }
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

void ring_delivered(struct ring *r)
{
    pthread_mutex_lock(&r->lock);
    r->in_delivery--;
    if (r->paused)
        pthread_cond_broadcast(&r->quiet);
    pthread_mutex_unlock(&r->lock);
}

int ring_span(struct ring *r, int64_t ahead, struct span *out)
{
    pthread_mutex_lock(&r->lock);
    struct place at = {.epoch = r->out.epoch, .batch = r->out.batch + ahead};
    int64_t n = order_batches(r->order, at.epoch);
    const int rc = n < 0 ? STK_EUSAGE : STK_OK;
    int empty = 0;
    while (n >= 0 && at.batch >= n && empty < 3) {
        empty = n > 0 ? 0 : empty + 1;
        at = (struct place){.epoch = at.epoch + 1, .batch = at.batch - n};
        n = order_batches(r->order, at.epoch);
    }
    const bool found = n >= 0 && at.batch >= 0 && at.batch < n;
    if (found)
        *out = order_span(r->order, at.epoch, at.batch);
    pthread_mutex_unlock(&r->lock);
    return rc != STK_OK || found ? rc : STK_END;
}

int ring_pass(struct ring *r)
{
    pthread_mutex_lock(&r->lock);
    const int rc = is_due(r);
    if (rc == STK_OK) {
        r->out.batch++;
        r->in = r->out;
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

void ring_restart(struct ring *r, int64_t epoch, int64_t position)
{
    pthread_mutex_lock(&r->lock);
    while (r->paused) /* another restart is under way */
        pthread_cond_wait(&r->quiet, &r->lock);
    r->paused = true;
    r->restart = epoch;
    atomic_store_explicit(&r->dropping, 1, memory_order_relaxed);
    while (r->in_flight > 0 || r->in_delivery > 0)
        pthread_cond_wait(&r->quiet, &r->lock);
    drop_all(r);
    r->in = r->out = (struct place){.epoch = epoch};
    r->serial = r->born = r->foreseen > r->serial ? r->foreseen : r->serial;
    order_forget(r->order);
    for (int i = 0; i < 2; i++) {
        if (r->late[i].samples)
            order_give(r->order, &r->late[i]);
        r->late[i] = (struct given){0};
    }
    r->order->resumed_epoch = epoch;
    r->order->resumed_at = position;
    r->paused = false;
    atomic_store_explicit(&r->dropping, r->stopped, memory_order_relaxed);
    pthread_cond_broadcast(&r->quiet);
    pthread_cond_broadcast(&r->work);
    pthread_cond_broadcast(&r->ready);
    pthread_mutex_unlock(&r->lock);
}

/* The order given takes the place of the one for two epochs earlier. No ticket uses that one any more: tickets of the
 * epoch before `out` have all come back. During a restart tickets may still use any order, so it is set aside; waiting
 * could deadlock, since a function of the caller may be calling. */
static int give_order(struct ring *r, const struct given *g, stk_error *e)
{
    const int64_t now = r->paused ? r->restart : r->out.epoch;
    struct given *late = &r->late[g->epoch & 1];
    if (g->epoch != now && g->epoch != now + 1)
        return error_set(e, STK_EUSAGE, "order",
                         "the order is for epoch %lld, but the loader is in epoch %lld; give the order of the current "
                         "or the next epoch",
                         (long long)g->epoch, (long long)now);
    if (r->paused ? late->samples != NULL : order_given(r->order, g->epoch) != NULL)
        return error_set(e, STK_EUSAGE, "order", "epoch %lld already has an order; give each epoch's order once",
                         (long long)g->epoch);
    if (r->paused)
        *late = *g;
    else
        order_give(r->order, g);
    return STK_OK;
}

int ring_give_order(struct ring *r, const struct given *g, stk_error *e)
{
    pthread_mutex_lock(&r->lock);
    const int rc = give_order(r, g, e);
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

struct place ring_place(struct ring *r, int64_t *position)
{
    pthread_mutex_lock(&r->lock);
    const struct place at = r->out;
    *position = order_position(r->order, at.epoch, at.batch);
    pthread_mutex_unlock(&r->lock);
    return at;
}
