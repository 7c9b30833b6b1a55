/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h -- an aligned table on stdout.
 *
 *     struct table t = {0};
 *     table_head(&t, "<stage", ">seconds", NULL);    '<' aligns left, '>' aligns right
 *     table_row(&t, "decode", "0.81", NULL);
 *     table_print(&t, stdout);                       prints, and clears
 */
#ifndef TABLE_H
#define TABLE_H

#include <stdio.h>

enum { TABLE_COLUMNS = 8 };

struct table {
    char right[TABLE_COLUMNS];
    int columns;
    char **cells; /* rows of `columns` cells; the first row is the head */
    size_t n, cap;
    int broken; /* no memory: some cells are missing */
};

void table_head(struct table *t, const char *first, ...);
void table_row(struct table *t, const char *first, ...);
void table_print(struct table *t, FILE *f);

#endif
