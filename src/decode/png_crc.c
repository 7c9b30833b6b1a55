/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_crc.c -- CRC-32, a half byte at a time or eight bytes at a time.
 *
 * of[k][v] is what the byte v does to the sum k bytes later; the sum of eight bytes is then eight
 * look-ups that do not wait for each other. Making the tables takes some microseconds.
 */
#include "decode/png_crc.h"

#include "base/bytes.h"

static const uint32_t nibble[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                    0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                    0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

static uint32_t step(uint32_t crc)
{
    crc = crc >> 4 ^ nibble[crc & 15];
    return crc >> 4 ^ nibble[crc & 15];
}

uint32_t png_crc(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++)
        crc = step(crc ^ p[i]);
    return ~crc;
}

void png_crc_tables_init(struct png_crc_tables *t)
{
    for (uint32_t v = 0; v < 256; v++)
        t->of[0][v] = step(v);
    for (int k = 1; k < 8; k++)
        for (uint32_t v = 0; v < 256; v++)
            t->of[k][v] = t->of[k - 1][v] >> 8 ^ t->of[0][t->of[k - 1][v] & 255];
}

uint32_t png_crc_add(const struct png_crc_tables *t, uint32_t crc, const uint8_t *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8) {
        const uint32_t a = crc ^ le32(p), b = le32(p + 4);
        crc = t->of[7][a & 255] ^ t->of[6][a >> 8 & 255] ^ t->of[5][a >> 16 & 255] ^ t->of[4][a >> 24] ^
              t->of[3][b & 255] ^ t->of[2][b >> 8 & 255] ^ t->of[1][b >> 16 & 255] ^ t->of[0][b >> 24];
    }
    for (; n > 0; p++, n--)
        crc = crc >> 8 ^ t->of[0][(crc ^ *p) & 255];
    return crc;
}

uint32_t png_crc_long(const struct png_crc_tables *t, const uint8_t *p, size_t n)
{
    return ~png_crc_add(t, 0xffffffff, p, n);
}
