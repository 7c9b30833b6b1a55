/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_find.c -- decides which datasets of an HDF5 file are columns, and what the samples are.
 *
 * Samples are groups if a group contains only groups, and the first and the last of them contain the same datasets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/nearest_list.h"
#include "source/fields_text.h"
#include "source/hdf5_table.h"
#include "source/query.h"

enum { SPLITS_MOST = 4 };

/* ------------------------------------------------------------------ guesses about a dataset */

static bool is_named(const char *name, const char *const *known)
{
    const char *last = name;
    for (const char *p = name; *p; p++)
        last = *p == '/' || *p == '.' ? p + 1 : last;
    for (; *known; known++)
        if (strcasecmp(last, *known) == 0)
            return true;
    return false;
}

bool hdf5_is_text(const struct hdf5_array *a)
{
    return a->type == HDF5_TEXT || a->type == HDF5_VLEN_TEXT;
}

bool hdf5_is_label(const struct hdf5_array *a, const char *name)
{
    static const char *const known[] = {"label", "labels", "y", "target", "targets", "class", NULL};
    const bool integer = a->dtype >= STK_UINT8 && a->dtype <= STK_BOOL && a->dtype != STK_FLOAT64;
    return ((a->type == HDF5_NUMBERS && integer) || hdf5_is_text(a)) && a->ndim == 1 && is_named(name, known);
}

bool hdf5_is_pixels(const struct hdf5_array *a, const char *name)
{
    static const char *const known[] = {"image", "images", NULL};
    if (a->type != HDF5_NUMBERS || a->dtype != STK_UINT8)
        return false;
    return a->ndim == 4 ? a->shape[3] == 1 || a->shape[3] == 3 : a->ndim == 3 && is_named(name, known);
}

bool hdf5_may_be_encoded(const struct hdf5_array *a)
{
    if (a->type == HDF5_NUMBERS)
        return a->dtype == STK_UINT8 && a->ndim == 2;
    return a->type != HDF5_VLEN || dtype_bytes(a->dtype) == 1;
}

static int no_memory(stk_error *e)
{
    return error_nomem(e, "open", 0);
}

/* ------------------------------------------------------------------ samples that are groups */

static bool same_names(const struct names *a, const struct names *b)
{
    bool same = a->n == b->n && a->n > 0;
    for (uint32_t i = 0; same && i < a->n; i++)
        same = strcmp(names_at(a, i), names_at(b, i)) == 0;
    return same;
}

/* Whether the datasets look like columns of rows: they have equal lengths above 1. -1: out of memory. */
static int are_rows(const struct hdf5_view *v, const struct hdf5_listed *listed)
{
    int64_t rows = -1;
    bool same = true;
    for (uint32_t i = 0; i < listed->names.names.n && same; i++) {
        struct hdf5_array a;
        struct hdf5_odd odd;
        hdf5_describe(v, hdf5_names_at(&listed->names, i), hdf5_listed_member(listed, i), false, &a, &odd);
        same = !odd.why && a.ndim > 0 && a.shape[0] > 1 && (rows < 0 || a.shape[0] == rows);
        rows = same ? a.shape[0] : rows;
        hdf5_array_done(&a);
        if (odd.why == HDF5_NO_MEMORY)
            return -1;
    }
    return same;
}

static int ambiguous(const struct names *groups, stk_error *e)
{
    return error_set(e, STK_EUSAGE, "open",
                     "has %u groups with the same datasets; hdf5:FILE?group=%.60s reads the rows of one group, "
                     "hdf5:FILE?samples=groups reads each group as a sample",
                     groups->n, names_at(groups, 0));
}

/* Decides whether the groups are samples. */
static int check_groups(struct hdf5_table *t, const struct hdf5_file *f, stk_error *e)
{
    struct hdf5_listed first = {0}, last = {0};
    struct hdf5_others others = {0};
    int rc = hdf5_listed_all(&f->view, hdf5_names_at(&f->groups, 0), &first, &others, e);
    if (rc == STK_OK)
        rc = hdf5_listed_all(&f->view, hdf5_names_at(&f->groups, f->groups.names.n - 1), &last, &others, e);
    t->groups = rc == STK_OK && same_names(&first.names.names, &last.names.names);
    const int like = t->groups && f->groups.names.n <= SPLITS_MOST ? are_rows(&f->view, &first) : 0;
    if (like)
        rc = like < 0 ? no_memory(e) : ambiguous(&f->groups.names, e);
    hdf5_listed_done(&first);
    hdf5_listed_done(&last);
    return rc;
}

static bool has_dataset(const struct hdf5_file *f, int64_t group, const char *name)
{
    int64_t at = -1;
    const char *member;
    return !hdf5_find_dataset(&f->view, group, name, &at, &member) && at >= 0;
}

/* Decides whether samples are groups, if the query does not say. If the query names datasets, the groups must contain
 * them. */
static int decide(struct hdf5_table *t, const struct hdf5_file *f, stk_error *e)
{
    if (!t->named)
        return f->groups.names.n > 1 ? check_groups(t, f, e) : STK_OK;
    const char *name = names_at(&t->names, 0);
    t->groups =
        f->groups.names.n > 0 && !has_dataset(f, f->group, name) && has_dataset(f, hdf5_names_at(&f->groups, 0), name);
    return STK_OK;
}

/* ------------------------------------------------------------------ samples that are rows */

/* Whether `fields` asks for this column. Syntax errors are reported later. */
static bool mentions(const char *fields, const char *name)
{
    for (const char *at = fields; at && at[0];) {
        struct field_text t;
        if (fields_text_next(fields, &at, &t, NULL) != STK_OK)
            return false;
        if (strcmp(t.column, name) == 0)
            return true;
    }
    return false;
}

struct candidate {
    int64_t rows; /* 0: it has no rows */
    struct hdf5_odd odd;
    bool mentioned, pixels, encoded, label;
};

/* A dataset with an unsupported storage is also a candidate: opening it reports why. */
static void describe(const struct hdf5_view *v, const struct hdf5_listed *all, uint32_t i, const char *fields,
                     struct candidate *out)
{
    const char *name = names_at(&all->names.names, i);
    struct hdf5_array a;
    *out = (struct candidate){.mentioned = mentions(fields, name)};
    hdf5_describe(v, hdf5_names_at(&all->names, i), hdf5_listed_member(all, i), false, &a, &out->odd);
    if (!out->odd.why || out->odd.shaped) {
        const bool whole = a.ndim > 0 && (a.type == HDF5_NUMBERS || a.row_bytes == a.item);
        out->rows = whole && a.row_bytes > 0 ? a.shape[0] : 0;
        out->pixels = hdf5_is_pixels(&a, name);
        out->encoded = a.type == HDF5_BLOCK || (a.type == HDF5_VLEN && dtype_bytes(a.dtype) == 1);
        out->label = hdf5_is_label(&a, name);
    }
    hdf5_array_done(&a);
}

/* The number of rows that most datasets have; in a tie the larger. */
static int64_t most_frequent(const struct candidate *c, uint32_t n)
{
    int64_t best = 0;
    uint32_t votes = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        for (uint32_t j = 0; j < n; j++)
            k += c[j].rows == c[i].rows;
        if (c[i].rows > 0 && (k > votes || (k == votes && c[i].rows > best))) {
            votes = k;
            best = c[i].rows;
        }
        if (i > HDF5_COLUMNS)
            break;
    }
    return best;
}

/* The number of samples: the rows of a dataset in `fields`, or else of the image, the label, or most datasets. */
static int64_t choose(const struct candidate *c, uint32_t n)
{
    for (int pass = 0; pass < 4; pass++)
        for (uint32_t i = 0; i < n; i++) {
            const bool is = pass == 0   ? c[i].mentioned
                            : pass == 1 ? c[i].pixels
                            : pass == 2 ? c[i].encoded
                                        : c[i].label;
            if (is && c[i].rows > 0)
                return c[i].rows;
        }
    return most_frequent(c, n);
}

/* Reports a dataset in `fields` that has no rows, or, if no dataset has rows, one that cannot be read. */
static int refuse(const struct candidate *c, const struct names *names, bool any, int64_t damaged, stk_error *e)
{
    static const struct hdf5_odd no_rows = {.why = "its rows are neither numbers nor single elements"};
    for (uint32_t i = 0; i < names->n; i++)
        if (c[i].rows == 0 && (c[i].mentioned || (!any && c[i].odd.why)))
            return hdf5_refuse(names_at(names, i), c[i].odd.why ? &c[i].odd : &no_rows, e);
    if (!any && damaged)
        return error_set(e, STK_EDATA, "open",
                         "is damaged: %lld object%s cannot be read, and no other dataset has rows; replace the file",
                         (long long)damaged, damaged == 1 ? "" : "s");
    return any ? STK_OK
               : error_set(e, STK_EUSAGE, "open",
                           "has no dataset with rows; the first dimension of a dataset must count the samples");
}

static int take_rows(struct hdf5_table *t, const struct hdf5_file *f, const struct hdf5_listed *all, const char *fields,
                     int64_t damaged, stk_error *e)
{
    const struct names *names = &all->names.names;
    const uint32_t n = names->n;
    struct candidate *c = calloc(n ? n : 1, sizeof *c);
    int rc = c ? STK_OK : no_memory(e);
    for (uint32_t i = 0; i < n && rc == STK_OK; i++) {
        describe(&f->view, all, i, fields, &c[i]);
        rc = c[i].odd.why == HDF5_NO_MEMORY ? no_memory(e) : STK_OK;
    }
    const int64_t rows = rc == STK_OK ? choose(c, n) : 0;
    for (uint32_t i = 0; i < n && rc == STK_OK; i++) {
        uint32_t number;
        if (c[i].rows != rows || rows == 0)
            t->ignored++;
        else if (names_add(&t->names, names_at(names, i), names_length(names, i), &number) < 0)
            rc = no_memory(e);
    }
    if (rc == STK_OK)
        rc = refuse(c, names, t->names.n > 0, damaged, e);
    free(c);
    return rc;
}

/* ------------------------------------------------------------------ rows and groups */

/* Adds the datasets that the query names. */
static int take_named(struct hdf5_table *t, const char *query, stk_error *e)
{
    char key[QUERY_TEXT], value[QUERY_TEXT];
    for (int i = 0; query_at(query, i, key, value); i++) {
        struct column one = {0};
        uint32_t number;
        if (strcmp(key, "group") == 0 || strcmp(key, "samples") == 0) /* these are options */
            continue;
        snprintf(one.name, sizeof one.name, "%.*s", COLUMN_NAME - 1, key);
        const int added = names_add(&t->names, value, strlen(value), &number);
        if (added == 0)
            return error_set(e, STK_EUSAGE, "open", "the query names the dataset %.100s twice", value);
        if (added < 0 || columns_add(&t->columns, &one))
            return no_memory(e);
    }
    t->named = t->names.n > 0;
    return STK_OK;
}

/* Names the other columns after their datasets. */
static int name_columns(struct hdf5_table *t, stk_error *e)
{
    if (t->names.n > HDF5_COLUMNS)
        return error_set(
            e, STK_EUSAGE, "open",
            "has %u datasets with the same number of rows; name the ones you need (hdf5:FILE?NAME=DATASET)",
            t->names.n);
    for (uint32_t i = (uint32_t)t->columns.n; i < t->names.n; i++) {
        struct column one = {0};
        snprintf(one.name, sizeof one.name, "%.*s", COLUMN_NAME - 1, names_at(&t->names, i));
        if (columns_add(&t->columns, &one))
            return no_memory(e);
    }
    return STK_OK;
}

static int take_options(struct hdf5_table *t, const char *query, bool *decided, stk_error *e)
{
    char text[QUERY_TEXT];
    int rc = query_check(query, NULL, e);
    if (rc == STK_OK && query_get(query, "group", text, sizeof text) && text[0]) {
        const size_t n = strlen(text);
        snprintf(t->group, sizeof t->group, "%s%s", text, text[n - 1] == '/' ? "" : "/");
    }
    *decided = rc == STK_OK && query_get(query, "samples", text, sizeof text);
    if (*decided) {
        t->groups = strcmp(text, "groups") == 0;
        if (!t->groups && strcmp(text, "rows") != 0)
            rc = error_set(e, STK_EUSAGE, "open", "samples must be groups or rows, not %.100s", text);
    }
    return rc == STK_OK ? take_named(t, query, e) : rc;
}

static int find_columns(struct hdf5_table *t, const struct hdf5_file *f, const char *fields, stk_error *e)
{
    struct hdf5_listed all = {0};
    struct hdf5_others others = {0};
    if (t->named)
        return STK_OK;
    int rc = hdf5_listed_all(&f->view, t->groups ? hdf5_names_at(&f->groups, 0) : f->group, &all, &others, e);
    t->ignored += others.n;
    const struct names *names = &all.names.names;
    for (uint32_t i = 0; t->groups && i < names->n && rc == STK_OK; i++) {
        uint32_t number;
        if (names_add(&t->names, names_at(names, i), names_length(names, i), &number) < 0)
            rc = no_memory(e);
    }
    if (rc == STK_OK && !t->groups)
        rc = take_rows(t, f, &all, fields, others.damaged, e);
    hdf5_listed_done(&all);
    return rc;
}

/* Reports that the group does not exist, and lists those at the top of the file. */
static int no_group(const struct hdf5_view *v, const char *group, stk_error *e)
{
    char word[QUERY_TEXT];
    snprintf(word, sizeof word, "%.*s", (int)strlen(group) - 1, group); /* without the / at its end */
    struct hdf5_names datasets = {0}, groups = {0};
    struct hdf5_others others = {0};
    struct nearest_list list = {.like.word = word};
    const char *why = hdf5_list(v, v->root, &datasets, &groups, &others);
    for (uint32_t i = 0; i < groups.names.n; i++)
        nearest_list_add(&list, names_at(&groups.names, i));
    const int rc = nearest_list_error(&list, "has no", "group", e);
    hdf5_names_done(&datasets);
    hdf5_names_done(&groups);
    return why == HDF5_NO_MEMORY ? no_memory(e) : rc; /* of a damaged file, what could be listed */
}

/* Finds the group, and lists its content if `listed` is true. */
static int open_group(const struct hdf5_table *t, struct hdf5_file *f, bool listed, struct hdf5_names *datasets,
                      stk_error *e)
{
    struct hdf5_others others = {0};
    const char *why = hdf5_find_path(&f->view, f->view.root, t->group, &f->group);
    if (!why && f->group < 0)
        return no_group(&f->view, t->group, e);
    if (!why && listed)
        why = hdf5_list(&f->view, f->group, datasets, &f->groups, &others);
    return why ? hdf5_fails(why, e) : STK_OK;
}

int hdf5_find_group(const struct hdf5_table *t, struct hdf5_file *f, stk_error *e)
{
    struct hdf5_names datasets = {0};
    const int rc = open_group(t, f, t->groups, &datasets, e);
    hdf5_names_done(&datasets);
    return rc;
}

int hdf5_find(struct hdf5_table *t, struct hdf5_file *f, const struct source_options *o, const char *query,
              stk_error *e)
{
    bool decided = false;
    struct hdf5_names datasets = {0};
    int rc = take_options(t, query, &decided, e);
    if (rc == STK_OK)
        rc = open_group(t, f, t->groups || !decided, &datasets, e);
    if (rc == STK_OK && !decided && datasets.names.n > 0)
        hdf5_names_done(&f->groups);
    hdf5_names_done(&datasets);
    if (rc == STK_OK && t->groups && f->groups.names.n == 0)
        rc = error_set(e, STK_EUSAGE, "open", "has no groups to use as samples; leave out samples=groups");
    if (rc == STK_OK && !decided)
        rc = decide(t, f, e);
    if (rc == STK_OK)
        rc = find_columns(t, f, o->fields, e);
    return rc == STK_OK ? name_columns(t, e) : rc;
}
