/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_table.c -- the cells of a record (RFC 4180), and the usual names of columns.
 */
#include <string.h>

#include "source/list.h"

#include "base/text.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

struct slice list_trim(struct slice s)
{
    while (s.n > 0 && is_space(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Unquotes the cell at p in place: "" stands for ". Returns where it stopped. */
static char *quoted(char *p, char *end, struct slice *cell)
{
    char *to = p, *from = p + 1;
    cell->p = p;
    while (from < end) {
        if (*from == '"') {
            if (from + 1 == end || from[1] != '"')
                break;
            from++;
        }
        *to++ = *from++;
    }
    cell->n = (size_t)(to - cell->p);
    return from;
}

int list_cells(struct slice record, char delimiter, struct slice *cells)
{
    char *p = record.p, *const end = record.p + record.n;
    int n = 0;
    while (n < LIST_COLUMNS) {
        while (p < end && *p == ' ')
            p++;
        if (p < end && *p == '"') {
            p = quoted(p, end, &cells[n]);
            while (p < end && *p != delimiter)
                p++;
        } else {
            char *const begin = p;
            p = p < end ? memchr(begin, delimiter, (size_t)(end - begin)) : NULL;
            if (!p)
                p = end;
            cells[n] = list_trim((struct slice){begin, (size_t)(p - begin)});
        }
        n++;
        if (p == end)
            break;
        p++;
    }
    return n;
}

bool list_split(struct slice line, struct slice *path, struct slice *label)
{
    size_t at = line.n;
    while (at > 0 && !is_space(line.p[at - 1]))
        at--;
    if (at == 0)
        return false;
    *label = (struct slice){line.p + at, line.n - at};
    *path = list_trim((struct slice){line.p, at});
    return path->n > 0 && label->n > 0;
}

/* ------------------------------------------------------------------ names of columns */

/* word is in lower case; the name may have - or a space for _. */
static bool same(struct slice name, const char *word)
{
    if (name.n != strlen(word))
        return false;
    for (size_t i = 0; i < name.n; i++) {
        const char c = text_lower(name.p[i]);
        if ((c == '-' || c == ' ' ? '_' : c) != word[i])
            return false;
    }
    return true;
}

static int rank(struct slice name, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (same(name, words[i]))
            return i;
    return -1;
}

int list_path_rank(struct slice name)
{
    static const char *const words[] = {"path",  "image_path", "img_path",   "file_path",  "filepath",
                                        "file",  "file_name",  "filename",   "image_file", "fname",
                                        "image", "img",        "image_name", "img_name"};
    return rank(name, words, (int)(sizeof words / sizeof words[0]));
}

int list_label_rank(struct slice name)
{
    static const char *const words[] = {"label",      "class",      "target",        "category",  "y",
                                        "label_id",   "class_id",   "category_id",   "label_idx", "class_idx",
                                        "class_name", "label_name", "category_name", "cls"};
    return rank(name, words, (int)(sizeof words / sizeof words[0]));
}
