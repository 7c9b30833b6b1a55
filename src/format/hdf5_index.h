/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_index.h -- where the bytes of a dataset lie in its HDF5 file, read from the file itself.
 *
 * libhdf5 tells where a chunk is only after counting through all before it, and has one lock for everything. So what is
 * needed for reading is read here, once, and data is then read by all threads.
 */
#ifndef HDF5_INDEX_H
#define HDF5_INDEX_H

#include "base/buf.h"
#include "base/sample.h"
#include "format/hdf5_view.h"

enum { HDF5_DIMS = FIELD_DIMS + 1 };

enum hdf5_place {
    HDF5_ABSENT,    /* nothing was ever written */
    HDF5_IN_ONE,    /* all elements, from `at` on */
    HDF5_IN_CHUNKS, /* through an index at `at` */
    HDF5_ELSEWHERE, /* in other files: external or virtual */
};
/* As the file numbers them, but for the first. */
enum hdf5_index_kind {
    HDF5_INDEX_TREE, /* a B-tree of the first version: what is written unless asked otherwise */
    HDF5_INDEX_SINGLE,
    HDF5_INDEX_IMPLICIT,
    HDF5_INDEX_FIXED,
    HDF5_INDEX_EXTENSIBLE,
    HDF5_INDEX_TREE_2
};

struct hdf5_layout {
    enum hdf5_place place;
    int64_t at, bytes; /* bytes: in one place */
    int chunk_ndim;    /* 0: not in chunks */
    int64_t chunk[HDF5_DIMS];
    enum hdf5_index_kind index;
    bool edges_unfiltered; /* chunks that reach beyond the dataset are as they are */
    bool filtered;         /* a single chunk of these bytes and mask */
    uint32_t single_bytes, single_mask;
};

/* The layout that a message tells. */
const char *hdf5_layout_parse(const struct hdf5_view *v, struct hdf5_message *m, struct hdf5_layout *out);

/* A chunk in the file; at 0: it was never written. */
struct hdf5_chunk {
    int64_t at;
    uint32_t bytes, mask;
};

/* All chunks of a dataset, by their number: the first index counts slowest. */
struct hdf5_chunks {
    int ndim;
    int64_t shape[HDF5_DIMS], most[HDF5_DIMS]; /* of the dataset; what it may grow to, -1: without end */
    int64_t chunk[HDF5_DIMS];
    int64_t grid[HDF5_DIMS]; /* chunks along each */
    int64_t n;
    uint32_t chunk_bytes; /* as they are without filters */
    bool filtered;
    struct hdf5_chunk *of;
};
enum { HDF5_CHUNKS_MOST = 1 << 26 };

/* shape, most, chunk and ndim are given; grid and n follow, and room for all of them. */
const char *hdf5_chunks_init(struct hdf5_chunks *c);
/* Fills them in. */
extern const char HDF5_INDEX_DAMAGED[], HDF5_TOO_MANY[];
const char *hdf5_chunks_read(const struct hdf5_view *v, const struct hdf5_layout *l, struct hdf5_chunks *c);
void hdf5_chunks_done(struct hdf5_chunks *c);
/* Notes chunk number i; false when there is none of that number, or two, or it lies outside of the file. */
bool hdf5_chunks_put(const struct hdf5_view *v, struct hdf5_chunks *c, int64_t i, int64_t at, int64_t bytes,
                     uint32_t mask);

/* hdf5_vector.c: indexes that are arrays, one of which is none at all: chunks without filters, in a row. */
const char *hdf5_implicit_read(const struct hdf5_view *v, int64_t at, struct hdf5_chunks *c);
const char *hdf5_fixed_read(const struct hdf5_view *v, int64_t at, struct hdf5_chunks *c);
const char *hdf5_extensible_read(const struct hdf5_view *v, int64_t at, struct hdf5_chunks *c);

/* hdf5_tree.c: shows every record of a B-tree of the second version, in any order, until one is answered with a reason.
 */
typedef const char *hdf5_record(void *user, const uint8_t *record, int bytes);
const char *hdf5_tree_2(const struct hdf5_view *v, int64_t at, int type, hdf5_record *each, void *user);

/* hdf5_heap.c: an object of a global heap, of `bytes` bytes, into out; it begins at out->data + *begin and is followed
 * by at least `slack` bytes of room. NULL, or what is wrong. */
const char *hdf5_heap_read(const struct hdf5_view *v, int64_t heap, uint32_t object, size_t bytes, size_t slack,
                           struct buf *out, size_t *begin);

#endif
