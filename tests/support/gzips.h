/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzips.h -- gzip made in memory, for tests. Blocks are only stored, so that every byte is known.
 */
#ifndef GZIPS_H
#define GZIPS_H

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"

enum { GZIPS_BLOCK = 65535 };

static inline void gzips_add(struct buf *b, const void *p, size_t n)
{
    if (buf_add(b, p, n))
        abort(); /* no memory */
}

static inline void gzips_put(struct buf *b, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        gzips_add(b, &(uint8_t){(uint8_t)(v >> 8 * i)}, 1);
}

static inline uint32_t gzips_crc(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

/* One more member. */
static inline void gzips_member(struct buf *b, const uint8_t *p, size_t n)
{
    gzips_add(b, "\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
    for (size_t at = 0; at < n; at += GZIPS_BLOCK) {
        const size_t k = n - at < GZIPS_BLOCK ? n - at : GZIPS_BLOCK;
        gzips_put(b, at + k == n, 1);
        gzips_put(b, (uint32_t)k, 2);
        gzips_put(b, ~(uint32_t)k, 2);
        gzips_add(b, p + at, k);
    }
    gzips_put(b, gzips_crc(p, n), 4);
    gzips_put(b, (uint32_t)n, 4);
}

#endif
