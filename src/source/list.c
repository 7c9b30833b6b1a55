/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.c -- converts the records of a list into rows of path and label.
 */
#include "source/list.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void at_line(const struct list *l, int64_t line, stk_error *e)
{
    char at[PATH_MAX + 32];
    snprintf(at, sizeof at, "%s:%lld", l->name, (long long)line);
    error_at(e, at, -1);
}

int list_fail(const struct list *l, int64_t line, stk_error *e, const char *format, ...)
{
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    error_set(e, STK_EUSAGE, "open", "%s", reason);
    at_line(l, line, e);
    return -1;
}

void list_done(struct list *l)
{
    lines_done(&l->lines);
}

/* ------------------------------------------------------------------ rows */

static int bad_record(const struct list *l, stk_error *e)
{
    if (!l->lines.os_error)
        return list_fail(l, l->lines.line, e, "%s", l->lines.problem);
    error_os(e, l->lines.os_error, "open", "%s", l->lines.problem);
    at_line(l, l->lines.line, e);
    return -1;
}

int list_next_record(struct list *l, struct slice *out, stk_error *e)
{
    for (;;) {
        const int rc = lines_next(&l->lines, l->format == LIST_TABLE ? l->delimiter : 0, out);
        if (rc < 0)
            return bad_record(l, e);
        if (rc == 0)
            return 0;
        const struct slice text = list_trim(*out);
        if (text.n > 0 && !(l->comments && text.p[0] == '#'))
            return 1;
    }
}

static const char *table_row(const struct list *l, struct slice record, struct list_row *row)
{
    struct slice cells[LIST_COLUMNS];
    const int n = list_cells(record, l->delimiter, cells);
    if (l->path_column >= n)
        return "the path is missing: the record has too few cells";
    row->path = cells[l->path_column];
    row->has_label = l->labels;
    if (l->labels)
        row->label = l->label_column < n ? cells[l->label_column] : (struct slice){record.p, 0};
    return NULL;
}

static const char *line_row(const struct list *l, struct slice record, struct list_row *row)
{
    row->path = list_trim(record);
    row->has_label = l->labels;
    row->label = (struct slice){record.p, 0};
    if (l->labels)
        list_split(row->path, &row->path, &row->label);
    return NULL;
}

static const char *path_problem(struct slice path)
{
    if (path.n == 0)
        return "the path is empty";
    if (memchr(path.p, 0, path.n))
        return "the path contains a zero byte";
    if (path.n >= PATH_MAX)
        return "the path is longer than the system allows";
    if (path.p[path.n - 1] == '/')
        return "the path ends with / and names a folder";
    return NULL;
}

int list_next(struct list *l, struct list_row *row, stk_error *e)
{
    struct slice record;
    const int rc = list_next_record(l, &record, e);
    if (rc <= 0)
        return rc;
    row->line = l->lines.line;
    const char *problem = l->format == LIST_JSON    ? list_json(record, row)
                          : l->format == LIST_TABLE ? table_row(l, record, row)
                                                    : line_row(l, record, row);
    if (!problem)
        problem = path_problem(row->path);
    row->has_label = row->has_label && !l->without_labels;
    return problem ? list_fail(l, row->line, e, "%s", problem) : 1;
}

void list_rewind(struct list *l)
{
    lines_rewind(&l->lines);
    struct slice header;
    if (l->header)
        list_next_record(l, &header, NULL); /* the next record reports its errors again */
}
