/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_filter.h -- undoes what HDF5's filters did to a chunk: gzip, shuffle, lzf, fletcher32. On memory, by any thread.
 *
 *     why = hdf5_unfilter(&filters, mask, &scratch, n, to, bytes);      n bytes lie in scratch.in
 */
#ifndef HDF5_FILTER_H
#define HDF5_FILTER_H

#include <stdbool.h>

#include "base/buf.h"
#include "source/gunzip.h"

enum { HDF5_FILTERS = 8 };

/* As HDF5 numbers them; 32000 is h5py's. */
enum hdf5_filter_id { HDF5_DEFLATE = 1, HDF5_SHUFFLE = 2, HDF5_FLETCHER32 = 3, HDF5_LZF = 32000 };

struct hdf5_filters {
    int n;
    struct {
        int id;
        uint32_t item;  /* shuffle: bytes of an element */
    } of[HDF5_FILTERS]; /* in the order in which they were applied */
};

/* What one thread works with. */
struct hdf5_scratch {
    struct buf in, turn[2];
    struct buf whole, block; /* for whoever reads chunks */
    struct gunzip *gunzip;
    struct hdf5_scratch *next; /* of those not in use */
};
void hdf5_scratch_done(struct hdf5_scratch *w);
size_t hdf5_scratch_bytes(const struct hdf5_scratch *w); /* that it holds */

/* Whether a filter can be undone here. */
bool hdf5_filter_here(int id);

/* Undoes those filters that the chunk's mask does not leave out; the result must have exactly so many bytes. NULL, or
 * what is wrong: a constant, of which HDF5_NO_MEMORY (hdf5_view.h) is one. */
const char *hdf5_unfilter(const struct hdf5_filters *f, uint32_t mask, struct hdf5_scratch *w, size_t n, uint8_t *to,
                          size_t bytes);

/* The parts, for tests. */
int64_t hdf5_lzf(const uint8_t *in, size_t n, uint8_t *out, size_t room); /* bytes made; -1: damaged */
void hdf5_unshuffle(const uint8_t *in, size_t n, size_t item, uint8_t *out);
uint32_t hdf5_fletcher32(const uint8_t *p, size_t n);

#endif
