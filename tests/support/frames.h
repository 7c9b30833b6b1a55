/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.h -- writes TFRecords, for tests.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include "base/buf.h"
#include "base/crc32c.h"

static inline void frame_put(struct buf *b, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 8)
        buf_add(b, &(uint8_t){(uint8_t)v}, 1);
}

static inline void frame_add(struct buf *b, const void *p, size_t n)
{
    const struct crc32c *crc = crc32c_choose(STK_CPU_C);
    frame_put(b, n, 8);
    frame_put(b, crc32c_masked(crc, b->data + b->len - 8, 8), 4);
    buf_add(b, p, n);
    frame_put(b, crc32c_masked(crc, p, n), 4);
}

#endif
