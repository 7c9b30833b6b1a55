/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfrecord.h -- the frames of TFRecord files.
 *
 *     u64 length | u32 masked CRC-32C of it | data | u32 masked CRC-32C of the data          little endian
 *
 * The checksum makes a head recognisable at any offset: random bytes pass for one with a probability of 2^-32.
 */
#ifndef TFRECORD_H
#define TFRECORD_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/crc32c.h"

enum { TFRECORD_HEAD = 12, TFRECORD_FOOT = 4 };

/* Whether TFRECORD_HEAD bytes are the head of a record. */
bool tfrecord_head(const struct crc32c *crc, const uint8_t *p, uint64_t *length);
/* Whether n bytes of data match the checksum that follows them. */
bool tfrecord_data(const struct crc32c *crc, const uint8_t *p, size_t n);
/* The offset of the first head in n bytes whose record has at most `most` bytes; n: none. */
size_t tfrecord_search(const struct crc32c *crc, const uint8_t *p, size_t n, uint64_t most);

/* Makes a record of the data after the first TFRECORD_HEAD bytes of the buffer. 0, or -1: no memory. */
int tfrecord_frame(const struct crc32c *crc, struct buf *record);

#endif
