/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_hdf5.c -- HDF5 files as a source. hdf5_table.c finds the samples and columns.
 *
 * Columns stored in the form of the batch are copied directly into it. Encoded images are read into r->file, other
 * values into cells. Labels are read when the source is opened, because source_label() must not read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/size.h"
#include "source/arrays.h"
#include "source/hdf5_labels.h"
#include "source/index.h"

enum { ROWS_HASHED = 64 };

struct state {
    struct hdf5_table table;
    int column[FIELD_MAX]; /* of every field */
    int label;             /* column; -1: none */
    int keys;              /* column of a pack; -1: none */
    struct hdf5_labels labels;
    struct source_tally tally;
};

static const struct hdf5_table *table_of(const struct source *s)
{
    return &((const struct state *)s->state)->table;
}

/* ------------------------------------------------------------------ names */

static size_t path(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct hdf5_table *t = table_of(s);
    const struct hdf5_file *f = hdf5_table_file(t, i);
    const int length =
        t->groups ? snprintf(buf, n, "%s/%s%s", f->path, t->group, names_at(&f->groups.names, (uint32_t)(i - f->first)))
                  : snprintf(buf, n, "%s row %lld", f->path, (long long)(i - f->first));
    return length > 0 ? (size_t)length : 0;
}

static size_t own_key(const struct hdf5_table *t, int64_t i, int column, char *buf, size_t n)
{
    struct buf b = {0};
    const uint8_t *p = NULL;
    size_t bytes = 0;
    const struct hdf5_limits limits = {1 << 20, t->work};
    const char *why = hdf5_table_value(t, i, column, &limits, &b, &p, &bytes);
    const int length = snprintf(buf, n, "%.*s", why || !p ? 0 : (int)bytes, p ? (const char *)p : "");
    buf_done(&b);
    return length > 0 ? (size_t)length : 0;
}

static size_t key(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct hdf5_table *t = table_of(s);
    const struct hdf5_file *f = hdf5_table_file(t, i);
    const char *slash = strrchr(f->path, '/');
    const int own = ((const struct state *)s->state)->keys;
    if (own >= 0)
        return own_key(t, i, own, buf, n);
    const int length = t->groups ? snprintf(buf, n, "%s", names_at(&f->groups.names, (uint32_t)(i - f->first)))
                                 : snprintf(buf, n, "%s:%lld", slash ? slash + 1 : f->path, (long long)(i - f->first));
    return length > 0 ? (size_t)length : 0;
}

static int64_t label(const struct source *s, int64_t i)
{
    const struct state *d = s->state;
    return d->label >= 0 ? source_label_or_default(s, hdf5_labels_at(&d->labels, i)) : -1;
}

/* ------------------------------------------------------------------ reading */

/* Asks for the memory to decompress the chunk that contains a value. */
static int allow(const struct source *s, struct reading *r, int64_t i, int c, stk_error *e)
{
    const struct hdf5_table *t = table_of(s);
    int64_t row;
    const struct hdf5_array *a = hdf5_table_array(t, i, c, &row);
    const size_t stored = hdf5_is_dense(a) ? 0 : a->stored_bytes;
    const size_t chunk = stored > a->chunks.chunk_bytes ? stored : a->chunks.chunk_bytes;
    const size_t cost = size_add(hdf5_row_cost(a, row), size_add(r->file.len, r->derived.len));
    char words[256];
    if (chunk > (uint64_t)s->max_bytes)
        return error_set(e, STK_EDATA, "read",
                         "%s: a chunk or row has %zu bytes, more than the %lld that max_bytes allows",
                         names_at(&t->names, (uint32_t)c), chunk, (long long)s->max_bytes);
    int rc = r->allow ? r->allow(r->user, size_add(cost, a->row_bytes), e) : STK_OK;
    if (rc == STK_OK && r->allow) { /* the length of the value may be unknown before */
        const int64_t n = hdf5_table_bytes(t, i, c, SIZE_MAX);
        rc = r->allow(r->user, size_add(cost, n > 0 ? (size_t)n : 0), e);
    }
    if (rc != STK_EDATA || !e)
        return rc;
    snprintf(words, sizeof words, "%.255s", e->reason);
    return error_set(e, rc, "decode", "%s: with its chunk of %zu MiB it %s", names_at(&t->names, (uint32_t)c),
                     (chunk + (1 << 20) - 1) >> 20, words);
}

enum { SMALL_WORK = 64 << 10 }; /* bytes that are used without asking */

static int copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    const struct state *d = s->state;
    const int c = d->column[f];
    int64_t row;
    if (s->fields[f].label) {
        const int64_t value = label(s, i);
        memcpy(to, &value, sizeof value);
        return STK_OK;
    }
    const struct hdf5_array *a = hdf5_table_array(&d->table, i, c, &row);
    if (!a)
        return hdf5_table_fail(&d->table, c, "the sample has no value", e);
    const struct hdf5_view *v = &hdf5_table_file(&d->table, i)->view;
    const char *why = hdf5_row(d->table.rows, v, a, row, SMALL_WORK, to);
    if (why == HDF5_COSTS) {
        const int rc = allow(s, r, i, c, e);
        if (rc != STK_OK)
            return rc;
        why = hdf5_row(d->table.rows, v, a, row, SIZE_MAX, to);
    }
    return why ? hdf5_table_fail(&d->table, c, why, e) : STK_OK;
}

/* Reads a value into r->file. */
static int read_value(const struct source *s, struct reading *r, int64_t i, int c, bool image, const uint8_t **p,
                      size_t *n, stk_error *e)
{
    const struct hdf5_table *t = table_of(s);
    struct hdf5_limits limits = {s->max_bytes, SMALL_WORK};
    const char *(*const read)(const struct hdf5_table *, int64_t, int, const struct hdf5_limits *, struct buf *,
                              const uint8_t **, size_t *) = image ? hdf5_table_image : hdf5_table_value;
    const char *why = read(t, i, c, &limits, &r->file, p, n);
    if (why == HDF5_COSTS) {
        const int rc = allow(s, r, i, c, e);
        if (rc != STK_OK)
            return rc;
        limits.work = SIZE_MAX;
        why = read(t, i, c, &limits, &r->file, p, n);
    }
    return why ? hdf5_table_fail(t, c, why, e) : STK_OK;
}

static int read_image(const struct source *s, struct reading *r, int64_t i, int c, stk_error *e)
{
    r->file.len = 0;
    const int rc = read_value(s, r, i, c, true, &r->bytes, &r->n_bytes, e);
    return rc == STK_OK && r->n_bytes == 0 ? hdf5_table_fail(table_of(s), c, "the image is empty", e) : rc;
}

/* Reads a field into a cell. *at is the offset of its bytes in r->derived, which may still move; SIZE_MAX: no value. */
static int read_cell(const struct source *s, struct reading *r, int64_t i, int f, size_t *at, stk_error *e)
{
    const struct state *d = s->state;
    const int c = d->column[f];
    struct cell *cell = &r->cells[f];
    const uint8_t *p;
    size_t n;
    int64_t row;
    const int rc = read_value(s, r, i, c, false, &p, &n, e);
    if (rc != STK_OK)
        return rc;
    *cell = (struct cell){.text = s->fields[f].text};
    *at = SIZE_MAX;
    if (!p)
        return STK_OK;
    *at = r->derived.len;
    const size_t room = (n + IO_SLACK + 7) / 8 * 8;
    if (buf_reserve(&r->derived, *at + room))
        return error_nomem(e, "read", *at + room);
    memcpy(r->derived.data + *at, p, n);
    memset(r->derived.data + *at + n, 0, room - n);
    r->derived.len = *at + room;
    cell->n = n;
    const struct hdf5_array *a = hdf5_table_array(&d->table, i, c, &row);
    const stk_kind what = s->fields[f].what;
    if (d->table.columns.items[c].kind != STK_TENSOR || what == STK_TEXT || what == STK_JSON || what == STK_BYTES)
        return STK_OK;
    cell->dtype = a->dtype;
    cell->ndim = a->type == HDF5_VLEN ? 1 : a->ndim - 1;
    memcpy(cell->shape, a->shape + 1, (size_t)(a->ndim - 1) * sizeof a->shape[0]);
    if (a->type == HDF5_VLEN)
        cell->shape[0] = (int64_t)(n / dtype_bytes(a->dtype));
    return STK_OK;
}

static bool is_unlabelled(const struct source *s, int64_t i)
{
    const struct state *d = s->state;
    const bool missing = d->label >= 0 && hdf5_labels_at(&d->labels, i) == LABEL_NONE;
    const struct field *f = missing ? source_label_field(s) : NULL;
    return f && !f->has_fill;
}

/* Reports why the label could not be read when the source was opened. */
static int no_label(const struct source *s, int64_t i, stk_error *e)
{
    const struct state *d = s->state;
    const struct hdf5_limits limits = {s->max_bytes, d->table.work};
    struct buf b = {0};
    const uint8_t *p;
    size_t n;
    const char *why = hdf5_table_value(&d->table, i, d->label, &limits, &b, &p, &n);
    buf_done(&b);
    return hdf5_table_fail(&d->table, d->label, why ? why : HDF5_NO_VALUE, e);
}

/* The image is read last, because the other values use r->file too. */
static int read_sample(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    size_t at[FIELD_MAX];
    int image = -1, rc = STK_OK;
    r->cold = false;
    r->bytes = NULL;
    r->n_bytes = 0;
    r->label = label(s, i);
    r->derived.len = 0;
    if (is_unlabelled(s, i))
        return no_label(s, i, e);
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++) {
        at[f] = SIZE_MAX;
        if (s->fields[f].kind == FIELD_ENCODED)
            image = f;
        else if (s->fields[f].column >= 0)
            rc = read_cell(s, r, i, f, &at[f], e);
    }
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
        if (at[f] != SIZE_MAX)
            r->cells[f].bytes = r->derived.data + at[f];
    if (rc == STK_OK && image >= 0 && !r->rest)
        rc = read_image(s, r, i, s->fields[image].column, e);
    return rc;
}

static int64_t bytes(const struct source *s, int64_t i)
{
    const struct state *d = s->state;
    int64_t sum = 0;
    for (int f = 0; f < s->n_fields; f++) {
        const int64_t n = d->column[f] >= 0 ? hdf5_table_bytes(&d->table, i, d->column[f], SMALL_WORK) : 0;
        sum += n > 0 && n < INT64_MAX / 64 ? n : 0;
    }
    return sum;
}

/* Rows that were not written in any column that is read. */
static int64_t count_identical(const struct source *s, int64_t i)
{
    const struct state *d = s->state;
    const struct hdf5_file *f = hdf5_table_file(&d->table, i);
    int64_t least = f->first + f->count - i;
    if (d->table.groups)
        return 1;
    if (d->label >= 0) {
        const int64_t n = hdf5_labels_alike(&d->labels, i);
        least = n < least ? n : least;
    }
    for (int k = 0; k < s->n_fields && least > 1; k++) {
        int64_t row;
        const int c = d->column[k];
        if (c < 0 || s->fields[k].label)
            continue;
        const struct hdf5_array *a = hdf5_table_array(&d->table, i, c, &row);
        const int64_t n = a ? hdf5_rows_unwritten(a, row) : 0;
        least = n < least ? n : least;
    }
    return least > 1 ? least : 1;
}

/* ------------------------------------------------------------------ identity */

static uint64_t identity(const struct source *s, int64_t i, const struct source_read *r)
{
    const struct hdf5_file *f = hdf5_table_file(table_of(s), i);
    struct stamp now;
    struct stat st;
    if (fstat(f->view.fd, &st) != 0 || !index_stamp(&now, &st) || (r && now.seconds >= r->since))
        return 0;
    uint64_t h = hash_bytes(&now, sizeof now, hash_bytes(f->path, strlen(f->path), (uint64_t)st.st_size));
    h = hash_mix(h, (uint64_t)(i - f->first));
    for (int k = 0; k < s->n_fields; k++)
        h = hash_mix(h, (uint64_t)s->fields[k].column);
    return h ? h : 1;
}

/* Covers names, types and shapes of columns, and some values spread over all samples. */
static uint64_t fingerprint(const struct source *s)
{
    const struct hdf5_table *t = table_of(s);
    const int64_t step = s->count / ROWS_HASHED + 1;
    uint64_t h = hash_mix(hash_bytes("hdf5", 4, 0), (uint64_t)s->count);
    const struct hdf5_limits limits = {s->max_bytes, t->work};
    struct buf b = {0};
    for (int c = 0; c < t->columns.n; c++) {
        const struct column *one = &t->columns.items[c];
        h = hash_bytes(one->name, strlen(one->name), hash_mix(h, (uint64_t)one->dtype));
        h = hash_bytes(one->shape, (size_t)one->ndim * sizeof one->shape[0], h);
        for (int64_t i = 0; i < s->count; i += step) {
            const uint8_t *p;
            size_t n;
            if (!hdf5_table_value(t, i, c, &limits, &b, &p, &n) && p)
                h = hash_bytes(p, n, h);
        }
    }
    buf_done(&b);
    return h;
}

static const struct source_tally *tally(const struct source *s)
{
    return &((const struct state *)s->state)->tally;
}

static void memory(const struct source *s, size_t *held, size_t *most)
{
    hdf5_rows_memory(table_of(s)->rows, held, most);
}

static void close_hdf5(struct source *s)
{
    struct state *d = s->state;
    if (!d)
        return;
    hdf5_table_done(&d->table);
    hdf5_labels_done(&d->labels);
    free(d);
    s->state = NULL;
}

static const struct source_ops ops = {
    .close = close_hdf5,
    .path = path,
    .key = key,
    .label = label,
    .bytes = bytes,
    .read = read_sample,
    .identity = identity,
    .copy = copy,
    .fingerprint = fingerprint,
    .tally = tally,
    .memory = memory,
    .class_name = source_given_class,
    .count_identical = count_identical,
};

/* ------------------------------------------------------------------ opening */

/* Whether the rows of a column have the type and shape of the field. */
static bool is_copied(const struct field *f, const struct column *c)
{
    bool same = c->dtype == f->dtype &&
                (f->kind == FIELD_PIXELS || (f->kind == FIELD_TENSOR && c->kind == STK_TENSOR)) && c->ndim == f->ndim &&
                !f->has_fill;
    for (int d = 0; same && d < f->ndim; d++)
        same = c->shape[d] == f->shape[d];
    return same;
}

static int make_fields(struct source *s, const struct source_options *o, stk_error *e)
{
    struct state *d = s->state;
    const int rc = columns_bind(s, &d->table.columns, o->fields, e);
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++) {
        const int c = d->column[f] = s->fields[f].column;
        if (c >= 0 && is_copied(&s->fields[f], &d->table.columns.items[c]))
            s->fields[f].column = -1;
    }
    for (int64_t i = 0; d->label >= 0 && i < s->count && rc == STK_OK && !s->labels_missing;
         i += hdf5_labels_alike(&d->labels, i))
        s->labels_missing = is_unlabelled(s, i);
    return rc;
}

int source_hdf5_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                     stk_error *e)
{
    struct state *d = calloc(1, sizeof *d);
    if (!d)
        return error_nomem(e, "open", sizeof *d);
    s->state = d;
    s->ops = &ops;
    s->kind = "HDF5 files";
    int rc = hdf5_table_open(&d->table, o, paths, query, e);
    if (rc != STK_OK)
        return rc;
    s->count = d->table.count;
    d->label = -1;
    d->keys = -1;
    d->tally.ignored_other = d->table.ignored;
    for (int c = 0; c < d->table.columns.n; c++)
        if (d->table.columns.items[c].label)
            d->label = c;
    for (int c = 0; c < d->table.columns.n && s->is_pack; c++)
        if (strcmp(d->table.columns.items[c].name, "keys") == 0 && d->table.columns.items[c].kind == STK_TEXT)
            d->keys = c;
    s->has_key_column = d->keys >= 0;
    for (int k = 0; k < d->table.n_files; k++)
        d->tally.bytes += d->table.files[k].view.size;
    d->table.columns.labels = d->label >= 0;
    if (d->label >= 0)
        rc = hdf5_labels_read(&d->labels, s, &d->table, d->label, e);
    return rc == STK_OK ? make_fields(s, o, e) : rc;
}
