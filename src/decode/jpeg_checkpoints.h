/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_checkpoints.h -- checkpoints: where in a JPEG file the MCUs begin, so that a later decoding of it can start at
 * its crop.
 *
 * They are a by-product of decoding, one for every few MCUs of a row, for as much of the file as was seen undamaged
 * from its start. As bytes they can be kept anywhere; what comes back is not trusted: those of another file, damaged or
 * made up are refused where that shows, and otherwise found out when the decoder does not arrive where the next one
 * says.
 *
 *     jpeg_checkpoints_read(&p, blob, n, &frame, file, file_n)      false: none, begin anew
 *     p.at[i]                                                 group i: i % across groups of MCU row i / across
 *     jpeg_checkpoints_add(&p, bit, dc)                            the next one
 *     jpeg_checkpoints_write(&p, &frame, orientation, file, file_n, &buf)
 */
#ifndef JPEG_CHECKPOINTS_H
#define JPEG_CHECKPOINTS_H

#include "base/buf.h"
#include "decode/jpeg_frame.h"

enum {
    CHECKPOINT_EVERY = 8,   /* MCUs of a row, at least; a multiple of it in huge pictures */
    CHECKPOINTS_MAX = 32768 /* of a picture */
};

struct jpeg_checkpoint {
    uint64_t bit; /* of the file, FF 00 counted as the two bytes that it takes */
    int16_t dc[JPEG_COMPONENTS];
};

struct jpeg_checkpoints {
    struct jpeg_checkpoint *at;
    int32_t n, cap;
    int32_t every;  /* MCUs */
    int32_t across; /* groups of a row */
};

/* No checkpoints, in the measure of a frame; memory is kept. */
void jpeg_checkpoints_reset(struct jpeg_checkpoints *p, const struct jpeg_frame *f);
void jpeg_checkpoints_done(struct jpeg_checkpoints *p); /* also zeroed */

/* -1: no memory; nothing is lost but this one. */
int jpeg_checkpoints_add(struct jpeg_checkpoints *p, uint64_t bit, const int16_t *dc);

/* Points of this very file; else false, and none. */
bool jpeg_checkpoints_read(struct jpeg_checkpoints *p, const uint8_t *blob, size_t n, const struct jpeg_frame *f,
                           const uint8_t *file, size_t file_n);
/* orientation: the file's own, 0 when it is not known. -1: no memory. */
int jpeg_checkpoints_write(const struct jpeg_checkpoints *p, const struct jpeg_frame *f, int orientation,
                           const uint8_t *file, size_t file_n, struct buf *out);

/*
 * Before a file is read: what its checkpoints say of it, and which parts of it a crop (of the picture as stored, shrunk
 * as in picture_job) takes when it is decoded with them; those that lie less than `apart` bytes apart are one. false:
 * they do not say, or all of it.
 */
bool jpeg_checkpoints_head(const uint8_t *blob, size_t n, struct head *out);
bool jpeg_checkpoints_parts(const uint8_t *blob, size_t n, const struct rect *crop, int shrink, size_t apart,
                            struct parts *out);
/* Whether what a need of this frame takes is among the parts. */
bool jpeg_checkpoints_within(const struct jpeg_checkpoints *p, const struct jpeg_frame *f, const struct jpeg_need *need,
                             size_t file_n, const struct parts *parts);

#endif
