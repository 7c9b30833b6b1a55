/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parcel_huffman.h -- what one thread of the device does to the codes of a parcel: it decodes those of one group of MCUs.
 *
 * As parcel_work.h, this is compiled for the device and, for tests, for the CPU. decode/jpeg_groups.h describes the
 * region; the C of decode/jpeg_entropy.c defines the result.
 */
#ifndef PARCEL_HUFFMAN_H
#define PARCEL_HUFFMAN_H

#include "cuda/parcel_work.h"

enum { PARCEL_CODES = 272, PARCEL_LOOK = 9, PARCEL_LOOKS = 1 << PARCEL_LOOK };

/* As struct jpeg_group. */
struct parcel_group {
    uint32_t bit, stop;
    int16_t dc[3];
    uint16_t unused;
};

PARCEL_TABLE uint8_t parcel_zigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                          12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                          35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                          58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* The code at the top of 16 bits: its length << 8, and its symbol. 0: none of at most `longest` bits. */
ON_DEVICE uint32_t parcel_find(const uint8_t *codes, uint32_t bits, int longest)
{
    uint32_t code = 0, index = 16;
    for (int length = 1; length <= longest; length++) {
        const uint32_t n = codes[length - 1], here = bits >> (16 - length);
        if (here - code < n)
            return (uint32_t)length << 8 | codes[index + here - code];
        index += n;
        code = (code + n) << 1;
    }
    return 0;
}

/* What the next PARCEL_LOOK bits are, for table t of a region: DC and AC of each component. */
ON_DEVICE uint16_t parcel_look(const struct parcel *p, const uint8_t *region, uint32_t t, uint32_t bits)
{
    return (uint16_t)parcel_find(region + 128 * p->components + PARCEL_CODES * t, bits << (16 - PARCEL_LOOK),
                                 PARCEL_LOOK);
}

struct parcel_bits {
    uint64_t bits; /* the next one highest */
    int32_t n, made_up;
    const uint8_t *p, *end;
};

/* At least 32 bits; zeros after the end. */
ON_DEVICE void parcel_refill(struct parcel_bits *r)
{
    if (r->n >= 32)
        return;
    while (r->n < 56) {
        if (r->p >= r->end) {
            r->made_up += 56 - r->n;
            r->n = 56;
            return;
        }
        r->bits |= (uint64_t)*r->p++ << (56 - r->n);
        r->n += 8;
    }
}

ON_DEVICE void parcel_drop(struct parcel_bits *r, uint32_t n)
{
    r->bits <<= n;
    r->n -= (int32_t)n;
}

/* The next code: its length << 8, and its symbol; 0: there is no such code. */
ON_DEVICE uint32_t parcel_code(const struct parcel_bits *r, const uint8_t *codes, const uint16_t *look)
{
    const uint32_t e = look[r->bits >> (64 - PARCEL_LOOK)];
    return e ? e : parcel_find(codes, (uint32_t)(r->bits >> 48), 16);
}

/* A value of `size` bits, 0 for none. It is negative if its first bit is 0. */
ON_DEVICE int32_t parcel_extend(uint64_t bits, uint32_t size)
{
    const int32_t v = (int32_t)(bits >> 1 >> (63 - size));
    return (int64_t)bits < 0 ? v : v + (int32_t)((~0u << size) + 1);
}

/* Decodes a block. Returns 0 if it is damaged. */
ON_DEVICE int parcel_coded_block(struct parcel_bits *r, const uint8_t *codes, const uint16_t *look, int16_t *dc,
                                 int16_t *coef)
{
    uint64_t *zero = (uint64_t *)(void *)coef;
    UNROLL for (int i = 0; i < 16; i++) zero[i] = 0;
    parcel_refill(r);
    uint32_t code = parcel_code(r, codes, look), size = code & 255;
    if (code == 0 || size > 15)
        return 0;
    *dc = (int16_t)(uint16_t)(*dc + parcel_extend(r->bits << (code >> 8), size));
    parcel_drop(r, (code >> 8) + size);
    coef[0] = *dc;
    for (uint32_t k = 1; k < 64; k++) {
        parcel_refill(r);
        code = parcel_code(r, codes + PARCEL_CODES, look + PARCEL_LOOKS);
        size = code & 15;
        if (code == 0)
            return 0;
        const uint32_t skipped = code >> 4 & 15;
        if (size == 0 && skipped != 15) {
            parcel_drop(r, code >> 8);
            return 1;
        }
        k += skipped;
        if (k > 63)
            return 0;
        if (size)
            coef[parcel_zigzag[k]] = (int16_t)parcel_extend(r->bits << (code >> 8), size);
        parcel_drop(r, (code >> 8) + size);
    }
    return 1;
}

/* Where the next bit is. */
ON_DEVICE uint32_t parcel_at(const struct parcel_bits *r, const uint8_t *region)
{
    return (uint32_t)(r->p - region) * 8 - (uint32_t)(r->n - r->made_up);
}

ON_DEVICE uint32_t parcel_groups_x(const struct parcel *p)
{
    return (uint32_t)((p->across + p->every - 1) / p->every);
}

ON_DEVICE uint32_t parcel_groups(const struct parcel *p)
{
    return parcel_groups_x(p) * (uint32_t)p->down;
}

/* Where the blocks of a component go. */
ON_DEVICE uint32_t parcel_place(const struct parcel *p, int c, int32_t row, int32_t column)
{
    return parcel_first(p, c) + (uint32_t)row * parcel_columns(p, c) + (uint32_t)column;
}

ON_DEVICE int parcel_mcu(const struct parcel *p, struct parcel_bits *r, const uint8_t *codes, const uint16_t *look,
                         int16_t *dc, int16_t *coef, int32_t x, int32_t y)
{
    for (int c = 0; c < p->components; c++) {
        const int32_t h = c == 0 && p->halves_columns ? 2 : 1, v = c == 0 && p->halves_rows ? 2 : 1;
        for (int32_t i = 0; i < v * h; i++) {
            const uint32_t block = parcel_place(p, c, y * v + i / h, x * h + i % h);
            if (!parcel_coded_block(r, codes + 2 * PARCEL_CODES * c, look + 2 * PARCEL_LOOKS * c, &dc[c],
                                    coef + (uint64_t)block * 64))
                return 0;
        }
    }
    return 1;
}

/* look: PARCEL_LOOKS entries for each table. Returns 0 if the group does not end where the next one starts. */
ON_DEVICE int parcel_huffman(const struct parcel *p, const uint8_t *region, const uint16_t *look, int16_t *coef,
                             uint32_t i)
{
    const uint32_t across = parcel_groups_x(p), y = i / across, x = i % across;
    const uint8_t *codes = region + 128 * p->components;
    const struct parcel_group *s =
        (const struct parcel_group *)(const void *)(codes + 2 * PARCEL_CODES * p->components) + y * (across + 1) + x;
    const struct parcel_group from = s[0], to = s[1];
    struct parcel_bits r;
    r.bits = 0;
    r.n = r.made_up = 0;
    r.p = region + from.bit / 8;
    r.end = region + from.stop;
    parcel_refill(&r);
    parcel_drop(&r, from.bit % 8);
    int16_t dc[3] = {from.dc[0], from.dc[1], from.dc[2]};
    const int32_t first = (int32_t)x * p->every, left = p->across - first, n = left < p->every ? left : p->every;
    for (int32_t m = first; m < first + n; m++)
        if (!parcel_mcu(p, &r, codes, look, dc, coef, m, (int32_t)y))
            return 0;
    return r.n >= r.made_up && parcel_at(&r, region) == to.bit && dc[0] == to.dc[0] &&
           (p->components == 1 || (dc[1] == to.dc[1] && dc[2] == to.dc[2]));
}

#endif
