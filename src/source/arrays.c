/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays.c -- the rules by which arrays become fields.
 */
#include "source/arrays.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "source/columns.h"

/* ------------------------------------------------------------------ kinds of arrays */

static stk_dtype dtype_of(const stk_array *a)
{
    return a->dtype == STK_DTYPE_DEFAULT ? STK_FLOAT32 : a->dtype;
}

static bool is_named(const stk_array *a, const char *name)
{
    return a->name && strcmp(a->name, name) == 0;
}

static bool is_called_image(const stk_array *a)
{
    return is_named(a, "image") || is_named(a, "images");
}

/* N x H x W x (1 or 3); N x H x W only if the array is named like an image. */
static bool is_pixels(const stk_array *a)
{
    if (dtype_of(a) != STK_UINT8)
        return false;
    return a->ndim == 4 ? a->shape[3] == 1 || a->shape[3] == 3 : a->ndim == 3 && is_called_image(a);
}

static bool is_label(const stk_array *a)
{
    const stk_dtype t = dtype_of(a);
    const bool integer = t >= STK_UINT8 && t <= STK_BOOL && t != STK_FLOAT64;
    return a->ndim == 1 && integer && (is_named(a, "label") || is_named(a, "labels") || is_named(a, "y"));
}

/* The array with the image; -1: none. */
static int find_pixels(const stk_array *a, int n, const bool *ragged)
{
    for (int i = 0; i < n; i++)
        if (!ragged[i] && is_pixels(&a[i]) && (is_called_image(&a[i]) || is_named(&a[i], "x")))
            return i;
    return !ragged[0] && is_pixels(&a[0]) ? 0 : -1;
}

static int find_label(const stk_array *a, int n, const bool *ragged)
{
    for (int i = 0; i < n; i++)
        if (!ragged[i] && is_label(&a[i]))
            return i;
    return -1;
}

static int check(const stk_array *a, int i, int64_t count, stk_error *e)
{
    const char *name = a->name ? a->name : "";
    if (dtype_bytes(dtype_of(a)) == 0)
        return error_set(e, STK_EUSAGE, "open", "array %d (%s) has an unknown dtype: %d", i, name, (int)a->dtype);
    if (a->ndim < 1 || a->ndim > FIELD_DIMS + 1 || !a->shape)
        return error_set(e, STK_EUSAGE, "open", "array %d (%s) has %d dimensions; it must have 1 to %d", i, name,
                         a->shape ? a->ndim : 0, FIELD_DIMS + 1);
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] < (d > 0))
            return error_set(e, STK_EUSAGE, "open", "array %d (%s): dimension %d is %lld%s", i, name, d,
                             (long long)a->shape[d], a->shape[d] == 0 ? ", so its rows are empty" : "");
    if (a->shape[0] != count)
        return error_set(e, STK_EUSAGE, "open", "array %d (%s) has %lld sample%s, but array 0 has %lld", i, name,
                         (long long)a->shape[0], a->shape[0] == 1 ? "" : "s", (long long)count);
    return STK_OK;
}

int arrays_check(const stk_array *a, int n, stk_error *e)
{
    if (n < 1 || n > FIELD_MAX)
        return error_set(e, STK_EUSAGE, "open", "there are %d arrays; pass 1 to %d", n, FIELD_MAX);
    const int64_t count = a[0].shape && a[0].ndim > 0 ? a[0].shape[0] : 0;
    int rc = STK_OK;
    for (int i = 0; i < n && rc == STK_OK; i++)
        rc = check(&a[i], i, count, e);
    if (rc == STK_OK && count == 0)
        return error_set(e, STK_EUSAGE, "open", "the arrays have no samples");
    return rc;
}

/* ------------------------------------------------------------------ fields */

static int name_field(struct source *s, struct field *f, const char *name, int i, stk_error *e)
{
    const size_t n = name ? strlen(name) : 1;
    if (n == 0 || n >= FIELD_NAME)
        return error_set(e, STK_EUSAGE, "open", "the name of array %d must have 1 to %d bytes", i, FIELD_NAME - 1);
    if (name)
        columns_field_name(f->name, name);
    else
        snprintf(f->name, sizeof f->name, "array%d", i);
    for (int k = 0; k < s->n_fields; k++)
        if (strcmp(s->fields[k].name, f->name) == 0)
            return error_set(e, STK_EUSAGE, "open", "two arrays are named %s; rename one", f->name);
    return STK_OK;
}

/* Sets shape and bytes of one sample. */
static int form(struct field *f, const stk_array *a, stk_error *e)
{
    const bool ragged = f->kind == FIELD_RAGGED;
    f->bytes = dtype_bytes(f->dtype);
    f->ndim = ragged ? a->ndim : a->ndim - 1;
    f->shape[0] = ragged ? -1 : f->shape[0];
    for (int d = 1; d < a->ndim; d++) {
        f->shape[ragged ? d : d - 1] = a->shape[d];
        if (f->bytes > (size_t)PTRDIFF_MAX / 4 / (size_t)a->shape[d])
            return error_set(e, STK_EUSAGE, "open", "array %s is larger than the address space", f->name);
        f->bytes *= (size_t)a->shape[d];
    }
    return STK_OK;
}

static int add_field(struct source *s, const stk_array *a, int i, const char *name, enum field_kind kind,
                     struct arrays_plan *out, stk_error *e)
{
    struct field *f = &s->fields[s->n_fields];
    *f = (struct field){.kind = kind, .dtype = dtype_of(a), .column = kind == FIELD_RAGGED ? i : -1};
    f->what = kind == FIELD_PIXELS ? STK_IMAGE : STK_TENSOR;
    int rc = name_field(s, f, name, i, e);
    if (rc == STK_OK)
        rc = form(f, a, e);
    if (rc != STK_OK)
        return rc;
    out->form[i] = *f;
    out->array_of[s->n_fields++] = i;
    return STK_OK;
}

static int add_pixels(struct source *s, const stk_array *a, int i, struct arrays_plan *out, stk_error *e)
{
    const int rc = add_field(s, a, i, "image", FIELD_PIXELS, out, e);
    struct field *f = &s->fields[0];
    if (rc != STK_OK)
        return rc;
    if (f->ndim == 2)
        f->shape[2] = 1;
    f->ndim = 3;
    out->form[i] = *f;
    if (f->shape[0] > INT32_MAX / 4 || f->shape[1] > INT32_MAX / 4)
        return error_set(e, STK_EUSAGE, "open", "images of %lld x %lld pixels in array %d are too large",
                         (long long)f->shape[1], (long long)f->shape[0], i);
    return STK_OK;
}

static int add_label(struct source *s, const stk_array *a, int i, struct arrays_plan *out, stk_error *e)
{
    struct field *f = &s->fields[s->n_fields];
    const int rc = add_field(s, a, i, "label", FIELD_TENSOR, out, e);
    if (rc != STK_OK)
        return rc;
    out->label = i;
    f->what = STK_INT;
    f->label = f->named = true;
    f->dtype = STK_INT64;
    f->bytes = sizeof(int64_t);
    return STK_OK;
}

/* The image, the label, then the others in order. */
static int add_all(struct source *s, const stk_array *a, int n, struct arrays_plan *out, stk_error *e)
{
    const int pixels = find_pixels(a, n, out->ragged), labels = find_label(a, n, out->ragged);
    int rc = pixels >= 0 ? add_pixels(s, &a[pixels], pixels, out, e) : STK_OK;
    if (rc == STK_OK && labels >= 0)
        rc = add_label(s, &a[labels], labels, out, e);
    for (int i = 0; i < n && rc == STK_OK; i++)
        if (i != pixels && i != labels)
            rc = add_field(s, &a[i], i, a[i].name, out->ragged[i] ? FIELD_RAGGED : FIELD_TENSOR, out, e);
    return rc;
}

/* ------------------------------------------------------------------ requested fields */

/* Array k as a column, under its own name. */
static int add_column(struct columns *c, const stk_array *a, int k, const struct arrays_plan *m)
{
    const struct field *f = &m->form[k];
    struct column one = {.kind = f->kind == FIELD_PIXELS ? STK_IMAGE : STK_TENSOR, .dtype = f->dtype, .ndim = f->ndim};
    one.label = k == m->label;
    memcpy(one.shape, f->shape, sizeof one.shape);
    snprintf(one.name, sizeof one.name, "%s", a->name ? a->name : f->name);
    return columns_add(c, &one);
}

/* Whether a field has the type and shape of its array, so that it can be copied. */
static bool is_copy(const struct field *f, const struct field *form)
{
    return f->kind == FIELD_PIXELS || (f->kind == FIELD_TENSOR && form->kind != FIELD_RAGGED &&
                                       f->dtype == form->dtype && f->bytes == form->bytes);
}

static int bind(struct source *s, const stk_array *a, const char *fields, struct arrays_plan *m, stk_error *e)
{
    struct columns c = {.labels = m->label >= 0};
    int rc = STK_OK;
    for (int k = 0; k < m->n && rc == STK_OK; k++)
        if (add_column(&c, &a[k], k, m))
            rc = error_nomem(e, "open", sizeof *c.items);
    if (rc == STK_OK)
        rc = columns_bind(s, &c, fields, e);
    columns_done(&c);
    for (int i = 0; i < s->n_fields && rc == STK_OK; i++) {
        struct field *f = &s->fields[i];
        m->array_of[i] = f->column;
        if (f->column >= 0 && is_copy(f, &m->form[f->column]))
            f->column = -1;
    }
    return rc;
}

int arrays_fields(struct source *s, const stk_array *a, int n, const char *fields, struct arrays_plan *out,
                  stk_error *e)
{
    out->n = n;
    out->label = -1;
    const int rc = add_all(s, a, n, out, e);
    return rc == STK_OK && fields && fields[0] ? bind(s, a, fields, out, e) : rc;
}

/* The size of sample i in array k. */
static int bytes_of(const struct source *s, const struct arrays_plan *m, int k, int64_t i, struct arrays_reader by,
                    size_t *n, stk_error *e)
{
    *n = m->form[k].bytes;
    return m->ragged[k] ? by.bytes(s, k, i, n, e) : STK_OK;
}

static int read_cell(const struct source *s, const struct arrays_plan *m, struct reading *r, int f, int64_t i,
                     struct arrays_reader by, stk_error *e)
{
    const int k = s->fields[f].column;
    const struct field *form = &m->form[k];
    size_t n;
    int rc = bytes_of(s, m, k, i, by, &n, e);
    if (rc == STK_OK)
        rc = by.row(s, k, i, n, r->file.data + r->file.len, e);
    if (rc != STK_OK)
        return rc;
    struct cell *c = &r->cells[f];
    *c = (struct cell){.bytes = r->file.data + r->file.len, .n = n, .dtype = form->dtype, .ndim = form->ndim};
    memcpy(c->shape, form->shape, sizeof c->shape);
    const stk_kind what = s->fields[f].what;
    if (what == STK_TEXT || what == STK_JSON || what == STK_BYTES) /* the uint8 numbers are their bytes */
        *c = (struct cell){.bytes = c->bytes, .n = n};
    else if (m->ragged[k])
        c->shape[0] = (int64_t)(n / form->bytes);
    r->file.len += (n + 7) / 8 * 8;
    return STK_OK;
}

int arrays_cells(const struct source *s, const struct arrays_plan *m, struct reading *r, int64_t i,
                 struct arrays_reader by, stk_error *e)
{
    size_t all = 0, n;
    int rc = STK_OK;
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
        if (s->fields[f].column >= 0) {
            rc = bytes_of(s, m, s->fields[f].column, i, by, &n, e);
            all += rc == STK_OK ? n + 8 : 0;
        }
    if (rc == STK_OK && all > 0 && buf_reserve(&r->file, all))
        rc = error_nomem(e, "read", all);
    r->file.len = 0;
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
        if (s->fields[f].column >= 0)
            rc = read_cell(s, m, r, f, i, by, e);
    return rc;
}

uint64_t arrays_fingerprint(const struct source *s, const struct arrays_plan *m, struct arrays_reader by)
{
    enum { ROWS = 64, BYTES = 4096 };
    uint64_t h = hash_mix(hash_bytes("arrays", 6, 0), (uint64_t)s->count);
    const int64_t step = s->count / ROWS + 1;
    for (int k = 0; k < m->n; k++) {
        const struct field *f = &m->form[k];
        h = hash_bytes(f->name, strlen(f->name), hash_mix(h, (uint64_t)f->dtype));
        h = hash_bytes(f->shape, (size_t)f->ndim * sizeof f->shape[0], h);
        for (int64_t i = 0; i < s->count; i += step) {
            uint8_t begin[BYTES] = {0};
            size_t n;
            if (bytes_of(s, m, k, i, by, &n, NULL) != STK_OK)
                continue;
            n = n < BYTES ? n : BYTES;
            by.row(s, k, i, n, begin, NULL);
            h = hash_bytes(begin, n, h);
        }
    }
    return h;
}

/* ------------------------------------------------------------------ labels */

int arrays_check_label(const struct source *s, stk_dtype t, int64_t i, stk_error *e)
{
    const int64_t value = source_label(s, i);
    if (s->n_classes > 0 && (value < -1 || value >= s->n_classes)) /* -1: none */
        return error_set(e, STK_EUSAGE, "open",
                         "the label %lld of sample %lld is not the index of one of the %d given classes; add the class",
                         (long long)value, (long long)i, s->n_classes);
    if (t == STK_UINT64 && value < 0) /* the only type whose values may not fit */
        return error_set(e, STK_EUSAGE, "open", "the label of sample %lld does not fit into int64", (long long)i);
    return STK_OK;
}

int arrays_check_labels(const struct source *s, stk_dtype t, stk_error *e)
{
    int rc = STK_OK;
    for (int64_t i = 0; i < s->count && (s->n_classes > 0 || t == STK_UINT64) && rc == STK_OK; i++)
        rc = arrays_check_label(s, t, i, e);
    return rc;
}
