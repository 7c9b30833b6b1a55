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

#include "base/bytes.h"
#include "base/crc32c.h"

enum { TFRECORD_HEAD = 12, TFRECORD_FOOT = 4 };

/* Whether TFRECORD_HEAD bytes are the head of a record. */
static inline bool tfrecord_head(const struct crc32c *crc, const uint8_t *p, uint64_t *length)
{
    *length = le64(p);
    return crc32c_masked(crc, p, 8) == le32(p + 8);
}

/* Whether n bytes of data match the checksum that follows them. */
static inline bool tfrecord_data(const struct crc32c *crc, const uint8_t *p, size_t n)
{
    return crc32c_masked(crc, p, n) == le32(p + n);
}

/* The offset of the first head in n bytes whose record has at most `most` bytes; n: none. */
static inline size_t tfrecord_search(const struct crc32c *crc, const uint8_t *p, size_t n, uint64_t most)
{
    for (size_t i = 0; i + TFRECORD_HEAD <= n; i++) {
        uint64_t length;
        if (le64(p + i) <= most && tfrecord_head(crc, p + i, &length))
            return i;
    }
    return n;
}

#endif
