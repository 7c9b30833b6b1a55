/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_turbo.h -- JPEG through libjpeg-turbo: every image that is not plain, the verdict on damage, and writing.
 */
#ifndef JPEG_TURBO_H
#define JPEG_TURBO_H

#include "base/buf.h"
#include "decode/codec.h"
#include "decode/jpeg_baseline.h"

struct jpeg_turbo;

struct jpeg_turbo *jpeg_turbo_new(void); /* NULL: no memory */
void jpeg_turbo_free(struct jpeg_turbo *j);

/* Bytes of arena for a crop, and of libjpeg's own memory; SIZE_MAX on overflow. */
size_t jpeg_turbo_scratch(const struct head *h, const struct rect *crop);
size_t jpeg_turbo_foreign(const struct head *h);
int jpeg_turbo_pixels(struct jpeg_turbo *j, const struct image_job *job, struct image *out, int *warnings,
                      stk_error *e);

/* Appends the DCT image of a whole JPEG; b encodes the coefficients. Returns false if coefficients are missing, or if
 * there is no memory. */
bool jpeg_turbo_to_dct(struct jpeg_turbo *j, struct jpeg_baseline *b, const struct image_job *job, struct buf *out);
/* Appends a JPEG with the same coefficients in one scan, and verifies them. Returns false if it cannot. */
bool jpeg_turbo_rewrite(struct jpeg_turbo *j, const struct image_job *job, struct buf *out);
/* Appends a JPEG with the coefficients and the orientation of a DCT image. */
int jpeg_turbo_from_dct(const uint8_t *bytes, size_t n, struct buf *out, stk_error *e);
int jpeg_turbo_encode(const struct image *im, const stk_encode_options *o, void **out, size_t *n, stk_error *e);
const char *jpeg_turbo_version(void);

#endif
