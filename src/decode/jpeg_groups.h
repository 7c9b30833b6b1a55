/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_groups.h -- the coded bytes of a crop, for a device that decodes Huffman codes from checkpoints.
 *
 * A region (dct_region.h) with `coded` set has, instead of an index and chunks:
 *
 *     codes       for each component the tables of DC and AC as in a file, JPEG_GROUP_CODES bytes each
 *     groups      for each row of MCUs, where each group of `every` MCUs starts, and where the last one ends
 *     bytes       of each row, as in the file
 *
 * The checkpoints were made from an undamaged file. The device compares where it arrives with the start of the next
 * group, so that it notices if the file was damaged since.
 */
#ifndef JPEG_GROUPS_H
#define JPEG_GROUPS_H

#include "decode/dct_region.h"
#include "decode/jpeg_checkpoints.h"

enum { JPEG_GROUP_CODES = 272 }; /* 16 counts and at most 256 symbols */

struct jpeg_group {
    uint32_t bit;  /* from the start of the region */
    uint32_t stop; /* where the bytes of its row end */
    int16_t dc[JPEG_COMPONENTS];
    uint16_t unused;
};

/* Returns false if the checkpoints do not reach far enough, the file has restart markers, or it does not fit
 * (p->used is 0). The tables must be good. */
bool jpeg_groups_write(struct dct_region *p, const struct jpeg_frame *f, const struct jpeg_need *need,
                       const struct jpeg_checkpoints *c, const uint8_t *file, size_t n);

#endif
