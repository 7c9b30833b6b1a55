/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc_table.h -- 32-bit CRCs of any polynomial, by table.
 *
 * of[k][v] is the contribution of the half byte v that is followed by k more half bytes. So eight bytes take sixteen
 * look-ups that do not depend on each other, in a constant table of 1 KiB.
 */
#ifndef CRC_TABLE_H
#define CRC_TABLE_H

#include <stddef.h>

#include "base/bytes.h"

static inline uint32_t crc_table_eight(const uint32_t of[16][16], uint32_t crc, const uint8_t *p)
{
    uint64_t v = le64(p) ^ crc;
    uint32_t sum = 0;
    for (int k = 15; k >= 0; k--, v >>= 4)
        sum ^= of[k][v & 15];
    return sum;
}

/* Continues from crc, which is not inverted yet. */
static inline uint32_t crc_table_add(const uint32_t of[16][16], uint32_t crc, const uint8_t *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8)
        crc = crc_table_eight(of, crc, p);
    for (; n > 0; p++, n--) {
        crc ^= *p;
        crc = crc >> 8 ^ of[1][crc & 15] ^ of[0][crc >> 4 & 15];
    }
    return crc;
}

#endif
