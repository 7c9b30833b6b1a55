/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_parcels.h -- rows that the device finishes: their scratch memory and their kernels.
 *
 * A batch is done in waves of rows that share the scratch memory, one wave after the other.
 */
#ifndef CUDA_PARCELS_H
#define CUDA_PARCELS_H

#include <stdbool.h>

#include "cuda/cuda_memory.h"
#include "cuda/parcel.h"

enum cuda_pass { PASS_SYNC, PASS_HUFFMAN, PASS_EXPAND, PASS_COLOUR, PASS_DOWN, PASS_FINISH, PASSES };

struct cuda_parcels {
    struct cuda *c;
    void *kernels[PASSES];
    void *scratch; /* the tables of levels; which row was damaged; then the memory of parcels */
    size_t scratch_bytes;
    _Atomic uint32_t *damaged; /* a copy in page-locked memory, of the last batch; NULL: codes are not decoded there */
};

/* The rows of a batch: a body of pitch - PARCEL_ALIGN bytes each, then its struct parcel. */
struct cuda_rows {
    uint8_t *at; /* in page-locked memory of the host, where the device marks scans that are not good */
    size_t pitch;
    uint32_t rows, pixels;
};

static inline size_t parcel_aligned(size_t n)
{
    return (n + PARCEL_ALIGN - 1) / PARCEL_ALIGN * PARCEL_ALIGN;
}

/* Bytes of scratch memory that a parcel takes; SIZE_MAX: the device cannot finish it. */
size_t cuda_parcel_scratch(const struct parcel *p);

/* Whether a row of a batch that was sent earlier turned out to be damaged. */
int cuda_parcels_check(const struct cuda_parcels *p, stk_error *e);

/* finish: the name of the last kernel, which uses the tables (PARCEL_TABLES bytes). Takes `scratch` bytes of the
 * device's memory, or down to `least`. codes: Huffman codes may be decoded there. Needs the context. done accepts
 * whatever init may leave. */
int cuda_parcels_init(struct cuda_parcels *p, struct cuda *c, const char *finish, const uint8_t *tables, size_t scratch,
                      size_t least, bool codes, stk_error *e);
void cuda_parcels_done(struct cuda_parcels *p);
/* Writes into each parcel where its scratch memory is; before the rows are copied. */
void cuda_parcels_place(const struct cuda_parcels *p, const struct cuda_rows *r);
/* Enqueues the kernels that make the rows of the batch at `made` from the copy at `raw`. Returns an error of the
 * driver. */
int cuda_parcels_run(const struct cuda_parcels *p, const struct cuda_rows *r, const void *raw, void *made);

#endif
