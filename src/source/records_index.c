/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_index.c -- the index of samples in shards: its block, its file, and whether it is up to date.
 */
#include "source/records_index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/search.h"
#include "format/stream.h"

enum { SECTIONS = 10 };

/* Offsets of the sections; the last element is the end of the block. false: a count is too large. */
static bool lay_out(const struct records_head *h, uint64_t at[SECTIONS])
{
    const uint64_t most = UINT64_C(1) << 40;
    if (h->n > most || h->n_shards > most || h->n_parts > RECORD_PARTS || h->n_classes > most ||
        h->survey_bytes > most || h->pool_bytes > most)
        return false;
    const uint64_t cells = h->n * h->n_parts;
    at[0] = sizeof *h;
    at[1] = at[0] + h->n_shards * sizeof(struct record_shard);
    at[2] = at[1] + cells * sizeof(struct part);
    at[3] = at[2] + (h->has & RECORDS_EXTRA ? cells * sizeof(struct part_extra) : 0);
    at[4] = at[3] + (h->has & RECORDS_LABELS ? h->n * sizeof(int64_t) : 0);
    at[5] = at[4] + (h->has & RECORDS_KEYS ? h->n * sizeof(uint64_t) : 0);
    at[6] = at[5] + h->n_parts * sizeof(uint64_t);
    at[7] = at[6] + h->n_classes * sizeof(uint64_t);
    at[8] = at[7] + h->survey_bytes;
    at[9] = at[8] + h->pool_bytes;
    return at[9] <= SIZE_MAX / 2;
}

static void point(struct records_index *x, void *block, const uint64_t at[SECTIONS])
{
    uint8_t *p = block;
    x->head = block;
    x->shards = (void *)(p + at[0]);
    x->parts = (void *)(p + at[1]);
    x->extra = x->head->has & RECORDS_EXTRA ? (void *)(p + at[2]) : NULL;
    x->label = x->head->has & RECORDS_LABELS ? (void *)(p + at[3]) : NULL;
    x->key_at = x->head->has & RECORDS_KEYS ? (void *)(p + at[4]) : NULL;
    x->part_name_at = (void *)(p + at[5]);
    x->class_at = (void *)(p + at[6]);
    x->survey = p + at[7];
    x->pool = (void *)(p + at[8]);
}

int records_init(struct records_index *x, const struct records_head *head)
{
    uint64_t at[SECTIONS];
    *x = (struct records_index){0};
    if (!lay_out(head, at))
        return -1;
    struct records_head *block = calloc(1, (size_t)at[SECTIONS - 1]);
    if (!block)
        return -1;
    *block = *head;
    block->magic = RECORDS_MAGIC;
    block->bytes = at[SECTIONS - 1];
    point(x, block, at);
    return 0;
}

static uint64_t checksum(const struct records_head *h)
{
    struct records_head head = *h;
    head.checksum = 0;
    return hash_bytes(h + 1, (size_t)h->bytes - sizeof head, hash_bytes(&head, sizeof head, 0));
}

void records_seal(struct records_index *x)
{
    x->head->checksum = checksum(x->head);
}

void records_done(struct records_index *x)
{
    free(x->head);
    *x = (struct records_index){0};
}

/* ------------------------------------------------------------------ validating a block */

static bool offsets_are_inside(const uint64_t *at, uint64_t n, uint64_t pool_bytes)
{
    for (uint64_t i = 0; i < n; i++)
        if (at[i] >= pool_bytes)
            return false;
    return true;
}

enum { SIZE_BITS = 56, RAW_BITS = 42 }; /* limits, so that sums over all parts or shards do not overflow */

static bool shards_are_valid(const struct records_index *x)
{
    const struct records_head *h = x->head;
    int64_t first = 0;
    for (uint64_t i = 0; i < h->n_shards; i++) {
        const struct record_shard *s = &x->shards[i];
        if (s->name_at >= h->pool_bytes || s->first < first || s->first > (int64_t)h->n || s->bytes < 0 || s->raw < 0 ||
            s->raw >> RAW_BITS || s->form > STREAM_ZSTD)
            return false;
        first = s->first;
    }
    return h->n_shards > 0 && x->shards[0].first == 0;
}

static bool parts_are_valid(const struct records_index *x)
{
    const struct records_head *h = x->head;
    for (uint64_t i = 0; i < h->n * h->n_parts; i++) {
        const struct part *p = &x->parts[i];
        if (p->bytes >= 0 && (p->at < 0 || p->at >> SIZE_BITS || p->bytes >> SIZE_BITS))
            return false;
        if (p->bytes < PART_NONE && (uint64_t)(PART_NONE - 1 - p->bytes) >= h->pool_bytes)
            return false;
    }
    return true;
}

int records_adopt(struct records_index *x, void *block, size_t bytes)
{
    const struct records_head *h = block;
    uint64_t at[SECTIONS];
    *x = (struct records_index){0};
    if (bytes < sizeof *h || h->magic != RECORDS_MAGIC || h->bytes != bytes || h->n_parts == 0 || h->pool_bytes == 0 ||
        !lay_out(h, at) || at[SECTIONS - 1] != bytes || h->checksum != checksum(h))
        return -1;
    struct records_index y;
    point(&y, block, at);
    if (y.pool[h->pool_bytes - 1] != 0 || !shards_are_valid(&y) || !parts_are_valid(&y) ||
        !offsets_are_inside(y.part_name_at, h->n_parts, h->pool_bytes) ||
        !offsets_are_inside(y.class_at, h->n_classes, h->pool_bytes) ||
        (y.key_at && !offsets_are_inside(y.key_at, h->n, h->pool_bytes)))
        return -1;
    *x = y;
    return 0;
}

/* ------------------------------------------------------------------ loading */

static bool shard_is(struct records_index *x, uint64_t i, const char *path)
{
    const struct record_shard *s = &x->shards[i];
    struct stamp now;
    struct stat st;
    if (strcmp(x->pool + s->name_at, path) != 0 || stat(path, &st) != 0 || (int64_t)st.st_size != s->bytes)
        return false;
    index_stamp(&now, &st);
    return memcmp(&now, &s->stamp, sizeof now) == 0;
}

int records_load_as(struct records_index *x, const char *file, enum file_owner whose, uint32_t format,
                    const struct names *paths, bool (*is)(struct records_index *x, uint64_t i, const char *path))
{
    size_t bytes;
    void *block = file_load(file, whose, sizeof(struct records_head), &bytes);
    if (!block || records_adopt(x, block, bytes)) {
        free(block);
        return -1;
    }
    bool same = x->head->format == format && x->head->n_shards == paths->n;
    for (uint32_t i = 0; same && i < paths->n; i++)
        same = is(x, i, names_at(paths, i));
    if (!same)
        records_done(x);
    return same ? 0 : -1;
}

int records_load(struct records_index *x, const char *file, uint32_t format, const struct names *paths)
{
    return records_load_as(x, file, FILE_OWN, format, paths, shard_is);
}

/* ------------------------------------------------------------------ lookup */

int64_t records_shard(const struct records_index *x, int64_t i)
{
    return search_last(&x->shards->first, sizeof *x->shards, (int64_t)x->head->n_shards, i);
}

const char *records_spelling(const struct records_index *x, int64_t i)
{
    if (!x->key_at)
        return "";
    const char *key = x->pool + x->key_at[i], *spelling = key + strlen(key) + 1;
    return spelling < x->pool + x->head->pool_bytes ? spelling : "";
}

const char *records_bad_reason(const struct records_index *x, const struct part *p)
{
    return p->bytes < PART_NONE ? x->pool + (PART_NONE - 1 - p->bytes) : NULL;
}
