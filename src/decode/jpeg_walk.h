/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_walk.h -- goes through the MCUs of a scan in order, from checkpoint to checkpoint where they are known, and
 * makes those that are not.
 *
 * Every stretch that is decoded from a known checkpoint is decoded to the next one, and must arrive at its bit with its
 * predictors. false from any of these: damage, or checkpoints that lie.
 */
#ifndef JPEG_WALK_H
#define JPEG_WALK_H

#include "decode/jpeg_checkpoints.h"
#include "decode/jpeg_entropy.h"

struct jpeg_walk {
    struct jpeg_scan scan;
    int32_t x, y;                         /* the next MCU; never behind the end of a row */
    struct jpeg_checkpoints *checkpoints; /* NULL: none are used, none are made */
    int32_t known;                        /* of them, before this walk */
};

bool jpeg_walk_begin(struct jpeg_walk *w, const struct jpeg_frame *f, struct huff_store *store, const uint8_t *bytes,
                     size_t n, struct jpeg_checkpoints *checkpoints);
/* MCUs x to x + n of row y, not across a multiple of CHECKPOINT_EVERY. */
bool jpeg_walk_read(struct jpeg_walk *w, int32_t y, int32_t x, int32_t n, const struct jpeg_blocks *to);
/* All that libjpeg would have gone through, the rows before `end`, and what it would have met there. */
bool jpeg_walk_finish(struct jpeg_walk *w, int32_t end, bool whole);

#endif
