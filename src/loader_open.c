/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_open.c -- opens and closes a loader, and divides its memory.
 *
 * A source that decompresses shards has a share of its own: an eighth of memory to keep them, and an eighth to work in.
 * The rest is divided:
 *
 *     batches        at most half, but at least two batches (one is with the caller)
 *       files        of that half, what the first batches do not need, up to AHEAD_BYTES: for files read ahead
 *       ragged rows  a quarter of memory, taken from that half, if there are ragged fields
 *     scratch        the other half: half of it in equal shares, half for one large image at a time
 *     cache          if wanted: what neither the ring nor shares of a usual size need
 *
 * A cache never takes memory from the part for one large image. So no sample becomes bad because of a cache.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "loader.h"

int loader_check(const struct stk_loader *l, stk_error *e)
{
    if (l->pid == getpid())
        return STK_OK;
    return error_set(
        e, STK_EFORK, "fork",
        "this loader was opened before fork(), and its threads are in the parent process; open a new loader in "
        "this process");
}

enum { DEEPER = 8 };            /* times as many batches ahead as at first, for callers that take batches in bursts */
enum { SHARE_MOST = 64 << 20 }; /* per thread, if a cache can use the rest: enough for a photo of 12 million pixels */
enum { SCRATCH_MIN = 8 << 20 }; /* per thread: a photo of a usual size in its share, and one in its turn */

static int too_little(const struct stk_loader *l, uint64_t least, stk_error *e)
{
    const stk_options *o = &l->options;
    const bool chosen = o->memory == machine_memory(&l->machine);
    least += l->source_most;
    return error_set(e, STK_EUSAGE, "open",
                     "memory is %lld MiB%s, less than the %llu MiB that a batch_size of %lld and %d threads need; "
                     "raise memory, or use a smaller batch_size or fewer threads",
                     (long long)(o->memory >> 20),
                     chosen ? " (the default: a quarter of the free memory, divided by the ranks on this machine)" : "",
                     (unsigned long long)((least + (1 << 20) - 1) >> 20), (long long)o->batch_size, o->threads);
}

enum { AHEAD_BYTES = 32 << 20, AHEAD_BYTES_LEAST = 1 << 20 }; /* for files read ahead */

/* Batches ahead, at first and at most; bytes for files read ahead, for scratch and for a cache. */
struct share {
    int64_t depth, depth_most, ahead, scratch, kept;
    int64_t ragged; /* bytes for the ragged rows of a batch */
};

/* Ragged rows have three equal parts: for batches under way, for one being started, and for one being joined. */
enum { RAGGED_SHARE = 4, RAGGED_PARTS = 3 };

static bool is_ragged(const struct field *fields, int n)
{
    bool any = false;
    for (int i = 0; i < n; i++)
        any |= fields[i].kind == FIELD_RAGGED || fields[i].kind == FIELD_OPEN;
    return any;
}

/* Bytes for files read ahead, out of what is left of the batches' half. */
static int64_t ahead_bytes(const struct stk_loader *l, int64_t left)
{
    const stk_reader reader = l->options.reader;
    const enum source_access access = reader == STK_READER_PREAD ? SOURCE_ACCESS_NONE : source_probe_access(l->source);
    if (access == SOURCE_ACCESS_NONE || (access == SOURCE_ACCESS_MEMORY && reader != STK_READER_URING))
        return 0;
    const int64_t fair = l->options.cache == STK_CACHE_NONE ? left : left / 4;
    return fair < AHEAD_BYTES_LEAST ? 0 : fair < AHEAD_BYTES ? fair : AHEAD_BYTES;
}

/* Divides memory. The share of the batches does not depend on the number of threads. */
static int divide(const struct stk_loader *l, bool ragged, struct share *s, stk_error *e)
{
    const stk_options *o = &l->options;
    const int64_t batch = (int64_t)l->batch_bytes;
    const int64_t least = l->image >= 0 ? (int64_t)o->threads * SCRATCH_MIN : 0;
    if (batch == 0 || batch > INT64_MAX / 4)
        return error_set(e, STK_EUSAGE, "open", "a batch of %lld rows is too large; use a smaller batch_size",
                         (long long)o->batch_size);
    const int64_t memory = o->memory - (int64_t)l->source_most;
    const int64_t apart = ragged ? memory / RAGGED_SHARE : 0, half = memory / 2 - apart;
    const int64_t batches = half > 2 * batch ? half : 2 * batch;
    s->ragged = apart / RAGGED_PARTS;
    s->scratch = memory - apart - batches;
    if (s->scratch < least) {
        const int64_t uneven = 2 * batch + least, even = 2 * least > uneven ? 2 * least : uneven;
        return too_little(l, (uint64_t)(ragged ? even / (RAGGED_SHARE - 1) * RAGGED_SHARE : even), e);
    }
    const int64_t ahead = (8 * (int64_t)o->threads + o->batch_size - 1) / o->batch_size + 1;
    int64_t room = batches / batch - 1; /* the caller has one */
    s->depth = room < ahead ? room : ahead;
    if (l->device.cuda)
        s->depth = loader_device_depth(l, s->depth);
    s->ahead = ahead_bytes(l, batches - (s->depth + 1) * batch);
    room = (batches - s->ahead) / batch - 1;
    s->depth_most = room < DEEPER * s->depth ? room : DEEPER * s->depth;
    if (o->cache != STK_CACHE_NONE && s->depth_most > 2 * s->depth)
        s->depth_most = 2 * s->depth;
    if (l->device.cuda)
        s->depth_most = loader_device_depth(l, s->depth_most);
    s->kept = batches - s->ahead - (s->depth_most + 1) * batch;
    return STK_OK;
}

/* What is left for the page cache of this machine, once each of its ranks has its memory. */
static int64_t page_cache(const struct stk_loader *l)
{
    const int64_t ranks = l->machine.local_ranks > 1 ? l->machine.local_ranks : 1;
    const int64_t left = l->machine.memory_available / ranks - l->options.memory;
    return left > 0 ? left / 5 * 4 * ranks : 0;
}

/* If this fails, workers read samples themselves, which is slower only if storage is cold. */
static void open_ahead(struct stk_loader *l, int64_t memory)
{
    const struct ahead_options o = {
        .reader = l->options.reader,
        .threads = l->options.threads,
        .memory = (size_t)memory,
        .max_bytes = l->options.max_bytes,
        .samples = l->order.samples,
        .cache_bytes = page_cache(l),
    };
    if (memory > 0)
        ahead_open(&l->ahead, &o, NULL);
}

static int open_batches(struct stk_loader *l, stk_error *e)
{
    struct field fields[FIELD_MAX];
    int n = 0;
    int rc = loader_fields(l, fields, &n, e);
    if (rc != STK_OK)
        return rc;
    if (l->device.cuda)
        loader_parcel_lay(l, fields);
    l->batch_bytes = depot_batch_bytes(fields, n, l->options.batch_size);
    if (l->device.cuda)
        rc = loader_device_fields(l, fields, n, e);
    if (rc != STK_OK)
        return rc;
    struct share s = {0};
    size_t held;
    source_memory(l->source, &held, &l->source_most);
    rc = divide(l, is_ragged(fields, n), &s, e);
    if (rc != STK_OK)
        return rc;
    if (l->device.cuda)
        rc = loader_device_fill(l, &s.depth, &s.depth_most, e);
    if (rc != STK_OK)
        return rc;
    const stk_allocator locked = {.user = l->device.cuda, .alloc = cuda_host_alloc, .free = cuda_host_free};
    rc = depot_open(&l->depot, fields, n, l->index, l->options.batch_size, (int)s.depth + 1,
                    l->device.cuda ? &locked : l->options.allocator, e);
    if (rc == STK_OK) {
        loader_device_follow(l, l->depot);
        l->depot->ragged_most = s.ragged;
        rc = depot_fill(l->depot, e);
    }
    if (rc != STK_OK)
        return rc;
    budget_init(&l->budget, (size_t)s.scratch, l->options.threads);
    if (l->options.cache != STK_CACHE_NONE)
        s.kept += (int64_t)budget_cap(&l->budget, SHARE_MOST, l->options.threads);
    loader_cache_open(l, (size_t)s.kept);
    rc = ring_init(&l->ring, l->options.threads, s.depth, s.depth_most, l->depot, &l->order, e);
    if (rc != STK_OK)
        return rc;
    l->ring.completes = l->soft >= 0 || l->device.cuda;
    l->ring.amends = l->device.pitch > 0;
    l->ring.idle = l->options.idle != 0;
    open_ahead(l, s.ahead);
    return STK_OK;
}

static int open_workers(struct stk_loader *l, stk_error *e)
{
    const int n = l->options.threads + 1; /* one without a thread, for stk_loader_get */
    l->workers = calloc((size_t)n, sizeof *l->workers);
    if (!l->workers)
        return error_nomem(e, "open", (size_t)n * sizeof *l->workers);
    for (int i = 0; i < n; i++) {
        struct worker *w = &l->workers[i];
        w->walk.pass = -1;
        blocks_walk_init(&w->walk.near, &l->order.near);
        w->run = 1;
        /* The worker without a thread has no share: it keeps nothing between samples, and never waits for a turn. */
        struct budget *b = i < l->options.threads ? &l->budget : NULL;
        const int rc = desk_init(&w->desk, i, b, l->image >= 0, l->options.cpu, e);
        if (rc != STK_OK)
            return rc;
        w->desk.ahead = i < l->options.threads ? l->ahead : NULL;
        w->jobs = l->copies > 0 ? calloc((size_t)l->copies, sizeof *w->jobs) : NULL;
        if (l->copies > 0 && !w->jobs)
            return error_nomem(e, "open", (size_t)l->copies * sizeof *w->jobs);
        if (following_init(&w->follow, l, e) != STK_OK)
            return STK_ENOMEM;
        w->spare = l->spare_bytes ? pages_new(l->spare_bytes) : NULL;
        if (l->spare_bytes && !w->spare)
            return error_nomem(e, "open", l->spare_bytes);
        w->made = l->made_bytes ? pages_new(l->made_bytes) : NULL;
        if (l->made_bytes && !w->made)
            return error_nomem(e, "open", l->made_bytes);
    }
    return STK_OK;
}

static void stop(void *user)
{
    ring_stop(&((struct stk_loader *)user)->ring);
}

static int take_subset(struct stk_loader *l, stk_error *e)
{
    const stk_options *o = &l->options;
    l->order.samples = source_count(l->source);
    const int rc = options_check_subset(o->subset, o->n_subset, l->order.samples, e);
    if (rc != STK_OK)
        return rc;
    if (o->subset) {
        const size_t bytes = (size_t)o->n_subset * sizeof *o->subset;
        l->order.subset = malloc(bytes);
        if (!l->order.subset)
            return error_nomem(e, "open", bytes);
        memcpy(l->order.subset, o->subset, bytes);
        l->order.samples = o->n_subset;
        l->subset_hash = hash_bytes(o->subset, bytes, 0);
    }
    if (o->take > 0 && o->take < l->order.samples) {
        l->order.samples = o->take;
        l->subset_hash = hash_mix(l->subset_hash, (uint64_t)o->take);
    }
    if (l->order.samples < 1)
        return error_set(e, STK_EUSAGE, "open", "there are no samples: the %s is empty",
                         o->subset ? "subset" : "source");
    return STK_OK;
}

/* The first sample of each source in the order, and the end. */
static int find_firsts(const struct stk_loader *l, const int64_t *begins, int n, int64_t *first, stk_error *e)
{
    const int64_t *subset = l->order.subset;
    int at = 0;
    for (int64_t i = 0; subset && i < l->order.samples; i++) {
        if (subset[i] < begins[at])
            return error_set(e, STK_EUSAGE, "open",
                             "mix: the subset returns to an earlier source after source %d; sort its indices by source",
                             at);
        while (subset[i] >= begins[at + 1])
            first[++at] = i;
    }
    for (int s = 0; !subset && s < n; s++)
        first[s] = begins[s] < l->order.samples ? begins[s] : l->order.samples;
    while (subset && at < n)
        first[++at] = l->order.samples;
    first[n] = l->order.samples;
    return STK_OK;
}

/* The same for sources of given sizes. */
static int count_firsts(const struct stk_loader *l, int64_t *first, stk_error *e)
{
    const stk_options *o = &l->options;
    for (int s = 0; s < o->n_mix; s++) {
        if (o->mix_counts[s] < 0 || o->mix_counts[s] > l->order.samples - first[s])
            return error_set(e, STK_EUSAGE, "open", "mix: the counts of the sources do not add up to the %lld samples",
                             (long long)l->order.samples);
        first[s + 1] = first[s] + o->mix_counts[s];
    }
    return STK_OK;
}

static int open_mix(struct stk_loader *l, stk_error *e)
{
    const stk_options *o = &l->options;
    const int64_t *begins;
    const int n = o->mix_counts ? o->n_mix : source_joined(l->source, &begins);
    if (n != o->n_mix || n < 1)
        return error_set(e, STK_EUSAGE, "open", "mix: %d weights for %d sources; give one weight per source", o->n_mix,
                         n ? n : 1);
    int64_t *first = calloc((size_t)n + 1, sizeof *first);
    if (!first)
        return error_nomem(e, "open", (size_t)n * sizeof *first);
    int rc = o->mix_counts ? count_firsts(l, first, e) : find_firsts(l, begins, n, first, e);
    if (rc == STK_OK)
        rc = mix_init(&l->order.mix, o->mix, n, first, e);
    free(first);
    return rc;
}

/* An order that the caller gives is not divided among ranks: for the order, such a loader is rank 0 of 1. Its draws
 * depend on the rank: samplers may give one sample to several ranks, so that each augments it differently. */
static int open_order(struct stk_loader *l, stk_error *e)
{
    const stk_options *o = &l->options;
    const int64_t samples = l->order.samples, step = o->world_size * o->batch_size;
    const bool sampled = o->sampled != 0;
    if (o->steps_per_epoch > INT64_MAX / 2 / step)
        return error_set(e, STK_EUSAGE, "open",
                         "steps_per_epoch is %lld, which makes an epoch too long; use a smaller value",
                         (long long)o->steps_per_epoch);
    l->order = (struct order){
        .n = o->steps_per_epoch > 0 ? o->steps_per_epoch * step : samples,
        .samples = samples,
        .subset = l->order.subset,
        .batch_size = o->batch_size,
        .rank = sampled ? 0 : o->rank,
        .world = sampled ? 1 : o->world_size,
        .seed = o->seed,
        .shuffle = o->shuffle != 0,
        .drop_last = o->drop_last != 0,
        .pad_last = o->pad_last != 0,
        .passes = o->steps_per_epoch > 0,
        .sampled = sampled,
        .mine = sampled ? o->rank : 0,
        .all = sampled ? o->world_size : 1,
        .resumed_epoch = -1,
    };
    const struct blocks *blocks = source_blocks(l->source);
    if (blocks && l->order.shuffle && !o->mix && blocks_init(&l->order.near, blocks, l->order.subset, samples))
        return error_nomem(e, "open", (size_t)samples);
    if (o->mix)
        return open_mix(l, e);
    if (!o->weights)
        return STK_OK;
    if (o->n_weights != samples)
        return error_set(e, STK_EUSAGE, "open",
                         "the length of weights is %lld, but there are %lld samples; give one weight per sample",
                         (long long)o->n_weights, (long long)samples);
    return alias_init(&l->order.alias, o->weights, samples, e);
}

uint64_t loader_fingerprint(const struct stk_loader *l)
{
    const uint64_t all = source_fingerprint(l->source);
    return l->subset_hash ? hash_mix(all, l->subset_hash) : all;
}

int loader_open(struct stk_loader *l, stk_error *e)
{
    const stk_options *o = &l->options;
    l->pid = getpid();
    l->opened_ns = now_ns();
    l->opened_s = (int64_t)time(NULL);
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->getting, NULL);
    l->op = o->op ? *o->op : (stk_op_hook){0};
    l->log = o->log ? *o->log : (stk_log_hook){0};
    int rc = options_source(o, false, &l->source, e);
    l->lent = (struct stk_source){.source = l->source, .limits = options_limits(o), .max_bytes = o->max_bytes};
    if (rc == STK_OK)
        rc = loader_device_open(l, e);
    if (rc == STK_OK)
        rc = take_subset(l, e);
    if (rc != STK_OK)
        return rc;
    rc = open_order(l, e);
    if (rc == STK_OK)
        rc = open_batches(l, e);
    if (rc == STK_OK)
        rc = open_workers(l, e);
    if (rc == STK_OK)
        rc = pool_open(&l->pool, o->threads, loader_work, stop, l, e);
    return rc;
}

void loader_close(struct stk_loader *l)
{
    if (l->ring.slots)
        ring_stop(&l->ring);
    pool_close(&l->pool);
    ahead_stop(l->ahead);
    pool_close(&l->reader);
    ahead_close(l->ahead);
    ring_done(&l->ring);
    depot_close(l->depot);
    loader_device_close(l);
    for (int i = 0; l->workers && i <= l->options.threads; i++) {
        free(l->workers[i].jobs);
        following_done(&l->workers[i].follow);
        pages_free(l->workers[i].made, l->made_bytes);
        pages_free(l->workers[i].spare, l->spare_bytes);
        desk_done(&l->workers[i].desk);
        blocks_walk_done(&l->workers[i].walk.near);
    }
    if (l->budget.reserve)
        budget_done(&l->budget);
    loader_cache_close(l);
    free(l->workers);
    loader_follow_close(l);
    loader_views_close(l);
    source_close(l->source);
    order_done(&l->order);
    free(l->bads);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->getting);
    free(l);
}

void loader_restart(struct stk_loader *l, int64_t epoch, int64_t position)
{
    pthread_mutex_lock(&l->lock);
    l->rotten = false;
    l->bad_in_epoch = 0;
    pthread_mutex_unlock(&l->lock);
    ring_restart(&l->ring, epoch, position);
}
