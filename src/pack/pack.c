/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c -- packs a source: all threads make samples, the caller's thread writes them in order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/window.h"
#include "loader.h"
#include "pack/packer.h"

enum { SLOTS = 128 };

/* A sample on its way from the thread that makes it to the one that writes it. */
struct pack_slot {
    int rc;
    stk_error error;
    struct packed sample;
};

static size_t make(void *user, int thread, int64_t position, int64_t n, int slot)
{
    struct packer *p = user;
    struct pack_worker *b = &p->workers[thread];
    struct pack_slot *s = &p->slots[slot];
    const int64_t sample = packer_sample(p, &b->walk, position);
    (void)n;
    s->rc = packer_make(p, &b->desk, sample, &s->sample, &s->error);
    if (s->rc != STK_OK)
        loader_blame(p->source, sample, &s->error);
    return s->sample.bytes.cap;
}

static void fill_report(struct packer *p)
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

/* A bad sample ends the run, or is left out as long as few are bad. */
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
        return error_set(e, STK_EROTTEN, "pack",
                         "%lld of the first %lld samples are bad, more than max_bad allows; the last: %s",
                         (long long)p->target.bad + 1, (long long)p->target.next + 1, s->error.text);
    if (o->log && o->log->line)
        o->log->line(o->log->user, s->error.text);
    target_skip(&p->target);
    return STK_OK;
}

static int write_sample(struct packer *p, struct pack_slot *s, stk_error *e)
{
    int rc = packer_key(p, &s->sample, e); /* also for a bad sample: keys depend only on the order */
    if (rc == STK_OK)
        rc = s->rc == STK_OK ? target_add(&p->target, &s->sample, e) : bad_sample(p, s, e);
    if ((rc == STK_EDATA || rc == STK_EUSAGE) && s->rc == STK_OK)
        loader_blame(p->source, s->sample.sample, e);
    return rc;
}

static int take(void *user, int slot, stk_error *e)
{
    enum { KEPT = 4 << 20 }; /* bytes of memory that a slot keeps for the next sample */
    struct packer *p = user;
    struct pack_slot *s = &p->slots[slot];
    const int rc = write_sample(p, s, e);
    if (rc != STK_OK)
        return rc;
    buf_trim(&s->sample.bytes, KEPT);
    fill_report(p);
    if (p->how.progress && p->how.progress(p->how.user, &p->report))
        return error_set(e, STK_STOPPED, "pack",
                         "stopped after %lld of %lld samples; run it again with the same options to continue",
                         (long long)p->target.next, (long long)p->n);
    return STK_OK;
}

static int run(struct packer *p, stk_error *e)
{
    const struct window_job job = {.user = p,
                                   .first = p->target.next,
                                   .end = p->n,
                                   .n_slots = SLOTS,
                                   .held_max = (size_t)p->options.memory / 4,
                                   .make = make,
                                   .take = take};
    p->slots = calloc(SLOTS, sizeof *p->slots);
    if (!p->slots)
        return error_nomem(e, "pack", SLOTS * sizeof *p->slots);
    const int rc = window_run(&job, p->options.threads, e);
    return rc == STK_OK ? target_end(&p->target, e) : rc;
}

static void free_slots(struct packer *p)
{
    for (int i = 0; p->slots && i < SLOTS; i++) {
        buf_done(&p->slots[i].sample.bytes);
        buf_done(&p->slots[i].sample.key);
    }
    free(p->slots);
}

/* Opens the pack, which writes its index next to the shards, and counts the samples. */
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
        rc = error_set(e, STK_EBUG, "pack", "%lld samples were packed, but a reader finds %lld; please report this",
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
        return error_set(e, STK_STOPPED, "pack", "stopped before the first sample");
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
    int rc = options_take(&p.options, o, o_size, &m, e);
    if (rc != STK_OK)
        return rc;
    if (!how || p.options.opened)
        rc = error_set(e, STK_EUSAGE, "pack",
                       how ? "packing opens its source itself: set source, not opened"
                           : "there are no pack options: pass a stk_pack_options");
    else
        rc = options_copy(&p.how, sizeof p.how, how, how_size, e);
    if (rc != STK_OK) {
        options_close(&p.options);
        return rc;
    }
    p.began_ns = now_ns();
    rc = pack(&p, e);
    fill_report(&p);
    if (r) {
        memset(r, 0, r_size);
        memcpy(r, &p.report, r_size < sizeof p.report ? r_size : sizeof p.report);
    }
    free_slots(&p);
    packer_close(&p);
    return rc;
}
