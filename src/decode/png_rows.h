/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_rows.h -- from a row of a PNG as it is stored to RGB.
 */
#ifndef PNG_ROWS_H
#define PNG_ROWS_H

#include "base/sample.h"
#include "decode/png_chunks.h"
#include "decode/png_kernel.h"

/* How the pixels of a row become RGB: bytes from pixel to pixel and from sample to sample (0: grey), or a table. */
struct png_rows {
    const struct png_kernels *kernels;
    int bits; /* of an index into the table; 0: none */
    size_t step, sample;
    bool plain_grey, deep_grey;
    uint8_t table[256][4]; /* RGB and nothing: four bytes are as quick to copy as one */
};

void png_rows_init(struct png_rows *s, const struct png_chunks *c, const struct png_kernels *k);
/* Columns crop->x.. of a row. */
void png_rows_expand(const struct png_rows *s, const uint8_t *row, const struct rect *crop, uint8_t *out);

#endif
