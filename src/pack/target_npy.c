/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_npy.c -- packs to npy arrays: images.npy, labels.npy, and one array for every other field.
 *
 * The header of an npy contains the number of rows, so every sample needs a row of the same shape. A ragged field
 * becomes two files: X.npy has the values of all samples one after the other; X.offsets.npy has the first row of each
 * sample, and the end. The number of values is known last, so the header of X.npy is written again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "format/npy.h"
#include "pack/target.h"

struct npy_column {
    struct outfile values, offsets;
    size_t row_bytes; /* of one row of the values */
    int64_t n;        /* rows of values */
};

struct npy_target {
    struct target_column *forms;
    struct npy_column *columns;
};

static int begin(struct target *t, stk_error *e)
{
    struct npy_target *s = calloc(1, sizeof *s);
    t->state = s;
    if (s)
        s->columns = calloc((size_t)t->o.n_columns + 1, sizeof *s->columns);
    return s && s->columns ? STK_OK : error_nomem(e, "write", (size_t)t->o.n_columns * sizeof *s->columns);
}

static void close_target(struct target *t)
{
    struct npy_target *s = t->state;
    for (int i = 0; s && s->columns && i < t->o.n_columns; i++) {
        outfile_done(&s->columns[i].values);
        outfile_done(&s->columns[i].offsets);
    }
    if (s) {
        free(s->columns);
        free(s->forms);
    }
    free(s);
    t->state = NULL;
}

/* ------------------------------------------------------------------ files */

/* Makes the header of an array of n rows. Its length does not depend on n. */
static int make_head(struct buf *head, const struct target_column *c, int64_t n, stk_error *e)
{
    int64_t shape[FIELD_DIMS + 1] = {n};
    memcpy(shape + 1, c->shape, (size_t)c->ndim * sizeof *shape);
    return npy_write_head(head, c->dtype, c->ndim + 1, shape) ? error_nomem(e, "write", head->len) : STK_OK;
}

static int open_file(struct target *t, struct outfile *o, const char *suffix, const struct target_column *c, int64_t n,
                     stk_error *e)
{
    char name[OUTFILE_NAME];
    struct buf head = {0};
    snprintf(name, sizeof name, "%s%s", c->name, suffix);
    int rc = make_head(&head, c, n, e);
    if (rc == STK_OK)
        rc = outfile_open(o, t->dir, name, e);
    if (rc == STK_OK)
        rc = outfile_add(o, head.data, head.len, e);
    buf_done(&head);
    return rc;
}

static int open_column(struct target *t, const struct target_column *c, struct npy_column *out, stk_error *e)
{
    static const int64_t zero;
    struct target_column offsets = {.dtype = STK_INT64};
    memcpy(offsets.name, c->name, sizeof offsets.name);
    out->row_bytes = dtype_bytes(c->dtype);
    for (int d = 0; d < c->ndim; d++)
        out->row_bytes = size_mul(out->row_bytes, (size_t)c->shape[d]);
    int rc = open_file(t, &out->values, ".npy", c, c->ragged ? INT64_MAX : t->o.samples, e);
    if (rc == STK_OK && c->ragged)
        rc = open_file(t, &out->offsets, ".offsets.npy", &offsets, t->o.samples + 1, e);
    return rc == STK_OK && c->ragged ? outfile_add(&out->offsets, &zero, sizeof zero, e) : rc;
}

static int open_all(struct target *t, const struct packed *p, stk_error *e)
{
    struct npy_target *s = t->state;
    s->forms = target_arrays_columns(t, p);
    int rc = s->forms ? STK_OK : error_nomem(e, "write", (size_t)t->o.n_columns * sizeof *s->forms);
    for (int i = 0; i < t->o.n_columns && rc == STK_OK; i++)
        rc = open_column(t, &s->forms[i], &s->columns[i], e);
    return rc;
}

/* ------------------------------------------------------------------ rows */

static int put(struct target *t, const struct packed *p, stk_error *e)
{
    struct npy_target *s = t->state;
    int rc = s->forms ? STK_OK : open_all(t, p, e);
    if (rc == STK_OK)
        rc = target_arrays_check(t, s->forms, p, e);
    for (int i = 0; i < t->o.n_columns && rc == STK_OK; i++) {
        struct npy_column *c = &s->columns[i];
        const struct target_arrays_cell cell = target_arrays_cell(t, p, i);
        c->n += (int64_t)(cell.n / c->row_bytes);
        t->bytes += (int64_t)cell.n;
        rc = outfile_add(&c->values, cell.bytes, cell.n, e);
        if (rc == STK_OK && s->forms[i].ragged)
            rc = outfile_add(&c->offsets, &c->n, sizeof c->n, e);
    }
    return rc;
}

/* Records a complete file in the journal, and thereby in stoker.json. */
static int finish(struct target *t, struct outfile *o, int64_t samples, stk_error *e)
{
    const int rc = outfile_finish(o, e);
    if (rc != STK_OK)
        return rc;
    struct shard_line line = {.samples = samples, .bytes = o->bytes, .sum = o->sum};
    memcpy(line.name, o->name, sizeof line.name);
    t->bytes += o->bytes;
    return journal_add(&t->journal, &line, e);
}

static int finish_column(struct target *t, int i, stk_error *e)
{
    struct npy_target *s = t->state;
    struct npy_column *c = &s->columns[i];
    struct buf head = {0};
    int rc = STK_OK;
    if (s->forms[i].ragged) {
        rc = make_head(&head, &s->forms[i], c->n, e);
        if (rc == STK_OK)
            rc = outfile_replace_head(&c->values, head.data, head.len, e);
        buf_done(&head);
    }
    if (rc == STK_OK)
        rc = finish(t, &c->values, i == 0 ? t->written : 0, e); /* the first one counts the samples */
    return rc == STK_OK && s->forms[i].ragged ? finish(t, &c->offsets, 0, e) : rc;
}

static int end(struct target *t, stk_error *e)
{
    const struct npy_target *s = t->state;
    int rc = STK_OK;
    t->bytes = 0;
    for (int i = 0; i < t->o.n_columns && s->forms && rc == STK_OK; i++)
        rc = finish_column(t, i, e);
    return rc;
}

const struct target_format target_npy = {
    .to = STK_TO_NPY, .name = "npy", .begin = begin, .write = put, .end = end, .close = close_target};
