/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_lossless.h -- lossless JPEG of one component and 8 bits, which libjpeg-turbo reads only since 3.0.
 */
#ifndef JPEG_LOSSLESS_H
#define JPEG_LOSSLESS_H

#include "decode/codec.h"

/* Takes from the arena what the codec's scratch says: 3 bytes a pixel of the whole width, and 4 a column. */
int jpeg_lossless(const struct picture_job *job, struct image *out, stk_error *e);

#endif
