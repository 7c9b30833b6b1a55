/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h -- samples that are rows of a fixed size in files: npy, npz, raw binary, tokens.
 *
 *     rows_open(s, "npy files", "row", &e)
 *     rows_add(s, &array, &e)                 once for each array: arrays of one name are one column, one after the
 * other rows_ready(s, options, &e)              the columns become fields, by the rules of arrays.h
 *
 * A row is read straight into the batch by one pread. Nothing is mapped: a file that has become shorter is an error of
 * the samples that it has lost.
 */
#ifndef ROWS_H
#define ROWS_H

#include "source/shard.h"

/* Rows in a file: row i is at byte at + i * step. */
struct rows_array {
    const char *name; /* of the column */
    const char *path; /* of the file */
    stk_dtype dtype;
    bool swapped; /* bytes are in the other order than this machine's */
    bool fortran; /* the first index, that of rows, runs fastest; step is left alone */
    int ndim;     /* of one row */
    const int64_t *shape;
    int64_t n; /* rows */
    int64_t at, step;
    /* Where sample i has rows from the i-th of these int64 on, up to the next: path of the file, and where in it; NULL:
     * a sample is a row. n is of samples then, n_values of rows. */
    const char *offsets;
    int64_t offsets_at, n_values;
    uint8_t *memory; /* from malloc, becomes the source's: it is what at and step count in; NULL: the file */
};

int rows_open(struct source *s, const char *kind, const char *row, stk_error *e);
int rows_add(struct source *s, const struct rows_array *a, stk_error *e);
int rows_ready(struct source *s, const struct source_options *o, stk_error *e);

#endif
