/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_note.h -- packs as codec.h has them, and as checkpoints on JPEG files of several scans.
 */
#ifndef JPEG_NOTE_H
#define JPEG_NOTE_H

#include "decode/codec.h"
#include "decode/jpeg_baseline.h"

enum { JPEG_NOTE_MOST = 2 << 20 }; /* bytes */

/* The crop of a job whose bytes are a pack. */
int jpeg_note_unpack(struct jpeg_baseline *b, const struct picture_job *job, struct image *out, stk_error *e);
/* The head of the picture that a pack is of. */
int jpeg_note_head(const uint8_t *bytes, size_t n, struct head *out, stk_error *e);

/* The crop of a picture of several scans from the pack that was noted on it. The first time that is made, by pack(),
 * into *note; it takes no longer than decoding. false: not so, with the arena as it was. */
bool jpeg_note_pixels(struct jpeg_baseline *b, const struct picture_job *job,
                      bool (*pack)(void *state, const struct picture_job *job, struct buf *out), void *state,
                      struct buf *note, struct image *out);

#endif
