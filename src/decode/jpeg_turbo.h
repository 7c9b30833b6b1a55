/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_turbo.h -- JPEG through libjpeg-turbo: what is not plain, the verdict on what is damaged, and writing.
 */
#ifndef JPEG_TURBO_H
#define JPEG_TURBO_H

#include "base/buf.h"
#include "decode/codec.h"
#include "decode/jpeg_baseline.h"

struct jpeg_turbo;

struct jpeg_turbo *jpeg_turbo_new(void); /* NULL: no memory */
void jpeg_turbo_free(struct jpeg_turbo *j);

/* Arena that a crop takes, and memory of libjpeg's own; SIZE_MAX when it overflows. */
size_t jpeg_turbo_scratch(const struct head *h, const struct rect *crop);
size_t jpeg_turbo_foreign(const struct head *h);
int jpeg_turbo_pixels(struct jpeg_turbo *j, const struct picture_job *job, struct image *out, int *warnings,
                      stk_error *e);

/* The whole picture as a DCT image, when it is complete; b encodes the coefficients. false: it is not, or no memory. */
bool jpeg_turbo_to_dct(struct jpeg_turbo *j, struct jpeg_baseline *b, const struct picture_job *job, struct buf *out);
/* The same coefficients in one scan, behind what out holds, which is proved. false: it could not be done. */
bool jpeg_turbo_rewrite(struct jpeg_turbo *j, const struct picture_job *job, struct buf *out);
int jpeg_turbo_encode(const struct image *im, const stk_encode_options *o, void **out, size_t *n, stk_error *e);
const char *jpeg_turbo_version(void);

#endif
