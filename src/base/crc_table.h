/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc_table.h -- sums of 32 bits by table, of any polynomial.
 *
 * of[k][v] is what the half byte v has done to the sum once k more half bytes have followed it. So the sum over eight
 * bytes is sixteen look-ups that do not wait for each other, in a table of 1 KiB that needs no making.
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

/* Goes on from crc, as it is before the last bits are turned. */
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
