/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.c -- casts, parses and copies what was read to the type and shape of a field.
 */
#include "source/field.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/number_list.h"
#include "base/text.h"
#include "format/npy.h"

/* ------------------------------------------------------------------ numbers */

static int cast(const uint8_t *from, stk_dtype a, size_t n, uint8_t *to, stk_dtype b, const char *name, stk_error *e)
{
    const size_t step = dtype_bytes(a), out = dtype_bytes(b);
    if (a == b) {
        if (n > 0)
            memcpy(to, from, n * step);
        return STK_OK;
    }
    if (number_cast(from, a, n, to, b))
        return STK_OK;
    if (!number_is_type(a) || !number_is_type(b))
        return error_set(e, STK_EDATA, "read", "%s is %s, which cannot be converted to %s", name, dtype_name(a),
                         dtype_name(b));
    for (size_t i = 0; i < n; i++) {
        const struct number v = number_load(a, from + i * step);
        if (number_store(&v, b, to + i * out) == 0)
            continue;
        char text[NUMBER_BYTES];
        number_write(v.d, text);
        return error_set(e, STK_EDATA, "read", "%s has the value %s, which %s cannot hold", name, text, dtype_name(b));
    }
    return STK_OK;
}

int field_number(const char *text, size_t n, stk_dtype t, uint8_t to[8])
{
    struct number v;
    while (n > 0 && text_is_space(text[n - 1]))
        n--;
    while (n > 0 && text_is_space(*text)) {
        text++;
        n--;
    }
    return n > 0 && number_is_type(t) && number_read(text, n, &v) == n ? number_store(&v, t, to) : -1;
}

/* ------------------------------------------------------------------ shapes */

/* What was read, as numbers with a shape. The bytes of a cell may be an npy file. made: numbers that had to be
 * reordered, from malloc. */
struct numbers {
    const uint8_t *at;
    uint8_t *made;
    stk_dtype dtype;
    int64_t count;
    int ndim; /* -1: numbers that fit any shape */
    int64_t shape[FIELD_DIMS];
};

static int from_npy(const struct field *f, const struct cell *c, struct numbers *out, stk_error *e)
{
    struct npy npy;
    const char *why;
    if (npy_parse(c->bytes, c->n, c->n, &npy, &why) != 0 || npy.ndim > FIELD_DIMS)
        return error_set(e, STK_EDATA, "read", "%s: %s", f->name, why ? why : "has more than 8 dimensions");
    out->dtype = npy.dtype;
    out->ndim = npy.ndim;
    out->count = (int64_t)(npy.bytes / dtype_bytes(npy.dtype));
    memcpy(out->shape, npy.shape, (size_t)npy.ndim * sizeof out->shape[0]);
    out->at = c->bytes + npy.at;
    if (!npy.swapped && !npy.fortran)
        return STK_OK;
    out->made = malloc(npy.bytes + 1);
    if (!out->made)
        return error_nomem(e, "read", npy.bytes);
    npy_copy(&npy, out->at, out->made);
    out->at = out->made;
    return STK_OK;
}

static int from_bytes(const struct field *f, const struct cell *c, struct numbers *out, stk_error *e)
{
    const size_t size = dtype_bytes(f->dtype);
    if (c->n >= 6 && memcmp(c->bytes, "\x93NUMPY", 6) == 0 && f->what == STK_TENSOR)
        return from_npy(f, c, out, e);
    if (c->n % size != 0)
        return error_set(e, STK_EDATA, "read", "%s has %zu bytes, which is not a multiple of the size of %s", f->name,
                         c->n, dtype_name(f->dtype));
    *out = (struct numbers){.at = c->bytes, .dtype = f->dtype, .count = (int64_t)(c->n / size), .ndim = -1};
    return STK_OK;
}

static int numbers_of(const struct field *f, const struct cell *c, struct numbers *out, stk_error *e)
{
    *out = (struct numbers){0};
    if (c->dtype == STK_DTYPE_DEFAULT)
        return from_bytes(f, c, out, e);
    out->at = c->bytes;
    out->dtype = c->dtype;
    out->ndim = c->ndim;
    out->count = (int64_t)(c->n / dtype_bytes(c->dtype));
    memcpy(out->shape, c->shape, sizeof out->shape);
    if (out->ndim > 0 && out->shape[0] < 0)
        out->ndim = -1;
    return STK_OK;
}

static int bad_text(const struct field *f, const struct cell *c, const char *problem, stk_error *e)
{
    const bool integer = f->dtype == STK_INT64 && !problem;
    return error_set(e, STK_EDATA, "read", "%s is \"%.*s\"%s, which is not %s%s%s%s", f->name,
                     c->n < 40 ? (int)c->n : 40, (const char *)c->bytes, c->n > 40 ? "..." : "",
                     integer   ? "an integer"
                     : problem ? "a list of "
                               : "a number of type ",
                     integer ? "" : dtype_name(f->dtype), problem ? ": " : "", problem ? problem : "");
}

/* Whether its numbers must be parsed. */
static bool is_list(const struct field *f, const struct cell *c)
{
    return c->text && c->dtype == STK_DTYPE_DEFAULT && f->what == STK_TENSOR;
}

/* Writes the numbers to `to` as elements of the field, as many as there is room for. */
static int from_text(const struct field *f, const struct cell *c, uint8_t *to, int64_t room, struct numbers *out,
                     stk_error *e)
{
    struct number_list l;
    const char *problem = number_list_read((const char *)c->bytes, c->n, f->dtype, to, room, &l);
    if (problem)
        return bad_text(f, c, problem, e);
    *out = (struct numbers){.at = to, .dtype = f->dtype, .count = l.count, .ndim = l.ndim};
    memcpy(out->shape, l.shape, sizeof out->shape);
    return STK_OK;
}

static int missing(const struct field *f, stk_error *e)
{
    return error_set(e, STK_EDATA, "read",
                     "the sample has no %s; give it a default (%s ? %s), or leave it out of fields", f->name, f->name,
                     f->kind == FIELD_RAGGED ? "\"\"" : "0");
}

static void fill(const struct field *f, uint8_t *to, size_t bytes)
{
    const size_t size = dtype_bytes(f->dtype);
    for (size_t at = 0; at + size <= bytes; at += size)
        memcpy(to + at, f->fill, size);
}

static bool all_dims_match(const struct field *f, const struct numbers *n)
{
    if (n->ndim < 0)
        return true;
    if (n->ndim != f->ndim)
        return n->ndim <= 1 || f->ndim <= 1; /* numbers that fit any shape: only the count matters */
    for (int d = 0; d < f->ndim; d++)
        if (f->shape[d] >= 0 && n->shape[d] != f->shape[d])
            return false;
    return true;
}

int field_store(const struct field *f, const struct cell *c, void *to, stk_error *e)
{
    if (!c->bytes) {
        if (!f->has_fill)
            return missing(f, e);
        fill(f, to, f->bytes);
        return STK_OK;
    }
    const bool is_npy = f->what == STK_TENSOR && !c->text && c->n > 6 && memcmp(c->bytes, "\x93NUMPY", 6) == 0;
    if (c->dtype == STK_DTYPE_DEFAULT && f->ndim == 0 && !is_npy)
        return field_number((const char *)c->bytes, c->n, f->dtype, to) == 0 ? STK_OK : bad_text(f, c, NULL, e);
    struct numbers n = {0};
    const bool list = is_list(f, c);
    const int64_t want = (int64_t)(f->bytes / dtype_bytes(f->dtype));
    int rc = list ? from_text(f, c, to, want, &n, e) : numbers_of(f, c, &n, e);
    if (rc == STK_OK && (n.count != want || !all_dims_match(f, &n)))
        rc = error_set(e, STK_EDATA, "read",
                       "%s has %lld number%s, but its shape needs %lld; %s:%s(*) accepts any count", f->name,
                       (long long)n.count, n.count == 1 ? "" : "s", (long long)want, f->name, dtype_name(f->dtype));
    if (rc == STK_OK && !list)
        rc = cast(n.at, n.dtype, (size_t)n.count, to, f->dtype, f->name, e);
    free(n.made);
    return rc;
}

/* ------------------------------------------------------------------ ragged */

/* The shape of the row: as it was read, or computed from the count and the other dimensions. */
static int shape_of(const struct field *f, const struct numbers *n, struct ragged_row *to, stk_error *e)
{
    if (n->ndim == f->ndim && all_dims_match(f, n)) {
        memcpy(to->shape, n->shape, sizeof to->shape);
        return STK_OK;
    }
    int64_t rest = 1;
    for (int d = 1; d < f->ndim; d++)
        rest *= f->shape[d];
    if ((n->ndim >= 0 && n->ndim != 1) || field_is_flat(f) || rest < 1 || n->count % rest != 0)
        return error_set(e, STK_EDATA, "read", "%s has %lld number%s, which do not fit its shape", f->name,
                         (long long)n->count, n->count == 1 ? "" : "s");
    memcpy(to->shape, f->shape, sizeof to->shape);
    to->shape[0] = n->count / rest;
    return STK_OK;
}

static int make_row(const struct field *f, const struct cell *c, struct ragged_row *to, stk_error *e)
{
    struct numbers n;
    int rc = numbers_of(f, c, &n, e);
    if (rc == STK_OK)
        rc = shape_of(f, &n, to, e);
    const size_t bytes = rc == STK_OK ? (size_t)n.count * dtype_bytes(f->dtype) : 0;
    if (rc == STK_OK && ragged_row_reserve(to, bytes))
        rc = error_nomem(e, "read", bytes);
    if (rc == STK_OK)
        rc = cast(n.at, n.dtype, (size_t)n.count, to->data, f->dtype, f->name, e);
    to->n = rc == STK_OK ? bytes : 0;
    free(n.made);
    return rc;
}

static int parse_row(const struct field *f, const struct cell *c, struct ragged_row *to, stk_error *e)
{
    const size_t most = number_list_most((const char *)c->bytes, c->n), bytes = most * dtype_bytes(f->dtype);
    struct numbers n;
    if (ragged_row_reserve(to, bytes))
        return error_nomem(e, "read", bytes);
    int rc = from_text(f, c, to->data, (int64_t)most, &n, e);
    if (rc == STK_OK)
        rc = shape_of(f, &n, to, e);
    to->n = rc == STK_OK ? (size_t)n.count * dtype_bytes(f->dtype) : 0;
    return rc;
}

int field_ragged_row(const struct field *f, const struct cell *c, struct ragged_row *to, stk_error *e)
{
    to->n = 0;
    memset(to->shape, 0, sizeof to->shape);
    if (!c->bytes)
        return f->has_fill ? STK_OK : missing(f, e);
    return is_list(f, c) ? parse_row(f, c, to, e) : make_row(f, c, to, e);
}
