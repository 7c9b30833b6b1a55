/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_checkpoints.h -- checkpoints: where MCUs start in a JPEG file, so that a later decode can start at its crop.
 *
 * Decoding makes them as a by-product, one for every few MCUs of a row, for the undamaged part of the file that it has
 * seen from the start. Their bytes can be stored anywhere and are not trusted when they come back. Those that are
 * damaged or belong to another file are refused. Forged ones are found out when the decoder does not arrive at the next
 * one; a decoder on a device finds that out after the host has sent the row.
 *
 *     jpeg_checkpoints_read(&p, blob, n, &frame, file, file_n)      false: none, start over
 *     p.at[i]                                                       group i % across of MCU row i / across
 *     jpeg_checkpoints_add(&p, bit, dc)                             the next one
 *     jpeg_checkpoints_write(&p, &frame, orientation, file, file_n, &buf)
 */
#ifndef JPEG_CHECKPOINTS_H
#define JPEG_CHECKPOINTS_H

#include "base/buf.h"
#include "decode/jpeg_frame.h"

enum {
    CHECKPOINT_EVERY = 8,   /* MCUs of a row, at least; a multiple of this in huge images */
    CHECKPOINTS_MAX = 32768 /* per image */
};

struct jpeg_checkpoint {
    uint64_t bit; /* in the file; FF 00 counts as the two bytes that it takes */
    int16_t dc[JPEG_COMPONENTS];
};

struct jpeg_checkpoints {
    struct jpeg_checkpoint *at;
    int32_t n, cap;
    int32_t every;  /* MCUs in a group */
    int32_t across; /* groups in a row */
};

/* Empties p, and sets its groups for a frame. Keeps its memory. */
void jpeg_checkpoints_reset(struct jpeg_checkpoints *p, const struct jpeg_frame *f);
void jpeg_checkpoints_done(struct jpeg_checkpoints *p); /* p may be zeroed */

/* Returns -1 if there is no memory; earlier checkpoints stay. */
int jpeg_checkpoints_add(struct jpeg_checkpoints *p, uint64_t bit, const int16_t *dc);

/* Returns false, and leaves p empty, if the blob is not of this very file. */
bool jpeg_checkpoints_read(struct jpeg_checkpoints *p, const uint8_t *blob, size_t n, const struct jpeg_frame *f,
                           const uint8_t *file, size_t file_n);
/* orientation: the file's own; 0: unknown. Returns -1 if there is no memory. */
int jpeg_checkpoints_write(const struct jpeg_checkpoints *p, const struct jpeg_frame *f, int orientation,
                           const uint8_t *file, size_t file_n, struct buf *out);

/*
 * Before a file is read: its head, and the ranges of it that a decode of a crop with these checkpoints reads. The crop
 * is in stored coordinates, shrunk as in image_job. Ranges less than `apart` bytes apart are joined. Both return false
 * if the checkpoints do not say, or if the whole file is needed.
 */
bool jpeg_checkpoints_head(const uint8_t *blob, size_t n, struct head *out);
bool jpeg_checkpoints_ranges(const uint8_t *blob, size_t n, const struct rect *crop, int shrink, size_t apart,
                             struct ranges *out);
/* Whether the ranges contain what `need` takes of this frame. */
bool jpeg_checkpoints_within(const struct jpeg_checkpoints *p, const struct jpeg_frame *f, const struct jpeg_need *need,
                             size_t file_n, const struct ranges *ranges);

#endif
