/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_groups.h -- the coded bytes of a crop or a scan, for a device that decodes Huffman codes.
 *
 * A region (dct_region.h) with `coded` set has, instead of an index and chunks:
 *
 *     codes       for each component the tables of DC and AC as in a file, JPEG_GROUP_CODES bytes each
 *     groups      for each row of MCUs a struct jpeg_group for each group of `every` MCUs, and one for the end of the
 *                 last group
 *     bytes       of each row, row by row, without the 00 that follows each FF in a file
 *     slack       JPEG_GROUPS_SLACK zeros
 *
 * A region starts at a multiple of PARCEL_ALIGN, so the bytes start at a multiple of 16. Those of a row start with the
 * byte that has the first bit of its first group, and stop after the byte that has the last bit of its last group. The
 * next row follows at once. Groups of a row follow each other without a gap: each ends at the bit where the next one
 * starts. There are no markers among the bytes.
 *
 * The checkpoints were made from an undamaged file. The device compares where it arrives with the start of the next
 * group, so that it notices if the file was damaged since.
 *
 * A region with `whole` set has the bytes of the whole scan, for a device that needs no checkpoints:
 *
 *     codes       as above
 *     head        JPEG_SCAN_HEAD bytes: the count of bytes (4), and zeros
 *     bytes       up to the end-of-image marker, without the 00 that follows each FF
 *     slack       as above
 *
 * Only the device finds out whether these bytes are good: as many MCUs as the image has, down to the last byte. If they
 * are, the decoder of the CPU accepts the file as well.
 */
#ifndef JPEG_GROUPS_H
#define JPEG_GROUPS_H

#include "decode/dct_region.h"
#include "decode/jpeg_checkpoints.h"

enum {
    JPEG_GROUP_CODES = 272, /* 16 counts and at most 256 symbols */
    JPEG_SCAN_HEAD = 16,
    JPEG_GROUPS_SLACK = 8 /* bytes that may be read after the last row */
};

struct jpeg_group {
    uint32_t bit;                /* where it starts, from the start of the region; the highest bit of a byte is first */
    uint32_t stop;               /* where the bytes of its row end, from the start of the region */
    int16_t dc[JPEG_COMPONENTS]; /* predictors */
    uint16_t unused;
};

/* Returns false if the checkpoints do not reach far enough, the file has restart markers or others within the crop, or
 * it does not fit (p->used is 0). The tables must be good. */
bool jpeg_groups_write(struct dct_region *p, const struct jpeg_frame *f, const struct jpeg_need *need,
                       const struct jpeg_checkpoints *c, const uint8_t *file, size_t n);

/* Returns false if the file has restart markers or any other before its end, all components have the same codes, or it
 * does not fit (p->used is 0). The tables must be good. */
bool jpeg_scan_copy(struct dct_region *p, const struct jpeg_frame *f, const struct jpeg_need *need, const uint8_t *file,
                    size_t n);

#endif
