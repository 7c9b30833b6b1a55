/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep.c -- what a loader keeps of its samples.
 *
 *     pixels -> (draw, rest of the ops) -> row        keep_pixels.c
 *     pack -> (draw) -> decode the crop -> ...        keep_dct.c
 *     bytes -> head -> draw -> decode -> ...
 *     row of the source -> (draw, ops) -> row         keep_rows.c
 *
 * A sample's row is the same with and without: what is kept is a step of the usual way, as it was made on it. What
 * fails here goes that way instead and fails there, in its words. Bad samples are never kept, nor those that the codec
 * complains of, so that the complaint is heard in every epoch.
 */
#include "keep.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "loader.h"

enum { WHY_BYTES = 300 };

static const double MIB = 1 << 20;

/* ------------------------------------------------------------------ life */

uint64_t keep_version(void)
{
    return STK_VERSION_MAJOR << 16 | STK_VERSION_MINOR << 8 | STK_VERSION_PATCH;
}

/* What is kept depends on, beside the sample. */
static uint64_t variant_of(const struct stk_loader *l)
{
    char text[1];
    if (l->keep.what == STK_CACHE_BYTES)
        return 0;
    if (l->keep.what == STK_CACHE_DCT)
        return keep_version();
    const uint64_t form = (uint64_t)l->options.fidelity << 1 | (l->options.no_exif != 0);
    return hash_mix(hash_mix(plan_head_text(l->plan, text, sizeof text), form), keep_version());
}

static enum cache_kind kind_of(stk_cache what)
{
    return what == STK_CACHE_PIXELS ? CACHE_PIXELS : what == STK_CACHE_DCT ? CACHE_DCT : CACHE_BYTES;
}

/* Once: at open when nothing can be kept, else at close when not everything could. */
static void log_why(struct stk_loader *l, const char *what)
{
    char why[WHY_BYTES], line[WHY_BYTES + 64];
    cache_why_not(l->keep.cache, why, sizeof why);
    if (!why[0] || !l->log.line || l->keep.told)
        return;
    snprintf(line, sizeof line, "the cache %s: %s", what, why);
    l->log.line(l->log.user, line);
    l->keep.told = true;
}

static void open_cache(struct stk_loader *l, size_t memory)
{
    struct keep *k = &l->keep;
    char folder[PATH_MAX] = "";
    if (l->options.cache_dir && l->options.cache_dir[0])
        source_cache_dir(l->options.cache_dir, folder, sizeof folder);
    const bool disk = folder[0] && source_location(l->source) && !keep_is_rows(l);
    k->row_bytes = keep_is_rows(l) ? keep_rows_bytes(l) : 0;
    k->what = keep_choose(l, disk ? cache_disk_room(folder, l->options.cache_size) : (int64_t)memory, k->chosen,
                          sizeof k->chosen);
    if (k->what == STK_CACHE_NONE)
        return;
    const struct cache_options o = {
        .kind = kind_of(k->what),
        .samples = source_count(l->source),
        .memory = memory,
        .in_memory = !disk,
        .folder = disk ? folder : NULL,
        .source = source_location(l->source),
        .variant = variant_of(l),
        .disk = l->options.cache_size,
    };
    k->cache = cache_open(&o);
    log_why(l, "is not used");
}

void keep_open(struct stk_loader *l, size_t memory)
{
    const size_t points = keep_points_open(l, memory);
    l->keep.what = STK_CACHE_NONE;
    if (l->options.cache != STK_CACHE_NONE)
        open_cache(l, memory - points);
}

void keep_close(struct stk_loader *l)
{
    struct keep *k = &l->keep;
    if (k->cache)
        log_why(l, "does not have everything");
    cache_close(k->cache);
    cache_close(k->points);
    buf_done(&k->ahead);
    k->cache = k->points = NULL;
}

/* ------------------------------------------------------------------ finding */

void keep_lap(_Atomic uint64_t *sum, uint64_t *clock)
{
    const uint64_t now = now_ns();
    atomic_fetch_add_explicit(sum, now - *clock, memory_order_relaxed);
    *clock = now;
}

uint64_t keep_identity(struct stk_loader *l, struct worker *w, int64_t sample)
{
    if (!w->identified)
        w->identity = source_identity(l->source, sample);
    w->identified = true;
    return w->identity;
}

uint64_t keep_read_identity(struct stk_loader *l, struct worker *w, int64_t sample)
{
    const struct desk *d = &w->desk;
    if (!w->identified || !w->identity || !d->lent)
        return w->identity;
    return source_identity_since(l->source, sample, d->reading.n_bytes, l->opened_s) == w->identity ? w->identity : 0;
}

bool keep_fetch(struct stk_loader *l, struct worker *w, int64_t sample, const uint8_t **bytes, size_t *n)
{
    struct cache *c = l->keep.cache;
    struct cache_entry e;
    const uint64_t id = cache_asks_id(c, sample) ? keep_identity(l, w, sample) : 0;
    while (cache_find(c, sample, id, &e)) {
        *bytes = e.bytes;
        *n = e.n;
        if (e.bytes) {
            w->desk.reading.file.len = 0;
            return true;
        }
        uint8_t *to = desk_blank(&w->desk, e.n);
        if (!to)
            return false;
        *bytes = to;
        if (cache_load(c, &e, to)) {
            atomic_fetch_add_explicit(&w->count.read_bytes, e.n, memory_order_relaxed);
            return true;
        }
    }
    return false;
}

bool keep_read(struct stk_loader *l, struct worker *w, int64_t sample)
{
    struct reading *r = &w->desk.reading;
    w->from_cache = l->keep.what == STK_CACHE_BYTES && keep_fetch(l, w, sample, &r->bytes, &r->n_bytes);
    return w->from_cache;
}

void keep_bytes(struct stk_loader *l, struct worker *w, int64_t sample)
{
    const struct reading *r = &w->desk.reading;
    if (l->keep.what == STK_CACHE_BYTES && !w->from_cache)
        cache_put(l->keep.cache, sample, keep_read_identity(l, w, sample), r->bytes, r->n_bytes);
}

/* ------------------------------------------------------------------ short cuts */

bool keep_row(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row)
{
    w->identified = false;
    w->identity = 0;
    if (l->keep.what == STK_CACHE_PIXELS)
        return keep_row_pixels(l, w, d, row);
    return l->keep.what == STK_CACHE_DCT && keep_row_pack(l, w, d, row);
}

bool keep_fill(struct stk_loader *l, struct worker *w, const struct draw *d, const struct head *h, uint8_t *row)
{
    if (l->keep.what == STK_CACHE_PIXELS)
        return keep_fill_pixels(l, w, d, h, row);
    return l->keep.what == STK_CACHE_DCT && keep_fill_pack(l, w, d, h, row);
}

/* ------------------------------------------------------------------ seeing */

static void explain_holding(struct stk_loader *l, struct buf *b)
{
    struct cache_stats s;
    char why[WHY_BYTES];
    cache_stats(l->keep.cache, &s);
    cache_why_not(l->keep.cache, why, sizeof why);
    buf_printf(b, "           %lld of %lld samples, %.1f MiB of at most %.1f MiB%s; found %lld times, %lld times not\n",
               (long long)s.entries, (long long)source_count(l->source),
               (double)(s.on_disk ? s.disk_bytes : s.memory_bytes) / MIB,
               (double)(s.on_disk ? s.disk_most : s.memory_most) / MIB,
               !s.on_disk                  ? ""
               : l->options.cache_size > 0 ? " for the whole folder"
                                           : " for the whole folder (half of what the disk can spare)",
               (long long)s.hits, (long long)s.misses);
    if (s.broken)
        buf_printf(b, "           %lld entries were not as they had been put, and were made anew\n",
                   (long long)s.broken);
    if (why[0])
        buf_printf(b, "           nothing more is kept: %s\n", why);
}

static void explain_points(struct stk_loader *l, struct buf *b)
{
    struct cache_stats s;
    char why[WHY_BYTES];
    cache_stats(l->keep.points, &s);
    cache_why_not(l->keep.points, why, sizeof why);
    buf_printf(b,
               "points     of %lld JPEG files, so that crops are decoded from where they begin: %.1f MiB of at most "
               "%.1f MiB\n",
               (long long)s.entries, (double)s.memory_bytes / MIB, (double)s.memory_most / MIB);
    if (s.on_disk)
        buf_printf(b, "           and %.1f MiB of at most %.1f MiB in the cache folder, for later runs\n",
                   (double)s.disk_bytes / MIB, (double)s.disk_most / MIB);
    if (why[0])
        buf_printf(b, "           no more of them are written: %s\n", why);
}

void keep_explain(struct stk_loader *l, struct buf *b)
{
    static const char *const names[] = {"none", "none", "bytes", "dct", "pixels", "auto"};
    const struct keep *k = &l->keep;
    struct cache_stats s;
    cache_stats(k->cache, &s);
    buf_printf(b, "cache      %s%s%s\n", names[k->what],
               !k->cache   ? ""
               : s.on_disk ? " in the cache folder"
                           : " in memory",
               k->chosen);
    if (k->cache)
        explain_holding(l, b);
    if (k->points)
        explain_points(l, b);
}
