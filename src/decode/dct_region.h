/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct_region.h -- the coefficients of the MCUs that a crop takes, in a few bytes, for a device that does the rest. Or
 * their coded bytes, which jpeg_groups.h describes.
 *
 *     tables    64 quantisers of 2 bytes for each component, in natural order
 *     index     offset of each chunk from the start of the region (4 bytes), and the end of the last one
 *     chunks    as in a DCT image (dct_image.c): DCT_CHUNK MCUs each, row by row; the last of a row has what is left
 */
#ifndef DCT_REGION_H
#define DCT_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dct_region {
    /* Set by the caller: where it goes. */
    uint8_t *to;
    size_t room;
    bool codes;        /* coded bytes are wanted, if the checkpoints of the file are known (jpeg_groups.h) */
    bool scan;         /* those of its whole scan are wanted, if nothing but its codes can be wrong; not with `codes` */
    bool coefficients; /* otherwise, coefficients are wanted */
    /* Set by the decoder. */
    size_t used;  /* bytes; 0: it did not fit */
    int32_t w, h; /* of the whole image */
    int components;
    bool halves_columns, halves_rows; /* of chroma */
    int32_t x, y, across, down;       /* the first MCU; how many there are */
    bool coded;                       /* it has coded bytes */
    bool whole;                       /* of the whole scan */
    int32_t every;                    /* MCUs in a group */
};

#endif
