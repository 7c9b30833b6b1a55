/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parcel_huffman.h -- what one thread of the device does to the codes of a parcel: it decodes one group of MCUs, block
 * by block, and makes their samples.
 *
 * As parcel_work.h, this is compiled for the device and, for tests, for the CPU. decode/jpeg_groups.h describes the
 * region; the C of decode/jpeg_entropy.c defines the result.
 */
#ifndef PARCEL_HUFFMAN_H
#define PARCEL_HUFFMAN_H

#include "cuda/parcel_work.h"

enum {
    PARCEL_GROUPS = 64,      /* that the threads of a block decode at a time */
    PARCEL_CODE_BYTES = 272, /* of a table in the region: 16 counts, and at most 256 symbols */
    PARCEL_LOOK = 9,         /* bits of most codes */
    PARCEL_LOOK_WORDS = 6 << PARCEL_LOOK >> 1,
    PARCEL_LONG = 16 - PARCEL_LOOK /* lengths of the other ones */
};

/* As struct jpeg_group. */
struct parcel_group {
    uint32_t bit, stop;
    int16_t dc[3];
    uint16_t unused;
};

/* The tables of DC and AC of each component, in memory near the threads. */
struct parcel_codes {
    union {
        uint16_t look[6]
                     [1 << PARCEL_LOOK]; /* by the next bits: a code's length << 8, and its symbol; 0: it is longer */
        uint32_t words[PARCEL_LOOK_WORDS];
    } u;
    struct {
        uint32_t first, n, index; /* the first code of a length, how many there are, the first one's symbol */
    } longer[6][PARCEL_LONG];
    uint8_t symbols[6][256];
    uint32_t places[3][64]; /* of coefficient k: its natural index, and its quantiser << 16 */
};

ON_DEVICE const uint8_t *parcel_table(const struct parcel *p, const uint8_t *region, uint32_t t)
{
    return region + 128 * p->components + PARCEL_CODE_BYTES * t;
}

ON_DEVICE uint8_t parcel_zigzag(uint32_t k)
{
    /* Diagonals, up and down in turn. */
    uint32_t d = 0, first = 0, n = 1;
    while (k >= first + n) {
        first += n;
        d++;
        n = d < 8 ? d + 1 : 15 - d;
    }
    const uint32_t low = d < 8 ? 0 : d - 7, i = low + k - first;
    return (uint8_t)(d % 2 ? 8 * i + (d - i) : 8 * (d - i) + i);
}

/* The first of two passes over the tables: i up to PARCEL_LOOK_WORDS. */
ON_DEVICE void parcel_codes_clear(struct parcel_codes *c, const struct parcel *p, const uint8_t *region, uint32_t i)
{
    c->u.words[i] = 0;
    if (i < 64 * (uint32_t)p->components) {
        const uint32_t at = parcel_zigzag(i % 64);
        c->places[i / 64][i % 64] = at | parcel_le16(region + 128 * (i / 64) + 2 * at) << 16;
    }
}

/* The second one: i up to 256 for each table. */
ON_DEVICE void parcel_codes_add(struct parcel_codes *c, const struct parcel *p, const uint8_t *region, uint32_t i)
{
    const uint32_t t = i / 256, s = i % 256;
    const uint8_t *counts = parcel_table(p, region, t), symbol = counts[16 + s];
    uint32_t code = 0, index = 0;
    c->symbols[t][s] = symbol;
    for (uint32_t length = 1; length <= 16; length++) {
        const uint32_t n = counts[length - 1], more = PARCEL_LOOK - length;
        if (s - index < n && length <= PARCEL_LOOK) {
            const uint32_t at = t << PARCEL_LOOK | (((code + s - index) << more) & ((1 << PARCEL_LOOK) - 1));
            const uint32_t entry = length << 8 | symbol;
            if (more == 0)
                c->u.look[t][at % (1 << PARCEL_LOOK)] = (uint16_t)entry;
            for (uint32_t k = 0; k < 1u << more >> 1; k++)
                c->u.words[at / 2 + k] = entry | entry << 16;
        }
        if (length > PARCEL_LOOK && s == length - PARCEL_LOOK - 1) {
            c->longer[t][s].first = code;
            c->longer[t][s].n = n;
            c->longer[t][s].index = index;
        }
        index += n;
        code = (code + n) << 1;
    }
}

/* A code of more than PARCEL_LOOK bits at the top of 16: its length << 8, and its symbol. 0: there is none. */
ON_DEVICE uint32_t parcel_longer(const struct parcel_codes *c, uint32_t t, uint32_t bits)
{
    uint32_t found = 0;
    UNROLL for (int i = PARCEL_LONG - 1; i >= 0; i--)
    {
        const uint32_t length = PARCEL_LOOK + 1 + (uint32_t)i, at = (bits >> (16 - length)) - c->longer[t][i].first;
        if (at < c->longer[t][i].n)
            found = length << 8 | c->symbols[t][(c->longer[t][i].index + at) & 255];
    }
    return found;
}

/* ------------------------------------------------------------------ bits */

struct parcel_bits {
    uint64_t bits; /* the next one highest */
    int32_t n;
    uint32_t at;                 /* where the bits end, from the start of the region */
    uint32_t ahead;              /* the next word, loaded early, since that takes a while */
    const uint32_t *next, *last; /* the one after it; the last one comes again and again */
};

/* At least 33 bits. */
ON_DEVICE void parcel_refill(struct parcel_bits *r)
{
    if (r->n > 32)
        return;
    r->bits |= (uint64_t)SWAPPED_BYTES(r->ahead) << (32 - r->n);
    r->n += 32;
    r->at += 32;
    r->ahead = *r->next;
    r->next += r->next < r->last;
}

ON_DEVICE void parcel_drop(struct parcel_bits *r, uint32_t n)
{
    r->bits <<= n;
    r->n -= (int32_t)n;
}

ON_DEVICE void parcel_bits_open(struct parcel_bits *r, const uint8_t *region, const struct parcel_group *from)
{
    const uint32_t *words = (const uint32_t *)(const void *)region;
    r->bits = 0;
    r->n = 0;
    r->at = from->bit / 32 * 32;
    r->next = words + from->bit / 32;
    r->last = words + from->stop / 4;
    r->ahead = *r->next;
    r->next += r->next < r->last;
    parcel_refill(r);
    parcel_refill(r);
    parcel_drop(r, from->bit % 32);
}

/* The next code: its length << 8, and its symbol; 0: there is no such code. */
ON_DEVICE uint32_t parcel_code(const struct parcel_bits *r, const struct parcel_codes *c, uint32_t t)
{
    const uint32_t e = c->u.look[t][r->bits >> (64 - PARCEL_LOOK)];
    return e ? e : parcel_longer(c, t, (uint32_t)(r->bits >> 48));
}

/* The value of `size` bits (at most 15, 0 for none) at the top of 32 bits. It is negative if its first bit is 0. */
ON_DEVICE int32_t parcel_extend(uint32_t bits, uint32_t size)
{
    const int32_t v = (int32_t)(bits >> 1 >> (31 - size));
    return (int32_t)bits < 0 ? v : v + (int32_t)((~0u << size) + 1);
}

/* Drops a code and the value after it, and returns the value. */
ON_DEVICE int32_t parcel_value(struct parcel_bits *r, uint32_t length, uint32_t size)
{
    const int32_t v = parcel_extend((uint32_t)(r->bits << length >> 32), size);
    parcel_drop(r, length + size);
    return v;
}

/* ------------------------------------------------------------------ blocks */

/* Decodes a block of component c to products of coefficients and quantisers. Returns -1 if it is damaged, else whether
 * it has coefficients below its first row. */
ON_DEVICE int parcel_coded_block(struct parcel_bits *r, const struct parcel_codes *codes, int c, int32_t *dc,
                                 int16_t *coef)
{
    const uint32_t *places = codes->places[c];
    int below = 0;
    parcel_clear(coef);
    parcel_refill(r);
    uint32_t code = parcel_code(r, codes, 2 * (uint32_t)c);
    if (code == 0 || (code & 255) > 15)
        return -1;
    *dc = (int16_t)(*dc + parcel_value(r, code >> 8, code & 255));
    coef[0] = (int16_t)(uint16_t)((int16_t)(uint16_t)(places[0] >> 16) * *dc);
    for (uint32_t k = 1; k < 64; k++) {
        parcel_refill(r);
        code = parcel_code(r, codes, 2 * (uint32_t)c + 1);
        const uint32_t size = code & 15, run = code >> 4 & 15;
        if (code == 0)
            return -1;
        const int32_t v = parcel_value(r, code >> 8, size);
        if (size == 0 && run != 15)
            break;
        k += run;
        if (k > 63)
            return -1;
        const uint32_t place = places[k], at = place & 63;
        if (size) {
            coef[at] = (int16_t)(uint16_t)((int16_t)(uint16_t)(place >> 16) * v);
            below |= at >= 8;
        }
    }
    return below;
}

ON_DEVICE uint32_t parcel_groups_x(const struct parcel *p)
{
    return (uint32_t)((p->across + p->every - 1) / p->every);
}

ON_DEVICE uint32_t parcel_groups(const struct parcel *p)
{
    return parcel_groups_x(p) * (uint32_t)p->down;
}

/* coef: room for a block. Returns 0 if the group does not end where the next one starts. */
ON_DEVICE int parcel_huffman(const struct parcel *p, const uint8_t *region, const struct parcel_codes *codes,
                             int16_t *coef, uint8_t *samples, uint32_t i)
{
    const uint32_t across = parcel_groups_x(p), y = i / across, x = i % across, each = parcel_mcu_blocks(p);
    const struct parcel_group *s =
        (const struct parcel_group *)(const void *)parcel_table(p, region, 2 * (uint32_t)p->components) +
        y * (across + 1) + x;
    const struct parcel_group from = s[0], to = s[1];
    struct parcel_bits r;
    parcel_bits_open(&r, region, &from);
    int32_t dc0 = from.dc[0], dc1 = from.dc[1], dc2 = from.dc[2];
    const int32_t first = (int32_t)x * p->every, left = p->across - first, n = left < p->every ? left : p->every;
    for (int32_t m = first; m < first + n; m++)
        for (uint32_t k = 0; k < each; k++) {
            const int c = parcel_component(p, k);
            int32_t dc = c == 0 ? dc0 : c == 1 ? dc1 : dc2;
            const int below = parcel_coded_block(&r, codes, c, &dc, coef);
            if (below < 0)
                return 0;
            dc0 = c == 0 ? dc : dc0;
            dc1 = c == 1 ? dc : dc1;
            dc2 = c == 2 ? dc : dc2;
            parcel_samples(p, coef, below, samples, m, (int32_t)y, k);
        }
    return r.at - (uint32_t)r.n == to.bit && dc0 == to.dc[0] &&
           (p->components == 1 || (dc1 == to.dc[1] && dc2 == to.dc[2]));
}

#endif
