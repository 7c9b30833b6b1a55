/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.c -- statistics: what a loader did, what limits it, and which settings were chosen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "loader.h"

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static uint64_t load(_Atomic uint64_t *v)
{
    return atomic_load_explicit(v, memory_order_relaxed);
}

static void add_worker(stk_stats *s, struct counters *c)
{
    s->read_s += seconds(load(&c->read_ns));
    s->decode_s += seconds(load(&c->decode_ns));
    s->transform_s += seconds(load(&c->transform_ns));
    s->op_s += seconds(load(&c->op_ns));
    s->idle_s += seconds(load(&c->idle_ns));
    s->read_bytes += (int64_t)load(&c->read_bytes);
    s->warnings += (int64_t)load(&c->warnings);
    s->memory_bytes += (int64_t)load(&c->held_bytes);
}

/* Memory outside the depot is either in the ring or with the caller. */
static void add_memory(stk_loader *l, stk_stats *s)
{
    pthread_mutex_lock(&l->ring.lock);
    int64_t in_ring = (l->ring.tail - l->ring.head) * (int64_t)l->batch_bytes;
    pthread_mutex_unlock(&l->ring.lock);
    if (l->plan && plan_is_open(l->plan))
        in_ring += atomic_load_explicit(&l->depot->ragged, memory_order_relaxed);
    size_t held, most;
    source_memory(l->source, &held, &most);
    const int64_t out = atomic_load_explicit(&l->depot->bytes_out, memory_order_relaxed);
    s->memory_bytes += (int64_t)held + atomic_load_explicit(&l->depot->allocated, memory_order_relaxed) +
                       (int64_t)ahead_held(l->ahead) + in_ring +
                       atomic_load_explicit(&l->depot->bytes_in, memory_order_relaxed);
    s->kept_bytes = out > in_ring ? out - in_ring : 0;
}

static void add_cache(stk_loader *l, stk_stats *s)
{
    struct cache_stats c;
    cache_stats(l->cache.checkpoints, &c);
    s->memory_bytes += c.memory_bytes;
    cache_stats(l->cache.entries, &c);
    s->memory_bytes += c.memory_bytes;
    s->cache_bytes = c.memory_bytes;
    s->cache_disk_bytes = c.disk_bytes;
    s->cache_entries = c.entries;
    s->cache_hits = c.hits;
    s->cache_misses = c.misses;
}

static void collect(stk_loader *l, stk_stats *s)
{
    *s = (stk_stats){.threads = l->options.threads, .memory_limit = l->options.memory};
    for (int i = 0; i <= l->options.threads; i++)
        add_worker(s, &l->workers[i].count);
    add_memory(l, s);
    add_cache(l, s);
    if (l->device.cuda)
        loader_device_stats(l, s);
    pthread_mutex_lock(&l->lock);
    s->seconds = seconds(now_ns() - l->opened_ns);
    s->waited_s = seconds(l->waited_ns);
    s->batches = l->batches;
    s->samples = l->samples;
    s->bad = l->bad;
    pthread_mutex_unlock(&l->lock);
}

static stk_limit limit_of(const stk_stats *s)
{
    const double busy = s->read_s + s->decode_s + s->transform_s + s->op_s;
    if (s->idle_s > busy && s->waited_s < 0.2 * s->seconds) /* threads wait for room in the ring, the caller does not */
        return STK_LIMIT_CONSUMER;
    const double most = s->decode_s > s->read_s ? s->decode_s : s->read_s;
    if (s->op_s > most && s->op_s > s->transform_s)
        return STK_LIMIT_OP;
    if (s->transform_s > most)
        return STK_LIMIT_TRANSFORM;
    return s->decode_s >= s->read_s ? STK_LIMIT_DECODE : STK_LIMIT_READ;
}

int stk_stats_get_sized(stk_loader *l, stk_stats *out, size_t size)
{
    const int rc = loader_check(l, NULL);
    if (rc != STK_OK)
        return rc;
    stk_stats s;
    collect(l, &s);
    s.limit = limit_of(&s);
    memset(out, 0, size);
    memcpy(out, &s, size < sizeof s ? size : sizeof s);
    return STK_OK;
}

int stk_loader_mix(stk_loader *l, int i, stk_mix_stats *out)
{
    const struct mix *m = &l->order.mix;
    const int rc = loader_check(l, NULL);
    if (rc != STK_OK)
        return rc;
    if (i < 0 || i >= m->n)
        return STK_END;
    struct walk *w = calloc(1, sizeof *w);
    if (!w)
        return STK_ENOMEM;
    int64_t position;
    const struct place at = ring_place(&l->ring, &position);
    *out = (stk_mix_stats){.share = (double)m->sources[i].share / m->block,
                           .samples = m->sources[i].count,
                           .delivered = (int64_t)order_mixed(&l->order, w, at.epoch, position, i)};
    free(w);
    return STK_OK;
}

int stk_loader_bad_sample(stk_loader *l, int64_t i, stk_error *out)
{
    const int rc = loader_check(l, NULL);
    if (rc != STK_OK)
        return rc;
    pthread_mutex_lock(&l->lock);
    const bool found = i >= 0 && i < l->n_bads;
    if (found)
        *out = l->bads[i];
    pthread_mutex_unlock(&l->lock);
    if (!found)
        return STK_END;
    loader_blame(l->source, out->sample, out);
    return STK_OK;
}

/* ------------------------------------------------------------------ explain */

static void explain_threads(stk_loader *l, struct buf *b)
{
    const struct machine *m = &l->machine;
    buf_printf(b, "threads    %d", l->options.threads);
    if (l->options.threads != machine_threads(m))
        buf_printf(b, " (as requested; this process may use %d)\n", machine_threads(m));
    else if (m->cpus_quota > 0 && m->cpus_quota < m->cpus_affinity)
        buf_printf(b, " (the cgroup grants %.2f of %d CPUs)\n", m->cpus_quota, m->cpus_online);
    else if (m->local_ranks > 1 && m->cpus_affinity == m->cpus_online)
        buf_printf(b, " (%d CPUs for %d ranks on this machine)\n", m->cpus_online, m->local_ranks);
    else
        buf_printf(b, " (of %d CPUs; all that this process may use)\n", m->cpus_online);
    const struct pace p = ring_pace(&l->ring);
    if (p.active < p.threads)
        buf_printf(b, "           only %d of them are active, because the caller never waits\n", p.active);
}

static void explain_memory(stk_loader *l, struct buf *b)
{
    const struct pace p = ring_pace(&l->ring);
    const int64_t mib = 1 << 20;
    buf_printf(
        b,
        "memory     at most %lld MiB: %lld (at most %lld) prefetched batches of %.1f MiB each, scratch of %zu MiB "
        "per thread\n",
        (long long)(l->options.memory / mib), (long long)p.depth, (long long)p.depth_most,
        (double)l->batch_bytes / (double)mib, l->budget.share >> 20);
    buf_printf(b, "           and %zu MiB more for one large image at a time\n", l->budget.reserve >> 20);
    size_t held, most;
    source_memory(l->source, &held, &most);
    if (l->depot->ragged_most > 0)
        buf_printf(b,
                   "           and %lld MiB for the ragged rows of a batch, and twice as much for the other batches\n",
                   (long long)(l->depot->ragged_most / mib));
    if (most > 0)
        buf_printf(b, "           and %zu MiB for data that the source decompresses; it uses %zu MiB now\n", most >> 20,
                   (held + (1 << 20) - 1) >> 20);
}

static void explain_reader(stk_loader *l, struct buf *b)
{
    if (l->ahead)
        ahead_explain(l->ahead, b);
    else if (l->options.reader == STK_READER_PREAD)
        buf_printf(b, "reader     pread (as requested)\n");
    else if (source_probe_access(l->source) == SOURCE_ACCESS_MEMORY)
        buf_printf(b, "reader     pread (the files are in memory)\n");
    else
        buf_printf(b, "reader     pread (there are no files to read ahead, or no memory for it)\n");
}

/* Where each of several mixed sources is. */
static void explain_mix(stk_loader *l, struct buf *b)
{
    stk_mix_stats m;
    for (int i = 0; stk_loader_mix(l, i, &m) == STK_OK; i++) {
        const int64_t n = m.samples > 0 ? m.samples : 1;
        buf_printf(b, "%-10s source %d: %.4g %% of the positions, %lld so far; at sample %lld of %lld, pass %lld\n",
                   i ? "" : "mix", i, 100 * m.share, (long long)m.delivered, (long long)(m.delivered % n),
                   (long long)m.samples, (long long)(m.delivered / n));
    }
}

static const char *order_words(const struct order *o)
{
    if (o->alias.n > 0)
        return "drawn by weight";
    if (o->mix.n > 0)
        return o->shuffle ? "sources mixed, each shuffled" : "sources mixed, each as listed";
    return o->shuffle ? "shuffled" : "as listed";
}

static void explain_order(stk_loader *l, struct buf *b)
{
    if (l->order.sampled) {
        buf_printf(b, "order      given by the caller, seed %llu\n", (unsigned long long)l->order.seed);
        return;
    }
    buf_printf(b, "order      %s, seed %llu, rank %lld of %lld, %lld batch%s per epoch\n", order_words(&l->order),
               (unsigned long long)l->order.seed, (long long)l->order.rank, (long long)l->order.world,
               (long long)stk_length(l), stk_length(l) == 1 ? "" : "es");
    if (l->order.near.n > 0 && l->order.near.window < l->order.samples)
        buf_printf(
            b,
            "           %lld blocks, each read as a whole, in shuffled order; each window of %lld samples in that "
            "sequence is shuffled separately\n",
            (long long)l->order.near.n, (long long)l->order.near.window);
}

static void explain_source(stk_loader *l, struct buf *b)
{
    const int64_t all = source_count(l->source), used = l->order.samples;
    buf_printf(b, "source     %s, ", source_kind(l->source));
    if (used != all)
        buf_printf(b, "%lld of ", (long long)used);
    buf_printf(b, "%lld sample%s", (long long)all, all == 1 ? "" : "s");
    const int classes = source_n_classes(l->source);
    if (classes > 0)
        buf_printf(b, ", %d class%s", classes, classes == 1 ? "" : "es");
    buf_printf(b, "\n");
    if (source_unshared_fields(l->source))
        buf_printf(b, "           left out, because not all sources have it: %s\n", source_unshared_fields(l->source));
}

size_t stk_explain(stk_loader *l, char *buf, size_t n)
{
    stk_error e;
    if (loader_check(l, &e) != STK_OK)
        return (size_t)snprintf(buf, n, "%s\n", e.text);
    struct buf b = {.max = 1 << 16};
    explain_source(l, &b);
    if (l->n_views == 1 && l->copies == 1)
        buf_printf(&b, "ops        %s\n", plan_text(l->plan));
    for (int i = 0; l->copies > 1 && i < l->n_views; i++)
        buf_printf(&b, "%-10s %d x %s: %s\n", i ? "" : "views", l->views[i].copies, l->views[i].name,
                   plan_text(l->views[i].plan));
    for (int i = 0; l->n_views > 0 && i < source_n_fields(l->source); i++)
        if (l->views[0].followers[i].own)
            buf_printf(&b, "           %s: then %s\n", source_field(l->source, i)->name,
                       plan_text(l->views[0].followers[i].own));
    if (l->ops_unused)
        buf_printf(&b, "ops        not run: fields does not include the image\n");
    if (l->options.fidelity == STK_DRAFT)
        buf_printf(&b, "fidelity   draft: JPEGs that are resized to a half or less are decoded at a smaller size\n");
    explain_order(l, &b);
    explain_mix(l, &b);
    explain_threads(l, &b);
    explain_memory(l, &b);
    loader_cache_explain(l, &b);
    buf_printf(&b, "kernels    %s\n", cpu_name(l->options.cpu));
    if (l->device.cuda)
        loader_device_explain(l, &b);
    explain_reader(l, &b);
    const size_t len = b.len;
    if (n)
        snprintf(buf, n, "%.*s", (int)len, b.data ? (const char *)b.data : "");
    buf_done(&b);
    return len;
}
