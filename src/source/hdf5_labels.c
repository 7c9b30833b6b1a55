/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_labels.c -- reads the labels of all samples when HDF5 files are opened.
 *
 * A sample whose label cannot be read is bad, and reading it reports why. The source fails to open only if no label can
 * be read, or without memory.
 */
#include <stdlib.h>

#include "base/error.h"
#include "source/arrays.h"
#include "source/hdf5_table.h"
#include "source/labels.h"

const char HDF5_NO_VALUE[] = "is missing, although other samples have it";

/* Reads the labels of a file at once, if they are stored as one block. */
static bool read_block(const struct hdf5_table *t, int c, const struct hdf5_file *f, uint8_t *stored)
{
    int64_t row;
    const struct hdf5_array *first = hdf5_table_array(t, f->first, c, &row);
    if (t->groups || !first || first->place != HDF5_IN_ONE || !hdf5_is_dense(first))
        return false;
    struct hdf5_array all = *first;
    all.row_bytes = all.stored_bytes = (size_t)f->count * all.item;
    return hdf5_row(t->rows, &f->view, &all, 0, 0, stored) == NULL;
}

/* *why becomes the last problem. */
static void read_file(const struct hdf5_table *t, int c, const struct hdf5_file *f, int64_t *labels, const char **why)
{
    const stk_dtype type = t->columns.items[c].dtype;
    uint8_t *stored = malloc((size_t)f->count * dtype_bytes(type)), one[8];
    const bool all = stored && read_block(t, c, f, stored);
    for (int64_t i = 0; i < f->count; i++) {
        int64_t row;
        const uint8_t *p = all ? stored + (size_t)i * dtype_bytes(type) : one;
        const struct hdf5_array *a = all ? NULL : hdf5_table_array(t, f->first + i, c, &row);
        const char *bad = all ? NULL : !a ? HDF5_NO_VALUE : hdf5_row(t->rows, &f->view, a, row, t->work, one);
        labels[f->first + i] = bad ? LABEL_NONE : dtype_integer(type, p);
        *why = bad ? bad : *why;
    }
    free(stored);
}

static bool has_label(const int64_t *labels, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (labels[i] != LABEL_NONE)
            return true;
    return n == 0;
}

static int check(const struct source *s, const struct hdf5_table *t, int c, const int64_t *labels, const char *why,
                 stk_error *e)
{
    return why && (why == HDF5_NO_MEMORY || !has_label(labels, s->count)) ? hdf5_table_fail(t, c, why, e) : STK_OK;
}

static int read_numbers(struct source *s, const struct hdf5_table *t, int c, int64_t *labels, stk_error *e)
{
    const char *why = NULL;
    for (int k = 0; k < t->n_files && why != HDF5_NO_MEMORY; k++)
        read_file(t, c, &t->files[k], labels, &why);
    const int rc = check(s, t, c, labels, why, e);
    return rc == STK_OK ? arrays_check_labels(s, t->columns.items[c].dtype, e) : rc;
}

/* Collects the texts; labels[i] becomes the index of a text. */
static int read_texts(const struct source *s, const struct hdf5_table *t, int c, int64_t *labels, struct labels *all,
                      stk_error *e)
{
    const struct hdf5_limits limits = {s->max_bytes, t->work};
    struct buf b = {0};
    const char *why = NULL;
    int rc = STK_OK;
    for (int64_t i = 0; i < s->count && rc == STK_OK && why != HDF5_NO_MEMORY; i++) {
        const uint8_t *p = NULL;
        size_t n;
        uint32_t number;
        const char *bad = hdf5_table_value(t, i, c, &limits, &b, &p, &n);
        labels[i] = LABEL_NONE;
        if (bad || !p)
            why = bad ? bad : HDF5_NO_VALUE;
        else if (names_add(&all->names, p, n, &number) < 0)
            rc = error_nomem(e, "open", n);
        else
            labels[i] = number;
    }
    buf_done(&b);
    return rc == STK_OK ? check(s, t, c, labels, why, e) : rc;
}

static int read_classes(struct source *s, const struct hdf5_table *t, int c, int64_t *labels, stk_error *e)
{
    struct labels all = {0};
    uint32_t ignored;
    int rc = read_texts(s, t, c, labels, &all, e);
    if (rc == STK_OK)
        rc = labels_resolve(&all, &s->classes, e);
    for (int64_t i = 0; i < s->count && rc == STK_OK; i++)
        labels[i] = labels[i] == LABEL_NONE ? LABEL_NONE : all.value[labels[i]];
    for (uint32_t k = 0; all.rank && k < all.names.n && rc == STK_OK; k++)
        if (names_add(&s->classes, names_at(&all.names, all.rank[k]), names_length(&all.names, all.rank[k]), &ignored) <
            0)
            rc = error_nomem(e, "open", all.names.pool.len);
    s->n_classes = (int)s->classes.n;
    labels_done(&all);
    return rc;
}

int hdf5_labels_read(struct source *s, const struct hdf5_table *t, int c, int64_t *labels, stk_error *e)
{
    return t->columns.items[c].kind == STK_TEXT ? read_classes(s, t, c, labels, e) : read_numbers(s, t, c, labels, e);
}
