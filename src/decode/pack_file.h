/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_file.h -- a pack of a JPEG's coefficients as a file of its own (.dct): magic, a checksum of the rest, the pack.
 *
 * A pack that is damaged may be decoded to wrong pixels; the checksum is proved whenever the file is looked at.
 */
#ifndef PACK_FILE_H
#define PACK_FILE_H

#include <stdbool.h>

#include "base/buf.h"
#include "stoker.h"

enum { PACK_FILE_HEAD = 16 };

bool pack_file_is(const uint8_t *bytes, size_t n);
/* Whether the pack behind the head is as it was written. */
int pack_file_check(const uint8_t *bytes, size_t n, stk_error *e);
/* Room for the head behind what out holds, and the head once the pack lies behind it; 0, or -1: no memory. */
int pack_file_begin(struct buf *out);
void pack_file_end(struct buf *out, size_t begin);

#endif
