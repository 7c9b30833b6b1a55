/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_table.c -- a list whose rows contain values and no paths.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/io.h"
#include "source/list_fields.h"

struct table {
    struct list_fields *list;
    struct source_tally tally;
    char *path; /* as typed */
};

static void close_table(struct source *s)
{
    struct table *x = s->state;
    if (!x)
        return;
    list_fields_free(x->list);
    free(x->path);
    free(x);
    s->state = NULL;
}

static size_t path(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct table *x = s->state;
    const int length = snprintf(buf, n, "%s row %lld", x->path, (long long)i);
    return length > 0 ? (size_t)length : 0;
}

static size_t key(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct table *x = s->state;
    const char *slash = strrchr(x->path, '/');
    const int length = snprintf(buf, n, "%s:%lld", slash ? slash + 1 : x->path, (long long)i);
    return length > 0 ? (size_t)length : 0;
}

static int64_t bytes(const struct source *s, int64_t i)
{
    return ((const struct table *)s->state)->list->lines[i].bytes;
}

static int read_row(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const struct table *x = s->state;
    r->bytes = NULL;
    r->n_bytes = 0;
    r->label = -1;
    return list_fields_read(x->list, s, r, i, e);
}

/* Covers the whole text. */
static uint64_t fingerprint(const struct source *s)
{
    enum { STEP = 1 << 16 };
    const struct table *x = s->state;
    uint64_t h = hash_mix(hash_bytes("rows", 4, 0), (uint64_t)s->count);
    uint8_t *p = malloc(STEP);
    ssize_t got = p ? 1 : 0;
    for (int64_t at = 0; got > 0; at += got) {
        got = io_pread(x->list->fd, p, STEP, at);
        h = got > 0 ? hash_bytes(p, (size_t)got, h) : h;
    }
    free(p);
    return h;
}

static const struct source_tally *tally(const struct source *s)
{
    return &((const struct table *)s->state)->tally;
}

static const struct source_ops ops = {
    .close = close_table,
    .path = path,
    .key = key,
    .label = source_unknown,
    .bytes = bytes,
    .read = read_row,
    .fingerprint = fingerprint,
    .tally = tally,
    .class_name = source_given_class,
};

/* Without `fields`, a column that cannot become a field is an error, not silently dropped. */
static int refuse_names(const struct columns *c, stk_error *e)
{
    for (int i = 0; i < c->n; i++)
        if (c->items[i].refused)
            return error_set(e, STK_EUSAGE, "open",
                             "the column %s cannot be a field: %s; name the columns to read in fields",
                             c->items[i].name, c->items[i].refused);
    return STK_OK;
}

int source_table_open(struct source *s, const struct source_options *o, const char *name, int fd, stk_error *e)
{
    struct list l = {.name = name, .dir = -1, .lines.fd = fd};
    struct table *x = calloc(1, sizeof *x);
    struct stat st;
    if (!x)
        return error_nomem(e, "open", sizeof *x);
    s->state = x;
    s->ops = &ops;
    s->kind = "list of values";
    x->path = strdup(name);
    if (!x->path)
        return error_nomem(e, "open", strlen(name));
    int rc = list_detect(&l, e) < 0 || list_names_files(&l, e) < 0 ? e->code : list_fields_open(&x->list, &l, false, e);
    if (rc == STK_OK && x->list->n == 0)
        rc = error_set(e, STK_EUSAGE, "open", "the list has no rows");
    if (rc == STK_OK && (!o->fields || !o->fields[0]))
        rc = refuse_names(&x->list->columns, e);
    if (rc == STK_OK)
        rc = columns_bind(s, &x->list->columns, o->fields, e);
    if (rc == STK_OK)
        rc = list_fields_classes(x->list, &l, s, e);
    list_done(&l);
    if (rc == STK_OK) {
        s->count = x->list->n;
        x->tally.bytes = fstat(fd, &st) == 0 ? (int64_t)st.st_size : 0;
    }
    return rc;
}
