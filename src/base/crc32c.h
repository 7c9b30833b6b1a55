/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.h -- CRC-32C (Castagnoli), the checksum of TFRecords.
 *
 *     const struct crc32c *crc = crc32c_choose(STK_CPU_DEFAULT);
 *     if (crc32c_masked(crc, p, n) != le32(p + n)) ...
 */
#ifndef CRC32C_H
#define CRC32C_H

#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

struct crc32c {
    uint32_t (*of)(const uint8_t *p, size_t n);
};

/* Plain C for STK_CPU_C; otherwise the CPU's CRC-32C instruction if it has one. */
const struct crc32c *crc32c_choose(stk_cpu asked);

/* The form that TFRecord files store: rotated and offset, because a CRC over data that contains CRCs is weak. */
static inline uint32_t crc32c_masked(const struct crc32c *crc, const uint8_t *p, size_t n)
{
    const uint32_t sum = crc->of(p, n);
    return (sum >> 15 | sum << 17) + UINT32_C(0xa282ead8);
}

/* ------------------------------------------------------------------ between the crc32c*.c */

uint32_t crc32c_sse42(const uint8_t *p, size_t n);

#endif
