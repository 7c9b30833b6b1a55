/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_lossless.h -- lossless JPEG of 8 bits: the pixels of libjpeg-turbo 3, bit for bit. Older versions cannot read
 * it.
 */
#ifndef JPEG_LOSSLESS_H
#define JPEG_LOSSLESS_H

#include "decode/codec.h"

/* Bytes of arena for a crop; SIZE_MAX on overflow. */
size_t jpeg_lossless_scratch(const struct head *h, const struct rect *crop);
/* Decodes grey, RGB and CMYK. Refuses damaged files. */
int jpeg_lossless(const struct image_job *job, struct image *out, stk_error *e);

#endif
