/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h -- samples that are rows of a fixed size in files: npy, npz, raw binary, tokens.
 *
 *     rows_open(s, "npy files", "row", &e)
 *     rows_add(s, &array, &e)         once per array; arrays of one name form one column, in this order
 *     rows_finish(s, options, &e)     columns become fields, by the rules of arrays.h
 *
 * One pread copies a row into the batch. Nothing is mapped: if a file becomes shorter, reading the lost samples fails.
 */
#ifndef ROWS_H
#define ROWS_H

#include "source/source_ops.h"

/* Rows in a file: row i is at byte at + i * step. */
struct rows_array {
    const char *name; /* of the column */
    const char *path; /* of the file */
    stk_dtype dtype;
    bool swapped; /* bytes are not in this machine's order */
    bool fortran; /* the first index, the row, varies fastest; step is unused */
    int ndim;     /* of one row */
    const int64_t *shape;
    int64_t n; /* rows */
    int64_t at, step;
    /* A file of int64 offsets, from byte offsets_at: sample i has the rows from offset i up to offset i + 1, n counts
     * samples, and n_values counts rows. NULL: a sample is a row. */
    const char *offsets;
    int64_t offsets_at, n_values;
    uint8_t *memory; /* from malloc, taken by rows_add: replaces the file for at and step; NULL: use the file */
};

int rows_open(struct source *s, const char *kind, const char *row, stk_error *e);
int rows_add(struct source *s, const struct rows_array *a, stk_error *e);
int rows_finish(struct source *s, const struct source_options *o, stk_error *e);

#endif
