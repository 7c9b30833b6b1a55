/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_filter.h -- undoes HDF5's filters: gzip, shuffle, lzf, fletcher32, szip, scale-offset, n-bit. Works on memory;
 * any thread may call it.
 *
 *     why = hdf5_unfilter(&filters, mask, &scratch, n, to, bytes);      the chunk is the n bytes of scratch.in
 */
#ifndef HDF5_FILTER_H
#define HDF5_FILTER_H

#include <stdbool.h>

#include "base/buf.h"
#include "format/gunzip.h"

enum { HDF5_FILTERS = 8 };

/* As HDF5 numbers them; 32000 is h5py's. */
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
        size_t first, count; /* its parameters in `values` */
    } of[HDF5_FILTERS];      /* in the order in which they were applied */
    struct buf values;       /* uint32_t: parameters of szip, scale-offset and n-bit */
};
void hdf5_filters_done(struct hdf5_filters *f);

enum { HDF5_VALUES_MOST = 4096 };
/* Adds a filter with its n parameters, 4 bytes each. Returns NULL, or what is wrong: HDF5_FILTER_UNKNOWN where it
 * cannot be undone here. */
extern const char HDF5_FILTER_UNKNOWN[];
const char *hdf5_filters_add(struct hdf5_filters *f, int id, const uint8_t *values, size_t n);

/* What one thread works with. */
struct hdf5_scratch {
    struct buf in, turn[2];
    struct buf whole, block, row; /* for hdf5_rows.c */
    struct gunzip *gunzip;
    struct hdf5_scratch *next; /* of those not in use */
};
void hdf5_scratch_done(struct hdf5_scratch *w);
size_t hdf5_scratch_bytes(const struct hdf5_scratch *w); /* that it holds */

/* Undoes those filters that the chunk's mask does not leave out; the result must have exactly so many bytes. NULL, or
 * what is wrong: a constant, of which HDF5_NO_MEMORY (hdf5_view.h) is one. */
const char *hdf5_unfilter(const struct hdf5_filters *f, uint32_t mask, struct hdf5_scratch *w, size_t n, uint8_t *to,
                          size_t bytes);

/* The name of a filter of HDF5's own; NULL: it is none. */
const char *hdf5_filter_name(int id);

/* The parts, for tests. */
int64_t hdf5_lzf(const uint8_t *in, size_t n, uint8_t *out, size_t room); /* bytes made; -1: damaged */
void hdf5_unshuffle(const uint8_t *in, size_t n, size_t item, uint8_t *out);
uint32_t hdf5_fletcher32(const uint8_t *p, size_t n);

#endif
