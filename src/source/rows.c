/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c -- columns of rows. A column is a chain of stretches, each a range of a file:
 *
 *     column "image":   | a.npy: rows 0 .. 99 | b.npy: rows 0 .. 49 |
 *     sample:             0 ............... 99 100 ........... 149
 *
 * Labels are read when the source is opened, because source_label() must not read. Up to HELD_OPEN descriptors stay
 * open; other files are opened for every row.
 */
#include "source/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "base/search.h"
#include "format/npy.h"
#include "source/arrays.h"

enum { HELD_OPEN = 256 };

struct stretch {
    char *path;
    int fd; /* -1: opened for every row */
    uint8_t *memory;
    bool swapped, fortran;
    int64_t first, n; /* rows */
    int64_t at, step;
    int offsets; /* descriptor of the offsets; -1: not ragged */
    int64_t offsets_at, n_values;
};

struct rows_column {
    char name[FIELD_NAME];
    stk_dtype dtype;
    int ndim; /* of one row */
    int64_t shape[FIELD_DIMS];
    size_t item, row_bytes;
    struct stretch *stretches;
    int n_stretches;
    int64_t n; /* rows */
    bool ragged;
};

struct rows {
    const char *row; /* the word for a row */
    struct rows_column columns[FIELD_MAX];
    int n_columns, n_open;
    struct arrays_plan plan; /* of columns */
    int64_t *labels;
    int keys; /* column; -1: none */
    struct source_tally tally;
};

/* ------------------------------------------------------------------ one row */

static const struct stretch *stretch_at(const struct rows_column *c, int64_t i)
{
    return &c->stretches[search_last(&c->stretches->first, sizeof *c->stretches, c->n_stretches, i)];
}

static int read_at(const struct stretch *p, int fd, int64_t at, size_t n, void *to, stk_error *e)
{
    if (p->memory) {
        memcpy(to, p->memory + at, n);
        return STK_OK;
    }
    const ssize_t got = io_pread(fd, to, n, at);
    if (got < 0)
        return error_os(e, errno, "read", "cannot be read at byte %lld", (long long)at);
    if ((size_t)got < n)
        return error_set(e, STK_EIO, "read", "ends at byte %lld: it became shorter after it was opened; open it again",
                         (long long)(at + got));
    return STK_OK;
}

/* Reads number by number, since the numbers of a row are not adjacent. */
static int read_fortran(const struct rows_column *c, const struct stretch *p, int fd, int64_t i, size_t n, uint8_t *to,
                        stk_error *e)
{
    int64_t count[FIELD_DIMS] = {0}, step[FIELD_DIMS], at = p->at + i * (int64_t)c->item;
    for (int d = 0; d < c->ndim; d++)
        step[d] = d == 0 ? p->n * (int64_t)c->item : step[d - 1] * c->shape[d - 1];
    for (size_t done = 0; done < n; done += c->item) {
        const int rc = read_at(p, fd, at, c->item, to + done, e);
        if (rc != STK_OK)
            return rc;
        for (int d = c->ndim - 1; d >= 0; d--) {
            at += step[d];
            if (++count[d] < c->shape[d])
                break;
            at -= step[d] * c->shape[d];
            count[d] = 0;
        }
    }
    return STK_OK;
}

/* The rows of a sample in a ragged column. */
static int find_range(const struct stretch *p, int64_t i, int64_t *from, int64_t *n, stk_error *e)
{
    int64_t ends[2];
    if (io_pread(p->offsets, ends, sizeof ends, p->offsets_at + i * (int64_t)sizeof ends[0]) != sizeof ends)
        return error_set(e, STK_EIO, "read", "its offsets cannot be read");
    *from = ends[0];
    *n = ends[1] - ends[0];
    if (ends[0] < 0 || ends[1] < ends[0] || ends[1] > p->n_values)
        return error_set(e, STK_EDATA, "read",
                         "its offsets are damaged: the sample has rows %lld to %lld, but there are %lld rows",
                         (long long)ends[0], (long long)ends[1], (long long)p->n_values);
    return STK_OK;
}

/* Reads the first n bytes of a row, a multiple of the element size, in this machine's byte order. */
static int read_row(const struct rows_column *c, int64_t i, size_t n, void *to, stk_error *e)
{
    const struct stretch *p = stretch_at(c, i);
    int fd = p->fd;
    if (fd < 0 && !p->memory && (fd = io_open(AT_FDCWD, p->path)) < 0)
        return error_os(e, errno, "read", "cannot be opened");
    i -= p->first;
    int64_t range;
    int rc = c->ragged ? find_range(p, i, &i, &range, e) : STK_OK; /* then i becomes its first row */
    if (rc == STK_OK)
        rc = p->fortran ? read_fortran(c, p, fd, i, n, to, e) : read_at(p, fd, p->at + i * p->step, n, to, e);
    if (fd != p->fd)
        close(fd);
    if (rc == STK_OK && p->swapped)
        npy_swap(to, n / c->item, c->item);
    return rc;
}

/* ------------------------------------------------------------------ samples */

static int64_t label(const struct source *s, int64_t i)
{
    const struct rows *r = s->state;
    return r->labels ? r->labels[i] : -1;
}

static int copy(const struct source *s, struct reading *reading, int64_t i, int f, void *to, stk_error *e)
{
    (void)reading;
    const struct rows *r = s->state;
    if (!s->fields[f].label)
        return read_row(&r->columns[r->plan.array_of[f]], i, s->fields[f].bytes, to, e);
    memcpy(to, &r->labels[i], sizeof r->labels[i]);
    return STK_OK;
}

static int row(const struct source *s, int k, int64_t i, size_t n, void *to, stk_error *e)
{
    return read_row(&((const struct rows *)s->state)->columns[k], i, n, to, e);
}

static int ragged_bytes(const struct source *s, int k, int64_t i, size_t *n, stk_error *e)
{
    const struct rows_column *c = &((const struct rows *)s->state)->columns[k];
    const struct stretch *p = stretch_at(c, i);
    int64_t from, rows = 0;
    const int rc = find_range(p, i - p->first, &from, &rows, e);
    if (rc == STK_OK && rows > s->max_bytes / (int64_t)c->row_bytes)
        return error_set(e, STK_EDATA, "read", "%s has more bytes than max_bytes allows", c->name);
    *n = (size_t)rows * c->row_bytes;
    return rc;
}

static const struct arrays_reader reader = {row, ragged_bytes};

static int read_sample(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    r->bytes = NULL;
    r->n_bytes = 0;
    r->label = label(s, i);
    return arrays_cells(s, &((const struct rows *)s->state)->plan, r, i, reader, e);
}

/* Named after the first column; the others may be in other files. */
static size_t path(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct rows *r = s->state;
    const struct stretch *p = stretch_at(&r->columns[0], i);
    const int length = snprintf(buf, n, "%s %s %lld", p->path, r->row, (long long)(i - p->first));
    return length > 0 ? (size_t)length : 0;
}

static size_t key(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct rows *r = s->state;
    const struct stretch *p = stretch_at(&r->columns[0], i);
    const char *slash = strrchr(p->path, '/');
    size_t bytes = 0;
    if (r->keys >= 0 && ragged_bytes(s, r->keys, i, &bytes, NULL) == STK_OK) {
        const size_t fits = bytes < n ? bytes : n > 0 ? n - 1 : 0;
        if (row(s, r->keys, i, fits, buf, NULL) == STK_OK) {
            if (n > 0)
                buf[fits] = 0;
            return bytes;
        }
    }
    const int length = snprintf(buf, n, "%s:%lld", slash ? slash + 1 : p->path, (long long)(i - p->first));
    return length > 0 ? (size_t)length : 0;
}

static int64_t bytes(const struct source *s, int64_t i)
{
    (void)i;
    const struct rows *r = s->state;
    int64_t sum = 0;
    for (int c = 0; c < r->n_columns; c++)
        sum += (int64_t)r->columns[c].row_bytes;
    return sum;
}

static uint64_t fingerprint(const struct source *s)
{
    return arrays_fingerprint(s, &((const struct rows *)s->state)->plan, reader);
}

static const struct source_tally *tally(const struct source *s)
{
    return &((const struct rows *)s->state)->tally;
}

static void close_rows(struct source *s)
{
    struct rows *r = s->state;
    if (!r)
        return;
    for (int c = 0; c < r->n_columns; c++) {
        for (int p = 0; p < r->columns[c].n_stretches; p++) {
            const struct stretch *one = &r->columns[c].stretches[p];
            if (one->fd >= 0)
                close(one->fd);
            if (one->offsets >= 0)
                close(one->offsets);
            free(one->path);
            free(one->memory);
        }
        free(r->columns[c].stretches);
    }
    free(r->labels);
    free(r);
    s->state = NULL;
}

static const struct source_ops ops = {
    .close = close_rows,
    .path = path,
    .key = key,
    .label = label,
    .bytes = bytes,
    .read = read_sample,
    .copy = copy,
    .fingerprint = fingerprint,
    .tally = tally,
    .class_name = source_given_class,
};

/* ------------------------------------------------------------------ opening */

int rows_open(struct source *s, const char *kind, const char *row, stk_error *e)
{
    struct rows *r = calloc(1, sizeof *r);
    if (!r)
        return error_nomem(e, "open", sizeof *r);
    r->row = row;
    r->keys = -1;
    r->plan.label = -1;
    s->state = r;
    s->ops = &ops;
    s->kind = kind;
    return STK_OK;
}

static int new_column(struct rows *r, const struct rows_array *a, stk_error *e)
{
    if (r->n_columns == FIELD_MAX)
        return error_set(e, STK_EUSAGE, "open", "there are more than %d arrays", FIELD_MAX);
    struct rows_column *c = &r->columns[r->n_columns];
    const int length = snprintf(c->name, sizeof c->name, "%s", a->name);
    if (length < 1 || (size_t)length >= sizeof c->name)
        return error_set(e, STK_EUSAGE, "open", "the name of the array %.100s must have 1 to %d bytes", a->name,
                         FIELD_NAME - 1);
    if (a->ndim > FIELD_DIMS)
        return error_set(e, STK_EUSAGE, "open", "its rows have %d dimensions; at most %d are supported", a->ndim,
                         FIELD_DIMS);
    c->dtype = a->dtype;
    c->item = c->row_bytes = dtype_bytes(a->dtype);
    c->ndim = a->ndim;
    c->ragged = a->offsets != NULL;
    for (int d = 0; d < a->ndim; d++) {
        c->shape[d] = a->shape[d];
        if (a->shape[d] < 1 || c->row_bytes > (size_t)PTRDIFF_MAX / 4 / (size_t)a->shape[d])
            return error_set(e, STK_EUSAGE, "open", "its rows have an invalid dimension of %lld",
                             (long long)a->shape[d]);
        c->row_bytes *= (size_t)a->shape[d];
    }
    r->n_columns++;
    return STK_OK;
}

static struct rows_column *find_column(struct rows *r, const char *name)
{
    for (int c = 0; c < r->n_columns; c++)
        if (strcmp(r->columns[c].name, name) == 0)
            return &r->columns[c];
    return NULL;
}

static bool same_form(const struct rows_column *c, const struct rows_array *a)
{
    bool same = c->dtype == a->dtype && c->ndim == a->ndim && c->ragged == (a->offsets != NULL);
    for (int d = 0; same && d < a->ndim; d++)
        same = c->shape[d] == a->shape[d];
    return same;
}

static int add_stretch(struct rows *r, struct rows_column *c, const struct rows_array *a, stk_error *e)
{
    struct stretch *grown = realloc(c->stretches, ((size_t)c->n_stretches + 1) * sizeof *grown);
    if (!grown)
        return error_nomem(e, "open", ((size_t)c->n_stretches + 1) * sizeof *grown);
    c->stretches = grown;
    struct stretch p = {.fd = -1, .offsets = -1, .memory = a->memory, .swapped = a->swapped, .fortran = a->fortran};
    p.first = c->n;
    p.n = a->n;
    p.at = a->at;
    p.step = a->step;
    p.offsets_at = a->offsets_at;
    p.n_values = a->n_values;
    p.path = strdup(a->path);
    if (!p.path)
        return error_nomem(e, "open", strlen(a->path));
    if ((!p.memory && r->n_open < HELD_OPEN && (p.fd = open(p.path, IO_OPEN_FLAGS)) < 0) ||
        (a->offsets && (p.offsets = open(a->offsets, IO_OPEN_FLAGS)) < 0)) {
        const int rc = error_os(e, errno, "open", "cannot be opened");
        if (p.fd >= 0)
            close(p.fd);
        free(p.path);
        return rc;
    }
    r->n_open += p.fd >= 0;
    c->stretches[c->n_stretches++] = p;
    c->n += a->n;
    return STK_OK;
}

int rows_add(struct source *s, const struct rows_array *a, stk_error *e)
{
    struct rows *r = s->state;
    struct rows_column *c = find_column(r, a->name);
    if (!c) {
        const int rc = new_column(r, a, e);
        if (rc != STK_OK)
            return rc;
        c = &r->columns[r->n_columns - 1];
    }
    if (!same_form(c, a))
        return error_set(e, STK_EUSAGE, "open", "its rows differ in type or shape from those of the previous file");
    if (a->n < 1) {
        free(a->memory); /* taken even if it is empty */
        return STK_OK;
    }
    r->tally.bytes += a->offsets   ? a->n_values * a->step
                      : a->fortran ? a->n * (int64_t)c->row_bytes
                                   : (a->n - 1) * a->step + (int64_t)c->row_bytes;
    return add_stretch(r, c, a, e);
}

/* The labels of a stretch are one range, so they are read like a row. */
static int read_labels(struct source *s, stk_error *e)
{
    struct rows *r = s->state;
    const struct rows_column *c = &r->columns[r->plan.label];
    if (s->count > s->max_bytes / (int64_t)sizeof *r->labels)
        return error_set(e, STK_EUSAGE, "open", "%lld labels need more memory than max_bytes allows",
                         (long long)s->count);
    r->labels = calloc((size_t)s->count, sizeof *r->labels);
    uint8_t *stored = malloc((size_t)s->count * c->item);
    int rc = r->labels && stored ? STK_OK : error_nomem(e, "open", (size_t)s->count * sizeof *r->labels);
    for (int p = 0; p < c->n_stretches && rc == STK_OK; p++) {
        const int64_t first = c->stretches[p].first, n = c->stretches[p].n;
        rc = read_row(c, first, (size_t)n * c->item, stored + (size_t)first * c->item, e);
    }
    for (int64_t i = 0; i < s->count && rc == STK_OK; i++)
        r->labels[i] = dtype_integer(c->dtype, stored + (size_t)i * c->item);
    free(stored);
    return rc == STK_OK ? arrays_check_labels(s, c->dtype, e) : rc;
}

/* In a pack, the column "keys" contains the keys as text. */
static void find_keys(struct source *s)
{
    struct rows *r = s->state;
    for (int k = 0; k < r->n_columns && s->is_pack; k++)
        if (strcmp(r->columns[k].name, "keys") == 0 && r->columns[k].ragged && r->columns[k].dtype == STK_UINT8)
            r->keys = k;
    s->has_key_column = r->keys >= 0;
}

/* All columns must have the same number of rows. */
static int check_lengths(const struct source *s, const struct rows *r, stk_error *e)
{
    const struct rows_column *first = &r->columns[0];
    const bool archive = strcmp(s->kind, "npz archives") == 0;
    for (int k = 1; k < r->n_columns; k++)
        if (r->columns[k].n != first->n)
            return error_set(e, STK_EUSAGE, "open", "%.60s has %lld row%s, but %.60s has %lld%s", r->columns[k].name,
                             (long long)r->columns[k].n, r->columns[k].n == 1 ? "" : "s", first->name,
                             (long long)first->n,
                             archive ? "; choose arrays of equal length: npz:x.npz?image=x_train&label=y_train" : "");
    return STK_OK;
}

int rows_finish(struct source *s, const struct source_options *o, stk_error *e)
{
    struct rows *r = s->state;
    stk_array all[FIELD_MAX];
    int64_t shapes[FIELD_MAX][FIELD_DIMS + 1];
    if (r->columns[0].n < 1)
        return error_set(e, STK_EUSAGE, "open", "does not contain a complete %s", r->row);
    for (int k = 0; k < r->n_columns; k++) {
        const struct rows_column *c = &r->columns[k];
        shapes[k][0] = c->n;
        memcpy(shapes[k] + 1, c->shape, sizeof c->shape);
        r->plan.ragged[k] = c->ragged;
        all[k] = (stk_array){.name = c->name, .dtype = c->dtype, .ndim = c->ndim + 1, .shape = shapes[k]};
    }
    int rc = check_lengths(s, r, e);
    if (rc == STK_OK)
        rc = arrays_check(all, r->n_columns, e);
    if (rc == STK_OK)
        rc = arrays_fields(s, all, r->n_columns, o->fields, &r->plan, e);
    if (rc != STK_OK)
        return rc;
    s->count = r->columns[0].n;
    find_keys(s);
    return r->plan.label < 0 ? STK_OK : read_labels(s, e);
}
