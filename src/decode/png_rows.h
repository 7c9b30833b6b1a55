/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_rows.h -- from a stored row of a PNG to RGB.
 */
#ifndef PNG_ROWS_H
#define PNG_ROWS_H

#include "base/sample.h"
#include "decode/png_chunks.h"
#include "decode/png_kernel.h"

/* How the pixels of a row become RGB: by the bytes from pixel to pixel and from sample to sample (0: grey), or by a
 * table. */
struct png_rows {
    const struct png_kernels *kernels;
    int bits; /* of an index into the table; 0: no table */
    size_t step, sample;
    bool plain_grey, deep_grey;
    bool indices;          /* numbers as stored: 1 byte each, or 2 in this machine's order */
    uint8_t table[256][4]; /* RGB and a byte of padding: four bytes are as fast to copy as one */
};

void png_rows_init(struct png_rows *s, const struct png_chunks *c, const struct png_kernels *k);
/* The same for a mask, which has one sample per pixel. */
void png_rows_init_indices(struct png_rows *s, const struct png_chunks *c);
/* Converts the columns of the crop. */
void png_rows_expand(const struct png_rows *s, const uint8_t *row, const struct rect *crop, uint8_t *out);

#endif
