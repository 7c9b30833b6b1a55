/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_rows.c -- keeps samples that need no decoding as the source returned them.
 *
 * An image that the source returns as pixels is kept before its ops. A sample without an image is kept as all of its
 * fields, with the label in front. They are kept in memory only: reading rows from a cache file would be no faster than
 * reading them from the source.
 */
#include <string.h>

#include "base/size.h"
#include "loader.h"

bool loader_rows_only(const struct stk_loader *l)
{
    return l->image < 0 || source_field(l->source, l->image)->kind != FIELD_ENCODED;
}

size_t loader_rows_bytes(const struct stk_loader *l)
{
    if (source_fills_rows(l->source))
        return 0;
    if (l->image >= 0)
        return source_field(l->source, l->image)->bytes;
    size_t n = sizeof(int64_t);
    for (int f = 0; f < source_n_fields(l->source); f++) {
        const struct field *field = source_field(l->source, f);
        if (field->kind != FIELD_TENSOR)
            return 0;
        n = size_add(n, field->bytes);
    }
    return n;
}

static const uint8_t *find(struct stk_loader *l, int64_t sample)
{
    struct cache_entry e;
    return cache_find(l->cache.entries, sample, 0, &e) ? e.bytes : NULL;
}

bool loader_rows_near(const struct stk_loader *l, int64_t sample)
{
    return l->cache.row_bytes > 0 && cache_near(l->cache.entries, sample, l->cache.row_bytes);
}

const uint8_t *loader_rows_find_pixels(struct stk_loader *l, int64_t sample)
{
    return l->cache.row_bytes > 0 ? find(l, sample) : NULL;
}

void loader_rows_keep_pixels(struct stk_loader *l, int64_t sample, const uint8_t *px)
{
    if (l->cache.row_bytes > 0) /* 0: other images of the source are encoded */
        cache_put(l->cache.entries, sample, 0, px, l->cache.row_bytes);
}

bool loader_rows_take(struct stk_loader *l, struct worker *w, int64_t sample, struct stk_batch *b, int64_t row)
{
    const uint8_t *from = l->image < 0 ? find(l, sample) : NULL;
    if (!from)
        return false;
    memcpy(&w->desk.reading.label, from, sizeof(int64_t));
    from += sizeof(int64_t);
    for (int f = 0; f < source_n_fields(l->source); f++) {
        const size_t n = source_field(l->source, f)->bytes;
        memcpy(batch_row(b, f, row), from, n);
        from += n;
    }
    return true;
}

void loader_rows_keep(struct stk_loader *l, struct worker *w, int64_t sample, const struct stk_batch *b, int64_t row)
{
    const size_t all = l->cache.row_bytes;
    if (l->image >= 0 || !cache_has_room(l->cache.entries, sample, all) ||
        desk_reserve(&w->desk, arena_cost(all), 0, NULL) != STK_OK)
        return;
    uint8_t *const entry = arena_alloc(&w->desk.arena, all), *to = entry;
    if (!entry)
        return;
    memcpy(to, &w->desk.reading.label, sizeof(int64_t));
    to += sizeof(int64_t);
    for (int f = 0; f < source_n_fields(l->source); f++) {
        const size_t n = source_field(l->source, f)->bytes;
        memcpy(to, batch_row(b, f, row), n);
        to += n;
    }
    cache_put(l->cache.entries, sample, 0, entry, all);
}
