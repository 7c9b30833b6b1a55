/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_tar.c -- packs to tar shards in the form of WebDataset: the fields of a sample are files that share a key.
 */
#include <string.h>

#include "base/error.h"
#include "format/tar.h"
#include "pack/target.h"

/* Leaves the headers of all fields in t->made, one after the other. */
static int measure(struct target *t, const struct packed *p, size_t *bytes, stk_error *e)
{
    struct buf name = {0};
    int rc = 0;
    *bytes = 0;
    t->made.len = 0;
    for (int i = 0; i < p->n_fields && rc == 0; i++) {
        const struct packed_field *f = &p->fields[i];
        name.len = 0;
        rc = buf_add(&name, p->key.data, p->key.len) || buf_add(&name, ".", 1) || buf_add_str(&name, f->name) ||
             tar_out_head(&t->made, (const char *)name.data, name.len, f->n);
        *bytes += f->n + tar_out_padding(f->n);
    }
    *bytes += t->made.len;
    buf_done(&name);
    return rc ? error_nomem(e, "write", t->made.len) : STK_OK;
}

/* The size of the header at `head`: one block, or more if a PAX header comes first. */
static size_t head_bytes(const uint8_t *head)
{
    size_t n = TAR_BLOCK;
    if (head[156] == 'x') {
        size_t records = 0;
        for (int i = 0; i < 11; i++)
            records = records * 8 + (size_t)(head[124 + i] - '0');
        n += records + tar_out_padding(records) + TAR_BLOCK;
    }
    return n;
}

static int put(struct target *t, const struct packed *p, stk_error *e)
{
    static const uint8_t zeros[TAR_BLOCK];
    size_t at = 0;
    int rc = STK_OK;
    for (int i = 0; i < p->n_fields && rc == STK_OK; i++) {
        const struct packed_field *f = &p->fields[i];
        const size_t head = head_bytes(t->made.data + at);
        rc = outfile_add(&t->file, t->made.data + at, head, e);
        at += head;
        if (rc == STK_OK)
            rc = outfile_add(&t->file, packed_bytes(p, f), f->n, e);
        if (rc == STK_OK)
            rc = outfile_add(&t->file, zeros, tar_out_padding(f->n), e);
    }
    return rc;
}

static int end(struct target *t, stk_error *e)
{
    static const uint8_t zeros[2 * TAR_BLOCK];
    return outfile_add(&t->file, zeros, sizeof zeros, e);
}

const struct target_format target_tar = {
    .to = STK_TO_TAR,
    .name = "tar",
    .suffix = "tar",
    .measure = measure,
    .write = put,
    .end = end,
};
