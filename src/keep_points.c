/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep_points.c -- decoders' notes on files, kept without being asked: small, and found again in later runs.
 *
 * Of JPEG they are checkpoints, some two bytes in a hundred, and grow while crops reach further down; the cache gets
 * them anew only when they are a good deal longer. The few files of several scans, slow as they are, have packs. They
 * have a small part of memory, and lie in the cache folder as well unless that is off. Wrong ones do no harm: the
 * decoder proves them as it goes.
 *
 * Where the ops want whole pictures they would help nothing, and are not made.
 *
 * Who reads ahead, past the page cache, has a row's crop drawn from them before its file is read, and reads only what
 * that takes. Not where files are wanted whole for a cache.
 */
#include <limits.h>
#include <string.h>

#include "loader.h"

enum {
    LOOKED_AT = 32,
    FEW = 1000,           /* samples that need no files */
    PERCENT = 8,          /* of the data, at most */
    AHEAD_MOST = 1 << 20, /* bytes of notes that are looked at ahead */
    APART = 32 << 10      /* bytes that are left out between two parts, at least: a further read costs as much */
};

/* Bytes of all files, by the size of some; 0: not known. */
static int64_t data_bytes(const struct stk_loader *l)
{
    const int64_t n = l->order.samples, step = n / LOOKED_AT + 1;
    int64_t sum = 0, looked = 0;
    for (int64_t i = 0; i < n && source_location(l->source); i += step) {
        const int64_t bytes = source_bytes(l->source, l->subset ? l->subset[i] : i);
        sum += bytes > 0 ? bytes : 0;
        looked++;
    }
    return looked ? (int64_t)((double)sum / (double)looked * (double)n) : 0;
}

/* Whether crops leave something out, as far as a few draws on a picture of everyday size can tell. */
static bool crops(const struct plan *p)
{
    enum { W = 640, H = 480, DRAWS = 8 };
    struct job j;
    for (uint64_t i = 0; i < DRAWS; i++)
        if (plan_draw(p, &(struct draw){.epoch = i}, W, H, &j, NULL) == STK_OK &&
            (j.want.crop.w < W || j.want.crop.h < H))
            return true;
    return false;
}

size_t keep_points_open(struct stk_loader *l, size_t memory)
{
    char folder[PATH_MAX] = "";
    if (!l->plan || source_field(l->source, l->picture)->kind != FIELD_ENCODED || !crops(l->plan))
        return 0;
    const int64_t data = data_bytes(l), share = l->options.memory / 16;
    const int64_t limit = data > 0 ? data / 100 * PERCENT + (1 << 20) : share;
    size_t most = (size_t)(limit < share ? limit : share);
    most = most < memory ? most : memory;
    if (l->order.samples >= FEW || (l->options.cache_dir && l->options.cache_dir[0]))
        source_cache_dir(l->options.cache_dir, folder, sizeof folder);
    const struct cache_options o = {
        .kind = CACHE_POINTS,
        .samples = source_count(l->source),
        .memory = most,
        .in_memory = true,
        .folder = folder[0] ? folder : NULL,
        .source = source_location(l->source),
        .variant = keep_version(),
        .disk = limit,
        .own = true,
    };
    l->keep.points = cache_open(&o);
    return most;
}

/* Notes that lie on disk come into the desk's spare memory, or where the one who reads ahead has room; the cache takes
 * them into its own. */
static struct buf *room_for(struct stk_loader *l, struct worker *w, size_t n)
{
    struct buf *b = w ? desk_spare(&w->desk, n, 0) : n <= AHEAD_MOST ? &l->keep.ahead : NULL;
    if (!b || buf_reserve(b, n))
        return NULL;
    b->len = n;
    return b;
}

/* w is NULL: for the one who reads ahead. */
static const uint8_t *find(struct stk_loader *l, struct worker *w, int64_t sample, size_t *n)
{
    struct cache *c = l->keep.points;
    struct cache_entry e;
    uint64_t id = 0;
    if (cache_asks_id(c, sample))
        id = w ? keep_identity(l, w, sample) : source_identity(l->source, sample);
    while (cache_find(c, sample, id, &e)) {
        *n = e.n;
        if (e.bytes)
            return e.bytes;
        struct buf *b = room_for(l, w, e.n);
        if (!b)
            return NULL;
        if (cache_load(c, &e, b->data))
            return b->data;
    }
    return NULL;
}

void keep_parts(struct stk_loader *l, int64_t epoch, struct pick p, struct parts *out)
{
    const struct decode_limits limits = options_limits(&l->options);
    const struct draw d = loader_draw(l, epoch, p);
    const bool wanted = l->keep.points && l->keep.what == STK_CACHE_NONE;
    struct head h;
    struct job job;
    size_t n = 0;
    const uint8_t *notes = wanted ? find(l, NULL, p.index, &n) : NULL;
    out->n = 0;
    if (!notes || !decode_noted_head(notes, n, &limits, &h) ||
        plan_draw(l->plan, &d, head_width(&h), head_height(&h), &job, NULL) != STK_OK)
        return;
    plan_draft(l->plan, &job, head_width(&h), head_height(&h), decode_shrink(&h));
    if (!decode_noted_parts(notes, n, &h, &job.want, APART, out))
        out->n = 0;
}

void keep_lend(struct stk_loader *l, struct worker *w, int64_t sample, const struct head *h)
{
    w->notes = 0;
    if (!l->keep.points)
        return;
    const uint8_t *notes = find(l, w, sample, &w->notes);
    if (notes)
        decoder_lend_notes(w->desk.decoder, notes, w->notes);
    else if (cache_has_room(l->keep.points, sample, decode_notes_bytes(h, w->desk.reading.n_bytes)))
        decoder_lend_notes(w->desk.decoder, NULL, 0);
}

/* Notes that were found in memory were found without asking which state of the file there is. */
static uint64_t identity_of_grown(struct stk_loader *l, struct worker *w, int64_t sample)
{
    if (w->identified || w->notes == 0)
        return keep_read_identity(l, w, sample);
    return source_identity_since(l->source, sample, w->desk.reading.n_bytes, l->opened_s);
}

void keep_notes(struct stk_loader *l, struct worker *w, int64_t sample)
{
    size_t n = 0;
    const void *notes = l->keep.points ? decoder_new_notes(w->desk.decoder, &n) : NULL;
    if (notes && n > w->notes + w->notes / 4)
        cache_renew(l->keep.points, sample, identity_of_grown(l, w, sample), notes, n);
}
