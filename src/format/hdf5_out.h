/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_out.h -- writes an HDF5 file: datasets of as many rows each, of a fixed form or of variable length.
 *
 *     struct hdf5_out o = {0};
 *     hdf5_out_open(&o, fd, most_rows, e)          fd stays the caller's
 *     hdf5_out_column(&o, &column, e)              all of them before the first row; its number is o.n_columns - 1
 *     hdf5_out_row(&o, c, bytes, n, e)             the next row of column c
 *     hdf5_out_end(&o, e)                          what the file is becomes known to others
 *     hdf5_out_done(&o)                            also zeroed, also in the middle
 */
#ifndef HDF5_OUT_H
#define HDF5_OUT_H

#include "base/buf.h"
#include "base/sample.h"

enum hdf5_form { HDF5_OUT_FIXED, HDF5_OUT_RUN, HDF5_OUT_TEXT };

struct hdf5_out_column {
    char name[FIELD_NAME];
    enum hdf5_form form;
    stk_dtype dtype;           /* of an element; text has none */
    int ndim;                  /* of a row of a fixed form */
    int64_t shape[FIELD_DIMS]; /* of it */
    const char *const *words;  /* an attribute "classes"; NULL: none */
    int n_words;

    size_t row_bytes;  /* in the file, of variable length: of what refers to it */
    int64_t at, rows;  /* where rows begin, and how many there are */
    struct buf buffer; /* the last ones, not in the file yet */
};

enum { HDF5_OUT_COLUMNS = FIELD_MAX + 2 };

struct hdf5_out {
    int fd;
    int64_t most_rows, end; /* of the file, without tail */
    struct buf tail;        /* what follows, not in the file yet */
    struct buf heap;        /* objects of variable length that share a collection, at the end of tail */
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
