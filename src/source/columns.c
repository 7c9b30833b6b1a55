/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.c -- the columns of a source, and the fields made from them.
 */
#include "source/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/image_file.h"
#include "base/nearest_list.h"
#include "format/npy.h"
#include "source/field.h"
#include "source/fields_text.h"
#include "source/source_ops.h"

int columns_add(struct columns *c, const struct column *one)
{
    if (c->n == c->room) {
        const int room = c->room > 0 ? 2 * c->room : 8;
        struct column *items = realloc(c->items, (size_t)room * sizeof *items);
        if (!items)
            return -1;
        c->items = items;
        c->room = room;
    }
    c->items[c->n++] = *one;
    return 0;
}

void columns_done(struct columns *c)
{
    free(c->items);
    *c = (struct columns){0};
}

/* ------------------------------------------------------------------ guessing */

static const struct {
    const char *suffix;
    stk_kind kind;
} suffixes[] = {
    {"jpg", STK_IMAGE},       {"jpeg", STK_IMAGE}, {"png", STK_IMAGE}, {"webp", STK_IMAGE}, {"dct", STK_IMAGE},
    {"cls", STK_INT},         {"cls2", STK_INT},   {"class", STK_INT}, {"count", STK_INT},  {"index", STK_INT},
    {"inx", STK_INT},         {"id", STK_INT},     {"txt", STK_TEXT},  {"text", STK_TEXT},  {"caption", STK_TEXT},
    {"transcript", STK_TEXT}, {"json", STK_JSON},  {"jsn", STK_JSON},  {"npy", STK_TENSOR}, {"mp4", STK_BYTES},
    {"wav", STK_BYTES},
};

/* By the part after the last dot, since members of one kind are distinguished by what precedes it ("seg.png"). */
static stk_kind guess_by_name(const char *name)
{
    const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcasecmp(last, suffixes[i].suffix) == 0)
            return suffixes[i].kind;
    return STK_KIND_DEFAULT;
}

static bool looks_like_text(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n && i < 4096; i++)
        if ((p[i] < 0x20 && p[i] != '\t' && p[i] != '\n' && p[i] != '\r') || p[i] == 0x7f)
            return false;
    return n > 0;
}

stk_kind columns_guess(const char *name, const uint8_t *bytes, size_t n)
{
    if (bytes && image_file_magic(bytes, n))
        return STK_IMAGE;
    const stk_kind kind = guess_by_name(name);
    if (kind != STK_KIND_DEFAULT || !bytes)
        return kind;
    if (n >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0)
        return STK_TENSOR;
    return looks_like_text(bytes, n) ? STK_TEXT : STK_BYTES;
}

void columns_merge_npy(struct column *c, const uint8_t *bytes, size_t n)
{
    struct npy npy;
    const char *why;
    if (npy_parse(bytes, n, n, &npy, &why) != 0 || npy.ndim > FIELD_DIMS)
        return;
    if (c->dtype == STK_DTYPE_DEFAULT) {
        c->dtype = npy.dtype;
        c->ndim = npy.ndim;
        memcpy(c->shape, npy.shape, (size_t)npy.ndim * sizeof c->shape[0]);
    }
    for (int d = 0; d < c->ndim && d < npy.ndim; d++)
        if (c->shape[d] != npy.shape[d])
            c->shape[d] = -1;
}

/* ------------------------------------------------------------------ fields */

static int find_column(const struct columns *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->items[i].name, name) == 0)
            return i;
    return -1;
}

/* The column that becomes the field "image" by default. */
static int find_image(const struct columns *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->items[i].kind == STK_IMAGE)
            return i;
    return -1;
}

static int find_label(const struct columns *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->items[i].label)
            return i;
    return -1;
}

enum { COLUMN_LABEL = -2 }; /* the source's own label, without a column */

static int unknown_column(const struct columns *c, const char *name, stk_error *e)
{
    struct nearest_list all = {.like.word = name};
    for (int i = 0; i < c->n; i++)
        nearest_list_add(&all, c->items[i].name);
    if (c->labels && find_label(c) < 0 && find_column(c, "label") < 0)
        nearest_list_add(&all, "label");
    return nearest_list_error(&all, "there is no", "column", e);
}

/* Names that every batch uses, whatever its source. */
static bool is_reserved(const char *name)
{
    static const char *const own[] = {"index", "position", "valid", "path", "key"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return false;
}

void columns_field_name(char to[FIELD_NAME], const char *column)
{
    if (is_reserved(column))
        snprintf(to, FIELD_NAME, "my_%.8s", column);
    else
        snprintf(to, FIELD_NAME, "%.*s", FIELD_NAME - 1, column);
}

static int resolve(const struct columns *c, const char *name, int *out, stk_error *e)
{
    *out = find_column(c, name);
    if (*out < 0 && strcmp(name, "image") == 0)
        *out = find_image(c);
    if (*out < 0 && strcmp(name, "label") == 0)
        *out = find_label(c);
    if (*out < 0 && strncmp(name, "my_", 3) == 0 && is_reserved(name + 3)) /* its default name */
        *out = find_column(c, name + 3);
    if (*out >= 0 && c->labels && c->items[*out].label)
        *out = COLUMN_LABEL;
    if (*out < 0 && strcmp(name, "label") == 0 && c->labels)
        *out = COLUMN_LABEL;
    return *out == -1 ? unknown_column(c, name, e) : STK_OK;
}

static void make_scalar(struct field *f, stk_dtype t)
{
    f->kind = FIELD_TENSOR;
    f->dtype = t;
    f->ndim = 0;
    f->bytes = dtype_bytes(t);
}

void columns_make_run(struct field *f)
{
    f->kind = FIELD_RAGGED;
    f->dtype = STK_UINT8;
    f->ndim = 1;
    f->shape[0] = -1;
    f->bytes = 1;
}

int columns_make_tensor(struct field *f, stk_dtype t, int ndim, const int64_t *shape, stk_error *e)
{
    f->kind = FIELD_TENSOR;
    f->dtype = t;
    f->ndim = ndim;
    f->bytes = dtype_bytes(t);
    if (f->bytes == 0)
        return error_set(e, STK_EUSAGE, "open", "the field %s has no type; add one (%s:float32(3,4))", f->name,
                         f->name);
    for (int d = 0; d < ndim; d++) {
        f->shape[d] = shape[d];
        if (shape[d] < 0)
            f->kind = FIELD_RAGGED;
        else if (shape[d] > 0 && f->bytes > SIZE_MAX / 4 / (size_t)shape[d])
            return error_set(e, STK_EUSAGE, "open", "the field %s is larger than the address space", f->name);
        else if (shape[d] > 0)
            f->bytes *= (size_t)shape[d];
        else
            return error_set(e, STK_EUSAGE, "open", "the field %s has a dimension of 0; dimensions must be 1 or more",
                             f->name);
    }
    if (f->kind == FIELD_RAGGED && ndim > 0 && shape[0] >= 0)
        f->shape[0] = -1;
    if (f->kind == FIELD_RAGGED && field_is_flat(f))
        f->bytes = dtype_bytes(t);
    return STK_OK;
}

static int make_image(struct source *s, struct field *f, const struct column *c, stk_error *e)
{
    for (int i = 0; i < s->n_fields; i++)
        if (s->fields[i].what == STK_IMAGE)
            return error_set(e, STK_EUSAGE, "open",
                             "the fields %s and %s are both images; a sample has one image: read the other as :bytes",
                             s->fields[i].name, f->name);
    if (c->ndim == 3) {
        const int rc = columns_make_tensor(f, STK_UINT8, 3, c->shape, e);
        f->kind = FIELD_PIXELS;
        return rc;
    }
    f->kind = FIELD_ENCODED;
    f->dtype = STK_UINT8;
    return STK_OK;
}

bool columns_hold_numbers(const struct column *c)
{
    return (c->kind == STK_INT || c->kind == STK_FLOAT || c->kind == STK_TENSOR) && dtype_bytes(c->dtype) > 0;
}

bool columns_hold_pixels(const struct column *c)
{
    return c->dtype == STK_UINT8 && c->ndim == 3 && c->shape[0] > 0 && c->shape[1] > 0 &&
           (c->shape[2] == 1 || c->shape[2] == 3);
}

static int refuse_kind(const struct field *f, const struct column *c, const char *what, stk_error *e)
{
    return error_set(e, STK_EUSAGE, "open", "the column %s contains %s and cannot become the field %s", c->name, what,
                     f->name);
}

/* Whether values are parsed as text. Plain text read as uint8 yields its bytes. */
static bool is_text(const struct column *c, stk_dtype as)
{
    const bool number = (c->kind == STK_INT || c->kind == STK_FLOAT) && !c->dtype;
    return c->text || number || c->kind == STK_JSON || (c->kind == STK_TEXT && as != STK_UINT8);
}

/* Integers are kept; words become class indices. */
static int make_classes(const struct source *s, struct field *f, const struct column *c, stk_error *e)
{
    f->words = c->kind != STK_INT;
    if (f->words && !c->text)
        return error_set(e, STK_EUSAGE, "open",
                         "%s:class needs a column of a list (csv, tsv, jsonl) or integers; the column %s is neither",
                         f->name, c->name);
    for (int i = 0; i < s->n_fields && f->words; i++)
        if (s->fields[i].words)
            return error_set(e, STK_EUSAGE, "open",
                             "the fields %s and %s are both of kind class; only one can be; give one another kind",
                             s->fields[i].name, f->name);
    return STK_OK;
}

static int form(struct source *s, struct field *f, const struct column *c, const struct field_text *t, stk_error *e)
{
    const stk_kind kind = t->kind ? t->kind : c->kind ? c->kind : STK_BYTES;
    f->what = kind;
    if (c->refused && kind != STK_TENSOR)
        return error_set(e, STK_EUSAGE, "open", "the column %s cannot be a field: %s", c->name, c->refused);
    if (t->kind ? t->follow : c->follow)
        return columns_follow(f, c, t, e);
    switch (kind) {
    case STK_IMAGE:
        return columns_hold_numbers(c) && !columns_hold_pixels(c) ? refuse_kind(f, c, "numbers", e)
                                                                  : make_image(s, f, c, e);
    case STK_INT:
        make_scalar(f, STK_INT64);
        return t->words ? make_classes(s, f, c, e) : STK_OK;
    case STK_FLOAT:
        make_scalar(f, STK_FLOAT32);
        return STK_OK;
    case STK_TENSOR:
        if (t->shaped)
            return columns_make_tensor(f, t->dtype ? t->dtype : c->dtype, t->ndim, t->shape, e);
        if (columns_hold_numbers(c) || dtype_bytes(c->dtype) > 0) /* pixels are numbers too */
            return columns_make_tensor(f, t->dtype ? t->dtype : c->dtype, c->ndim, c->shape, e);
        make_scalar(f, t->dtype ? t->dtype : STK_FLOAT32);
        return STK_OK;
    default:
        if (columns_hold_numbers(c) && !(c->dtype == STK_UINT8 && c->ndim == 1)) /* uint8 may be text or bytes */
            return refuse_kind(f, c, "numbers", e);
        columns_make_run(f);
        return STK_OK;
    }
}

static int add_default(struct field *f, const struct field_text *t, stk_error *e)
{
    f->has_fill = t->has_default;
    if (f->kind == FIELD_RAGGED ? t->pads : t->has_default) {
        const char *text = f->kind == FIELD_RAGGED ? t->pad : t->otherwise;
        if (text[0] && field_number(text, strlen(text), f->dtype, f->fill) != 0)
            return error_set(e, STK_EUSAGE, "open", "%.60s is not a valid %s, the type of the field %s", text,
                             dtype_name(f->dtype), f->name);
    }
    if (f->kind == FIELD_RAGGED && t->has_default && t->otherwise[0])
        return error_set(e, STK_EUSAGE, "open",
                         "the default of %s must be empty (%s ? \"\"), because its length varies", f->name, f->name);
    if (f->kind == FIELD_ENCODED && t->has_default)
        return error_set(e, STK_EUSAGE, "open", "an image cannot have a default; remove the ? and the text after it");
    f->pad = t->pads;
    if (t->pads && (f->kind != FIELD_RAGGED || field_is_flat(f)))
        return error_set(e, STK_EUSAGE, "open", "the field %s cannot be padded: %s", f->name,
                         f->kind == FIELD_RAGGED ? "more than its first dimension varies"
                                                 : "all its rows have the same shape");
    return STK_OK;
}

static int check_name(const struct source *s, const struct columns *c, const struct field *f, const char *column,
                      stk_error *e)
{
    if (is_reserved(f->name))
        return error_set(e, STK_EUSAGE, "open",
                         "%s is the name of a field that every batch has; choose another (my_%s=%s)", f->name, f->name,
                         f->name);
    for (int i = 0; i < s->n_fields; i++) {
        const int other = s->fields[i].column;
        if (strcmp(s->fields[i].name, f->name) == 0)
            return error_set(e, STK_EUSAGE, "open",
                             "the columns %.100s and %.100s would both become the field %s; rename one (NAME=COLUMN)",
                             other >= 0 ? c->items[other].name : "label", column, f->name);
    }
    return STK_OK;
}

/* Whether the field is the label that the source knows as an integer, perhaps in another type. A label column can
 * become more than that. */
static bool is_plain_label(const struct columns *c, const struct field_text *t)
{
    const bool number = t->kind == STK_FLOAT || (t->kind == STK_TENSOR && t->ndim == 0);
    return t->kind == STK_KIND_DEFAULT || t->kind == STK_INT || (number && find_label(c) < 0);
}

static int add_field(struct source *s, const struct columns *c, const struct field_text *t, stk_error *e)
{
    enum { OWN = 3 }; /* index, position, valid */
    int column;
    if (s->n_fields >= FIELD_MAX - OWN)
        return error_set(e, STK_EUSAGE, "open", "there are more than %d fields; name the ones you need in fields",
                         FIELD_MAX - OWN);
    int rc = resolve(c, t->column, &column, e);
    if (rc != STK_OK)
        return rc;
    struct field *f = &s->fields[s->n_fields];
    *f = (struct field){.column = column == COLUMN_LABEL ? -1 : column, .label = column == COLUMN_LABEL};
    snprintf(f->name, sizeof f->name, "%s", t->name);
    rc = check_name(s, c, f, t->column, e);
    if (rc != STK_OK)
        return rc;
    if (f->label && is_plain_label(c, t)) {
        f->named = true;
        f->what = t->kind ? t->kind : STK_INT;
        make_scalar(f, t->dtype ? t->dtype : f->what == STK_INT ? STK_INT64 : STK_FLOAT32);
    } else {
        f->label = false;
        if (column == COLUMN_LABEL)
            f->column = column = find_label(c);
        if (column < 0)
            return error_set(e, STK_EUSAGE, "open", "the label is a number here; use %s:int or %s:float", f->name,
                             f->name);
        rc = form(s, f, &c->items[column], t, e);
        f->text = is_text(&c->items[column], f->dtype);
        f->named = f->words || (c->items[column].label && f->kind == FIELD_TENSOR && f->ndim == 0) ||
                   (c->items[column].classes && f->follow == FOLLOW_EACH && f->dtype == STK_INT64);
    }
    if (rc == STK_OK)
        rc = add_default(f, t, e);
    s->n_fields += rc == STK_OK;
    s->mask_files |= f->file;
    return rc;
}

/* Adds a column under its usual name, unless another column has that name. */
static int add_usual(struct source *s, const struct columns *c, int column, const char *name, stk_error *e)
{
    struct field_text t = {0};
    const int named = find_column(c, name);
    const char *own = column >= 0 ? c->items[column].name : name;
    snprintf(t.name, sizeof t.name, "%.*s", FIELD_NAME - 1, named < 0 || named == column ? name : own);
    snprintf(t.column, sizeof t.column, "%s", own);
    return add_field(s, c, &t, e);
}

/* Adds all columns: the image, the label, then the others in order; further images as bytes. */
static int bind_all(struct source *s, const struct columns *c, stk_error *e)
{
    const int image = find_image(c), label = find_label(c);
    int rc = STK_OK;
    if (image >= 0)
        rc = add_usual(s, c, image, "image", e);
    if (rc == STK_OK && (label >= 0 || c->labels))
        rc = add_usual(s, c, label, "label", e);
    for (int i = 0; i < c->n && rc == STK_OK; i++) {
        struct field_text t = {.kind = c->items[i].kind == STK_IMAGE ? STK_BYTES : STK_KIND_DEFAULT};
        columns_field_name(t.name, c->items[i].name);
        memcpy(t.column, c->items[i].name, sizeof t.column);
        if (i != image && i != label && !c->items[i].refused && !c->items[i].implied)
            rc = add_field(s, c, &t, e);
    }
    if (rc == STK_OK && s->n_fields == 0 && c->n > 0)
        return error_set(e, STK_EUSAGE, "open", "the column %s cannot be a field: %s", c->items[0].name,
                         c->items[0].refused);
    return rc;
}

static int expect(struct columns *c, const struct field_text *t, stk_error *e)
{
    int column;
    if (!t->kind || !(t->has_default || c->declared) || resolve(c, t->column, &column, NULL) == STK_OK)
        return STK_OK;
    struct column one = {.kind = t->kind, .dtype = t->dtype};
    memcpy(one.name, t->column, sizeof one.name);
    if (t->kind == STK_TENSOR) {
        one.ndim = 1;
        one.shape[0] = -1;
    }
    return columns_add(c, &one) ? error_nomem(e, "open", sizeof one) : STK_OK;
}

int columns_add_declared(struct columns *c, const char *fields, stk_error *e)
{
    int rc = STK_OK;
    for (const char *at = c->incomplete || c->declared ? fields : NULL; rc == STK_OK && at && at[0];) {
        struct field_text t;
        rc = fields_text_next(fields, &at, &t, e);
        if (rc == STK_OK)
            rc = expect(c, &t, e);
    }
    return rc;
}

int columns_bind(struct source *s, const struct columns *c, const char *fields, stk_error *e)
{
    s->n_fields = 0;
    s->mask_files = false;
    s->has_image = find_image(c) >= 0;
    if (!fields || !fields[0])
        return bind_all(s, c, e);
    int rc = STK_OK;
    for (const char *at = fields; rc == STK_OK && at;) {
        struct field_text t;
        rc = fields_text_next(fields, &at, &t, e);
        if (rc == STK_OK)
            rc = add_field(s, c, &t, e);
    }
    return rc;
}
