/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_rows.h -- reads rows of datasets in an HDF5 file. Thread-safe.
 *
 * Compressed chunks of several rows are kept decompressed, the last used ones. So rows in order cost one decompression
 * per chunk. Rows in random order cost one each if the chunks do not fit.
 */
#ifndef HDF5_ROWS_H
#define HDF5_ROWS_H

#include "format/hdf5_filter.h"
#include "format/hdf5_index.h"

enum hdf5_type {
    HDF5_NUMBERS,
    HDF5_TEXT,  /* of fixed length, padded */
    HDF5_BLOCK, /* opaque bytes */
    HDF5_VLEN,  /* arrays of numbers, of variable length */
    HDF5_VLEN_TEXT
};

/* The bits of a number type that the machine does not have. */
struct hdf5_form {
    bool odd; /* numbers need conversion; otherwise the rest is unused */
    bool big, real, negative;
    uint8_t first, bits; /* of an integer, or of the exponent */
    uint8_t sign, fraction, fraction_bits;
    uint32_t bias;
};

/* A dataset, or a member of its compound type. The first dimension counts rows, or all of it is one row. */
struct hdf5_array {
    enum hdf5_type type;
    stk_dtype dtype;         /* of the numbers */
    bool swapped;            /* they are not in this machine's byte order */
    bool terminated, spaces; /* text ends with 0, or is padded with spaces */
    struct hdf5_form form;
    size_t item; /* bytes of a number or text in the file; for variable length, of the reference */
    /* A row in the file consists of elements. An element is one or more structures of `stride` bytes, each with `per`
     * items from offset `member` on. Without a compound type, the stride is that of the items. */
    size_t element, stride, member, per;
    size_t stored_bytes; /* of a row in the file */
    size_t row_bytes;    /* of a row as hdf5_row() returns it */
    int ndim;
    int64_t shape[HDF5_DIMS];
    enum hdf5_place place;
    int64_t at;                /* if HDF5_IN_ONE */
    struct hdf5_chunks chunks; /* if HDF5_IN_CHUNKS */
    struct hdf5_filters filters;
    bool edges_unfiltered;
    uint8_t *fill; /* the value of elements that were never written; NULL: zeros */
};
void hdf5_array_done(struct hdf5_array *a);

/* The cache of chunks, of up to `kept` bytes, and the unused scratch of threads, of up to `idle` bytes. */
struct hdf5_rows;
struct hdf5_rows *hdf5_rows_new(size_t kept, size_t idle); /* NULL: no memory */
void hdf5_rows_free(struct hdf5_rows *k);                  /* accepts NULL */
void hdf5_rows_limit(struct hdf5_rows *k, size_t kept, size_t idle);
/* Bytes that are held now, and at most. Scratch in use is not counted. */
void hdf5_rows_memory(struct hdf5_rows *k, size_t *held, size_t *most);

/* Bytes that decompressing a row needs, besides the row itself, if its chunk is not in the cache. */
size_t hdf5_row_cost(const struct hdf5_array *a, int64_t row);
extern const char HDF5_COSTS[]; /* decompressing needs more than was allowed; nothing was read */

/* Reads a row: row_bytes bytes, numbers in this machine's byte order. Decompressing may use `allowed` bytes. The cache
 * knows arrays by their address, so an array must not move as long as k exists. NULL, or what is wrong, such as
 * HDF5_NO_MEMORY and HDF5_COSTS. */
const char *hdf5_row(struct hdf5_rows *k, const struct hdf5_view *v, const struct hdf5_array *a, int64_t row,
                     size_t allowed, void *to);

/* How many rows from this one on were never written; 0: this row was. More may follow. */
int64_t hdf5_rows_unwritten(const struct hdf5_array *a, int64_t row);

/* hdf5_convert.c: whether rows are stored as hdf5_row() returns them, except for the byte order. If not, hdf5_gather()
 * converts a stored row. */
bool hdf5_is_dense(const struct hdf5_array *a);
void hdf5_gather(const struct hdf5_array *a, const uint8_t *stored, uint8_t *to);

/* The reference to an element of variable length, and its size. */
struct hdf5_far {
    int64_t heap;
    uint32_t object;
    size_t bytes;
};
const char *hdf5_row_far(struct hdf5_rows *k, const struct hdf5_view *v, const struct hdf5_array *a, int64_t row,
                         size_t allowed, struct hdf5_far *out);

#endif
