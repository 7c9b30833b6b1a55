/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_filter.h -- undoes HDF5's filters: gzip, shuffle, lzf, fletcher32, szip, scale-offset, n-bit. Thread-safe.
 *
 *     why = hdf5_unfilter(&filters, mask, &scratch, n, to, bytes);      the chunk is the n bytes of scratch.in
 */
#ifndef HDF5_FILTER_H
#define HDF5_FILTER_H

#include <stdbool.h>

#include "base/buf.h"
#include "format/gunzip.h"

enum { HDF5_FILTERS = 8 };

/* HDF5's identifiers; 32000 is h5py's. */
enum hdf5_filter_id {
    HDF5_DEFLATE = 1,
    HDF5_SHUFFLE = 2,
    HDF5_FLETCHER32 = 3,
    HDF5_SZIP = 4,
    HDF5_NBIT = 5,
    HDF5_SCALE_OFFSET = 6,
    HDF5_LZF = 32000
};

struct hdf5_filters {
    int n;
    struct {
        int id;
        uint32_t item;       /* shuffle: bytes of an element */
        size_t first, count; /* index of its parameters in `values`, and how many */
    } of[HDF5_FILTERS];      /* in the order in which they were applied */
    struct buf values;       /* uint32_t: parameters of szip, scale-offset and n-bit */
};
void hdf5_filters_done(struct hdf5_filters *f);

enum { HDF5_VALUES_MOST = 4096 };
/* Adds a filter with its n parameters, 4 bytes each. Returns NULL, or what is wrong: HDF5_FILTER_UNKNOWN if the filter
 * or its parameters are not supported. */
extern const char HDF5_FILTER_UNKNOWN[];
const char *hdf5_filters_add(struct hdf5_filters *f, int id, const uint8_t *values, size_t n);

/* Buffers of one thread. */
struct hdf5_scratch {
    struct buf in, turn[2];
    struct buf whole, block, row; /* for hdf5_rows.c */
    struct gunzip *gunzip;
    struct hdf5_scratch *next; /* in the list of unused ones */
};
void hdf5_scratch_done(struct hdf5_scratch *w);
size_t hdf5_scratch_bytes(const struct hdf5_scratch *w); /* allocated */

/* Undoes the filters of a chunk, except those that its mask excludes. The result must have exactly `bytes` bytes. NULL,
 * or what is wrong: a constant, such as HDF5_NO_MEMORY (hdf5_view.h). */
const char *hdf5_unfilter(const struct hdf5_filters *f, uint32_t mask, struct hdf5_scratch *w, size_t n, uint8_t *to,
                          size_t bytes);

/* The name of one of HDF5's own filters; NULL: it is not one. */
const char *hdf5_filter_name(int id);

/* For tests: single filters. */
int64_t hdf5_lzf(const uint8_t *in, size_t n, uint8_t *out, size_t room); /* bytes written; -1: damaged */
void hdf5_unshuffle(const uint8_t *in, size_t n, size_t item, uint8_t *out);
uint32_t hdf5_fletcher32(const uint8_t *p, size_t n);

#endif
