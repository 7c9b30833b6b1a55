/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_crc.h -- the checksum of a PNG's chunks, CRC-32: over name and data.
 */
#ifndef PNG_CRC_H
#define PNG_CRC_H

#include <stddef.h>
#include <stdint.h>

/* For eight bytes at a time. */
struct png_crc_tables {
    uint32_t of[8][256];
};

/* Of a few bytes. */
uint32_t png_crc(const uint8_t *p, size_t n);
/* Of many: ten times as fast, once there are tables. */
void png_crc_tables_init(struct png_crc_tables *t);
/* What more bytes make of a sum; it begins with all bits set, and ends with all bits turned. */
uint32_t png_crc_add(const struct png_crc_tables *t, uint32_t crc, const uint8_t *p, size_t n);
uint32_t png_crc_long(const struct png_crc_tables *t, const uint8_t *p, size_t n);

#endif
