/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_index.h -- finds the bytes of a dataset in its HDF5 file.
 *
 * libhdf5 finds the i-th chunk only by counting from the first, and one lock serialises all its calls. So the index of
 * a dataset is read here, once; then all threads read the data with pread.
 */
#ifndef HDF5_INDEX_H
#define HDF5_INDEX_H

#include "base/buf.h"
#include "base/sample.h"
#include "format/hdf5_view.h"

enum { HDF5_DIMS = FIELD_DIMS + 1 };

enum hdf5_place {
    HDF5_ABSENT,    /* nothing was ever written */
    HDF5_IN_ONE,    /* contiguous from `at` on */
    HDF5_IN_CHUNKS, /* through an index at `at` */
    HDF5_ELSEWHERE, /* in other files: external or virtual */
};
/* The identifiers of the file, except the first. */
enum hdf5_index_kind {
    HDF5_INDEX_TREE, /* B-tree version 1, the default of libhdf5 */
    HDF5_INDEX_SINGLE,
    HDF5_INDEX_IMPLICIT,
    HDF5_INDEX_FIXED,
    HDF5_INDEX_EXTENSIBLE,
    HDF5_INDEX_TREE_2
};

struct hdf5_layout {
    enum hdf5_place place;
    int64_t at, bytes; /* bytes: if contiguous */
    int chunk_ndim;    /* 0: not in chunks */
    int64_t chunk[HDF5_DIMS];
    enum hdf5_index_kind index;
    bool edges_unfiltered; /* chunks that extend past the dataset have no filters */
    bool filtered;         /* the single chunk has filters, this size and this mask */
    uint32_t single_bytes, single_mask;
};

/* Parses a layout message. */
const char *hdf5_layout_parse(const struct hdf5_view *v, struct hdf5_message *m, struct hdf5_layout *out);

/* A chunk in the file. at == 0: it was never written. */
struct hdf5_chunk {
    int64_t at;
    uint32_t bytes, mask;
};

/* All chunks of a dataset in C order: the first index varies slowest. */
struct hdf5_chunks {
    int ndim;
    int64_t shape[HDF5_DIMS], most[HDF5_DIMS]; /* of the dataset; its maximum, -1: unlimited */
    int64_t chunk[HDF5_DIMS];
    int64_t grid[HDF5_DIMS]; /* chunks along each dimension */
    int64_t n;
    uint32_t chunk_bytes; /* size of a chunk without filters */
    bool filtered;
    struct hdf5_chunk *of;
};
enum { HDF5_CHUNKS_MOST = 1 << 26 };

/* Computes grid and n from shape, most, chunk and ndim, and allocates the chunks. */
const char *hdf5_chunks_init(struct hdf5_chunks *c);
/* Reads where the chunks are. */
extern const char HDF5_INDEX_DAMAGED[], HDF5_TOO_MANY[];
const char *hdf5_chunks_read(const struct hdf5_view *v, const struct hdf5_layout *l, struct hdf5_chunks *c);
void hdf5_chunks_done(struct hdf5_chunks *c);
/* Sets chunk i. false: i is out of range, the chunk is set already, or it is outside the file. */
bool hdf5_chunks_put(const struct hdf5_view *v, struct hdf5_chunks *c, int64_t i, int64_t at, int64_t bytes,
                     uint32_t mask);

/* hdf5_vector.c: indexes that are arrays. The implicit index is contiguous chunks without filters. */
const char *hdf5_implicit_read(const struct hdf5_view *v, int64_t at, struct hdf5_chunks *c);
const char *hdf5_fixed_read(const struct hdf5_view *v, int64_t at, struct hdf5_chunks *c);
const char *hdf5_extensible_read(const struct hdf5_view *v, int64_t at, struct hdf5_chunks *c);

/* hdf5_tree.c: calls each() for every record of a B-tree version 2, in any order, until it returns a reason. */
typedef const char *hdf5_record(void *user, const uint8_t *record, int bytes);
const char *hdf5_tree_2(const struct hdf5_view *v, int64_t at, int type, hdf5_record *each, void *user);

/* hdf5_heap.c: reads an object of `bytes` bytes from a global heap into out, at out->data + *begin, followed by at
 * least `slack` bytes of room. NULL, or what is wrong. */
const char *hdf5_heap_read(const struct hdf5_view *v, int64_t heap, uint32_t object, size_t bytes, size_t slack,
                           struct buf *out, size_t *begin);

#endif
