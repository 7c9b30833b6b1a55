/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delivery.c -- delivers batches to the caller in order, and applies the policy on bad samples.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loader.h"

/* ------------------------------------------------------------------ bad samples */

/* The error has no path yet; loader_blame adds it. */
static int error_of(const struct bad *b, stk_error *e)
{
    error_set(e, b->code, b->stage, "%s", b->reason);
    if (e)
        e->os_error = b->os_error;
    error_at(e, NULL, b->sample);
    return b->code;
}

/* A sample that is bad in every epoch is listed once. Its path is added later: finding it may call a function of the
 * caller, which must not happen under the lock. */
static void keep_bad(struct stk_loader *l, const struct bad *b)
{
    l->bad++;
    l->bad_in_epoch++;
    if (!l->bads)
        l->bads = calloc(BADS_KEPT, sizeof *l->bads);
    if (!l->bads || l->n_bads == BADS_KEPT)
        return;
    for (int64_t i = 0; i < l->n_bads; i++)
        if (l->bads[i].sample == b->sample)
            return;
    error_of(b, &l->bads[l->n_bads++]);
}

static void log_bad(const struct stk_loader *l, const struct bad *b)
{
    char path[1024], text[1700];
    source_path(l->source, b->sample, path, sizeof path);
    snprintf(text, sizeof text, "%s: %s: %s", b->replaced ? "replaced" : "left out", path, b->reason);
    l->log.line(l->log.user, text);
}

int64_t loader_bad_limit(const struct stk_loader *l)
{
    if (l->options.max_bad < 0)
        return 0;
    const double all = (double)(l->order.sampled ? l->order.samples : l->order.n / l->order.world);
    const int64_t limit = (int64_t)(l->options.max_bad * all);
    return limit < 1 ? 1 : limit;
}

/* Bad rows come from several workers, newest first. Sorted by row, they are the same for any number of threads. */
static struct bad *sort_bads(struct bad *list)
{
    struct bad *sorted = NULL;
    while (list) {
        struct bad *b = list, **at = &sorted;
        list = b->next;
        while (*at && (*at)->row < b->row)
            at = &(*at)->next;
        b->next = *at;
        *at = b;
    }
    return sorted;
}

static int rotten(const struct stk_loader *l, stk_error *e)
{
    return error_set(
        e, STK_EROTTEN, "read",
        "%lld bad samples in epoch %lld, more than the %lld that max_bad allows; list them with `stoker verify`",
        (long long)l->bad_in_epoch, (long long)l->bad_epoch, (long long)loader_bad_limit(l));
}

static void count_bads(struct stk_loader *l, int64_t epoch, const struct bad *bads)
{
    if (l->bad_epoch != epoch) {
        l->bad_epoch = epoch;
        l->bad_in_epoch = 0;
    }
    for (; bads; bads = bads->next)
        if (!bads->machine)
            keep_bad(l, bads);
    if (l->options.on_error != STK_RAISE && l->bad_in_epoch > loader_bad_limit(l))
        l->rotten = true;
}

/* Removes skipped rows. If the shape must stay the same, copies a good row over them; their `valid` is already
 * false. */
static void skip_rows(const struct stk_loader *l, struct stk_batch *b, int64_t rows)
{
    const uint8_t *valid = batch_row(b, l->valid, 0);
    if (!l->order.pad_last) {
        batch_compact(b, valid, rows);
        return;
    }
    int64_t good = 0;
    while (good < rows && !valid[good])
        good++;
    for (int64_t row = 0; row < rows; row++)
        if (!valid[row])
            batch_copy_row(b, good < rows ? good : -1, row, l->valid);
}

/* Whether a batch has no good sample and can be left out. With several ranks it cannot: all ranks must take the same
 * number of steps. */
static bool is_left_out(const struct stk_loader *l, const struct stk_batch *b, int64_t rows)
{
    const bool alone = l->options.world_size == 1 && !l->options.keep_empty;
    return alone && rows > 0 && !memchr(batch_row(b, l->valid, 0), 1, (size_t)rows);
}

int loader_finish(struct stk_loader *l, struct stk_batch *b, int64_t rows, struct bad *bads, stk_error *e)
{
    const stk_on_error policy = l->options.on_error;
    bads = sort_bads(bads);
    const struct bad *fatal = NULL;
    for (const struct bad *x = bads; x && !fatal; x = x->next)
        if (x->machine || policy == STK_RAISE || (policy == STK_REPLACE && !x->replaced))
            fatal = x;
    const bool skips = !fatal && bads && policy == STK_SKIP, left_out = skips && is_left_out(l, b, rows);
    batch_set_rows(b, rows);
    if (skips)
        skip_rows(l, b, rows);
    stk_error undone;
    int done = fatal ? STK_OK : batch_join(b, &undone);
    if (done == STK_OK && !fatal && !left_out && l->device.cuda)
        done = loader_device_send(l, b, &undone);
    pthread_mutex_lock(&l->lock);
    count_bads(l, b->epoch, bads);
    if (!fatal && !left_out) {
        l->batches++;
        l->samples += stk_samples(b);
    }
    int rc = l->rotten ? rotten(l, e) : STK_OK;
    pthread_mutex_unlock(&l->lock);
    if (rc == STK_OK && fatal) {
        rc = error_of(fatal, e);
        loader_blame(l->source, fatal->sample, e);
    } else if (rc == STK_OK && done != STK_OK) {
        rc = done;
        if (e)
            *e = undone;
    }
    if (l->log.line && !fatal) /* without the lock: the caller's function may call the loader */
        for (const struct bad *x = bads; x; x = x->next)
            log_bad(l, x);
    bads_free(bads);
    return rc == STK_OK && left_out ? STK_AGAIN : rc;
}

/* ------------------------------------------------------------------ in order */

/* Makes rows again that the device could not finish. Returns false if the batch is dropped. */
static bool amend(struct stk_loader *l, struct ticket *t)
{
    t->epoch = t->to->epoch;
    t->first = t->to->first;
    const bool done = loader_again(l, t);
    ring_delivered(&l->ring);
    return done;
}

/* Takes the next batch of the ring. *left_out: the batch is not delivered; take the next one. */
static int take(struct stk_loader *l, struct stk_batch **out, int ms, bool *left_out, stk_error *e)
{
    int64_t rows = 0;
    struct bad *bads = NULL;
    struct stk_batch *b = NULL;
    const uint64_t began = now_ns();
    int rc = ring_deliver(&l->ring, ms, &b, &rows, &bads);
    struct ticket t = {.to = b, .rows = rows, .all_rows = rows, .bads = bads};
    const bool dropped = rc == STK_OK && l->ring.amends && !amend(l, &t); /* the order changes meanwhile */
    pthread_mutex_lock(&l->lock);
    l->waited_ns += now_ns() - began;
    pthread_mutex_unlock(&l->lock);
    if (rc == STK_ENOMEM)
        return error_nomem(e, "batch", l->batch_bytes);
    if (rc == STK_EUSAGE)
        return error_set(e, STK_EUSAGE, "next", "epoch %lld has no order; give one with stk_loader_set_order",
                         (long long)stk_loader_epoch(l));
    if (rc == STK_END && l->device.cuda) {
        const int settled = loader_device_settle(l, e);
        rc = settled == STK_OK ? rc : settled;
    }
    if (rc != STK_OK)
        return rc;
    if (dropped) {
        bads_free(t.bads);
        stk_release(b);
        *left_out = true;
        return STK_AGAIN;
    }
    rc = loader_finish(l, b, rows, t.bads, e);
    if (t.no_memory && rc == STK_OK)
        rc = error_nomem(e, "batch", sizeof *bads);
    if (l->ring.amends)
        loader_parcel_pace(l);
    *left_out = rc == STK_AGAIN;
    if (rc == STK_OK)
        *out = l->device.cuda ? loader_device_take(b) : b;
    else
        stk_release(b);
    return rc;
}

int stk_next_wait(stk_loader *l, stk_batch **out, int ms, stk_error *e)
{
    *out = NULL;
    int rc = loader_check(l, e);
    if (rc != STK_OK)
        return rc;
    const uint64_t began = now_ns();
    int left = ms;
    bool left_out = false;
    while ((rc = take(l, out, left, &left_out, e)) == STK_AGAIN && left_out) {
        const uint64_t passed = (now_ns() - began) / 1000000;
        left = ms < 0 ? ms : passed < (uint64_t)ms ? ms - (int)passed : 0;
        left_out = false;
    }
    return rc;
}

int stk_next(stk_loader *l, stk_batch **out, stk_error *e)
{
    return stk_next_wait(l, out, -1, e);
}
