/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_dct.h -- DCT images as codec.h has them, and as checkpoints on JPEG files of several scans.
 */
#ifndef JPEG_DCT_H
#define JPEG_DCT_H

#include "decode/codec.h"
#include "decode/jpeg_baseline.h"

enum { JPEG_DCT_MOST = 2 << 20 }; /* bytes */

/* The crop of a job whose bytes are a DCT image. */
int jpeg_dct_pixels(struct jpeg_baseline *b, const struct picture_job *job, struct image *out, stk_error *e);
/* The head of the picture that a DCT image is of. */
int jpeg_dct_head(const uint8_t *bytes, size_t n, struct head *out, stk_error *e);

/* The crop of a picture of several scans from the DCT image that was noted on it. The first time that is made, by
 * to_dct(), into *checkpoint; it takes no longer than decoding. false: not so, with the arena as it was. */
bool jpeg_dct_checkpoint(struct jpeg_baseline *b, const struct picture_job *job,
                         bool (*to_dct)(void *state, const struct picture_job *job, struct buf *out), void *state,
                         struct buf *checkpoint, struct image *out);

#endif
