/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_open.c -- a loader is put together and taken apart; memory is divided.
 *
 *     memory = what the source unpacks: an eighth for what is kept of it, an eighth for the work; of what is left:
 *            + batches: at most half, at least two (one is with the caller); of that half, what is not needed
 *              for the first ones is for files that are read ahead, up to AHEAD_MOST
 *            + ragged rows, where there are any: a quarter, out of that half
 *            + scratch: what is left, half of it in shares, half for one large picture at a time
 *            + what is kept, where a cache is wanted: all that neither the ring nor shares of an everyday size need
 *
 * A cache takes nothing from the half that one large picture may need, so that no sample is bad for its sake.
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
        "this loader was opened before fork(), and its threads are in the parent process; open a new one in "
        "this process");
}

static int64_t plan_batches(void *user, int64_t epoch)
{
    return order_batches(&((struct stk_loader *)user)->order, epoch);
}

static void plan_span(void *user, struct place at, int64_t *first, int64_t *rows)
{
    const struct span s = order_span(&((struct stk_loader *)user)->order, at.epoch, at.batch);
    *first = s.first;
    *rows = s.rows;
}

enum { DEEPER = 8 };            /* times what is ahead at first, for callers who take batches in bursts */
enum { SHARE_MOST = 64 << 20 }; /* per thread, where there is a better use for memory: a photo of 12 million pixels */
enum { SCRATCH_MIN = 8 << 20 }; /* per thread: a photo of an everyday size in its share, and one in its turn */

static int too_little(const struct stk_loader *l, uint64_t least, stk_error *e)
{
    const stk_options *o = &l->options;
    const bool chosen = o->memory == machine_memory(&l->machine);
    least += l->unpacked_most;
    return error_set(e, STK_EUSAGE, "open",
                     "memory of %lld MiB%s is less than the %llu MiB that batches of %lld rows and %d threads need; "
                     "raise memory, or take a smaller batch_size or fewer threads",
                     (long long)(o->memory >> 20),
                     chosen ? " (the default: a quarter of what is free, divided by the ranks here)" : "",
                     (unsigned long long)((least + (1 << 20) - 1) >> 20), (long long)o->batch_size, o->threads);
}

enum { AHEAD_MOST = 32 << 20, AHEAD_LEAST = 1 << 20 }; /* bytes of files that are read ahead */

/* Batches ahead at first and at most; bytes for files read ahead, for scratch and for what is kept. */
struct share {
    int64_t depth, depth_most, ahead, scratch, kept;
    int64_t ragged; /* what the ragged rows of a batch may have */
};

/* Ragged rows: of batches under way, of one that is begun, and of one that is put together. */
enum { RAGGED_SHARE = 4, RAGGED_PARTS = 3 };

static bool is_ragged(const struct field *fields, int n)
{
    bool any = false;
    for (int i = 0; i < n; i++)
        any |= fields[i].kind == FIELD_RAGGED || fields[i].kind == FIELD_OPEN;
    return any;
}

/* Of what is left of the batches' half. */
static int64_t ahead_bytes(const struct stk_loader *l, int64_t left)
{
    const stk_reader reader = l->options.reader;
    const enum source_access lies = reader == STK_READER_PREAD ? SOURCE_ACCESS_NONE : source_probe_access(l->source);
    if (lies == SOURCE_ACCESS_NONE || (lies == SOURCE_ACCESS_MEMORY && reader != STK_READER_URING))
        return 0;
    const int64_t fair = l->options.cache == STK_CACHE_NONE ? left : left / 4;
    return fair < AHEAD_LEAST ? 0 : fair < AHEAD_MOST ? fair : AHEAD_MOST;
}

/* How much of memory is for batches, whatever the number of threads, and how many of them that makes. */
static int divide(const struct stk_loader *l, bool ragged, struct share *s, stk_error *e)
{
    const stk_options *o = &l->options;
    const int64_t batch = (int64_t)l->batch_bytes;
    const int64_t least = l->picture >= 0 ? (int64_t)o->threads * SCRATCH_MIN : 0;
    if (batch == 0 || batch > INT64_MAX / 4)
        return error_set(e, STK_EUSAGE, "open", "a batch of %lld rows has more bytes than there can be",
                         (long long)o->batch_size);
    const int64_t memory = o->memory - (int64_t)l->unpacked_most;
    const int64_t apart = ragged ? memory / RAGGED_SHARE : 0, half = memory / 2 - apart;
    const int64_t batches = half > 2 * batch ? half : 2 * batch;
    s->ragged = apart / RAGGED_PARTS;
    s->scratch = memory - apart - batches;
    if (s->scratch < least) {
        const int64_t uneven = 2 * batch + least, even = 2 * least > uneven ? 2 * least : uneven;
        return too_little(l, (uint64_t)(ragged ? even / (RAGGED_SHARE - 1) * RAGGED_SHARE : even), e);
    }
    const int64_t ahead = (8 * (int64_t)o->threads + o->batch_size - 1) / o->batch_size + 1;
    int64_t room = batches / batch - 1; /* one is with the caller */
    s->depth = room < ahead ? room : ahead;
    s->ahead = ahead_bytes(l, batches - (s->depth + 1) * batch);
    room = (batches - s->ahead) / batch - 1;
    s->depth_most = room < DEEPER * s->depth ? room : DEEPER * s->depth;
    if (o->cache != STK_CACHE_NONE && s->depth_most > 2 * s->depth)
        s->depth_most = 2 * s->depth;
    s->kept = batches - s->ahead - (s->depth_most + 1) * batch;
    return STK_OK;
}

static struct pick pick(void *user, struct walk *w, int64_t epoch, int64_t position)
{
    return loader_pick(user, w, epoch, position);
}

static bool needless(void *user, int64_t sample)
{
    return cache_has(((const struct stk_loader *)user)->keep.cache, sample);
}

static void parts(void *user, int64_t epoch, struct pick p, struct parts *out)
{
    keep_parts(user, epoch, p, out);
}

/* What is left for the page cache, which the ranks of a machine share, once each of them holds its memory. */
static int64_t page_cache(const struct stk_loader *l)
{
    const int64_t ranks = l->machine.local_ranks > 1 ? l->machine.local_ranks : 1;
    const int64_t left = l->machine.memory_available / ranks - l->options.memory;
    return left > 0 ? left / 5 * 4 * ranks : 0;
}

/* Without it samples are read when it is their turn, which is slower where storage is cold, and else the same. */
static void open_ahead(struct stk_loader *l, int64_t memory)
{
    const struct ahead_options o = {
        .reader = l->options.reader,
        .ring = &l->ring,
        .source = l->source,
        .threads = l->options.threads,
        .memory = (size_t)memory,
        .max_bytes = l->options.max_bytes,
        .samples = l->order.samples,
        .cache_bytes = page_cache(l),
        .user = l,
        .pick = pick,
        .needless = needless,
        .parts = parts,
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
    l->batch_bytes = depot_batch_bytes(fields, n, l->options.batch_size);
    struct share s = {0};
    size_t held;
    source_memory(l->source, &held, &l->unpacked_most);
    rc = divide(l, is_ragged(fields, n), &s, e);
    if (rc != STK_OK)
        return rc;
    rc = depot_open(&l->depot, fields, n, source_n_fields(l->source), l->options.batch_size, (int)s.depth + 1,
                    l->options.allocator, e);
    if (rc == STK_OK) {
        l->depot->ragged_most = s.ragged;
        rc = depot_fill(l->depot, e);
    }
    if (rc != STK_OK)
        return rc;
    budget_init(&l->budget, (size_t)s.scratch, l->options.threads);
    if (l->options.cache != STK_CACHE_NONE)
        s.kept += (int64_t)budget_cap(&l->budget, SHARE_MOST, l->options.threads);
    keep_open(l, (size_t)s.kept);
    const struct ring_plan plan = {.user = l, .batches = plan_batches, .span = plan_span};
    rc = ring_init(&l->ring, l->options.threads, s.depth, s.depth_most, l->depot, plan, e);
    if (rc == STK_OK)
        open_ahead(l, s.ahead);
    return rc;
}

static int open_workers(struct stk_loader *l, stk_error *e)
{
    const int n = l->options.threads + 1; /* one without a thread, for stk_get */
    l->workers = calloc((size_t)n, sizeof *l->workers);
    if (!l->workers)
        return error_nomem(e, "open", (size_t)n * sizeof *l->workers);
    for (int i = 0; i < n; i++) {
        struct worker *w = &l->workers[i];
        w->walk.pass = -1;
        blocks_walk_init(&w->walk.near, &l->order.near);
        w->run = 1;
        /* The one without a thread is not among those that share: it keeps nothing, and waits for no turn. */
        struct budget *b = i < l->options.threads ? &l->budget : NULL;
        const int rc = desk_init(&w->desk, i, b, l->picture >= 0, l->options.cpu, e);
        if (rc != STK_OK)
            return rc;
        w->desk.ahead = i < l->options.threads ? l->ahead : NULL;
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
    const int rc = options_check_subset(o, l->order.samples, e);
    if (rc != STK_OK)
        return rc;
    if (o->subset) {
        const size_t bytes = (size_t)o->n_subset * sizeof *l->subset;
        l->subset = malloc(bytes);
        if (!l->subset)
            return error_nomem(e, "open", bytes);
        memcpy(l->subset, o->subset, bytes);
        l->order.samples = o->n_subset;
        l->subset_hash = hash_bytes(l->subset, bytes, 0);
    }
    if (o->take > 0 && o->take < l->order.samples) {
        l->order.samples = o->take;
        l->subset_hash = hash_mix(l->subset_hash, (uint64_t)o->take);
    }
    if (l->order.samples < 1)
        return error_set(e, STK_EUSAGE, "open", "no samples: the %s is empty",
                         o->subset ? "part that was chosen" : "source");
    return STK_OK;
}

/* The first sample that the order has of each source, and the end. */
static int find_parts(const struct stk_loader *l, const int64_t *begins, int n, int64_t *first, stk_error *e)
{
    int part = 0;
    for (int64_t i = 0; l->subset && i < l->order.samples; i++) {
        if (l->subset[i] < begins[part])
            return error_set(e, STK_EUSAGE, "open",
                             "mix: the subset goes back from source %d; it must have each source's samples together",
                             part);
        while (l->subset[i] >= begins[part + 1])
            first[++part] = i;
    }
    for (int s = 0; !l->subset && s < n; s++)
        first[s] = begins[s] < l->order.samples ? begins[s] : l->order.samples;
    while (l->subset && part < n)
        first[++part] = l->order.samples;
    first[n] = l->order.samples;
    return STK_OK;
}

/* The same for parts of these sizes. */
static int count_parts(const struct stk_loader *l, int64_t *first, stk_error *e)
{
    const stk_options *o = &l->options;
    for (int s = 0; s < o->n_mix; s++) {
        if (o->mix_counts[s] < 0 || o->mix_counts[s] > l->order.samples - first[s])
            return error_set(e, STK_EUSAGE, "open", "mix: the counts do not sum to the %lld samples",
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
        return error_set(e, STK_EUSAGE, "open",
                         "mix: %d weights for %d sources; several are mixed, one weight for each", o->n_mix, n ? n : 1);
    int64_t *first = calloc((size_t)n + 1, sizeof *first);
    if (!first)
        return error_nomem(e, "open", (size_t)n * sizeof *first);
    int rc = o->mix_counts ? count_parts(l, first, e) : find_parts(l, begins, n, first, e);
    if (rc == STK_OK)
        rc = mix_init(&l->order.mix, o->mix, n, first, e);
    free(first);
    return rc;
}

/* What is given by the caller is not split again: to the order, such a loader is one of one. */
static int open_order(struct stk_loader *l, stk_error *e)
{
    const stk_options *o = &l->options;
    const int64_t samples = l->order.samples, step = o->world_size * o->batch_size;
    const bool sampled = o->sampled != 0;
    if (o->steps_per_epoch > INT64_MAX / 2 / step)
        return error_set(e, STK_EUSAGE, "open", "steps_per_epoch is %lld; that is more samples than can be counted",
                         (long long)o->steps_per_epoch);
    l->order = (struct order){
        .n = o->steps_per_epoch > 0 ? o->steps_per_epoch * step : samples,
        .samples = samples,
        .batch_size = o->batch_size,
        .rank = sampled ? 0 : o->rank,
        .world = sampled ? 1 : o->world_size,
        .seed = o->seed,
        .shuffle = o->shuffle != 0,
        .drop_last = o->drop_last != 0,
        .pad_last = o->pad_last != 0,
        .passes = o->steps_per_epoch > 0,
        .sampled = sampled,
        .resumed_epoch = -1,
    };
    const struct blocks *blocks = source_blocks(l->source);
    if (blocks && l->order.shuffle && !o->mix && blocks_init(&l->order.near, blocks, l->subset, samples))
        return error_nomem(e, "open", (size_t)samples);
    if (o->mix)
        return open_mix(l, e);
    if (!o->weights)
        return STK_OK;
    if (o->n_weights != samples)
        return error_set(e, STK_EUSAGE, "open", "%lld weights for %lld samples; one for each is needed",
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
    ahead_close(l->ahead);
    ring_done(&l->ring);
    depot_close(l->depot);
    for (int i = 0; l->workers && i <= l->options.threads; i++) {
        pages_free(l->workers[i].made, l->made_bytes);
        desk_done(&l->workers[i].desk);
        blocks_walk_done(&l->workers[i].walk.near);
    }
    if (l->budget.reserve)
        budget_done(&l->budget);
    keep_close(l);
    free(l->workers);
    plan_free(l->plan);
    source_close(l->source);
    order_forget(&l->order);
    alias_done(&l->order.alias);
    mix_done(&l->order.mix);
    blocks_done(&l->order.near);
    free(l->subset);
    free(l->bads);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->getting);
    free(l);
}

struct start {
    struct stk_loader *l;
    int64_t epoch, position;
};

/* Under the ring's lock, with no ticket out that could still look at the order. */
static void set_start(void *user)
{
    const struct start *s = user;
    struct stk_loader *l = s->l;
    l->order.resumed_epoch = s->epoch;
    l->order.resumed_at = s->position;
    order_forget(&l->order);
    pthread_mutex_lock(&l->lock);
    l->rotten = false;
    l->bad_in_epoch = 0;
    pthread_mutex_unlock(&l->lock);
}

void loader_restart(struct stk_loader *l, int64_t epoch, int64_t position)
{
    struct start s = {.l = l, .epoch = epoch, .position = position};
    ring_restart(&l->ring, (struct place){.epoch = epoch}, set_start, &s);
}
