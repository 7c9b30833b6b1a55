/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_head.h -- what the markers before a JPEG's first scan say.
 */
#ifndef JPEG_HEAD_H
#define JPEG_HEAD_H

#include "base/sample.h"

bool jpeg_match(const uint8_t *bytes, size_t n);
int jpeg_head(const uint8_t *bytes, size_t n, struct head *out, stk_error *e);

#endif
