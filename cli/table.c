/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c -- an aligned table.
 */
#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"

static void add(struct table *t, const char *text)
{
    if (t->n == t->cap) {
        const size_t cap = t->cap ? 2 * t->cap : 64;
        char **cells = realloc(t->cells, cap * sizeof *cells);
        if (!cells) {
            t->broken = 1;
            return;
        }
        t->cells = cells;
        t->cap = cap;
    }
    char *copy = strdup(text);
    if (copy)
        t->cells[t->n++] = copy;
    else
        t->broken = 1;
}

void table_head(struct table *t, const char *first, ...)
{
    va_list args;
    va_start(args, first);
    for (const char *s = first; s && t->columns < TABLE_COLUMNS; s = va_arg(args, const char *)) {
        t->right[t->columns++] = s[0] == '>';
        add(t, s + 1);
    }
    va_end(args);
}

void table_row(struct table *t, const char *first, ...)
{
    va_list args;
    va_start(args, first);
    const char *s = first;
    for (int i = 0; i < t->columns; i++) {
        add(t, s ? s : "");
        s = s ? va_arg(args, const char *) : NULL;
    }
    va_end(args);
}

/* Columns that a text takes. Continuation bytes of UTF-8 take none. */
static int width_of(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* The number of cells up to the last that is not empty, so that no line ends in spaces. */
static int filled(const struct table *t, size_t row)
{
    int n = t->columns;
    while (n > 0 && !t->cells[row * (size_t)t->columns + (size_t)n - 1][0])
        n--;
    return n;
}

static void print_row(const struct table *t, FILE *f, size_t row, const int *widths)
{
    const int columns = filled(t, row);
    fputs("  ", f);
    for (int c = 0; c < columns; c++) {
        const char *text = t->cells[row * (size_t)t->columns + (size_t)c];
        const int pad = widths[c] - width_of(text), last = c + 1 == columns;
        if (t->right[c])
            fprintf(f, "%*s", pad, "");
        out_name(f, text);
        if (!last)
            fprintf(f, "%*s", (t->right[c] ? 0 : pad) + 2, "");
    }
    putc('\n', f);
}

void table_print(struct table *t, FILE *f)
{
    int widths[TABLE_COLUMNS] = {0};
    const size_t rows = t->columns ? t->n / (size_t)t->columns : 0;
    for (size_t i = 0; i < rows * (size_t)t->columns; i++) {
        const int w = width_of(t->cells[i]), c = (int)(i % (size_t)t->columns);
        widths[c] = w > widths[c] ? w : widths[c];
    }
    for (size_t row = 0; row < rows; row++) {
        if (row == 0)
            out_paint(f, PAINT_DIM);
        print_row(t, f, row, widths);
        if (row == 0)
            out_paint(f, PAINT_PLAIN);
    }
    for (size_t i = 0; i < t->n; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (struct table){0};
}
