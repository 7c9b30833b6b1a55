/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h -- an aligned table on stdout.
 *
 *     struct table t = {0};
 *     table_head(&t, "<stage", ">seconds", NULL);    '<' to the left, '>' to the right
 *     table_row(&t, "decode", "0.81", NULL);
 *     table_print(&t, stdout);                       prints, and forgets
 */
#ifndef TABLE_H
#define TABLE_H

#include <stdio.h>

enum { TABLE_COLUMNS = 8 };

struct table {
    char right[TABLE_COLUMNS];
    int columns;
    char **cells; /* rows of `columns`, the first is the head */
    size_t n, cap;
    int broken; /* no memory: what did not fit is missing */
};

void table_head(struct table *t, const char *first, ...);
void table_row(struct table *t, const char *first, ...);
void table_print(struct table *t, FILE *f);

#endif
