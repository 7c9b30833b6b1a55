/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_walk.h -- walks over the MCUs of a scan in order: jumps between known checkpoints, and adds new ones.
 *
 * A stretch that starts at a known checkpoint is decoded up to the next one, and must arrive at its bit with its
 * predictors. All functions return false if the file is damaged or a checkpoint is wrong.
 */
#ifndef JPEG_WALK_H
#define JPEG_WALK_H

#include "decode/jpeg_checkpoints.h"
#include "decode/jpeg_entropy.h"

struct jpeg_walk {
    struct jpeg_scan scan;
    int32_t x, y;                         /* the next MCU; x is never past the end of a row */
    struct jpeg_checkpoints *checkpoints; /* NULL: use none, make none */
    int32_t known;                        /* their count before this walk */
};

bool jpeg_walk_begin(struct jpeg_walk *w, const struct jpeg_frame *f, struct huff_store *store, const uint8_t *bytes,
                     size_t n, struct jpeg_checkpoints *checkpoints);
/* Reads MCUs x to x + n of row y, which must not cross a multiple of CHECKPOINT_EVERY. */
bool jpeg_walk_read(struct jpeg_walk *w, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to);
/* Goes through the rows before `end`, as libjpeg would, and checks what libjpeg would see there. */
bool jpeg_walk_finish(struct jpeg_walk *w, int32_t end, bool whole);

#endif
