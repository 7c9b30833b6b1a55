/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfrecord.h -- how records lie in a TFRecord file.
 *
 *     u64 length | u32 masked CRC-32C of it | data | u32 masked CRC-32C of the data          little endian
 *
 * A frame proves itself: of 2^32 places that are none, one would pass for a head.
 */
#ifndef TFRECORD_H
#define TFRECORD_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/crc32c.h"

enum { TFRECORD_HEAD = 12, TFRECORD_FOOT = 4 };

/* Whether TFRECORD_HEAD bytes are a head. */
static inline bool tfrecord_head(const struct crc32c *crc, const uint8_t *p, uint64_t *length)
{
    *length = le64(p);
    return crc32c_masked(crc, p, 8) == le32(p + 8);
}

/* Whether n bytes of data and the TFRECORD_FOOT behind them belong together. */
static inline bool tfrecord_data(const struct crc32c *crc, const uint8_t *p, size_t n)
{
    return crc32c_masked(crc, p, n) == le32(p + n);
}

/* The first place in n bytes where a head is, of a record that has at most `most` bytes; n: none. */
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
