/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfrecord.c -- the frames of TFRecord files: finding and checking them, and writing them.
 */
#include "format/tfrecord.h"

#include "base/bytes.h"

bool tfrecord_head(const struct crc32c *crc, const uint8_t *p, uint64_t *length)
{
    *length = le64(p);
    return crc32c_masked(crc, p, 8) == le32(p + 8);
}

bool tfrecord_data(const struct crc32c *crc, const uint8_t *p, size_t n)
{
    return crc32c_masked(crc, p, n) == le32(p + n);
}

size_t tfrecord_search(const struct crc32c *crc, const uint8_t *p, size_t n, uint64_t most)
{
    for (size_t i = 0; i + TFRECORD_HEAD <= n; i++) {
        uint64_t length;
        if (le64(p + i) <= most && tfrecord_head(crc, p + i, &length))
            return i;
    }
    return n;
}

int tfrecord_frame(const struct crc32c *crc, struct buf *record)
{
    uint8_t foot[TFRECORD_FOOT];
    const size_t n = record->len - TFRECORD_HEAD;
    le_put(record->data, n, 8);
    le_put(record->data + 8, crc32c_masked(crc, record->data, 8), 4);
    le_put(foot, crc32c_masked(crc, record->data + TFRECORD_HEAD, n), sizeof foot);
    return buf_add(record, foot, sizeof foot);
}
