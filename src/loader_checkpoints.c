/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_checkpoints.c -- keeps the checkpoints of JPEG files, by default, also for later runs.
 *
 * Checkpoints take about 2 % of a file's size, and grow as crops reach further down. They are stored again only when
 * they have grown considerably. For the few files with several scans, which are slow to decode, the coefficients are
 * kept instead. Checkpoints use a small part of memory, and the cache folder unless it is off. Wrong checkpoints do no
 * harm on the CPU: its decoder verifies them. A device finds out later (cuda_parcels_check).
 *
 * If the ops need whole images, checkpoints would not help the CPU, and none are made for it.
 *
 * A device that decodes Huffman codes needs checkpoints for every crop, whatever the ops. So those of a file are
 * completed when it is met again, if there is room for them. That costs once as much as reading the rest of its codes
 * (in every epoch, if the file is damaged further down than its crops reach). In the first epoch, they are only what
 * decoding makes anyway.
 *
 * The thread that reads ahead without the page cache draws the crop of a row before it reads the file, and then reads
 * only the ranges that the crop needs. If a cache keeps whole files, it reads whole files.
 */
#include <limits.h>

#include "loader.h"

enum {
    LOOKED_AT = 32,
    FEW = 1000,            /* samples; fewer are not worth files in the cache folder */
    PERCENT = 8,           /* of the dataset's bytes, at most */
    AHEAD_BYTES = 1 << 20, /* of one file's checkpoints, at most, for the thread that reads ahead */
    APART = 32 << 10       /* bytes between two ranges, at least: one more read costs as much as reading these */
};

/* Bytes of all files, estimated from a few; 0: unknown. */
static int64_t data_bytes(const struct stk_loader *l)
{
    const int64_t n = l->order.samples, step = n / LOOKED_AT + 1;
    int64_t sum = 0, looked = 0;
    for (int64_t i = 0; i < n && source_location(l->source); i += step) {
        const int64_t bytes = source_bytes(l->source, order_sample(&l->order, i));
        sum += bytes > 0 ? bytes : 0;
        looked++;
    }
    return looked ? (int64_t)((double)sum / (double)looked * (double)n) : 0;
}

/* Whether crops are smaller than the image, judged by a few draws for an image of a usual size. */
static bool crops(const struct stk_loader *l)
{
    enum { W = 640, H = 480, DRAWS = 8 };
    struct want want;
    for (uint64_t i = 0; i < DRAWS; i++)
        if (loader_views_draw(l, &(struct draw){.epoch = i}, W, H, false, NULL, NULL, &want, NULL) == STK_OK &&
            (want.crop.w < W || want.crop.h < H))
            return true;
    return false;
}

size_t loader_checkpoints_open(struct stk_loader *l, size_t memory)
{
    char folder[PATH_MAX] = "";
    if (!l->plan || source_field(l->source, l->image)->kind != FIELD_ENCODED ||
        (!crops(l) && !loader_parcel_decodes(l)))
        return 0;
    const int64_t data = data_bytes(l), share = l->options.memory / 16;
    const int64_t limit = data > 0 ? data / 100 * PERCENT + (1 << 20) : share;
    size_t most = (size_t)(limit < share ? limit : share);
    most = most < memory ? most : memory;
    if (l->order.samples >= FEW || (l->options.cache_dir && l->options.cache_dir[0]))
        source_cache_dir(l->options.cache_dir, folder, sizeof folder);
    const struct cache_options o = {
        .kind = CACHE_CHECKPOINTS,
        .samples = source_count(l->source),
        .memory = most,
        .in_memory = true,
        .folder = folder[0] ? folder : NULL,
        .source = source_location(l->source),
        .variant = loader_cache_version(),
        .disk = limit,
        .own = true,
    };
    l->cache.checkpoints = cache_open(&o);
    return most;
}

/* Memory for checkpoints that are on disk. The cache copies them into its own. */
static struct buf *room_for(struct stk_loader *l, struct worker *w, size_t n)
{
    struct buf *b = w ? desk_spare(&w->desk, n, 0) : n <= AHEAD_BYTES ? &l->cache.ahead : NULL;
    if (!b || buf_reserve(b, n))
        return NULL;
    b->len = n;
    return b;
}

/* w is NULL: for the thread that reads ahead. */
static const uint8_t *find(struct stk_loader *l, struct worker *w, int64_t sample, size_t *n)
{
    struct cache *c = l->cache.checkpoints;
    struct cache_entry e;
    uint64_t id = 0;
    if (cache_asks_id(c, sample))
        id = w ? loader_cache_identity(l, w, sample) : source_identity(l->source, sample);
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

void loader_checkpoints_ranges(struct stk_loader *l, const struct draw *d, struct ranges *out)
{
    const struct decode_limits limits = options_limits(&l->options);
    const bool wanted = l->cache.checkpoints && l->cache.what == STK_CACHE_NONE;
    struct desk_image im;
    const struct head *h = &im.head;
    struct want want;
    size_t n = 0;
    const uint8_t *found = wanted ? find(l, NULL, (int64_t)d->sample, &n) : NULL;
    out->n = 0;
    if (!found || !decode_checkpoint_head(found, n, &limits, &im.head) ||
        loader_views_draw(l, d, head_width(h), head_height(h), false, h, NULL, &want, NULL) != STK_OK ||
        !decode_checkpoint_ranges(found, n, h, &want, APART, out))
        out->n = 0;
}

void loader_checkpoints_lend(struct stk_loader *l, struct worker *w, const struct making *m)
{
    w->checkpoint_bytes = 0;
    if (!l->cache.checkpoints)
        return;
    const uint8_t *found = find(l, w, m->sample, &w->checkpoint_bytes);
    const size_t all = decode_checkpoints_bytes(&m->image.head, m->image.n);
    if (found)
        decoder_lend_checkpoints(w->desk.decoder, found, w->checkpoint_bytes,
                                 loader_parcel_decodes(l) && m->image.head.orientation == 1 &&
                                     cache_can_renew(l->cache.checkpoints, m->sample, all));
    else if (cache_has_room(l->cache.checkpoints, m->sample, all))
        decoder_lend_checkpoints(w->desk.decoder, NULL, 0, false);
}

/* Checkpoints that were in memory were found without asking for the version of the file. */
static uint64_t identity_of_grown(struct stk_loader *l, struct worker *w, int64_t sample)
{
    if (w->identified || w->checkpoint_bytes == 0)
        return loader_cache_read_identity(l, w, sample);
    return source_identity_since(l->source, sample, w->desk.reading.n_bytes, l->opened_s);
}

void loader_checkpoints_keep(struct stk_loader *l, struct worker *w, int64_t sample)
{
    size_t n = 0;
    const void *made = l->cache.checkpoints ? decoder_new_checkpoints(w->desk.decoder, &n) : NULL;
    const size_t more = loader_parcel_decodes(l) ? 0 : w->checkpoint_bytes / 4;
    if (made && n > w->checkpoint_bytes + more)
        cache_renew(l->cache.checkpoints, sample, identity_of_grown(l, w, sample), made, n);
}
