/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_detect.c -- detects format, header and columns of a list.
 *
 * The suffix determines the format. If it does not, the first records do. All records determine whether the lines of a
 * .txt have labels.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/image_file.h"
#include "source/field.h"
#include "source/list.h"

static bool is_image(struct slice s)
{
    return image_file_suffix(s.p, s.n);
}

static bool has(struct slice s, char c)
{
    return s.n > 0 && memchr(s.p, c, s.n);
}

/* ------------------------------------------------------------------ format */

static bool is_table(struct slice first, char delimiter)
{
    struct slice cells[LIST_COLUMNS];
    const int n = has(first, delimiter) ? list_cells(first, delimiter, cells) : 0;
    for (int i = 0; i < n; i++)
        if (is_image(cells[i]) || list_path_rank(cells[i]) >= 0)
            return true;
    return false;
}

/* The delimiter of the first record: `preferred` if the record contains it, or else a usual one that it contains. */
static char delimiter_of(struct slice first, char preferred)
{
    static const char usual[] = {',', '\t', ';'};
    if (has(first, preferred))
        return preferred;
    for (size_t i = 0; i < sizeof usual; i++)
        if (has(first, usual[i]))
            return usual[i];
    return preferred;
}

static bool is_suffix(const struct list *l, const char *suffix)
{
    const char *slash = strrchr(l->name, '/'), *dot = strrchr(slash ? slash : l->name, '.');
    return strcasecmp(dot ? dot : "", suffix) == 0;
}

static void choose_format(struct list *l, struct slice first)
{
    const struct slice text = list_trim(first);
    if (is_suffix(l, ".csv") || is_suffix(l, ".tsv")) {
        l->format = LIST_TABLE;
        l->delimiter = delimiter_of(first, is_suffix(l, ".csv") ? ',' : '\t');
    } else if (is_suffix(l, ".jsonl") || is_suffix(l, ".ndjson") || text.p[0] == '{') {
        l->format = LIST_JSON;
    } else if (has(text, '\t') || is_table(first, ',')) {
        l->format = LIST_TABLE;
        l->delimiter = has(text, '\t') ? '\t' : ',';
    }
}

/* ------------------------------------------------------------------ columns of a table */

struct table {
    struct slice first[LIST_COLUMNS], second[LIST_COLUMNS];
    int n_first, n_second;
};

static int best(const struct slice *cells, int n, int (*rank)(struct slice))
{
    int found = -1;
    for (int i = 0; i < n; i++) {
        const int r = rank(cells[i]);
        if (r >= 0 && (found < 0 || r < rank(cells[found])))
            found = i;
    }
    return found;
}

static int first_image(const struct slice *cells, int n)
{
    for (int i = 0; i < n; i++)
        if (is_image(cells[i]))
            return i;
    return -1;
}

static int first_with_slash(const struct slice *cells, int n)
{
    for (int i = 0; i < n; i++)
        if (has(cells[i], '/'))
            return i;
    return -1;
}

/* By name. Otherwise the first cell that looks like a path, or else the first that is not the label. */
static int path_column(const struct list *l, const struct table *t, int named, int label)
{
    if (named >= 0)
        return named;
    const struct slice *cells = l->header ? t->second : t->first;
    const int n = l->header ? t->n_second : t->n_first;
    int column = first_image(cells, n);
    if (column < 0)
        column = first_with_slash(cells, n);
    if (column < 0)
        column = label == 0 && t->n_first > 1 ? 1 : 0;
    return column;
}

/* By name. If the header has no name that is known, the other of two columns. Without a header, the column after the
 * path, or else before it. -1: none. */
static int label_column(const struct list *l, const struct table *t, int named)
{
    if (named >= 0 || l->path_named || t->n_first < 2)
        return named;
    if (t->n_first == 2)
        return 1 - l->path_column;
    if (l->header)
        return -1;
    return l->path_column + 1 < t->n_first ? l->path_column + 1 : l->path_column - 1;
}

static void choose_columns(struct list *l, const struct table *t)
{
    const int path = best(t->first, t->n_first, list_path_rank), label = best(t->first, t->n_first, list_label_rank);
    const bool names = path >= 0 || label >= 0 || first_image(t->second, t->n_second) >= 0;
    l->header = names && first_image(t->first, t->n_first) < 0;
    l->path_named = l->header && path >= 0;
    l->path_column = path_column(l, t, l->header ? path : -1, l->header ? label : -1);
    l->label_column = label_column(l, t, l->header ? label : -1);
    l->labels = l->label_column >= 0;
    if (l->labels && l->header)
        snprintf(l->label_name, sizeof l->label_name, "%.*s", (int)t->first[l->label_column].n,
                 t->first[l->label_column].p);
    else
        snprintf(l->label_name, sizeof l->label_name, "%d", l->label_column + 1);
}

static int detect_table(struct list *l, stk_error *e)
{
    struct table t;
    struct slice record;
    struct buf held = {0}; /* a copy of the first record, since reading the second overwrites it */
    lines_rewind(&l->lines);
    int rc = list_next_record(l, &record, e);
    if (rc > 0 && buf_add(&held, record.p, record.n)) {
        error_nomem(e, "open", record.n);
        rc = -1;
    }
    if (rc > 0) {
        t.n_first = list_cells((struct slice){(char *)held.data, held.len}, l->delimiter, t.first);
        rc = list_next_record(l, &record, e);
    }
    if (rc >= 0 && held.len > 0) {
        t.n_second = rc > 0 ? list_cells(record, l->delimiter, t.second) : 0;
        choose_columns(l, &t);
    }
    buf_done(&held);
    return rc;
}

/* ------------------------------------------------------------------ labels after paths */

enum { LINES_TRIED = 16 };

static bool exists(const struct list *l, struct slice s)
{
    char path[PATH_MAX];
    struct stat st;
    if (s.n >= sizeof path)
        return false;
    memcpy(path, s.p, s.n);
    path[s.n] = 0;
    return fstatat(l->dir, path, &st, 0) == 0;
}

/* Lines have labels if text follows the suffix of an image, or if text follows a space in every line. A line that names
 * an existing file is only a path. */
static int detect_lines(struct list *l, stk_error *e)
{
    int64_t n = 0, after_image = 0, after_space = 0;
    struct slice line, path, label;
    int rc;
    lines_rewind(&l->lines);
    while ((rc = list_next_record(l, &line, e)) > 0) {
        n++;
        line = list_trim(line);
        if (!list_split(line, &path, &label) || has(label, '/') || is_image(label))
            continue;
        if (after_space++ < LINES_TRIED && exists(l, line))
            return 0;
        after_image += is_image(path);
    }
    l->labels = after_image > 0 || (n > 0 && after_space == n);
    return rc;
}

bool list_has_columns(const struct list *l)
{
    return is_suffix(l, ".csv") || is_suffix(l, ".tsv") || is_suffix(l, ".jsonl") || is_suffix(l, ".ndjson");
}

int list_detect(struct list *l, stk_error *e)
{
    struct slice first;
    l->comments = !list_has_columns(l);
    lines_rewind(&l->lines);
    int rc = list_next_record(l, &first, e);
    if (rc > 0) {
        choose_format(l, first);
        if (l->format == LIST_TABLE)
            rc = detect_table(l, e);
        else if (l->format == LIST_LINES)
            rc = detect_lines(l, e);
    }
    if (rc >= 0)
        list_rewind(l);
    return rc < 0 ? -1 : 0;
}

/* ------------------------------------------------------------------ lists without paths */

static bool is_number(struct slice s)
{
    uint8_t number[8];
    return field_number(s.p, s.n, STK_FLOAT64, number) == 0;
}

static bool looks_like_file(const struct list *l, struct slice s)
{
    return is_image(s) || has(s, '/') || has(s, '\\') || (s.n > 0 && exists(l, s));
}

/* If all cells of the first record are words, they are names of columns. */
static bool all_words(const struct slice *cells, int n)
{
    for (int i = 0; i < n; i++)
        if (cells[i].n == 0 || is_number(cells[i]))
            return false;
    return true;
}

/* What the first records of a table without a named path column contain. */
struct findings {
    int records, numbers; /* numbers: in the column of paths */
    bool words;           /* the first record */
    bool files;
};

static void add_record(const struct list *l, struct slice record, struct findings *v)
{
    struct slice cells[LIST_COLUMNS];
    const int n = list_cells(record, l->delimiter, cells);
    if (v->records++ == 0) {
        v->words = all_words(cells, n);
        v->numbers = 0;
    }
    if (l->path_column >= n)
        return;
    v->files |= looks_like_file(l, cells[l->path_column]);
    v->numbers += is_number(cells[l->path_column]);
}

static int table_names_files(struct list *l, stk_error *e)
{
    struct findings v = {0};
    struct slice record;
    int rc = 1;
    lines_rewind(&l->lines);
    while (!v.files && v.records < LINES_TRIED && (rc = list_next_record(l, &record, e)) > 0)
        add_record(l, record, &v);
    if (rc < 0)
        return -1;
    const bool values = !v.files && v.records > 1 && (v.words || v.numbers == v.records);
    if (!values)
        return 1;
    const bool was_header = l->header;
    l->header = v.words;
    if (!was_header) { /* only a named column is the label */
        l->labels = false;
        l->label_column = -1;
    }
    return 0;
}

/* Damaged lines do not count. */
static int json_names_files(struct list *l, stk_error *e)
{
    struct slice record;
    int rc = 1, without = 0;
    lines_rewind(&l->lines);
    for (int i = 0; i < LINES_TRIED && (rc = list_next_record(l, &record, e)) > 0; i++) {
        struct list_row row;
        const char *problem = list_json(record, &row);
        if (!problem)
            return 1;
        without += problem == LIST_NO_PATH;
    }
    return rc < 0 ? -1 : without == 0;
}

int list_names_files(struct list *l, stk_error *e)
{
    int rc = 1;
    if (l->format == LIST_TABLE && !l->path_named)
        rc = table_names_files(l, e);
    else if (l->format == LIST_JSON)
        rc = json_names_files(l, e);
    if (rc >= 0)
        list_rewind(l);
    return rc;
}
