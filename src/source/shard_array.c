/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_array.c -- arrays in the caller's memory, read in place; their first dimension is the samples.
 *
 * uint8 pictures become pixels, an integer column becomes the label, everything else is a tensor
 * that is copied as it is. Strides may be anything: what is dense is copied in one go, the
 * dimensions above it by counting.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "source/shard.h"

struct array {
    const uint8_t *data;
    ptrdiff_t stride; /* bytes from sample to sample */
    size_t run;       /* bytes that lie dense */
    int outer;        /* dimensions above them, in bytes and counts */
    ptrdiff_t strides[FIELD_DIMS];
    int64_t shape[FIELD_DIMS];
    stk_dtype dtype;
};

struct arrays {
    struct array of[FIELD_MAX]; /* by field */
    int label;                  /* field; -1: none */
};

/* ------------------------------------------------------------------ samples */

/* The first bytes of a sample, put together from its runs. */
static void gather(const struct array *a, const uint8_t *from, uint8_t *to, size_t n)
{
    int64_t at[FIELD_DIMS] = {0};
    for (;;) {
        const size_t k = n < a->run ? n : a->run;
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

static int64_t integer(const struct array *a, int64_t i)
{
    const uint8_t *p = a->data + i * a->stride;
    union {
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
    } v;
    switch (a->dtype) {
    case STK_INT8:
        return (int8_t)*p;
    case STK_INT16:
        memcpy(&v.i16, p, sizeof v.i16);
        return v.i16;
    case STK_UINT16:
        memcpy(&v.u16, p, sizeof v.u16);
        return v.u16;
    case STK_INT32:
        memcpy(&v.i32, p, sizeof v.i32);
        return v.i32;
    case STK_UINT32:
        memcpy(&v.u32, p, sizeof v.u32);
        return v.u32;
    case STK_INT64:
    case STK_UINT64:
        memcpy(&v.i64, p, sizeof v.i64);
        return v.i64;
    default:
        return *p; /* uint8, bool */
    }
}

static int64_t label(const struct source *s, int64_t i)
{
    const struct arrays *a = s->state;
    return a->label < 0 ? -1 : integer(&a->of[a->label], i);
}

static void copy_some(const struct source *s, int64_t i, int f, void *to, size_t n)
{
    const struct arrays *a = s->state;
    if (f == a->label) {
        const int64_t value = label(s, i);
        memcpy(to, &value, sizeof value);
    } else {
        gather(&a->of[f], a->of[f].data + i * a->of[f].stride, to, n);
    }
}

static int copy(const struct source *s, struct reading *r, int64_t i, int f, void *to, stk_error *e)
{
    (void)r, (void)e;
    copy_some(s, i, f, to, s->fields[f].bytes);
    return STK_OK;
}

static int64_t bytes(const struct source *s, int64_t i)
{
    (void)s;
    (void)i;
    return 0;
}

static int read_array(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    (void)e;
    r->bytes = NULL;
    r->n_bytes = 0;
    r->label = label(s, i);
    return STK_OK;
}

enum { ROWS_HASHED = 64, BYTES_HASHED = 4096 };

/* Types, shapes, and how some rows, spread over the whole, begin. */
static uint64_t fingerprint(const struct source *s)
{
    uint64_t h = hash_mix(hash_bytes("arrays", 6, 0), (uint64_t)s->count);
    const int64_t step = s->count / ROWS_HASHED + 1;
    for (int f = 0; f < s->n_fields; f++) {
        const struct field *field = &s->fields[f];
        const size_t n = field->bytes < BYTES_HASHED ? field->bytes : BYTES_HASHED;
        h = hash_bytes(field->name, strlen(field->name), hash_mix(h, (uint64_t)field->dtype));
        h = hash_bytes(field->shape, (size_t)field->ndim * sizeof field->shape[0], h);
        for (int64_t i = 0; i < s->count; i += step) {
            uint8_t row[BYTES_HASHED];
            copy_some(s, i, f, row, n);
            h = hash_bytes(row, n, h);
        }
    }
    return h;
}

static void close_arrays(struct source *s)
{
    free(s->state);
    s->state = NULL;
}

static const struct source_ops ops = {
    .close = close_arrays,
    .path = shard_path,
    .key = shard_path,
    .label = label,
    .bytes = bytes,
    .read = read_array,
    .copy = copy,
    .fingerprint = fingerprint,
    .tally = shard_tally,
    .class_name = shard_class,
};

/* ------------------------------------------------------------------ what the arrays are */

static stk_dtype dtype_of(const stk_array *a)
{
    return a->dtype == STK_DTYPE_DEFAULT ? STK_FLOAT32 : a->dtype;
}

static bool is_named(const stk_array *a, const char *name)
{
    return a->name && strcmp(a->name, name) == 0;
}

/* N x H x W x (1 or 3); N x H x W only when it is called "image". */
static bool is_pixels(const stk_array *a)
{
    if (dtype_of(a) != STK_UINT8)
        return false;
    return a->ndim == 4 ? a->shape[3] == 1 || a->shape[3] == 3 : a->ndim == 3 && is_named(a, "image");
}

static bool is_label(const stk_array *a)
{
    const stk_dtype t = dtype_of(a);
    const bool integer_type = t >= STK_UINT8 && t <= STK_BOOL && t != STK_FLOAT64;
    return a->ndim == 1 && integer_type && (is_named(a, "label") || is_named(a, "y"));
}

/* The array that is the picture; -1: none. */
static int find_pixels(const struct source_options *o)
{
    for (int i = 0; i < o->n_arrays; i++)
        if (is_pixels(&o->arrays[i]) && (is_named(&o->arrays[i], "image") || is_named(&o->arrays[i], "x")))
            return i;
    return is_pixels(&o->arrays[0]) ? 0 : -1;
}

static int find_label(const struct source_options *o)
{
    for (int i = 0; i < o->n_arrays; i++)
        if (is_label(&o->arrays[i]))
            return i;
    return -1;
}

static int check(const stk_array *a, int i, int64_t count, stk_error *e)
{
    const char *name = a->name ? a->name : "";
    if (dtype_bytes(dtype_of(a)) == 0)
        return error_set(e, STK_EUSAGE, "open", "array %d (%s) has no known dtype: %d", i, name, (int)a->dtype);
    if (a->device > 1)
        return error_set(e, STK_EUSAGE, "open", "array %d (%s) is on device %d; arrays must be in host memory (1)", i,
                         name, a->device);
    if (a->ndim < 1 || a->ndim > FIELD_DIMS + 1 || !a->shape)
        return error_set(e, STK_EUSAGE, "open", "array %d (%s) has %d dimensions; 1 to %d are possible", i, name,
                         a->shape ? a->ndim : 0, FIELD_DIMS + 1);
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] < (d > 0))
            return error_set(e, STK_EUSAGE, "open", "array %d (%s) has a dimension %d of %lld%s", i, name, d,
                             (long long)a->shape[d], a->shape[d] == 0 ? ", so that its rows are empty" : "");
    if (a->shape[0] != count)
        return error_set(e, STK_EUSAGE, "open", "array %d (%s) has %lld samples, but array 0 has %lld", i, name,
                         (long long)a->shape[0], (long long)count);
    if (!a->data)
        return error_set(e, STK_EUSAGE, "open", "array %d (%s) has no data", i, name);
    return STK_OK;
}

/* ------------------------------------------------------------------ strides */

/* Adds |stride| * (shape - 1) * item to *reach; false when an address could overflow. */
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
    return error_set(e, STK_EUSAGE, "open", "array %s is larger than memory can be", name);
}

/* Turns shape and strides of one sample into runs of bytes and what is counted above them. */
static int lay_out(struct array *out, const stk_array *a, struct field *f, stk_error *e)
{
    const size_t item = dtype_bytes(f->dtype);
    int64_t dense = 1; /* elements */
    uint64_t reach = 0;
    bool in_run = true;
    out->data = a->data;
    out->dtype = f->dtype;
    out->run = item;
    out->outer = 0;
    for (int d = a->ndim - 1; d >= 0; d--) {
        const int64_t n = a->shape[d], stride = a->strides ? a->strides[d] : dense;
        if (!reaches(stride, n, item, &reach) || (n > 0 && dense > PTRDIFF_MAX / 4 / n))
            return overflow(f->name, e);
        const ptrdiff_t step = (ptrdiff_t)stride * (ptrdiff_t)item;
        if (d == 0) {
            out->stride = step;
            break;
        }
        in_run = in_run && (stride == dense || n == 1);
        dense *= n;
        if (in_run) {
            out->run = (size_t)dense * item;
            continue;
        }
        memmove(out->strides + 1, out->strides, (size_t)out->outer * sizeof out->strides[0]);
        memmove(out->shape + 1, out->shape, (size_t)out->outer * sizeof out->shape[0]);
        out->strides[0] = step;
        out->shape[0] = n;
        out->outer++;
    }
    if ((uint64_t)dense > (uint64_t)PTRDIFF_MAX / 4 / item)
        return overflow(f->name, e);
    f->bytes = (size_t)dense * item;
    return STK_OK;
}

/* ------------------------------------------------------------------ fields */

/* What every batch has besides the source's own fields. */
static bool reserved(const char *name)
{
    return strcmp(name, "index") == 0 || strcmp(name, "position") == 0 || strcmp(name, "valid") == 0;
}

static int name_field(struct source *s, struct field *f, const char *name, int i, stk_error *e)
{
    const int n =
        name ? snprintf(f->name, sizeof f->name, "%s", name) : snprintf(f->name, sizeof f->name, "array%d", i);
    if (n <= 0 || (size_t)n >= sizeof f->name)
        return error_set(e, STK_EUSAGE, "open", "the name of array %d must have 1 to %d bytes", i, FIELD_NAME - 1);
    if (reserved(f->name))
        return error_set(e, STK_EUSAGE, "open",
                         "array %d is called %s; index, position and valid are fields of every batch", i, f->name);
    for (int k = 0; k < s->n_fields; k++)
        if (strcmp(s->fields[k].name, f->name) == 0)
            return error_set(e, STK_EUSAGE, "open", "two arrays are called %s", f->name);
    return STK_OK;
}

static int add_field(struct source *s, const stk_array *a, int i, const char *name, enum field_kind kind, stk_error *e)
{
    struct arrays *all = s->state;
    struct field *f = &s->fields[s->n_fields];
    *f = (struct field){.kind = kind, .dtype = dtype_of(a), .ndim = a->ndim - 1, .column = -1};
    f->what = kind == FIELD_PIXELS ? STK_IMAGE : STK_TENSOR;
    for (int d = 1; d < a->ndim; d++)
        f->shape[d - 1] = a->shape[d];
    int rc = name_field(s, f, name, i, e);
    if (rc == STK_OK)
        rc = lay_out(&all->of[s->n_fields], a, f, e);
    s->n_fields += rc == STK_OK;
    return rc;
}

static int add_pixels(struct source *s, const stk_array *a, int i, stk_error *e)
{
    const int rc = add_field(s, a, i, "image", FIELD_PIXELS, e);
    struct field *f = &s->fields[0];
    if (rc != STK_OK)
        return rc;
    if (f->ndim == 2)
        f->shape[2] = 1;
    f->ndim = 3;
    if (f->shape[0] > INT32_MAX / 4 || f->shape[1] > INT32_MAX / 4)
        return error_set(e, STK_EUSAGE, "open", "pictures of %lld x %lld pixels in array %d", (long long)f->shape[1],
                         (long long)f->shape[0], i);
    return STK_OK;
}

static int check_labels(const struct source *s, const stk_array *a, stk_error *e)
{
    const bool unsigned_64 = a->dtype == STK_UINT64; /* the one type whose numbers may not fit */
    for (int64_t i = 0; i < s->count && (s->n_classes > 0 || unsigned_64); i++) {
        const int64_t value = label(s, i);
        if (s->n_classes > 0 && (value < 0 || value >= s->n_classes))
            return error_set(e, STK_EUSAGE, "open", "the label %lld of sample %lld is outside of the %d classes given",
                             (long long)value, (long long)i, s->n_classes);
        if (unsigned_64 && value < 0)
            return error_set(e, STK_EUSAGE, "open", "the label of sample %lld does not fit into int64", (long long)i);
    }
    return STK_OK;
}

static int add_label(struct source *s, const stk_array *a, int i, stk_error *e)
{
    struct arrays *all = s->state;
    const int f = s->n_fields;
    const int rc = add_field(s, a, i, "label", FIELD_TENSOR, e);
    if (rc != STK_OK)
        return rc;
    all->label = f;
    s->fields[f].dtype = STK_INT64;
    s->fields[f].bytes = sizeof(int64_t);
    return check_labels(s, a, e);
}

/* The picture, the label, then the others as they come. */
static int add_all(struct source *s, const struct source_options *o, stk_error *e)
{
    const int pixels = find_pixels(o), labels = find_label(o);
    int rc = pixels >= 0 ? add_pixels(s, &o->arrays[pixels], pixels, e) : STK_OK;
    if (rc == STK_OK && labels >= 0)
        rc = add_label(s, &o->arrays[labels], labels, e);
    for (int i = 0; i < o->n_arrays && rc == STK_OK; i++)
        if (i != pixels && i != labels)
            rc = add_field(s, &o->arrays[i], i, o->arrays[i].name, FIELD_TENSOR, e);
    return rc;
}

int shard_array_open(struct source *s, const struct source_options *o, stk_error *e)
{
    if (o->n_arrays < 1 || o->n_arrays > FIELD_MAX)
        return error_set(e, STK_EUSAGE, "open", "%d arrays; 1 to %d are possible", o->n_arrays, FIELD_MAX);
    const int64_t count = o->arrays[0].shape && o->arrays[0].ndim > 0 ? o->arrays[0].shape[0] : 0;
    for (int i = 0; i < o->n_arrays; i++) {
        const int rc = check(&o->arrays[i], i, count, e);
        if (rc != STK_OK)
            return rc;
    }
    if (count == 0)
        return error_set(e, STK_EUSAGE, "open", "the arrays have no samples");
    struct arrays *all = calloc(1, sizeof *all);
    if (!all)
        return error_nomem(e, "open", sizeof *all);
    all->label = -1;
    s->state = all;
    s->ops = &ops;
    s->kind = "arrays";
    s->count = count;
    return add_all(s, o, e);
}
