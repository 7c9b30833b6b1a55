/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_array.c -- arrays in the caller's memory, read in place. The first dimension is the sample.
 *
 * Strides may be anything. The inner dimensions that are contiguous are copied at once; the outer ones are iterated.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "source/arrays.h"

struct array {
    const uint8_t *data;
    ptrdiff_t stride; /* bytes from sample to sample */
    size_t dense;     /* contiguous bytes */
    int outer;        /* dimensions above them: strides in bytes, and counts */
    ptrdiff_t strides[FIELD_DIMS];
    int64_t shape[FIELD_DIMS];
    stk_dtype dtype;
};

struct arrays {
    struct array arrays[FIELD_MAX];
    struct arrays_plan plan;
};

/* ------------------------------------------------------------------ samples */

/* Copies the first n bytes of a sample from its contiguous pieces. */
static void gather(const struct array *a, const uint8_t *from, uint8_t *to, size_t n)
{
    int64_t at[FIELD_DIMS] = {0};
    for (;;) {
        const size_t k = n < a->dense ? n : a->dense;
        memcpy(to, from, k);
        to += k;
        n -= k;
        int d = a->outer - 1;
        for (; d >= 0; d--) {
            from += a->strides[d];
            if (++at[d] < a->shape[d])
                break;
            from -= a->strides[d] * a->shape[d];
            at[d] = 0;
        }
        if (d < 0 || n == 0)
            return;
    }
}

static int64_t label(const struct source *s, int64_t i)
{
    const struct arrays *a = s->state;
    if (a->plan.label < 0)
        return -1;
    const struct array *one = &a->arrays[a->plan.label];
    return dtype_integer(one->dtype, one->data + i * one->stride);
}

static int row(const struct source *s, int k, int64_t i, size_t n, void *to, stk_error *e)
{
    (void)e;
    const struct arrays *a = s->state;
    gather(&a->arrays[k], a->arrays[k].data + i * a->arrays[k].stride, to, n);
    return STK_OK;
}

static int copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    (void)r;
    const struct arrays *a = s->state;
    if (!s->fields[f].label)
        return row(s, a->plan.array_of[f], i, s->fields[f].bytes, to, e);
    const int64_t value = label(s, i);
    memcpy(to, &value, sizeof value);
    return STK_OK;
}

/* Rows that are not contiguous are not prefetched. */
static void prefetch(const struct source *s, int64_t i)
{
    const struct arrays *a = s->state;
    for (int f = 0; f < s->n_fields; f++)
        if (!s->fields[f].label && a->arrays[a->plan.array_of[f]].outer == 0) {
            const struct array *one = &a->arrays[a->plan.array_of[f]];
            cpu_near(one->data + i * one->stride, one->dense);
        }
}

static int64_t bytes(const struct source *s, int64_t i)
{
    (void)s;
    (void)i;
    return 0;
}

static int read_array(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const struct arrays *a = s->state;
    r->bytes = NULL;
    r->n_bytes = 0;
    r->label = label(s, i);
    return arrays_cells(s, &a->plan, r, i, (struct arrays_reader){.row = row}, e);
}

static uint64_t fingerprint(const struct source *s)
{
    return arrays_fingerprint(s, &((const struct arrays *)s->state)->plan, (struct arrays_reader){.row = row});
}

static void close_arrays(struct source *s)
{
    free(s->state);
    s->state = NULL;
}

static const struct source_ops ops = {
    .close = close_arrays,
    .path = source_numbered_path,
    .key = source_numbered_path,
    .label = label,
    .bytes = bytes,
    .read = read_array,
    .prefetch = prefetch,
    .copy = copy,
    .fingerprint = fingerprint,
    .tally = source_empty_tally,
    .class_name = source_given_class,
};

/* ------------------------------------------------------------------ strides */

/* Adds |stride| * (shape - 1) * item to *reach; false: an address could overflow. */
static bool reaches(int64_t stride, int64_t shape, size_t item, uint64_t *reach)
{
    const uint64_t most = (uint64_t)PTRDIFF_MAX / 4, steps = shape > 1 ? (uint64_t)shape - 1 : 0;
    const uint64_t size = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
    if (size > most / item || (steps > 0 && size * item > (most - *reach) / steps))
        return false;
    *reach += size * item * steps;
    return true;
}

static int overflow(const char *name, stk_error *e)
{
    return error_set(e, STK_EUSAGE, "open", "array %s is larger than the address space", name);
}

/* Splits shape and strides of a sample into contiguous bytes and outer dimensions. */
static int lay_out(struct array *out, const stk_array *a, const char *name, stk_error *e)
{
    const stk_dtype dtype = a->dtype == STK_DTYPE_DEFAULT ? STK_FLOAT32 : a->dtype;
    const size_t item = dtype_bytes(dtype);
    int64_t elements = 1; /* of a contiguous array */
    uint64_t reach = 0;
    bool contiguous = true;
    out->data = a->data;
    out->dtype = dtype;
    out->dense = item;
    out->outer = 0;
    for (int d = a->ndim - 1; d >= 0; d--) {
        const int64_t n = a->shape[d], stride = a->strides ? a->strides[d] : elements;
        if (!reaches(stride, n, item, &reach) || (n > 0 && elements > PTRDIFF_MAX / 4 / n))
            return overflow(name, e);
        const ptrdiff_t step = (ptrdiff_t)stride * (ptrdiff_t)item;
        if (d == 0) {
            out->stride = step;
            break;
        }
        contiguous = contiguous && (stride == elements || n == 1);
        elements *= n;
        if (contiguous) {
            out->dense = (size_t)elements * item;
            continue;
        }
        memmove(out->strides + 1, out->strides, (size_t)out->outer * sizeof out->strides[0]);
        memmove(out->shape + 1, out->shape, (size_t)out->outer * sizeof out->shape[0]);
        out->strides[0] = step;
        out->shape[0] = n;
        out->outer++;
    }
    if ((uint64_t)elements > (uint64_t)PTRDIFF_MAX / 4 / item)
        return overflow(name, e);
    return STK_OK;
}

/* ------------------------------------------------------------------ opening */

/* Checks that the arrays are in host memory. */
static int check(const stk_array *a, int n, stk_error *e)
{
    for (int i = 0; i < n; i++) {
        const char *name = a[i].name ? a[i].name : "";
        if (a[i].device > 1)
            return error_set(e, STK_EUSAGE, "open", "array %d (%s) is on device %d; arrays must be in host memory (1)",
                             i, name, a[i].device);
        if (!a[i].data)
            return error_set(e, STK_EUSAGE, "open", "array %d (%s) has no data", i, name);
    }
    return STK_OK;
}

static int add_all(struct source *s, const struct source_options *o, stk_error *e)
{
    struct arrays *all = s->state;
    int rc = arrays_fields(s, o->arrays, o->n_arrays, o->fields, &all->plan, e);
    for (int k = 0; k < o->n_arrays && rc == STK_OK; k++)
        rc = lay_out(&all->arrays[k], &o->arrays[k], all->plan.form[k].name, e);
    return rc == STK_OK && all->plan.label >= 0 ? arrays_check_labels(s, all->arrays[all->plan.label].dtype, e) : rc;
}

int source_array_open(struct source *s, const struct source_options *o, stk_error *e)
{
    int rc = arrays_check(o->arrays, o->n_arrays, e);
    if (rc == STK_OK)
        rc = check(o->arrays, o->n_arrays, e);
    if (rc != STK_OK)
        return rc;
    struct arrays *all = calloc(1, sizeof *all);
    if (!all)
        return error_nomem(e, "open", sizeof *all);
    all->plan.label = -1;
    s->state = all;
    s->ops = &ops;
    s->kind = "arrays";
    s->count = o->arrays[0].shape[0];
    return add_all(s, o, e);
}
