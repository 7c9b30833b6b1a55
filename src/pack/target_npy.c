/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_npy.c -- images.npy, all pictures in one array, and labels.npy.
 *
 * The head of an npy says how many rows follow; so all samples have to be there, and be of one size.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pack/numpy.h"
#include "pack/target.h"

struct npy_target {
    struct packed_field form; /* of the first picture */
    int64_t *labels;
    int64_t n_labels;
};

static int begin(struct target *t, stk_error *e)
{
    struct npy_target *s = calloc(1, sizeof *s);
    t->state = s;
    if (s)
        s->labels = calloc((size_t)t->o.samples + 1, sizeof *s->labels);
    return s && s->labels ? STK_OK : error_nomem(e, "write", (size_t)t->o.samples * sizeof *s->labels);
}

static void close_target(struct target *t)
{
    struct npy_target *s = t->state;
    if (s)
        free(s->labels);
    free(s);
    t->state = NULL;
}

static int first(struct target *t, const struct packed_field *f, stk_error *e)
{
    struct npy_target *s = t->state;
    struct buf head = {0};
    int64_t shape[FIELD_DIMS + 1] = {t->o.samples};
    memcpy(shape + 1, f->shape, (size_t)f->ndim * sizeof *shape);
    s->form = *f;
    int rc = numpy_head(&head, f->dtype, f->ndim + 1, shape) ? error_nomem(e, "write", head.len) : STK_OK;
    if (rc == STK_OK)
        rc = outfile_open(&t->file, t->dir, "images.npy", e);
    if (rc == STK_OK)
        rc = outfile_add(&t->file, head.data, head.len, e);
    buf_done(&head);
    return rc;
}

static int differs(const struct packed_field *now, const struct packed_field *then, stk_error *e)
{
    return error_set(e, STK_EDATA, "pack",
                     "has %lld x %lld pixels and those before it %lld x %lld: one array takes one size; end the ops "
                     "with CenterCrop(%lld) or the like",
                     (long long)now->shape[1], (long long)now->shape[0], (long long)then->shape[1],
                     (long long)then->shape[0], (long long)then->shape[0]);
}

static int put(struct target *t, const struct packed *p, stk_error *e)
{
    struct npy_target *s = t->state;
    if (p->picture < 0 || !p->fields[p->picture].dtype)
        return error_set(e, STK_EUSAGE, "pack", "has no pixels: npy takes pictures as raw");
    const struct packed_field *f = &p->fields[p->picture];
    const int rc = t->in_shard == 0 ? first(t, f, e) : STK_OK;
    if (rc != STK_OK)
        return rc;
    if (f->dtype != s->form.dtype || f->ndim != s->form.ndim || memcmp(f->shape, s->form.shape, sizeof f->shape) != 0)
        return differs(f, &s->form, e);
    if (p->label >= 0)
        s->labels[s->n_labels++] = p->label;
    return outfile_add(&t->file, packed_bytes(p, f) + f->numbers, f->n - f->numbers, e);
}

/* A file that is whole goes into the journal, and so into the note. */
static int finish(struct target *t, int64_t samples, stk_error *e)
{
    const int rc = outfile_finish(&t->file, e);
    if (rc != STK_OK)
        return rc;
    struct shard_line line = {.samples = samples, .bytes = t->file.bytes, .sum = t->file.sum};
    memcpy(line.name, t->file.name, sizeof line.name);
    t->bytes += t->file.bytes;
    t->file.bytes = 0;
    return journal_add(&t->journal, &line, e);
}

static int write_labels(struct target *t, stk_error *e)
{
    const struct npy_target *s = t->state;
    struct buf head = {0};
    int rc = numpy_head(&head, STK_INT64, 1, &s->n_labels) ? error_nomem(e, "write", head.len) : STK_OK;
    if (rc == STK_OK)
        rc = outfile_open(&t->file, t->dir, "labels.npy", e);
    if (rc == STK_OK)
        rc = outfile_add(&t->file, head.data, head.len, e);
    if (rc == STK_OK)
        rc = outfile_add(&t->file, s->labels, (size_t)s->n_labels * sizeof *s->labels, e);
    if (rc == STK_OK)
        rc = finish(t, 0, e);
    buf_done(&head);
    return rc;
}

static int end(struct target *t, stk_error *e)
{
    const struct npy_target *s = t->state;
    int rc = finish(t, t->written, e);
    if (rc == STK_OK && s->n_labels == t->written)
        rc = write_labels(t, e);
    return rc;
}

const struct target_format target_npy = {
    .to = STK_TO_NPY, .name = "npy", .begin = begin, .write = put, .end = end, .close = close_target};
