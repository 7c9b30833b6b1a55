/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c -- packs a source: all threads make samples, the caller's thread writes them in order.
 *
 *        done              next
 *     ----+-----------------+--------------------> positions
 *         | ready or making | not started
 *
 * Invariants, under lock:
 *   (1) done <= next <= done + WINDOW; slots[i % WINDOW] belongs to position i from when it is taken until it is done:
 *       to a thread while it is not ready, to the writer after that.
 *   (2) held is the sum of the bytes in slots that are ready. A thread takes no position while it is over held_most,
 *       unless that is the one the writer waits for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/pool.h"
#include "loader.h"
#include "pack/packer.h"

enum { WINDOW = 128 };

struct pack_slot {
    bool ready;
    int rc;
    stk_error error;
    struct packed sample;
};

/* ------------------------------------------------------------------ making */

static bool may_take(const struct packer *p)
{
    return p->next == p->done || (p->next < p->done + WINDOW && p->held <= p->held_most);
}

static void make(struct packer *p, struct pack_bench *b, int64_t position, struct pack_slot *s)
{
    const int64_t sample = packer_sample(p, &b->walk, position);
    s->rc = packer_make(p, &b->desk, sample, &s->sample, &s->error);
    if (s->rc != STK_OK)
        packer_blame(p, sample, &s->error);
}

static void work(void *user, int thread)
{
    struct packer *p = user;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->stopped && p->next < p->n && !may_take(p))
            pthread_cond_wait(&p->room, &p->lock);
        if (p->stopped || p->next >= p->n)
            break;
        const int64_t i = p->next++;
        struct pack_slot *s = &p->slots[i % WINDOW];
        pthread_mutex_unlock(&p->lock);
        make(p, &p->benches[thread], i, s);
        pthread_mutex_lock(&p->lock);
        s->ready = true;
        p->held += s->sample.bytes.cap;
        if (i == p->done)
            pthread_cond_signal(&p->ready);
    }
    pthread_mutex_unlock(&p->lock);
}

static void stop(void *user)
{
    struct packer *p = user;
    pthread_mutex_lock(&p->lock);
    p->stopped = true;
    pthread_cond_broadcast(&p->room);
    pthread_mutex_unlock(&p->lock);
}

/* ------------------------------------------------------------------ writing */

static struct pack_slot *wait_for(struct packer *p, int64_t i)
{
    struct pack_slot *s = &p->slots[i % WINDOW];
    pthread_mutex_lock(&p->lock);
    while (!s->ready)
        pthread_cond_wait(&p->ready, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return s;
}

static void give_back(struct packer *p, struct pack_slot *s)
{
    enum { KEPT = 4 << 20 }; /* what a slot keeps for the next sample */
    pthread_mutex_lock(&p->lock);
    p->held -= s->sample.bytes.cap;
    s->ready = false;
    p->done++;
    pthread_cond_broadcast(&p->room);
    buf_trim(&s->sample.bytes, KEPT);
    pthread_mutex_unlock(&p->lock);
}

static void tell(struct packer *p)
{
    stk_pack_report *r = &p->report;
    r->samples = p->target.written;
    r->bad = p->target.bad;
    r->bytes_in = p->target.bytes_in;
    r->bytes_out = target_bytes(&p->target);
    r->shards = p->target.journal.open ? p->target.journal.n : p->target.shards;
    r->seconds = (double)(now_ns() - p->began_ns) / 1e9;
    const int64_t made = r->samples - r->resumed;
    if (made > 0)
        r->expected_seconds = r->seconds / (double)made * (double)(r->total - r->samples - r->bad);
}

/* A bad sample ends it, or is left out, as long as they are few. */
static int bad_sample(struct packer *p, const struct pack_slot *s, stk_error *e)
{
    const stk_options *o = &p->options;
    const bool rotten = (double)(p->target.bad + 1) > (o->max_bad < 0 ? 0 : o->max_bad) * (double)p->n + 1;
    if (o->on_error == STK_RAISE || error_is_machine(&s->error)) {
        if (e)
            *e = s->error;
        return s->rc;
    }
    if (rotten)
        return error_set(e, STK_EROTTEN, "pack", "%lld of the first %lld samples are bad; the last: %s",
                         (long long)p->target.bad + 1, (long long)p->target.next + 1, s->error.text);
    if (o->log && o->log->line)
        o->log->line(o->log->user, s->error.text);
    target_skip(&p->target);
    return STK_OK;
}

static int write_sample(struct packer *p, struct pack_slot *s, stk_error *e)
{
    int rc = packer_key(p, &s->sample, e); /* also of what is bad: keys depend on the order alone */
    if (rc == STK_OK)
        rc = s->rc == STK_OK ? target_add(&p->target, &s->sample, e) : bad_sample(p, s, e);
    if ((rc == STK_EDATA || rc == STK_EUSAGE) && s->rc == STK_OK)
        packer_blame(p, s->sample.sample, e);
    return rc;
}

static int write_all(struct packer *p, stk_error *e)
{
    for (int64_t i = p->target.next; i < p->n; i++) {
        struct pack_slot *s = wait_for(p, i);
        const int rc = write_sample(p, s, e);
        if (rc != STK_OK)
            return rc;
        give_back(p, s);
        tell(p);
        if (p->how.progress && p->how.progress(p->how.user, &p->report))
            return error_set(e, STK_STOPPED, "pack", "stopped after %lld of %lld samples; the same call goes on",
                             (long long)p->target.next, (long long)p->n);
    }
    return target_end(&p->target, e);
}

static int run(struct packer *p, stk_error *e)
{
    struct pool pool;
    p->next = p->done = p->target.next;
    p->slots = calloc(WINDOW, sizeof *p->slots);
    if (!p->slots)
        return error_nomem(e, "pack", WINDOW * sizeof *p->slots);
    int rc = pool_open(&pool, p->options.threads, work, stop, p, e);
    if (rc != STK_OK)
        return rc;
    rc = write_all(p, e);
    stop(p);
    pool_close(&pool);
    return rc;
}

static void free_slots(struct packer *p)
{
    for (int i = 0; p->slots && i < WINDOW; i++) {
        buf_done(&p->slots[i].sample.bytes);
        buf_done(&p->slots[i].sample.key);
    }
    free(p->slots);
}

/* Opens the pack, which writes its index beside the shards, and compares what is found with what was packed. */
static int read_back(struct packer *p, stk_error *e)
{
    struct source *s = NULL;
    const struct source_options o = {.path = p->how.out,
                                     .threads = p->options.threads,
                                     .cache_dir = "off",
                                     .index_beside = p->target.format->measure != NULL};
    target_sweep(&p->target);
    int rc = source_open(&s, &o, e);
    if (rc == STK_OK && source_count(s) < p->target.written)
        rc = error_set(e, STK_EBUG, "pack", "%lld samples were packed, but a reader finds %lld",
                       (long long)p->target.written, (long long)source_count(s));
    source_close(s);
    return rc;
}

static int make_all(struct packer *p, stk_error *e)
{
    int rc = packer_estimate(p, e);
    if (rc != STK_OK)
        return rc;
    if (p->how.begin && p->how.begin(p->how.user, &p->report))
        return error_set(e, STK_STOPPED, "pack", "stopped before it began");
    p->began_ns = now_ns();
    return run(p, e);
}

static int pack(struct packer *p, stk_error *e)
{
    int rc = packer_open(p, e);
    if (rc == STK_OK && !p->target.complete)
        rc = make_all(p, e);
    return rc == STK_OK ? read_back(p, e) : rc;
}

int stk_pack_sized(const stk_options *o, size_t o_size, const stk_pack_options *how, size_t how_size,
                   stk_pack_report *r, size_t r_size, stk_error *e)
{
    struct packer p = {0};
    struct machine m;
    if (!how)
        return error_set(e, STK_EUSAGE, "pack", "no options");
    int rc = options_take(&p.options, o, o_size, &m, e);
    if (rc != STK_OK)
        return rc;
    rc = options_copy(&p.how, sizeof p.how, how, how_size, e);
    if (rc != STK_OK) {
        options_close(&p.options);
        return rc;
    }
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.room, NULL);
    pthread_cond_init(&p.ready, NULL);
    p.began_ns = now_ns();
    rc = pack(&p, e);
    tell(&p);
    if (r) {
        memset(r, 0, r_size);
        memcpy(r, &p.report, r_size < sizeof p.report ? r_size : sizeof p.report);
    }
    free_slots(&p);
    packer_close(&p);
    pthread_mutex_destroy(&p.lock);
    pthread_cond_destroy(&p.room);
    pthread_cond_destroy(&p.ready);
    return rc;
}
