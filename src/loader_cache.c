/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_cache.c -- the caches of a loader: opens them, finds entries in them, and explains them.
 *
 * loader_cache_image.c uses them on the path of an image, loader_rows.c for samples that need no decoding, and
 * loader_checkpoints.c for checkpoints inside JPEG files.
 */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "loader.h"

enum { WHY_BYTES = 300 };

static const double MIB = 1 << 20;

/* ------------------------------------------------------------------ what entries depend on */

uint64_t loader_cache_version(void)
{
    return STK_VERSION_MAJOR << 16 | STK_VERSION_MINOR << 8 | STK_VERSION_PATCH;
}

/* Identifies what entries depend on besides the sample. */
static uint64_t variant_of(const struct stk_loader *l)
{
    char text[1];
    if (l->cache.what == STK_CACHE_BYTES)
        return 0;
    if (l->cache.what == STK_CACHE_DCT)
        return loader_cache_version();
    const uint64_t form = (uint64_t)l->options.fidelity << 1 | (l->options.no_exif != 0);
    return hash_mix(hash_mix(plan_head_text(l->plan, text, sizeof text), form), loader_cache_version());
}

/* Logs once: at open if nothing can be kept, otherwise at close if something could not. */
static void log_why(struct stk_loader *l, const char *what)
{
    char why[WHY_BYTES], line[WHY_BYTES + 64];
    cache_why_not(l->cache.entries, why, sizeof why);
    if (!why[0] || !l->log.line || l->cache.logged)
        return;
    snprintf(line, sizeof line, "the cache %s: %s", what, why);
    l->log.line(l->log.user, line);
    l->cache.logged = true;
}

/* ------------------------------------------------------------------ which cache */

enum { LOOKED_AT = 32 };

/* Adds one sample to the sums in f. */
static void look_at(const struct stk_loader *l, struct desk *d, int64_t i, struct cache_facts *f)
{
    const struct decode_limits limits = options_limits(&l->options);
    struct desk_image im;
    const struct head *h = &im.head;
    struct job j;
    if (desk_read_head(d, l->source, i, false, &limits, &im, NULL) != STK_OK ||
        plan_draw_head(l->plan, head_width(h), head_height(h), &j, NULL) != STK_OK)
        return;
    f->pixel_bytes += (double)j.w * j.h * j.channels;
    f->file_bytes += (double)source_bytes(l->source, i);
    f->jpegs += h->format == STK_JPEG && !h->dct;
    f->looked_at++;
}

static struct cache_facts facts_of(const struct stk_loader *l)
{
    struct cache_facts f = {.asked = l->options.cache,
                            .rows = loader_rows_only(l),
                            .row_bytes = l->cache.row_bytes,
                            .in_memory = !l->reads && !source_location(l->source),
                            .place = source_location(l->source),
                            .samples = l->order.samples};
    if (f.rows)
        return f;
    f.drafted = l->options.fidelity == STK_DRAFT && !plan_settled(l->plan);
    struct desk d;
    desk_init(&d, 0, NULL, false, l->options.cpu, NULL);
    const int64_t step = f.samples / LOOKED_AT + 1;
    for (int64_t i = 0; f.asked == STK_CACHE_AUTO && f.place && i < f.samples; i += step)
        look_at(l, &d, order_sample(&l->order, i), &f);
    desk_done(&d);
    if (f.looked_at > 0) {
        f.pixel_bytes /= f.looked_at;
        f.file_bytes /= f.looked_at;
    }
    return f;
}

/* ------------------------------------------------------------------ life */

static void open_cache(struct stk_loader *l, size_t memory)
{
    struct loader_cache *k = &l->cache;
    char folder[PATH_MAX] = "";
    if (l->options.cache_dir && l->options.cache_dir[0])
        source_cache_dir(l->options.cache_dir, folder, sizeof folder);
    const bool disk = folder[0] && source_location(l->source) && !loader_rows_only(l);
    k->row_bytes = loader_rows_only(l) ? loader_rows_bytes(l) : 0;
    const struct cache_facts facts = facts_of(l);
    const int64_t room = disk ? cache_disk_room(folder, l->options.cache_size) : (int64_t)memory;
    k->what = cache_choose(&facts, room, k->chosen, sizeof k->chosen);
    if (k->what == STK_CACHE_NONE)
        return;
    const struct cache_options o = {
        .kind = k->what == STK_CACHE_PIXELS ? CACHE_PIXELS
                : k->what == STK_CACHE_DCT  ? CACHE_DCT
                                            : CACHE_BYTES,
        .samples = source_count(l->source),
        .memory = memory,
        .in_memory = !disk,
        .shared = l->options.cache_shared,
        .folder = disk ? folder : NULL,
        .source = source_location(l->source),
        .variant = variant_of(l),
        .disk = l->options.cache_size,
    };
    k->entries = cache_open(&o);
    log_why(l, "is not used");
}

/* The size of memory that processes share. */
static size_t shared_bytes(int fd)
{
    struct stat about;
    return fstat(fd, &about) == 0 ? (size_t)about.st_size : 0;
}

void loader_cache_open(struct stk_loader *l, size_t memory)
{
    const size_t checkpoints = loader_checkpoints_open(l, memory);
    l->cache.what = STK_CACHE_NONE;
    if (l->options.cache != STK_CACHE_NONE)
        open_cache(l, l->options.cache_shared > 0 ? shared_bytes(l->options.cache_shared) : memory - checkpoints);
}

void loader_cache_close(struct stk_loader *l)
{
    struct loader_cache *k = &l->cache;
    if (k->entries)
        log_why(l, "does not contain everything");
    cache_close(k->entries);
    cache_close(k->checkpoints);
    buf_done(&k->ahead);
    k->entries = k->checkpoints = NULL;
}

/* ------------------------------------------------------------------ finding */

uint64_t loader_cache_identity(struct stk_loader *l, struct worker *w, int64_t sample)
{
    if (!w->identified)
        w->identity = source_identity(l->source, sample);
    w->identified = true;
    return w->identity;
}

uint64_t loader_cache_read_identity(struct stk_loader *l, struct worker *w, int64_t sample)
{
    const struct desk *d = &w->desk;
    if (!w->identified || !w->identity || !d->lent)
        return w->identity;
    return source_identity_since(l->source, sample, d->reading.n_bytes, l->opened_s) == w->identity ? w->identity : 0;
}

bool loader_cache_fetch(struct stk_loader *l, struct worker *w, int64_t sample, const uint8_t **bytes, size_t *n)
{
    struct cache *c = l->cache.entries;
    struct cache_entry e;
    const uint64_t id = cache_asks_id(c, sample) ? loader_cache_identity(l, w, sample) : 0;
    while (cache_find(c, sample, id, &e)) {
        *bytes = e.bytes;
        *n = e.n;
        if (e.bytes) {
            w->desk.reading.file.len = 0;
            return true;
        }
        uint8_t *to = l->follow.n > 0 ? desk_hold(&w->desk, e.n) : desk_blank(&w->desk, e.n);
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

/* ------------------------------------------------------------------ explaining */

static void explain_holding(struct stk_loader *l, struct buf *b)
{
    struct cache_stats s;
    char why[WHY_BYTES];
    cache_stats(l->cache.entries, &s);
    cache_why_not(l->cache.entries, why, sizeof why);
    buf_printf(b, "           %lld of %lld samples, %.1f MiB of at most %.1f MiB%s; %lld hits, %lld misses\n",
               (long long)s.entries, (long long)source_count(l->source),
               (double)(s.on_disk ? s.disk_bytes : s.memory_bytes) / MIB,
               (double)(s.on_disk ? s.disk_most : s.memory_most) / MIB,
               !s.on_disk                  ? ""
               : l->options.cache_size > 0 ? " for the whole folder"
                                           : " for the whole folder (half of the free space that can be spared)",
               (long long)s.hits, (long long)s.misses);
    if (s.broken)
        buf_printf(b, "           %lld damaged entries were found and made again\n", (long long)s.broken);
    if (why[0])
        buf_printf(b, "           nothing more is kept: %s\n", why);
}

static void explain_checkpoints(struct stk_loader *l, struct buf *b)
{
    struct cache_stats s;
    char why[WHY_BYTES];
    cache_stats(l->cache.checkpoints, &s);
    cache_why_not(l->cache.checkpoints, why, sizeof why);
    buf_printf(b,
               "checkpoints in %lld JPEG files, so that decoding starts at the crop: %.1f MiB of at most "
               "%.1f MiB\n",
               (long long)s.entries, (double)s.memory_bytes / MIB, (double)s.memory_most / MIB);
    if (s.on_disk)
        buf_printf(b, "           and %.1f MiB of at most %.1f MiB in the cache folder, for later runs\n",
                   (double)s.disk_bytes / MIB, (double)s.disk_most / MIB);
    if (why[0])
        buf_printf(b, "           no more of them are written: %s\n", why);
}

void loader_cache_explain(struct stk_loader *l, struct buf *b)
{
    static const char *const names[] = {"none", "none", "bytes", "dct", "pixels", "auto"};
    const struct loader_cache *k = &l->cache;
    struct cache_stats s;
    cache_stats(k->entries, &s);
    buf_printf(b, "cache      %s%s%s\n", names[k->what],
               !k->entries ? ""
               : s.on_disk ? " in the cache folder"
                           : " in memory",
               k->chosen);
    if (k->entries)
        explain_holding(l, b);
    if (k->checkpoints)
        explain_checkpoints(l, b);
}
