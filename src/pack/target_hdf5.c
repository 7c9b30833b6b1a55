/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_hdf5.c -- packs to data.h5, which has these datasets: "images", an array of pixels if images are raw, else
 * their bytes; "labels", with the class names as an attribute; "keys"; one for every other field.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "format/hdf5_out.h"
#include "pack/target.h"

static const char name[] = "data.h5", temp[] = ".data.h5.part";

struct hdf5_target {
    int fd; /* -1: not open */
    struct hdf5_out out;
    struct target_column *columns;
};

static int begin(struct target *t, stk_error *e)
{
    struct hdf5_target *s = calloc(1, sizeof *s);
    t->state = s;
    if (!s)
        return error_nomem(e, "write", sizeof *s);
    s->fd = openat(t->dir, temp, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (s->fd < 0)
        return error_os(e, errno, "write", "cannot create %s", name);
    return hdf5_out_open(&s->out, s->fd, t->o.samples, e);
}

static void close_target(struct target *t)
{
    struct hdf5_target *s = t->state;
    if (!s)
        return;
    hdf5_out_done(&s->out);
    if (s->fd >= 0) {
        close(s->fd);
        unlinkat(t->dir, temp, 0);
    }
    free(s->columns);
    free(s);
    t->state = NULL;
}

static int make_columns(struct target *t, const struct packed *p, stk_error *e)
{
    struct hdf5_target *s = t->state;
    s->columns = target_arrays_columns(t, p);
    int rc = s->columns ? STK_OK : error_nomem(e, "write", (size_t)t->o.n_columns * sizeof *s->columns);
    for (int i = 0; i < t->o.n_columns && rc == STK_OK; i++) {
        const struct target_column *c = &s->columns[i];
        const bool text = c->kind == STK_TEXT || c->kind == STK_JSON;
        struct hdf5_out_column out = {.dtype = c->dtype, .ndim = c->ndim};
        out.form = text ? HDF5_OUT_TEXT : c->ragged ? HDF5_OUT_RUN : HDF5_OUT_FIXED;
        out.words = c->label ? t->o.classes : NULL;
        out.n_words = c->label ? t->o.n_classes : 0;
        memcpy(out.name, c->name, sizeof out.name);
        memcpy(out.shape, c->shape, sizeof out.shape);
        rc = hdf5_out_column(&s->out, &out, e);
    }
    return rc;
}

static int put(struct target *t, const struct packed *p, stk_error *e)
{
    struct hdf5_target *s = t->state;
    int rc = s->columns ? STK_OK : make_columns(t, p, e);
    if (rc == STK_OK)
        rc = target_arrays_check(t, s->columns, p, e);
    for (int i = 0; i < t->o.n_columns && rc == STK_OK; i++) {
        const struct target_arrays_cell c = target_arrays_cell(t, p, i);
        t->bytes += (int64_t)c.n;
        rc = hdf5_out_row(&s->out, i, c.bytes, c.n, e);
    }
    return rc;
}

static int on_disk(struct target *t, stk_error *e)
{
    struct hdf5_target *s = t->state;
    int why = fsync(s->fd) ? errno : 0;
    if (close(s->fd) && !why)
        why = errno;
    s->fd = -1;
    if (!why && renameat(t->dir, temp, t->dir, name))
        why = errno;
    if (!why)
        return STK_OK;
    unlinkat(t->dir, temp, 0);
    return error_os(e, why, "write", "cannot write %s to disk", name);
}

static int end(struct target *t, stk_error *e)
{
    struct hdf5_target *s = t->state;
    struct shard_line line = {.samples = t->written};
    int rc = hdf5_out_end(&s->out, e);
    if (rc == STK_OK)
        rc = on_disk(t, e);
    if (rc == STK_OK)
        rc = outfile_check(t->dir, name, &line.bytes, &line.sum, e);
    if (rc != STK_OK)
        return rc;
    memcpy(line.name, name, sizeof name);
    t->bytes = line.bytes;
    return journal_add(&t->journal, &line, e);
}

const struct target_format target_hdf5 = {
    .to = STK_TO_HDF5, .name = "hdf5", .begin = begin, .write = put, .end = end, .close = close_target};
