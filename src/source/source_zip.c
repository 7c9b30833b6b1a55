/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_zip.c -- zip archives as shards; files are grouped into samples as in tar archives.
 *
 * The central directory is read first and kept, so that the local headers are read in one pass.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/io.h"
#include "base/size.h"
#include "format/gunzip.h"
#include "format/zip.h"
#include "source/group.h"

static const uint8_t *peek(void *user, int64_t at, size_t n, size_t *got)
{
    return record_peek(user, at, n, got);
}

/* ------------------------------------------------------------------ scanning */

/* The entries of the directory, and their names one after the other. */
struct members {
    struct buf list, names;
};

static int read_directory(struct zip *z, struct members *all)
{
    for (struct zip_member m; zip_next(z, &m);) {
        const char *name = m.name;
        m.name = NULL;
        if (buf_add(&all->list, &m, sizeof m) || buf_add(&all->names, name, m.n_name))
            return -1;
    }
    return 0;
}

/* Reads the label from a small file. */
static int add_label(struct group *g, const struct zip_member *m)
{
    uint8_t raw[GROUP_LABEL_MOST];
    size_t got;
    if (m->bytes > GROUP_LABEL_MOST)
        return 0;
    const uint8_t *p = record_peek(g->scan, m->at, (size_t)m->bytes, &got);
    if (got < (size_t)m->bytes)
        return 0;
    if (!m->deflated)
        return group_label(g, p, got);
    struct gunzip *z = gunzip_new(GUNZIP_DEFLATE);
    if (!z)
        return -1;
    const int64_t n = gunzip_whole(z, p, got, raw, sizeof raw);
    gunzip_free(z);
    return n > 0 ? group_label(g, raw, (size_t)n) : 0;
}

static int add(struct group *g, struct zip *z, struct zip_member *m, const char *name)
{
    if (!m->reason)
        zip_locate(z, m);
    if (m->reason)
        return group_bad(g, m->n_name > 0 ? name : NULL, m->n_name, m->entry, m->reason);
    const struct part_extra extra = {.a = (uint64_t)m->raw << 1 | m->deflated, .b = m->crc};
    if (group_add(g, name, m->n_name, (struct part){m->at, m->bytes}, &extra))
        return -1;
    return group_wants_label(name, m->n_name, m->raw) ? add_label(g, m) : 0;
}

static int add_all(struct record_scan *sc, struct zip *z, struct members *all)
{
    struct group g = {.scan = sc};
    struct zip_member *m = (void *)all->list.data;
    const char *name = (const char *)all->names.data;
    int rc = 0;
    for (size_t i = 0; i < all->list.len / sizeof *m && rc == 0; i++) {
        rc = add(&g, z, &m[i], name);
        name += m[i].n_name;
    }
    group_done(&g);
    return rc;
}

static int scan(struct record_scan *sc, stk_error *e)
{
    struct zip z = {.peek = peek, .user = sc, .bytes = sc->bytes};
    struct members all = {0};
    const char *reason = zip_begin(&z);
    if (reason)
        return error_set(e, STK_EDATA, "open", "%s", reason);
    const int rc = read_directory(&z, &all) || add_all(sc, &z, &all);
    buf_done(&all.list);
    buf_done(&all.names);
    return rc ? error_nomem(e, "open", sizeof(struct zip_member)) : STK_OK;
}

/* ------------------------------------------------------------------ reading */

struct stored {
    size_t raw;
    uint32_t crc;
    bool deflated;
};

static struct stored stored_of(const struct part_extra *x)
{
    return (struct stored){.raw = (size_t)(x->a >> 1), .crc = (uint32_t)x->b, .deflated = x->a & 1};
}

/* Reserves memory for the compressed parts, if there are any. */
static int prepare(const struct source *s, struct reading *r, const struct record *rec, stk_error *e)
{
    size_t room = 0, raw = 0;
    for (int k = 0; k < records_n_parts(s); k++)
        if (rec->parts[k].bytes && rec->parts[k].extra.a & 1) {
            raw = size_add(raw, stored_of(&rec->parts[k].extra).raw);
            room = size_add(raw, ((size_t)k + 1) * IO_SLACK);
        }
    r->derived.len = 0;
    if (room == 0)
        return STK_OK;
    if (raw > (size_t)s->max_bytes)
        return error_set(e, STK_EDATA, "read",
                         "has %zu bytes when decompressed, more than the %lld that max_bytes allows", raw,
                         (long long)s->max_bytes);
    const int rc = r->allow ? r->allow(r->user, r->file.len + room, e) : STK_OK;
    if (rc != STK_OK)
        return rc;
    if (!r->gunzip)
        r->gunzip = gunzip_new(GUNZIP_DEFLATE);
    return !r->gunzip || buf_reserve(&r->derived, room) ? error_nomem(e, "read", room) : STK_OK;
}

static int decompress(const struct source *s, struct reading *r, struct record *rec, stk_error *e)
{
    const struct crc32 *crc = crc32_choose(STK_CPU_DEFAULT);
    int rc = prepare(s, r, rec, e);
    for (int k = 0; k < records_n_parts(s) && rc == STK_OK; k++) {
        if (!rec->parts[k].bytes)
            continue;
        const struct stored w = stored_of(&rec->parts[k].extra);
        if (w.deflated) {
            uint8_t *to = r->derived.data + r->derived.len;
            if (gunzip_whole(r->gunzip, rec->parts[k].bytes, rec->parts[k].n, to, w.raw) != (int64_t)w.raw)
                return error_set(e, STK_EDATA, "read", "its %s is damaged: it does not decompress to %zu bytes",
                                 records_part_name(s, k), w.raw);
            memset(to + w.raw, 0, IO_SLACK);
            r->derived.len += w.raw + IO_SLACK;
            rec->parts[k].bytes = to;
            rec->parts[k].n = w.raw;
        }
        if (crc->of(rec->parts[k].bytes, rec->parts[k].n) != w.crc)
            rc = error_set(e, STK_EDATA, "read", "the checksum of its %s is wrong", records_part_name(s, k));
    }
    return rc;
}

static const struct record_format format = {.kind = "zip archives",
                                            .id = 2,
                                            .extra = true,
                                            .labels = true,
                                            .groups = true,
                                            .scan = scan,
                                            .decompress = decompress};

int source_zip_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e)
{
    if (query)
        return error_set(e, STK_EUSAGE, "open", "zip archives take no query; remove the ? and the text after it");
    if (!gunzip_here())
        return error_set(e, STK_EUSAGE, "open", "zip archives need zlib, which this build lacks");
    return source_records_open(s, o, &format, paths, e);
}
