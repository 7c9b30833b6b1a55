/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_rows.h -- rows of datasets in an HDF5 file, read by any thread, without libhdf5.
 *
 * Chunks that hold several rows and are packed are kept unpacked, the last ones used, so that rows in turn cost one
 * unpacking a chunk; rows at random cost one each where the chunks do not fit.
 */
#ifndef HDF5_ROWS_H
#define HDF5_ROWS_H

#include "source/hdf5_filter.h"
#include "source/hdf5_index.h"

enum hdf5_type {
    HDF5_NUMBERS,
    HDF5_TEXT,  /* of a fixed length, padded */
    HDF5_BLOCK, /* opaque bytes */
    HDF5_VLEN,  /* as many numbers as an element has */
    HDF5_VLEN_TEXT
};

/* A dataset as rows: its first dimension, or all of it as the one row. */
struct hdf5_array {
    enum hdf5_type type;
    stk_dtype dtype;         /* of the numbers */
    bool swapped;            /* they are not in this machine's order of bytes */
    bool terminated, spaces; /* text ends with 0, or is padded with spaces */
    size_t item;             /* bytes of an element in the file; of variable length: of what refers to it */
    int ndim;
    int64_t shape[HDF5_DIMS];
    size_t row_bytes; /* in the file */
    enum hdf5_place place;
    int64_t at;                /* where all is in one place */
    struct hdf5_chunks chunks; /* where it is in chunks */
    struct hdf5_filters filters;
    bool edges_unfiltered;
    uint8_t *fill; /* an element that was never written; NULL: zeros */
    /* Rows of what only libhdf5 can read, as they lie in the file, and its number of the dataset; NULL: read here. */
    bool (*foreign)(const struct hdf5_array *a, int64_t row, void *to);
    int64_t number;
};
void hdf5_array_done(struct hdf5_array *a);

/* Chunks that are kept, and what threads unpack with: so many bytes of each. */
struct hdf5_rows;
struct hdf5_rows *hdf5_rows_new(size_t kept, size_t idle); /* NULL: no memory */
void hdf5_rows_free(struct hdf5_rows *k);                  /* also NULL */
void hdf5_rows_limit(struct hdf5_rows *k, size_t kept, size_t idle);
/* What is held now, and at most; what is at work is its thread's. */
void hdf5_rows_memory(struct hdf5_rows *k, size_t *held, size_t *most);

/* Bytes that a row takes to be unpacked, beside the row itself, where its chunk is not kept. */
size_t hdf5_row_cost(const struct hdf5_array *a, int64_t row);
extern const char HDF5_COSTS[]; /* it takes more than was allowed: nothing was read */

/* A row, dense, numbers in this machine's order; `to` has room for row_bytes. Arrays are known by their address, as
 * long as k lives. Unpacking may take `allowed` bytes. NULL, or what is wrong; HDF5_NO_MEMORY and HDF5_COSTS are of
 * that. */
const char *hdf5_row(struct hdf5_rows *k, const struct hdf5_view *v, const struct hdf5_array *a, int64_t row,
                     size_t allowed, void *to);

/* Where an element of variable length lies, and its bytes. */
struct hdf5_far {
    int64_t heap;
    uint32_t object;
    size_t bytes;
};
const char *hdf5_row_far(struct hdf5_rows *k, const struct hdf5_view *v, const struct hdf5_array *a, int64_t row,
                         size_t allowed, struct hdf5_far *out);

#endif
