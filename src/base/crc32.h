/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32.h -- CRC-32 (IEEE), the checksum of gzip, zip and PNG.
 *
 *     const struct crc32 *crc = crc32_choose(STK_CPU_DEFAULT);
 *     if (crc->of(p, n) != be32(p + n)) ...
 */
#ifndef CRC32_H
#define CRC32_H

#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

struct crc32 {
    uint32_t (*of)(const uint8_t *p, size_t n);
};

/* Plain C for STK_CPU_C; otherwise carry-less multiplication where the CPU has it. */
const struct crc32 *crc32_choose(stk_cpu asked);

/* ------------------------------------------------------------------ between the crc32*.c */

/* Continues a sum. The first sum has all bits set; the final sum is inverted by the caller. */
uint32_t crc32_add(uint32_t crc, const uint8_t *p, size_t n);
uint32_t crc32_clmul(const uint8_t *p, size_t n);

#endif
