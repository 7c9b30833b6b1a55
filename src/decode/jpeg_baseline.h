/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_baseline.h -- our own decoder of plain baseline JPEG: what libjpeg-turbo gives, bit for bit, sooner.
 *
 * It answers no to everything unusual and to every sign of damage; libjpeg then decodes the picture from its start, so
 * that verdict, words and pixels are always libjpeg's.
 */
#ifndef JPEG_BASELINE_H
#define JPEG_BASELINE_H

#include "decode/codec.h"
#include "decode/dct_image.h"

enum { JPEG_DCT_MOST = 2 << 20 }; /* bytes of a DCT image that serves as checkpoints */

struct jpeg_baseline;

struct jpeg_baseline *jpeg_baseline_new(stk_cpu cpu); /* NULL: no memory */
void jpeg_baseline_free(struct jpeg_baseline *b);     /* also NULL */

/* Arena that it takes for a crop; SIZE_MAX when it overflows. */
size_t jpeg_baseline_scratch(const struct rect *crop);
/* false: not ours, with the arena as it was. What we decode gives no warnings. */
bool jpeg_baseline_pixels(struct jpeg_baseline *b, const struct picture_job *job, struct image *out);
/* Checkpoints of the last picture, when it was ours, the job has wanted them and they are more than it had; else NULL.
 * Until the next picture. */
const uint8_t *jpeg_baseline_checkpoints(const struct jpeg_baseline *b, size_t *n);

/* The whole picture as a DCT image, behind what out holds. false: not ours, or damaged, or no memory. */
bool jpeg_baseline_to_dct(struct jpeg_baseline *b, const struct picture_job *job, struct buf *out);
/* The same with coefficients from elsewhere. */
bool jpeg_baseline_dct_from(struct jpeg_baseline *b, const struct jpeg_frame *f, const struct head *h,
                            const struct jpeg_giver *from, struct buf *out);
/* A crop of a DCT image. false: the DCT image is damaged, or the arena too small. */
bool jpeg_baseline_from_dct(struct jpeg_baseline *b, const struct dct_image *p, const struct picture_job *job,
                            struct image *out);

#endif
