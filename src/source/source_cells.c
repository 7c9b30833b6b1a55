/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_cells.c -- hooks with cells(): tables in the caller's memory, read column by column.
 *
 * cells() lends memory until its next call from the same thread. Numbers, text and bytes are copied from there into
 * their rows. An encoded image is first copied into the thread's buffer, because decoders may read past its end. A cell
 * may name a file instead, which is read like the files of a folder.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/io.h"
#include "source/columns.h"
#include "source/field.h"
#include "source/source_ops.h"

struct cells {
    stk_cells_hooks hooks;
    int wanted[FIELD_MAX]; /* the column of each field */
    int image;             /* field; -1: none */
    int others[FIELD_MAX]; /* like wanted, without the image */
    int n_others;
    struct blocks blocks;
};

static void close_cells(struct source *s)
{
    struct cells *c = s->state;
    if (c && c->hooks.close)
        c->hooks.close(c->hooks.user);
    if (c)
        blocks_done(&c->blocks);
    free(c);
    s->state = NULL;
}

static size_t key(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct cells *c = s->state;
    return c->hooks.key ? c->hooks.key(c->hooks.user, i, buf, n) : source_numbered_path(s, i, buf, n);
}

static size_t path(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct cells *c = s->state;
    return c->hooks.path ? c->hooks.path(c->hooks.user, i, buf, n) : key(s, i, buf, n);
}

static int call(const struct cells *c, int thread, int64_t i, const int *wanted, int n, stk_cell *to, stk_error *e)
{
    memset(to, 0, (size_t)n * sizeof *to);
    error_clear(e);
    const int rc = c->hooks.cells(c->hooks.user, thread, i, wanted, n, to, e);
    return rc == STK_OK ? rc : error_of_hook(e, rc, "read", "the source's cells()");
}

static struct cell cell_of(const struct field *f, const stk_cell *from)
{
    struct cell c = {.bytes = from->bytes, .n = from->n, .dtype = from->dtype, .text = f->text, .ndim = from->ndim};
    memcpy(c.shape, from->shape, sizeof c.shape);
    return c;
}

static int path_of(const stk_cell *c, char to[PATH_MAX])
{
    if (c->n == 0 || c->n >= PATH_MAX || memchr(c->file, 0, c->n))
        return -1;
    memcpy(to, c->file, c->n);
    to[c->n] = 0;
    return 0;
}

static int load_file(const struct source *s, struct reading *r, int f, const stk_cell *c, struct buf *out, stk_error *e)
{
    char file[PATH_MAX];
    stk_error why;
    int64_t size;
    if (path_of(c, file))
        return error_set(e, STK_EDATA, "read", "%s: invalid path %.*s", s->fields[f].name,
                         c->n < PATH_MAX ? (int)c->n : PATH_MAX, c->file);
    int rc = source_allow_file(s, r, AT_FDCWD, file, r->derived.len, 1, e);
    if (rc != STK_OK)
        return rc;
    rc = io_read(AT_FDCWD, file, s->max_bytes, out, &size, NULL, &why);
    if (rc != STK_OK)
        error_set(e, rc, "read", "%s: %s %s", s->fields[f].name, file, why.reason);
    if (rc != STK_OK && e)
        e->os_error = why.os_error;
    return rc;
}

static int load_image(const struct source *s, struct reading *r, int f, const stk_cell *c, stk_error *e)
{
    const int rc = load_file(s, r, f, c, &r->file, e);
    r->bytes = r->file.data;
    r->n_bytes = rc == STK_OK ? r->file.len : 0;
    return rc;
}

/* Appends the file to r->derived; *n is its size. */
static int add_file(const struct source *s, struct reading *r, int f, const stk_cell *c, size_t *n, stk_error *e)
{
    const int rc = load_file(s, r, f, c, &r->spare[0], e);
    *n = rc == STK_OK ? r->spare[0].len : 0;
    return rc == STK_OK && buf_add(&r->derived, r->spare[0].data, *n) ? error_nomem(e, "read", *n) : rc;
}

static int keep_image(const struct source *s, struct reading *r, int f, const stk_cell *c, stk_error *e)
{
    if (c->file)
        return load_image(s, r, f, c, e);
    if (!c->bytes || c->n == 0)
        return error_set(e, STK_EDATA, "read", "the sample has no %s", s->fields[f].name);
    return source_keep_bytes(s, r, s->fields[f].name, c->bytes, c->n, e);
}

static bool is_encoded(const struct source *s, int f)
{
    return f == ((const struct cells *)s->state)->image && s->fields[f].kind == FIELD_ENCODED;
}

static int take_cell(const struct source *s, struct reading *r, int f, const stk_cell *c, stk_error *e)
{
    r->cells[f] = cell_of(&s->fields[f], c);
    if (is_encoded(s, f))
        return keep_image(s, r, f, c, e);
    if (c->file)
        return add_file(s, r, f, c, &r->cells[f].n, e);
    if (c->n > (size_t)s->max_bytes)
        return error_set(e, STK_EDATA, "read", "%s has %zu bytes, more than the %lld that max_bytes allows",
                         s->fields[f].name, c->n, (long long)s->max_bytes);
    return STK_OK;
}

/* Points the cells of files into r->derived, where the files follow one another. Called when it no longer moves. */
static void point_to_files(const struct source *s, struct reading *r, const bool *filed)
{
    const uint8_t *at = r->derived.data;
    for (int f = 0; f < s->n_fields; f++)
        if (filed[f]) {
            r->cells[f].bytes = at;
            at += r->cells[f].n;
        }
}

static int read_cells(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const struct cells *c = s->state;
    const bool rest = r->rest && c->image >= 0;
    stk_cell got[FIELD_MAX];
    bool filed[FIELD_MAX] = {false};
    r->label = -1;
    r->n_bytes = 0;
    r->derived.len = 0;
    int rc = call(c, r->thread, i, rest ? c->others : c->wanted, rest ? c->n_others : s->n_fields, got, e);
    for (int f = 0, k = 0; rc == STK_OK && f < s->n_fields; f++) {
        if (rest && f == c->image)
            continue;
        const stk_cell *one = &got[k++];
        rc = take_cell(s, r, f, one, e);
        filed[f] = one->file && !is_encoded(s, f);
    }
    if (rc == STK_OK)
        point_to_files(s, r, filed);
    return rc;
}

/* Copies pixels from the table. */
static int copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    const struct cells *c = s->state;
    stk_cell got;
    const int rc = call(c, r->thread, i, &c->wanted[f], 1, &got, e);
    const struct cell cell = cell_of(&s->fields[f], &got);
    return rc == STK_OK ? field_store(&s->fields[f], &cell, to, e) : rc;
}

static uint64_t fingerprint(const struct source *s)
{
    const struct cells *c = s->state;
    return hash_mix(hash_bytes("cells", 5, c->hooks.fingerprint), (uint64_t)s->count);
}

static const struct blocks *blocks(const struct source *s)
{
    return &((const struct cells *)s->state)->blocks;
}

static const struct source_ops ops = {
    .close = close_cells,
    .path = path,
    .key = key,
    .label = source_unknown,
    .bytes = source_unknown,
    .read = read_cells,
    .copy = copy,
    .fingerprint = fingerprint,
    .tally = source_empty_tally,
    .class_name = source_given_class,
    .blocks = blocks,
};

/* ------------------------------------------------------------------ opening */

static int take_column(struct columns *to, const stk_column *from, stk_error *e)
{
    struct column c = {.kind = from->kind, .dtype = from->dtype, .ndim = from->ndim, .label = from->label != 0};
    const size_t n = from->name ? strlen(from->name) : 0;
    if (n == 0)
        return error_set(e, STK_EUSAGE, "open", "column %d of the source has no name; give it one", to->n);
    if (n >= sizeof c.name)
        return error_set(e, STK_EUSAGE, "open",
                         "column %d of the source has a name of %zu bytes; at most %zu are allowed", to->n, n,
                         sizeof c.name - 1);
    if (from->ndim < 0 || from->ndim > FIELD_DIMS || (from->ndim > 0 && !from->shape))
        return error_set(e, STK_EUSAGE, "open", "the column %s has %d dimensions%s; use 0 to %d", from->name,
                         from->ndim, from->ndim > 0 && !from->shape ? " and no shape" : "", FIELD_DIMS);
    memcpy(c.name, from->name, n + 1);
    for (int d = 0; d < from->ndim; d++)
        c.shape[d] = from->shape[d];
    return columns_add(to, &c) ? error_nomem(e, "open", sizeof c) : STK_OK;
}

static int bind(struct source *s, const struct source_options *o, stk_error *e)
{
    const stk_cells_hooks *h = o->cells_hooks;
    struct columns columns = {0};
    int rc = STK_OK;
    for (int i = 0; i < h->n_columns && rc == STK_OK; i++)
        rc = take_column(&columns, &h->columns[i], e);
    if (rc == STK_OK)
        rc = columns_bind(s, &columns, o->fields, e);
    columns_done(&columns);
    return rc;
}

/* Copies the caller's blocks, and adds the end. */
static int take_blocks(struct blocks *b, const stk_cells_hooks *h, int64_t count, stk_error *e)
{
    bool good = h->window > 0 && h->n_blocks <= count && h->blocks && h->blocks[0] == 0;
    for (int64_t i = 1; good && i < h->n_blocks; i++)
        good = h->blocks[i] > h->blocks[i - 1] && h->blocks[i] < count;
    if (!good)
        return error_set(e, STK_EUSAGE, "open",
                         "blocks need a window, and their first samples must start at 0 and increase");
    const size_t bytes = (size_t)h->n_blocks * sizeof *b->starts;
    b->starts = malloc(bytes + sizeof *b->starts);
    if (!b->starts)
        return error_nomem(e, "open", bytes);
    memcpy(b->starts, h->blocks, bytes);
    b->starts[h->n_blocks] = count;
    b->n = h->n_blocks;
    b->window = h->window;
    return STK_OK;
}

int source_cells_open(struct source *s, const struct source_options *o, stk_error *e)
{
    const stk_cells_hooks *h = o->cells_hooks;
    if (h->n_columns < 1 || !h->columns)
        return error_set(e, STK_EUSAGE, "open", "cells_hooks has no columns");
    const int64_t count = h->count(h->user);
    int rc = source_hooks_count(count, e);
    if (rc == STK_OK)
        rc = bind(s, o, e);
    struct blocks near = {0};
    if (rc == STK_OK && h->n_blocks > 0)
        rc = take_blocks(&near, h, count, e);
    if (rc != STK_OK)
        return rc;
    struct cells *c = calloc(1, sizeof *c);
    if (!c) {
        blocks_done(&near);
        return error_nomem(e, "open", sizeof *c);
    }
    c->hooks = *h;
    c->blocks = near;
    c->image = -1;
    for (int f = 0; f < s->n_fields; f++) {
        c->wanted[f] = s->fields[f].column;
        if (s->fields[f].what == STK_IMAGE)
            c->image = f;
        else
            c->others[c->n_others++] = s->fields[f].column;
    }
    s->state = c;
    s->ops = &ops;
    s->kind = h->kind ? h->kind : "hooks";
    s->count = count;
    return STK_OK;
}
