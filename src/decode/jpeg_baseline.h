/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_baseline.h -- our own decoder of plain baseline JPEG: libjpeg-turbo's pixels, bit for bit, in less time.
 *
 * It declines everything unusual and every sign of damage. libjpeg then decodes the image from the start, so verdicts,
 * messages and pixels are always libjpeg's.
 */
#ifndef JPEG_BASELINE_H
#define JPEG_BASELINE_H

#include "decode/codec.h"
#include "decode/dct_image.h"

enum { JPEG_DCT_MOST = 2 << 20 }; /* bytes of a DCT image that serves as checkpoints */

struct jpeg_baseline;

struct jpeg_baseline *jpeg_baseline_new(stk_cpu cpu); /* NULL: no memory */
void jpeg_baseline_free(struct jpeg_baseline *b);     /* accepts NULL */

/* Bytes of arena for a crop; SIZE_MAX on overflow. */
size_t jpeg_baseline_scratch(const struct rect *crop);
/* Returns false, with the arena unchanged, if it declines. What it decodes has no warnings. With job->region, it makes
 * coefficients and leaves `out` alone. */
bool jpeg_baseline_pixels(struct jpeg_baseline *b, const struct image_job *job, struct image *out);
/* The checkpoints of the last image, if it was decoded here, the job wanted them and there are new ones; else NULL.
 * Valid until the next image. */
const uint8_t *jpeg_baseline_checkpoints(const struct jpeg_baseline *b, size_t *n);

/* Appends the DCT image of a whole JPEG. Returns false if it declines, or if there is no memory. */
bool jpeg_baseline_to_dct(struct jpeg_baseline *b, const struct image_job *job, struct buf *out);
/* The same with coefficients from elsewhere. */
bool jpeg_baseline_dct_from(struct jpeg_baseline *b, const struct jpeg_frame *f, const struct head *h,
                            const struct jpeg_giver *from, struct buf *out);
/* Fills job->region from a DCT image. */
bool jpeg_baseline_dct_region(const struct dct_image *p, const struct image_job *job);
/* Decodes a crop of a DCT image. Returns false if it is damaged, or the arena too small. */
bool jpeg_baseline_from_dct(struct jpeg_baseline *b, const struct dct_image *p, const struct image_job *job,
                            struct image *out);

#endif
