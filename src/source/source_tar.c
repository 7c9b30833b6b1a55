/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_tar.c -- tar archives as shards, perhaps compressed with gzip or zstd.
 */
#include "base/error.h"
#include "format/tar.h"
#include "source/group.h"

static const uint8_t *peek(void *user, int64_t at, size_t n, size_t *got)
{
    return record_peek(user, at, n, got);
}

/* Adds a file, and reads it if it is the label. */
static int add(struct group *g, const struct tar_member *m)
{
    if (group_add(g, m->name, m->n_name, (struct part){m->at, m->bytes}, NULL))
        return -1;
    if (!group_wants_label(m->name, m->n_name, m->bytes))
        return 0;
    size_t got;
    const uint8_t *text = record_peek(g->scan, m->at, (size_t)m->bytes, &got);
    return got == (size_t)m->bytes ? group_label(g, text, got) : 0;
}

/* Handles one entry. Returns 0, or -1: out of memory. *files counts the complete files. */
static int take(struct group *g, enum tar_found found, const struct tar_member *m, int64_t *files)
{
    switch (found) {
    case TAR_FILE:
        ++*files;
        return add(g, m);
    case TAR_BAD:
        return group_bad(g, m->name, m->n_name, m->header, m->reason);
    case TAR_CUT:
        return g->added ? record_bad(g->scan, m->header, "the archive ends inside it") : 0;
    default:
        return -1;
    }
}

static int scan(struct record_scan *sc, stk_error *e)
{
    struct tar t = {.peek = peek, .user = sc, .bytes = sc->bytes};
    struct group g = {.scan = sc};
    struct tar_member m;
    int64_t files = 0;
    bool first_is_bad = false;
    int rc = 0;
    for (enum tar_found found; rc == 0 && (found = tar_next(&t, &m)) != TAR_END;) {
        first_is_bad |= found == TAR_BAD && m.header == 0 && !m.name;
        rc = take(&g, found, &m, &files);
    }
    tar_done(&t);
    group_done(&g);
    if (rc != 0)
        return error_nomem(e, "open", TAR_BLOCK);
    if (first_is_bad && files == 0)
        return error_set(e, STK_EDATA, "open", "is not a tar archive: it contains no valid header");
    return STK_OK;
}

static const struct record_format format = {
    .kind = "tar shards", .id = 1, .labels = true, .groups = true, .scan = scan};

int source_tar_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e)
{
    if (query)
        return error_set(e, STK_EUSAGE, "open", "tar shards take no query; remove the ? and the text after it");
    return source_records_open(s, o, &format, paths, e);
}
