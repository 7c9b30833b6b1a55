/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_out.h -- writes an HDF5 file: datasets with the same number of rows, of fixed shape or variable length.
 *
 *     struct hdf5_out o = {0};
 *     hdf5_out_open(&o, fd, most_rows, e)          the caller closes fd
 *     hdf5_out_column(&o, &column, e)              all columns before the first row; the index is o.n_columns - 1
 *     hdf5_out_row(&o, c, bytes, n, e)             the next row of column c
 *     hdf5_out_end(&o, e)                          makes it a valid HDF5 file
 *     hdf5_out_done(&o)                            at any time; accepts a zeroed struct
 */
#ifndef HDF5_OUT_H
#define HDF5_OUT_H

#include "base/buf.h"
#include "base/sample.h"

enum hdf5_form { HDF5_OUT_FIXED, HDF5_OUT_RUN, HDF5_OUT_TEXT };

struct hdf5_out_column {
    char name[FIELD_NAME];
    enum hdf5_form form;
    stk_dtype dtype;           /* of an element; not for text */
    int ndim;                  /* of a row of fixed shape */
    int64_t shape[FIELD_DIMS]; /* of such a row */
    const char *const *words;  /* an attribute "classes"; NULL: none */
    int n_words;

    size_t row_bytes;  /* in the file; for variable length, of the reference */
    int64_t at, rows;  /* offset of the rows, and how many were added */
    struct buf buffer; /* the last rows, not in the file yet */
};

enum { HDF5_OUT_COLUMNS = FIELD_MAX + 2 };

struct hdf5_out {
    int fd;
    int64_t most_rows, end; /* end: of the file, without tail */
    struct buf tail;        /* what follows, not in the file yet */
    struct buf heap;        /* the heap collection that is being filled; follows tail */
    unsigned in_heap;
    struct hdf5_out_column *columns;
    int n_columns;
};

int hdf5_out_open(struct hdf5_out *o, int fd, int64_t most_rows, stk_error *e);
int hdf5_out_column(struct hdf5_out *o, const struct hdf5_out_column *c, stk_error *e);
int hdf5_out_row(struct hdf5_out *o, int c, const void *bytes, size_t n, stk_error *e);
int hdf5_out_end(struct hdf5_out *o, stk_error *e);
void hdf5_out_done(struct hdf5_out *o);

#endif
