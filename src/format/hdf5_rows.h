/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_rows.h -- rows of datasets in an HDF5 file, read by any thread.
 *
 * Chunks that hold several rows and are packed are kept unpacked, the last ones used, so that rows in turn cost one
 * unpacking a chunk; rows at random cost one each where the chunks do not fit.
 */
#ifndef HDF5_ROWS_H
#define HDF5_ROWS_H

#include "format/hdf5_filter.h"
#include "format/hdf5_index.h"

enum hdf5_type {
    HDF5_NUMBERS,
    HDF5_TEXT,  /* of a fixed length, padded */
    HDF5_BLOCK, /* opaque bytes */
    HDF5_VLEN,  /* as many numbers as an element has */
    HDF5_VLEN_TEXT
};

/* How a number is stored that the machine does not have. */
struct hdf5_form {
    bool odd; /* it has to be taken apart; else nothing of this counts */
    bool big, real, negative;
    uint8_t first, bits; /* of a whole number, or of the exponent */
    uint8_t sign, fraction, fraction_bits;
    uint32_t bias;
};

/* A dataset, or a member of its structures, as rows: its first dimension, or all of it as the one row. */
struct hdf5_array {
    enum hdf5_type type;
    stk_dtype dtype;         /* of the numbers */
    bool swapped;            /* they are not in this machine's order of bytes */
    bool terminated, spaces; /* text ends with 0, or is padded with spaces */
    struct hdf5_form form;
    size_t item; /* bytes of a number or text in the file; of variable length: of what refers to it */
    /* A row in the file is elements, each of one or more structures of `stride` bytes, in which `per` items begin at
     * `member`. Without structures, the stride is that of items. */
    size_t element, stride, member, per;
    size_t stored_bytes; /* of a row in the file */
    size_t row_bytes;    /* of a row as it is given */
    int ndim;
    int64_t shape[HDF5_DIMS];
    enum hdf5_place place;
    int64_t at;                /* where all is in one place */
    struct hdf5_chunks chunks; /* where it is in chunks */
    struct hdf5_filters filters;
    bool edges_unfiltered;
    uint8_t *fill; /* an element that was never written; NULL: zeros */
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

/* Rows from this one on of which nothing was ever written; 0 if this row was written. */
int64_t hdf5_rows_unwritten(const struct hdf5_array *a, int64_t row);

/* hdf5_convert.c: whether rows are given as they are stored, but for the order of bytes; if not, a row in the file's
 * form is turned into row_bytes of values. */
bool hdf5_is_dense(const struct hdf5_array *a);
void hdf5_gather(const struct hdf5_array *a, const uint8_t *stored, uint8_t *to);

/* Where an element of variable length lies, and its bytes. */
struct hdf5_far {
    int64_t heap;
    uint32_t object;
    size_t bytes;
};
const char *hdf5_row_far(struct hdf5_rows *k, const struct hdf5_view *v, const struct hdf5_array *a, int64_t row,
                         size_t allowed, struct hdf5_far *out);

#endif
