/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_labels.c -- the labels of HDF5 files: runs of rows that were not written, and the values of the others.
 */
#include "source/hdf5_labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/search.h"
#include "source/arrays.h"
#include "source/labels.h"

struct label_run {
    int64_t first; /* sample; the run ends where the next one starts */
    int64_t at;    /* index of its first label in values; -1: all samples have `same` */
    int64_t same;
};

void hdf5_labels_done(struct hdf5_labels *l)
{
    buf_done(&l->runs);
    buf_done(&l->values);
}

/* ------------------------------------------------------------------ runs */

static int64_t n_runs(const struct hdf5_labels *l)
{
    return (int64_t)(l->runs.len / sizeof(struct label_run));
}

static struct label_run *run_at(const struct hdf5_labels *l, int64_t k)
{
    return (struct label_run *)(void *)l->runs.data + k;
}

static int64_t *value_at(const struct hdf5_labels *l, int64_t k)
{
    return (int64_t *)(void *)l->values.data + k;
}

static int64_t find_run(const struct hdf5_labels *l, int64_t i)
{
    return search_last(&run_at(l, 0)->first, sizeof(struct label_run), n_runs(l), i);
}

int64_t hdf5_labels_at(const struct hdf5_labels *l, int64_t i)
{
    const struct label_run *r = run_at(l, find_run(l, i));
    return r->at < 0 ? r->same : *value_at(l, r->at + i - r->first);
}

int64_t hdf5_labels_alike(const struct hdf5_labels *l, int64_t i)
{
    const int64_t k = find_run(l, i);
    return run_at(l, k)->at >= 0 ? 1 : (k + 1 < n_runs(l) ? run_at(l, k + 1)->first : l->count) - i;
}

static int too_many(const struct source *s, stk_error *e)
{
    return error_set(e, STK_EUSAGE, "open", "its labels take more than the %lld bytes that max_bytes allows; raise it",
                     (long long)s->max_bytes);
}

/* Appends the label of the next n samples. One label of its own goes to the values. */
static int add(struct hdf5_labels *l, int64_t n, int64_t label, const struct source *s, stk_error *e)
{
    const struct label_run *last = l->runs.len ? run_at(l, n_runs(l) - 1) : NULL;
    const bool single = n == 1;
    struct label_run next = {.first = l->count, .at = -1, .same = label};
    if (single)
        next.at = (int64_t)(l->values.len / sizeof label);
    if (single && l->values.len >= (uint64_t)s->max_bytes)
        return too_many(s, e);
    const bool goes_on = last && (single ? last->at >= 0 : last->at < 0 && last->same == label);
    if ((!goes_on && buf_add(&l->runs, &next, sizeof next)) || (single && buf_add(&l->values, &label, sizeof label)))
        return error_nomem(e, "open", l->values.len);
    l->count += n;
    return STK_OK;
}

/* ------------------------------------------------------------------ reading */

const char HDF5_NO_VALUE[] = "is missing, although other samples have it";

struct from {
    const struct source *s;
    const struct hdf5_table *t;
    int column;
    struct names *texts; /* NULL: the labels are numbers */
    struct buf b;
    const char *why; /* what was wrong with the last bad label; NULL: none was bad */
};

/* Text becomes its index in f->texts. */
static const char *read_text(struct from *f, int64_t i, int64_t *label)
{
    const struct hdf5_limits limits = {f->s->max_bytes, f->t->work};
    const uint8_t *p = NULL;
    size_t n;
    uint32_t index;
    const char *why = hdf5_table_value(f->t, i, f->column, &limits, &f->b, &p, &n);
    if (why || !p)
        return why ? why : HDF5_NO_VALUE;
    if (names_add(f->texts, p, n, &index) < 0)
        return HDF5_NO_MEMORY;
    *label = index;
    return NULL;
}

static const char *read_number(const struct from *f, const struct hdf5_file *file, const struct hdf5_array *a,
                               int64_t row, int64_t *label)
{
    uint8_t one[8];
    const char *why = a ? hdf5_row(f->t->rows, &file->view, a, row, f->t->work, one) : HDF5_NO_VALUE;
    if (!why)
        *label = dtype_integer(f->t->columns.items[f->column].dtype, one);
    return why;
}

/* Numbers that are contiguous in the file are read at once. Sets *done, or leaves the work to read_singly(). */
static int read_at_once(struct hdf5_labels *l, const struct from *f, const struct hdf5_file *file, bool *done,
                        stk_error *e)
{
    int64_t row;
    const struct hdf5_array *first = hdf5_table_array(f->t, file->first, f->column, &row);
    *done = false;
    if (f->texts || f->t->groups || !first || first->place != HDF5_IN_ONE || !hdf5_is_dense(first))
        return STK_OK;
    if (file->count > f->s->max_bytes / (int64_t)sizeof(int64_t))
        return too_many(f->s, e);
    struct hdf5_array all = *first;
    all.row_bytes = all.stored_bytes = (size_t)file->count * all.item;
    uint8_t *stored = malloc(all.row_bytes);
    *done = stored && hdf5_row(f->t->rows, &file->view, &all, 0, 0, stored) == NULL;
    int rc = STK_OK;
    for (int64_t i = 0; *done && i < file->count && rc == STK_OK; i++)
        rc = add(l, 1, dtype_integer(f->t->columns.items[f->column].dtype, stored + (size_t)i * all.item), f->s, e);
    free(stored);
    return rc;
}

/* A sample whose label cannot be read has none, and is bad when it is read. */
static int read_singly(struct hdf5_labels *l, struct from *f, const struct hdf5_file *file, stk_error *e)
{
    int rc = STK_OK;
    for (int64_t i = 0; i < file->count && rc == STK_OK;) {
        int64_t row, label = LABEL_NONE;
        const struct hdf5_array *a = hdf5_table_array(f->t, file->first + i, f->column, &row);
        const int64_t run = a && !f->t->groups ? hdf5_rows_unwritten(a, row) : 0, n = run > 1 ? run : 1;
        const char *bad = f->texts ? read_text(f, file->first + i, &label) : read_number(f, file, a, row, &label);
        if (bad == HDF5_NO_MEMORY)
            return error_nomem(e, "open", 0);
        f->why = bad ? bad : f->why;
        rc = add(l, n, label, f->s, e);
        i += n;
    }
    return rc;
}

static bool any_label(const struct hdf5_labels *l)
{
    for (int64_t i = 0; i < l->count; i += hdf5_labels_alike(l, i))
        if (hdf5_labels_at(l, i) != LABEL_NONE)
            return true;
    return l->count == 0;
}

static int read_files(struct hdf5_labels *l, struct from *f, stk_error *e)
{
    int rc = STK_OK;
    for (int k = 0; k < f->t->n_files && rc == STK_OK; k++) {
        bool done;
        rc = read_at_once(l, f, &f->t->files[k], &done, e);
        if (rc == STK_OK && !done)
            rc = read_singly(l, f, &f->t->files[k], e);
    }
    if (rc == STK_OK && f->why && !any_label(l))
        rc = hdf5_table_fail(f->t, f->column, f->why, e);
    return rc;
}

/* ------------------------------------------------------------------ numbers and text */

static int check_numbers(const struct hdf5_labels *l, const struct source *s, stk_dtype t, stk_error *e)
{
    int rc = STK_OK;
    for (int64_t i = 0; i < l->count && rc == STK_OK; i += hdf5_labels_alike(l, i))
        rc = arrays_check_label(s, t, i, e);
    return rc;
}

static void to_classes(const struct hdf5_labels *l, const int64_t *class_of)
{
    for (int64_t k = 0; k < n_runs(l); k++) {
        struct label_run *r = run_at(l, k);
        r->same = r->at < 0 && r->same != LABEL_NONE ? class_of[r->same] : r->same;
    }
    for (int64_t k = 0; k < (int64_t)(l->values.len / sizeof(int64_t)); k++) {
        int64_t *v = value_at(l, k);
        *v = *v == LABEL_NONE ? LABEL_NONE : class_of[*v];
    }
}

static int settle_texts(const struct hdf5_labels *l, struct source *s, struct labels *all, stk_error *e)
{
    uint32_t ignored;
    int rc = labels_resolve(all, &s->classes, e);
    if (rc == STK_OK)
        to_classes(l, all->value);
    for (uint32_t k = 0; all->rank && k < all->names.n && rc == STK_OK; k++)
        if (names_add(&s->classes, names_at(&all->names, all->rank[k]), names_length(&all->names, all->rank[k]),
                      &ignored) < 0)
            rc = error_nomem(e, "open", all->names.pool.len);
    s->n_classes = (int)s->classes.n;
    return rc;
}

int hdf5_labels_read(struct hdf5_labels *l, struct source *s, const struct hdf5_table *t, int c, stk_error *e)
{
    const bool text = t->columns.items[c].kind == STK_TEXT;
    struct labels all = {0};
    struct from f = {.s = s, .t = t, .column = c, .texts = text ? &all.names : NULL};
    int rc = read_files(l, &f, e);
    if (rc == STK_OK)
        rc = text ? settle_texts(l, s, &all, e) : check_numbers(l, s, t->columns.items[c].dtype, e);
    buf_done(&f.b);
    labels_done(&all);
    return rc;
}
