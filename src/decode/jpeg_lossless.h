/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_lossless.h -- lossless JPEG of 8 bits, which libjpeg-turbo reads only since 3.0: its pixels, bit for bit.
 */
#ifndef JPEG_LOSSLESS_H
#define JPEG_LOSSLESS_H

#include "decode/codec.h"

/* Arena that a crop takes; SIZE_MAX when it overflows. */
size_t jpeg_lossless_scratch(const struct head *h, const struct rect *crop);
/* Grey, RGB or CMYK; damaged files are refused. */
int jpeg_lossless(const struct picture_job *job, struct image *out, stk_error *e);

#endif
