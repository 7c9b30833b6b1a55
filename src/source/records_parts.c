/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_parts.c -- reads the parts of one sample from its shard.
 *
 * If the parts are near each other, one read gets all of them. They are then moved apart, so that zeros fit after each.
 * The largest part is not moved.
 */
#include "source/shard_files.h"

#include <string.h>

#include "base/error.h"
#include "base/io.h"

enum { GAP_MOST = 64 << 10 };

int records_parts_plan(const struct records_index *x, int64_t i, uint64_t wanted, struct records_parts *p, stk_error *e)
{
    const struct part *parts = &x->parts[i * (int64_t)x->head->n_parts];
    *p = (struct records_parts){.shard = records_shard(x, i), .from = INT64_MAX};
    for (int k = 0; k < (int)x->head->n_parts; k++) {
        const char *why = records_bad_reason(x, &parts[k]);
        if (why)
            return error_set(e, STK_EDATA, "read", "%s (at byte %lld of the shard)", why, (long long)parts[k].at);
        if (parts[k].bytes < 0 || !(wanted >> k & 1))
            continue;
        int at = p->n++;
        for (; at > 0 && parts[p->part[at - 1]].at > parts[k].at; at--)
            p->part[at] = p->part[at - 1];
        p->part[at] = k;
        p->from = parts[k].at < p->from ? parts[k].at : p->from;
        p->to = parts[k].at + parts[k].bytes > p->to ? parts[k].at + parts[k].bytes : p->to;
        p->bytes += parts[k].bytes;
    }
    for (int k = 1; k < p->n; k++)
        if (parts[p->part[k]].bytes > parts[p->part[p->largest]].bytes)
            p->largest = k;
    return STK_OK;
}

bool records_parts_adjacent(const struct records_parts *p)
{
    return p->n > 0 && p->to - p->from - p->bytes <= GAP_MOST;
}

/* Gets n bytes of a shard: from r->ahead if they were read ahead, otherwise from the file. */
static int read_bytes(const struct shard_files *files, struct reading *r, int64_t shard, uint8_t *to, int64_t at,
                      int64_t n, stk_error *e)
{
    int fd;
    if (r->ahead && at >= r->ahead_at && n <= r->ahead_bytes - (at - r->ahead_at)) {
        memcpy(to, r->ahead + (at - r->ahead_at), (size_t)n);
        return STK_OK;
    }
    int rc = shard_files_take(files, shard, &fd, e);
    if (rc != STK_OK)
        return rc;
    rc = shard_files_read(files, shard, fd, to, at, n, r->probe ? &r->cold : NULL, e);
    shard_files_give(files, fd);
    return rc;
}

/* Reads all parts at once, and moves them apart. */
static int read_together(const struct shard_files *files, const struct records_parts *p, const struct part *parts,
                         struct reading *r, uint8_t **where, stk_error *e)
{
    uint8_t *base = r->file.data + (size_t)p->n * IO_SLACK;
    const int rc = read_bytes(files, r, p->shard, base, p->from, p->to - p->from, e);
    if (rc != STK_OK)
        return rc;
    for (int k = 0; k < p->largest; k++) { /* to the left, from the first on */
        const struct part *one = &parts[p->part[k]];
        where[k] = base + (one->at - p->from) - (ptrdiff_t)(p->largest - k) * IO_SLACK;
        memmove(where[k], base + (one->at - p->from), (size_t)one->bytes);
    }
    for (int k = p->n - 1; k >= p->largest; k--) { /* to the right, from the last on */
        const struct part *one = &parts[p->part[k]];
        where[k] = base + (one->at - p->from) + (ptrdiff_t)(k - p->largest) * IO_SLACK;
        memmove(where[k], base + (one->at - p->from), (size_t)one->bytes);
    }
    return STK_OK;
}

static int read_apart(const struct shard_files *files, const struct records_parts *p, const struct part *parts,
                      struct reading *r, uint8_t **where, stk_error *e)
{
    uint8_t *to = r->file.data;
    for (int k = 0; k < p->n; k++) {
        const struct part *one = &parts[p->part[k]];
        const int rc = read_bytes(files, r, p->shard, to, one->at, one->bytes, e);
        if (rc != STK_OK)
            return rc;
        where[k] = to;
        to += one->bytes + IO_SLACK;
    }
    return STK_OK;
}

/* Whether a single part can stay in r->ahead, which is followed by zeros. */
static bool stays_ahead(const struct reading *r, const struct records_parts *p)
{
    return r->ahead && p->n == 1 && p->from == r->ahead_at && p->to - p->from == r->ahead_bytes;
}

/* Puts all parts into r->file, each followed by zeros. The room is reserved even if a part stays in r->ahead: a sample
 * must need the same memory whether or not it was read ahead. */
static int place_parts(const struct shard_files *files, const struct records_parts *p, const struct part *parts,
                       struct reading *r, uint8_t **where, stk_error *e)
{
    const bool together = records_parts_adjacent(p);
    const size_t room = (size_t)(together ? p->to - p->from : p->bytes) + (size_t)(2 * p->n + 1) * IO_SLACK;
    if (buf_reserve(&r->file, room))
        return error_nomem(e, "read", room);
    int rc = STK_OK;
    if (!stays_ahead(r, p))
        rc = together ? read_together(files, p, parts, r, where, e) : read_apart(files, p, parts, r, where, e);
    if (rc != STK_OK)
        return rc;
    r->file.len = room;
    for (int k = 0; k < p->n && !stays_ahead(r, p); k++)
        memset(where[k] + parts[p->part[k]].bytes, 0, IO_SLACK);
    return STK_OK;
}

int records_parts_read(const struct shard_files *files, struct reading *r, int64_t i, uint64_t wanted,
                       int64_t max_bytes, struct record *out, stk_error *e)
{
    const struct records_index *x = files->index;
    const struct part *parts = &x->parts[i * (int64_t)x->head->n_parts];
    struct records_parts p;
    uint8_t *where[RECORD_PARTS];
    int rc = records_parts_plan(x, i, wanted, &p, e);
    if (rc != STK_OK)
        return rc;
    if (p.bytes > max_bytes)
        return error_set(e, STK_EDATA, "read", "has %lld bytes, more than the %lld that max_bytes allows",
                         (long long)p.bytes, (long long)max_bytes);
    r->file.len = 0;
    rc = place_parts(files, &p, parts, r, where, e);
    if (rc != STK_OK)
        return rc;
    out->sample = i;
    out->shard = x->pool + x->shards[p.shard].name_at;
    for (uint64_t k = 0; k < x->head->n_parts; k++)
        out->parts[k].bytes = NULL;
    for (int k = 0; k < p.n; k++) {
        const int part = p.part[k];
        out->parts[part].bytes = stays_ahead(r, &p) ? r->ahead : where[k];
        out->parts[part].n = (size_t)parts[part].bytes;
        out->parts[part].at = parts[part].at;
        out->parts[part].extra = x->extra ? x->extra[i * (int64_t)x->head->n_parts + part] : (struct part_extra){0};
    }
    return STK_OK;
}
