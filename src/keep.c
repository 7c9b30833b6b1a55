/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep.c -- what a loader keeps of its samples.
 *
 *     pixels -> (draw, rest of the ops) -> row
 *     bytes  -> decode -> ...
 *
 * A sample's row is the same with and without: what is kept is a step of the usual way, as it was made on it. What
 * fails here goes that way instead and fails there, in its words. Bad samples are never kept, nor those that the codec
 * complains of, so that the complaint is heard in every epoch.
 *
 * Pixels are those after the last op that does not depend on a draw, 8-bit, with a head of four numbers. Rows that are
 * wholly settled are kept so, too, and not as floats: a quarter of the room, and making floats of them costs
 * no more than copying floats would.
 */
#include "keep.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/size.h"
#include "loader.h"

enum { WHY_BYTES = 300 };

/* In front of kept pixels, in this machine's byte order. */
struct shape {
    uint32_t w, h, channels, none;
};

/* ------------------------------------------------------------------ life */

/* What kept pixels depend on beside the sample. */
static uint64_t variant_of(const struct stk_loader *l)
{
    char text[1];
    if (l->keep.what != STK_CACHE_PIXELS)
        return 0;
    const uint64_t form = (uint64_t)l->options.fidelity << 1 | (l->options.no_exif != 0);
    return hash_mix(plan_head_text(l->plan, text, sizeof text), form);
}

static enum cache_kind kind_of(stk_cache what)
{
    return what == STK_CACHE_PIXELS ? CACHE_PIXELS : what == STK_CACHE_DCT ? CACHE_DCT : CACHE_BYTES;
}

static void log_why(const struct stk_loader *l)
{
    char why[WHY_BYTES], line[WHY_BYTES + 64];
    cache_why_not(l->keep.cache, why, sizeof why);
    if (!why[0] || !l->log.line)
        return;
    snprintf(line, sizeof line, "the cache is not used: %s", why);
    l->log.line(l->log.user, line);
}

void keep_open(struct stk_loader *l, size_t memory)
{
    struct keep *k = &l->keep;
    char folder[PATH_MAX] = "";
    if (l->options.cache_dir && l->options.cache_dir[0])
        source_cache_dir(l->options.cache_dir, folder, sizeof folder);
    const bool disk = folder[0] && source_place(l->source);
    k->what = keep_choose(l, disk ? l->options.cache_size : (int64_t)memory, k->chosen, sizeof k->chosen);
    if (k->what == STK_CACHE_NONE)
        return;
    const struct cache_options o = {
        .kind = kind_of(k->what),
        .samples = source_count(l->source),
        .memory = memory,
        .in_memory = !disk,
        .folder = disk ? folder : NULL,
        .source = source_place(l->source),
        .variant = variant_of(l),
        .disk = l->options.cache_size,
    };
    k->cache = cache_open(&o);
    log_why(l);
}

void keep_close(struct keep *k)
{
    cache_close(k->cache);
    k->cache = NULL;
}

/* ------------------------------------------------------------------ finding */

/* The entry of a sample, wherever it lies: in the cache's memory, or read into the desk's. */
static bool fetch(struct stk_loader *l, struct worker *w, int64_t sample, const uint8_t **bytes, size_t *n)
{
    struct cache *c = l->keep.cache;
    struct cache_entry e;
    w->identity = cache_asks_id(c, sample) ? source_identity(l->source, sample) : 0;
    while (cache_find(c, sample, w->identity, &e)) {
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
    w->from_cache = l->keep.what == STK_CACHE_BYTES && fetch(l, w, sample, &r->bytes, &r->n_bytes);
    return w->from_cache;
}

void keep_bytes(struct stk_loader *l, struct worker *w, int64_t sample)
{
    const struct reading *r = &w->desk.reading;
    if (l->keep.what == STK_CACHE_BYTES && !w->from_cache)
        cache_put(l->keep.cache, sample, w->identity, r->bytes, r->n_bytes);
}

/* ------------------------------------------------------------------ pixels */

/* Kept pixels as an image; what is not of the form that is put here is none. */
static bool as_image(const struct stk_loader *l, const uint8_t *bytes, size_t n, struct image *out)
{
    struct shape s;
    if (n < sizeof s)
        return false;
    memcpy(&s, bytes, sizeof s);
    if (s.w < 1 || s.h < 1 || s.w > INT32_MAX / 4 || s.h > INT32_MAX ||
        (int)s.channels != plan_head_channels(l->plan) || size_mul(size_mul(s.w, s.channels), s.h) != n - sizeof s)
        return false;
    *out = (struct image){.px = (uint8_t *)(uintptr_t)bytes + sizeof s, /* an image is never written to */
                          .stride = (size_t)s.w * s.channels,
                          .w = (int32_t)s.w,
                          .h = (int32_t)s.h,
                          .channels = (int32_t)s.channels};
    return true;
}

static struct image part_of(const struct image *im, struct rect c)
{
    struct image part = *im;
    part.px += (size_t)c.y * im->stride + (size_t)c.x * (size_t)im->channels;
    part.w = c.w;
    part.h = c.h;
    return part;
}

/* What the clock has run since, added to one of the counters. */
static void lap(_Atomic uint64_t *sum, uint64_t *clock)
{
    const uint64_t now = now_ns();
    atomic_fetch_add_explicit(sum, now - *clock, memory_order_relaxed);
    *clock = now;
}

bool keep_row(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row)
{
    const uint8_t *bytes;
    size_t n;
    struct image im;
    struct job job;
    if (l->keep.what != STK_CACHE_PIXELS)
        return false;
    uint64_t clock = now_ns();
    const bool found = fetch(l, w, (int64_t)d->sample, &bytes, &n) && as_image(l, bytes, n, &im);
    lap(&w->count.read_ns, &clock);
    if (!found || plan_draw_rest(l->plan, d, im.w, im.h, &job, NULL) != STK_OK)
        return false;
    const size_t scratch = plan_scratch(l->plan, &job);
    if (scratch == 0 || desk_reserve(&w->desk, scratch, 0, NULL) != STK_OK)
        return false;
    const struct image part = part_of(&im, job.want.crop);
    const int rc = plan_run(l->plan, &job, &part, &w->desk.arena, row, NULL);
    lap(&w->count.transform_ns, &clock);
    return rc == STK_OK;
}

/* Both halves of the ops, drawn before anything is decoded, and what they take. */
struct halves {
    struct job head, rest;
    size_t bytes; /* of what is kept */
};

static bool draw_halves(struct stk_loader *l, struct worker *w, const struct draw *d, const struct head *h,
                        struct halves *v)
{
    if (plan_draw_head(l->plan, head_width(h), head_height(h), &v->head, NULL) != STK_OK ||
        plan_draw_rest(l->plan, d, v->head.w, v->head.h, &v->rest, NULL) != STK_OK)
        return false;
    v->bytes = size_add(size_mul(size_mul((size_t)v->head.w, (size_t)v->head.h), (size_t)v->head.channels),
                        sizeof(struct shape));
    if (!cache_has_room(l->keep.cache, (int64_t)d->sample, v->bytes))
        return false;
    const size_t decode = decode_scratch(h, &v->head.want), head = plan_scratch(l->plan, &v->head),
                 rest = plan_scratch(l->plan, &v->rest);
    if (decode == 0 || head == 0 || rest == 0)
        return false;
    const size_t all = size_add(size_add(decode, head), size_add(rest, arena_cost(v->bytes)));
    return all != SIZE_MAX && desk_reserve(&w->desk, all, decode_foreign(h, &v->head.want), NULL) == STK_OK;
}

bool keep_fill(struct stk_loader *l, struct worker *w, const struct draw *d, const struct head *h, uint8_t *row)
{
    const struct reading *r = &w->desk.reading;
    struct arena *a = &w->desk.arena;
    struct halves v;
    struct image image, kept;
    int warnings = 0;
    if (l->keep.what != STK_CACHE_PIXELS || !draw_halves(l, w, d, h, &v))
        return false;
    uint64_t clock = now_ns();
    if (decode_pixels(w->desk.decoder, r->bytes, r->n_bytes, h, &v.head.want, a, &image, &warnings, NULL) != STK_OK ||
        warnings > 0)
        return false;
    lap(&w->count.decode_ns, &clock);
    uint8_t *bytes = arena_alloc(a, v.bytes);
    if (!bytes)
        return false;
    const struct shape shape = {(uint32_t)v.head.w, (uint32_t)v.head.h, (uint32_t)v.head.channels, 0};
    memcpy(bytes, &shape, sizeof shape);
    if (plan_run(l->plan, &v.head, &image, a, bytes + sizeof shape, NULL) != STK_OK ||
        !as_image(l, bytes, v.bytes, &kept))
        return false;
    cache_put(l->keep.cache, (int64_t)d->sample, w->identity, bytes, v.bytes);
    const struct image part = part_of(&kept, v.rest.want.crop);
    const int rc = plan_run(l->plan, &v.rest, &part, a, row, NULL);
    lap(&w->count.transform_ns, &clock);
    return rc == STK_OK;
}

/* ------------------------------------------------------------------ seeing */

static void explain_holding(struct stk_loader *l, struct buf *b)
{
    struct cache_stats s;
    char why[WHY_BYTES];
    const double mib = 1 << 20;
    cache_stats(l->keep.cache, &s);
    cache_why_not(l->keep.cache, why, sizeof why);
    buf_printf(b, "           %lld of %lld samples, %.1f MiB of at most %.1f MiB%s; found %lld times, %lld times not\n",
               (long long)s.entries, (long long)source_count(l->source),
               (double)(s.on_disk ? s.disk_bytes : s.memory_bytes) / mib,
               (double)(s.on_disk ? s.disk_most : s.memory_most) / mib, s.on_disk ? " for the whole folder" : "",
               (long long)s.hits, (long long)s.misses);
    if (s.broken)
        buf_printf(b, "           %lld entries were not as they had been put, and were made anew\n",
                   (long long)s.broken);
    if (why[0])
        buf_printf(b, "           nothing more is kept: %s\n", why);
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
}
