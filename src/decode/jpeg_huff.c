/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_huff.c -- makes the tables that decode Huffman codes.
 *
 * An AC table is made in two steps: the first code of each run of bits, with its value; then, if bits are left, the
 * code that follows it. Both are a walk over 1024 entries, a few microseconds for a table. Photos with codes of their
 * own pay that for every image.
 */
#include "decode/jpeg_huff.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { COUNTS = 16, STORED = 16 };

static size_t spec_bytes(const uint8_t *spec)
{
    size_t n = COUNTS;
    for (int i = 0; i < COUNTS; i++)
        n += spec[i];
    return n;
}

bool huff_next_table(const uint8_t **segment, size_t *n, const uint8_t **table)
{
    *table = NULL;
    if (*n == 0)
        return true;
    const uint8_t *s = *segment;
    const size_t bytes = *n > COUNTS ? 1 + spec_bytes(s + 1) : SIZE_MAX;
    if (bytes > *n || bytes > 1 + COUNTS + HUFF_SYMBOLS || s[0] & ~0x13)
        return false;
    *table = s;
    *segment += bytes;
    *n -= bytes;
    return true;
}

bool huff_codes_make(struct huff_codes *c, const uint8_t *spec)
{
    uint32_t code = 0;
    int32_t first = 0;
    c->limit[0] = 0;
    for (int length = 1; length <= COUNTS; length++) {
        const uint8_t count = spec[length - 1];
        c->offset[length] = first - (int32_t)code;
        code += count;
        first += count;
        if (first > HUFF_SYMBOLS || (count > 0 && code >= 1u << length))
            return false;
        c->limit[length] = code << (COUNTS - length);
        code <<= 1;
    }
    memcpy(c->symbols, spec + COUNTS, (size_t)first);
    return true;
}

bool huff_is_good(const uint8_t *spec, bool dc)
{
    struct huff_codes c;
    if (!huff_codes_make(&c, spec))
        return false;
    const size_t n = spec_bytes(spec);
    for (size_t i = COUNTS; dc && i < n; i++)
        if (spec[i] > 15)
            return false;
    return true;
}

int huff_codes_find(const struct huff_codes *c, uint64_t bits)
{
    const uint32_t v = (uint32_t)(bits >> 48);
    for (int length = 1; length <= COUNTS; length++)
        if (v < c->limit[length])
            return length | c->symbols[(int32_t)(v >> (COUNTS - length)) + c->offset[length]] << 8;
    return -1;
}

/* ------------------------------------------------------------------ DC */

bool huff_dc_make(struct huff_dc *t, const uint8_t *spec)
{
    if (!huff_codes_make(&t->codes, spec))
        return false;
    memset(t->look, 0, sizeof t->look);
    const uint8_t *symbol = spec + COUNTS;
    uint16_t *to = t->look;
    for (unsigned length = 1; length <= COUNTS; length++)
        for (int i = 0; i < spec[length - 1]; i++, symbol++) {
            if (*symbol > 15)
                return false;
            for (size_t k = 0; length <= HUFF_DC_BITS && k < (size_t)1 << (HUFF_DC_BITS - length); k++)
                *to++ = (uint16_t)(length | (unsigned)*symbol << 8);
        }
    return true;
}

/* ------------------------------------------------------------------ AC */

/* One coefficient: the bits of its code and in total, its advance, and its value if zeros followed the look-up.
 * Without bits: what huff_long says of its code. */
struct single {
    uint8_t code, bits, advance;
    int16_t value;
};

/* Fills the entries of all runs of bits that start with one code. Returns their count. */
static size_t fill_code(struct single *to, unsigned length, uint8_t symbol)
{
    const size_t n = (size_t)1 << (HUFF_BITS - length);
    const unsigned size = symbol & 15, total = length + size;
    if (total > HUFF_MOST || (length == HUFF_BITS && size > 0)) { /* at least its sign must be known */
        for (size_t i = 0; i < n; i++)
            to[i] = (struct single){.advance = huff_advance(symbol), .value = (int16_t)(size | total << 8)};
        return n;
    }
    const unsigned beyond = total > HUFF_BITS ? total - HUFF_BITS : 0;
    const size_t same = n >> (size - beyond);
    const int half = size ? 1 << (size - 1) : 0;
    for (int v = 0; v < 1 << size; v += 1 << beyond) {
        const struct single s = {(uint8_t)length, (uint8_t)total, huff_advance(symbol),
                                 (int16_t)(v < half ? v - 2 * half + 1 : v)};
        for (size_t i = 0; i < same; i++)
            *to++ = s;
    }
    return n;
}

/* first: {0} if there is only one. */
static uint64_t entry_of(struct single first, struct single last)
{
    const int bits = first.bits + last.bits, beyond = bits > HUFF_BITS ? bits - HUFF_BITS : 0;
    return (uint64_t)bits | (uint64_t)(first.bits & 3) << 6 |
           (uint64_t)(first.bits ? first.advance : last.advance) << 8 | (uint64_t)(first.advance + last.advance) << 16 |
           (uint64_t)(63 - beyond) << 24 | (uint64_t)(first.bits >> 2) << 30 | (uint64_t)(uint16_t)first.value << 32 |
           (uint64_t)(uint16_t)last.value << 48;
}

static uint64_t join(const struct single *singles, size_t i)
{
    const struct single a = singles[i];
    if (a.bits == 0)
        return (uint64_t)a.advance << 8 | (uint64_t)(uint16_t)a.value << 16;
    if (a.advance < HUFF_END && a.bits < HUFF_BITS) {
        const struct single b = singles[(i << a.bits) & ((1 << HUFF_BITS) - 1)];
        const int known = HUFF_BITS - a.bits, least = b.code + (b.bits > b.code);
        if (b.bits > 0 && least <= known && a.bits + b.bits <= HUFF_MOST)
            return entry_of(a, b);
    }
    return entry_of((struct single){0}, a);
}

bool huff_ac_make(struct huff_ac *t, const uint8_t *spec)
{
    if (!huff_codes_make(&t->codes, spec))
        return false;
    struct single singles[1 << HUFF_BITS] = {{0}};
    struct single *to = singles;
    const uint8_t *symbol = spec + COUNTS;
    for (unsigned length = 1; length <= HUFF_BITS; length++)
        for (int i = 0; i < spec[length - 1]; i++)
            to += fill_code(to, length, *symbol++);
    for (size_t i = 0; i < 1 << HUFF_BITS; i++)
        t->pair[i] = join(singles, i);
    return true;
}

/* ------------------------------------------------------------------ the store */

struct key {
    uint64_t hash, used; /* used: 0 while empty */
    uint8_t spec[COUNTS + HUFF_SYMBOLS];
};

struct huff_store {
    uint64_t clock;
    struct key ac_keys[STORED], dc_keys[STORED];
    struct huff_ac ac[STORED];
    struct huff_dc dc[STORED];
};

struct huff_store *huff_store_new(void)
{
    return calloc(1, sizeof(struct huff_store));
}

void huff_store_free(struct huff_store *s)
{
    free(s);
}

/* The slot of a table; *there says whether it is already filled. */
static size_t find(struct huff_store *s, struct key *keys, const uint8_t *spec, bool *there)
{
    const size_t n = spec_bytes(spec);
    const uint64_t hash = hash_bytes(spec, n, 0);
    size_t oldest = 0;
    s->clock++;
    for (size_t i = 0; i < STORED; i++) {
        *there = keys[i].used && keys[i].hash == hash && memcmp(keys[i].spec, spec, n) == 0;
        if (*there) {
            keys[i].used = s->clock;
            return i;
        }
        if (keys[i].used < keys[oldest].used)
            oldest = i;
    }
    keys[oldest].used = s->clock;
    keys[oldest].hash = hash;
    memcpy(keys[oldest].spec, spec, n);
    return oldest;
}

const struct huff_ac *huff_store_ac(struct huff_store *s, const uint8_t *spec)
{
    bool there;
    const size_t i = find(s, s->ac_keys, spec, &there);
    if (there || huff_ac_make(&s->ac[i], spec))
        return &s->ac[i];
    s->ac_keys[i].used = 0;
    return NULL;
}

const struct huff_dc *huff_store_dc(struct huff_store *s, const uint8_t *spec)
{
    bool there;
    const size_t i = find(s, s->dc_keys, spec, &there);
    if (there || huff_dc_make(&s->dc[i], spec))
        return &s->dc[i];
    s->dc_keys[i].used = 0;
    return NULL;
}
