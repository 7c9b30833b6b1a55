/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_match.c -- the common fields and classes of several sources.
 *
 * Fields are matched by name. Numbers must have the same type and shape, since they share an array. Images may differ:
 * if some are encoded and some are pixels, or pixels differ in size, the field of s is an encoded image, and each
 * source describes its own. Classes are matched by name too. If the sources have different classes, s has all of them
 * in byte order.
 */
#include "source/join_match.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "source/columns.h"

static const struct field *find(const struct source *s, const char *name)
{
    for (int f = 0; f < s->n_fields; f++)
        if (strcmp(s->fields[f].name, name) == 0)
            return &s->fields[f];
    return NULL;
}

/* ------------------------------------------------------------------ fields */

/* The first source without the field, or NULL. */
static const char *source_without(const struct joined *j, const char *name)
{
    for (int p = 0; p < j->n; p++)
        if (!find(j->sources[p], name))
            return j->names[p];
    return NULL;
}

static bool seen_before(const struct joined *j, int p, const char *name)
{
    for (int k = 0; k < p; k++)
        if (find(j->sources[k], name))
            return true;
    return false;
}

/* "a.tar has jpg:image, cls:int; b.h5 has x:float32(3)" */
static int fail_unshared(const struct joined *j, stk_error *e)
{
    struct buf all = {.max = 400};
    char fields[160];
    for (int p = 0; p < j->n; p++) {
        source_fields_text(j->sources[p], fields, sizeof fields);
        if (buf_printf(&all, "%s%s has %s", p ? "; " : "", j->names[p], fields))
            break;
    }
    error_set(e, STK_EUSAGE, "open",
              "the sources have no field in common: %.*s; give each source its own fields, with the same names",
              (int)all.len, all.data ? (const char *)all.data : "");
    buf_done(&all);
    return STK_EUSAGE;
}

int join_common_fields(const struct joined *j, struct buf *fields, struct buf *left_out, stk_error *e)
{
    bool failed = false;
    for (int p = 0; p < j->n && !failed; p++)
        for (int f = 0; f < j->sources[p]->n_fields && !failed; f++) {
            const struct field *one = &j->sources[p]->fields[f];
            const char *without = source_without(j, one->name);
            if (seen_before(j, p, one->name))
                continue;
            if (without)
                failed = buf_printf(left_out, "%s%s (not in %s)", left_out->len ? ", " : "", one->name, without);
            else
                failed = buf_printf(fields, "%s\"%s\"%s", fields->len ? ", " : "", one->name,
                                    one->what == STK_BYTES ? ":bytes" : "");
        }
    if (failed || buf_add(fields, "", 1))
        return error_nomem(e, "open", fields->len);
    return fields->len > 1 ? STK_OK : fail_unshared(j, e);
}

static bool is_image(const struct field *f)
{
    return f->kind == FIELD_ENCODED || f->kind == FIELD_PIXELS;
}

static bool same_form(const struct field *a, const struct field *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->ndim == b->ndim && a->bytes == b->bytes &&
           a->pad == b->pad && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0 &&
           a->follow == b->follow && a->box_format == b->box_format && a->relative == b->relative &&
           (a->kind != FIELD_RAGGED || a->dtype != STK_UINT8 || a->what == b->what);
}

static int fail_unlike(const struct joined *j, int p, int f, stk_error *e)
{
    char a[128], b[128];
    struct source one = {.n_fields = 1};
    one.fields[0] = j->sources[0]->fields[f];
    source_fields_text(&one, a, sizeof a);
    one.fields[0] = j->sources[p]->fields[f];
    source_fields_text(&one, b, sizeof b);
    return error_set(e, STK_EUSAGE, "open",
                     "%.200s has %s, but %.200s has %s; set its kind for all sources in fields, as in \"%s\", or leave "
                     "the field out",
                     j->names[0], a, j->names[p], b, a);
}

/* A field that any source reads into a cell has a column in s. Reading asks the source of the sample. */
static int join_field(struct source *s, const struct joined *j, int p, int f, stk_error *e)
{
    struct field *to = &s->fields[f];
    const struct field *one = &j->sources[p]->fields[f];
    if (strcmp(to->name, one->name) != 0 || is_image(to) != is_image(one))
        return fail_unlike(j, p, f, e);
    if (!same_form(to, one)) {
        if (!is_image(to))
            return fail_unlike(j, p, f, e);
        to->kind = FIELD_ENCODED;
        to->ndim = 0;
        to->bytes = 0;
    }
    to->column = one->column > to->column ? one->column : to->column;
    to->label &= one->label;
    to->named |= one->named;
    return STK_OK;
}

int join_fields(struct source *s, const struct joined *j, stk_error *e)
{
    s->n_fields = j->sources[0]->n_fields;
    memcpy(s->fields, j->sources[0]->fields, sizeof s->fields);
    s->has_image = j->sources[0]->has_image;
    s->labels_missing = j->sources[0]->labels_missing;
    int rc = STK_OK;
    for (int p = 1; p < j->n && rc == STK_OK; p++) {
        s->has_image |= j->sources[p]->has_image;
        s->labels_missing |= j->sources[p]->labels_missing;
        if (j->sources[p]->n_fields != s->n_fields)
            rc = error_set(e, STK_EBUG, "open", "%s does not have the requested fields", j->names[p]);
        for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
            rc = join_field(s, j, p, f, e);
    }
    return rc;
}

/* ------------------------------------------------------------------ classes */

static bool same_classes(const struct source *a, const struct source *b)
{
    bool same = source_n_classes(a) == source_n_classes(b);
    for (int i = 0; same && i < source_n_classes(a); i++)
        same = strcmp(source_class(a, i), source_class(b, i)) == 0;
    return same;
}

/* The index of the first source whose classes differ from those of source 0; n: none. */
static int other_classes(const struct joined *j)
{
    int p = 1;
    while (p < j->n && same_classes(j->sources[0], j->sources[p]))
        p++;
    return p;
}

static bool has_labels(const struct source *s)
{
    for (int f = 0; f < s->n_fields; f++)
        if (s->fields[f].named)
            return true;
    return false;
}

/* Refuses to mix labels with and without class names. */
static int check_names(const struct joined *j, stk_error *e)
{
    int with = -1, without = -1;
    for (int p = j->n - 1; p >= 0; p--)
        *(source_n_classes(j->sources[p]) > 0 ? &with : &without) = p;
    if (with < 0 || without < 0)
        return STK_OK;
    return error_set(e, STK_EUSAGE, "open",
                     "the labels of %.200s have no class names, but %.200s has %d classes; pass all class names in "
                     "classes, or leave the label out of fields",
                     j->names[without], j->names[with], source_n_classes(j->sources[with]));
}

/* Sets the classes of s to all names, in byte order. */
static int join_names(struct source *s, const struct joined *j)
{
    struct names all = {0};
    uint32_t number, *order = NULL;
    int rc = 0;
    for (int p = 0; p < j->n && rc == 0; p++)
        for (int i = 0; i < source_n_classes(j->sources[p]) && rc == 0; i++) {
            const char *name = source_class(j->sources[p], i);
            rc = names_add(&all, name, strlen(name), &number) < 0;
        }
    if (rc == 0)
        rc = (order = names_sorted(&all)) == NULL;
    for (uint32_t i = 0; i < all.n && rc == 0; i++)
        rc = names_add(&s->classes, names_at(&all, order[i]), names_length(&all, order[i]), &number) < 0;
    free(order);
    names_done(&all);
    s->n_classes = (int)s->classes.n;
    return rc;
}

static uint32_t *numbers_of(const struct source *s, const struct source *one)
{
    const int n = source_n_classes(one);
    uint32_t *numbers = calloc((size_t)n + 1, sizeof *numbers);
    for (int i = 0; numbers && i < n; i++)
        names_find(&s->classes, source_class(one, i), strlen(source_class(one, i)), &numbers[i]);
    return numbers;
}

void join_numbers_free(uint32_t **numbers, int n)
{
    for (int p = 0; numbers && p < n; p++)
        free(numbers[p]);
    free(numbers);
}

int join_classes(struct source *s, const struct joined *j, uint32_t ***numbers, stk_error *e)
{
    const bool alike = other_classes(j) == j->n, labels = has_labels(s);
    s->n_classes = alike ? source_n_classes(j->sources[0]) : 0;
    if (alike || !labels)
        return STK_OK;
    const int rc = check_names(j, e);
    if (rc != STK_OK)
        return rc;
    *numbers = calloc((size_t)j->n, sizeof **numbers);
    bool failed = !*numbers || join_names(s, j);
    for (int p = 0; p < j->n && !failed; p++)
        failed = !((*numbers)[p] = numbers_of(s, j->sources[p]));
    return failed ? error_nomem(e, "open", (size_t)s->n_classes * sizeof ***numbers) : STK_OK;
}
