/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jpeg_huff.c -- compares Huffman tables with decoding bit by bit; invalid tables; the store of tables.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "decode/jpeg_huff.h"
#include "test.h"

enum { SPEC = 16 + 256 };

static uint32_t noise(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* Makes codes of random lengths, never all of them, for symbols below `most`. Returns how many. */
static int make_spec(uint8_t *spec, uint32_t *seed, uint32_t most)
{
    memset(spec, 0, SPEC);
    uint32_t room = 1, n = 0;
    for (int length = 1; length <= 16; length++) {
        room *= 2;
        uint32_t count = noise(seed) % (room < 40 ? room : 40);
        if (n + count > most)
            count = most - n;
        if (count >= room)
            count = room - 1;
        spec[length - 1] = (uint8_t)count;
        room -= count;
        n += count;
    }
    for (uint32_t i = 0; i < n; i++)
        spec[16 + i] = (uint8_t)(i * 37 % most);
    return (int)n;
}

/* The simple way: returns the length of the code at the start of v, or 0. */
static int plain_code(const uint8_t *spec, uint32_t v, uint8_t *symbol)
{
    uint32_t code = 0;
    const uint8_t *s = spec + 16;
    for (int length = 1; length <= 16; length++) {
        for (int i = 0; i < spec[length - 1]; i++, code++, s++)
            if (v >> (16 - length) == code) {
                *symbol = *s;
                return length;
            }
        code <<= 1;
    }
    return 0;
}

/* Reads one coefficient at the top of v: its code, and its value as if only the first `room` bits were known and zeros
 * followed. Returns how many bits it takes. Returns 0 if its code or its sign is not among these bits, or it takes too
 * many. */
static unsigned plain_value(const uint8_t *spec, uint32_t v, unsigned room, int *advance, int *value)
{
    uint8_t symbol;
    const unsigned length = (unsigned)plain_code(spec, v, &symbol);
    const unsigned size = symbol & 15, least = length + (size > 0);
    if (length == 0 || least > room || length + size > HUFF_MOST)
        return 0;
    const uint32_t known = v >> (16 - room) << (16 - room);
    const int bits = (int)((known << length & 0xffff) >> (16 - size));
    *value = size == 0 ? 0 : bits >> (size - 1) ? bits : bits - (1 << size) + 1;
    *advance = huff_advance(symbol);
    return length + size;
}

static void check_ac(const uint8_t *spec, const struct huff_ac *t, uint32_t i)
{
    const uint32_t v = i << (16 - HUFF_BITS);
    const uint64_t e = t->pair[i];
    int advance[2] = {0}, value[2] = {0};
    unsigned first = plain_value(spec, v, HUFF_BITS, &advance[0], &value[0]), second = 0;
    if (first == 0) {
        uint8_t symbol;
        const int length = plain_code(spec, v, &symbol);
        CHECK_EQ(e, length == 0 || length > HUFF_BITS ? 0 : huff_long((unsigned)length, symbol));
        return;
    }
    if (advance[0] < HUFF_END && first < HUFF_BITS)
        second = plain_value(spec, v << first & 0xffff, HUFF_BITS - first, &advance[1], &value[1]);
    if (second == 0 || first + second > HUFF_MOST) { /* a single code counts as the second one */
        second = first;
        first = 0;
        advance[1] = 0;
        value[1] = value[0];
        value[0] = 0;
    }
    const unsigned total = first + second;
    CHECK_EQ(e & 63, total);
    CHECK_EQ(huff_first_bits(e), first);
    CHECK_EQ(e >> 8 & 255, advance[0]);
    CHECK_EQ(e >> 16 & 255, advance[0] + advance[1]);
    CHECK_EQ(e >> 24 & 63, total > HUFF_BITS ? 63 - (total - HUFF_BITS) : 63);
    CHECK_EQ((int16_t)(e >> 32), value[0]);
    CHECK_EQ((int16_t)(e >> 48), value[1]);
}

static void check_codes(const uint8_t *spec, const struct huff_codes *c)
{
    for (uint32_t v = 0; v < 65536; v += 7) {
        uint8_t symbol = 0;
        const int right = plain_code(spec, v, &symbol);
        int length = 1;
        while (length <= 16 && v >= c->limit[length])
            length++;
        CHECK_EQ(length > 16 ? 0 : length, right);
        if (right && length == right)
            CHECK_EQ(c->symbols[(int32_t)(v >> (16 - length)) + c->offset[length]], symbol);
    }
}

static void ac_tables(void)
{
    struct huff_ac *t = malloc(sizeof *t);
    uint8_t spec[SPEC];
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t seed = i;
        make_spec(spec, &seed, 256);
        CHECK(huff_ac_make(t, spec));
        check_codes(spec, &t->codes);
        for (uint32_t k = 0; k < 1 << HUFF_BITS; k++)
            check_ac(spec, t, k);
    }
    free(t);
}

static void dc_tables(void)
{
    struct huff_dc *t = malloc(sizeof *t);
    uint8_t spec[SPEC];
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t seed = i;
        make_spec(spec, &seed, 16);
        CHECK(huff_dc_make(t, spec));
        check_codes(spec, &t->codes);
        for (uint32_t k = 0; k < 1 << HUFF_DC_BITS; k++) {
            uint8_t symbol;
            const int length = plain_code(spec, k << (16 - HUFF_DC_BITS), &symbol);
            CHECK_EQ(t->look[k], length == 0 || length > HUFF_DC_BITS ? 0 : length | symbol << 8);
        }
    }
    free(t);
}

/* Tables are made if they are good. */
static bool makes_ac(struct huff_ac *t, const uint8_t *spec)
{
    const bool made = huff_ac_make(t, spec);
    CHECK_EQ(huff_is_good(spec, false), made);
    return made;
}
static bool makes_dc(struct huff_dc *t, const uint8_t *spec)
{
    const bool made = huff_dc_make(t, spec);
    CHECK_EQ(huff_is_good(spec, true), made);
    return made;
}

static void no_tables(void)
{
    struct huff_ac *ac = malloc(sizeof *ac);
    struct huff_dc *dc = malloc(sizeof *dc);
    uint8_t spec[SPEC] = {0};
    CHECK(makes_ac(ac, spec) && makes_dc(dc, spec)); /* empty: no code is known */
    CHECK_EQ(ac->pair[0], 0);
    spec[0] = 2; /* the code of ones alone is used */
    CHECK(!makes_ac(ac, spec) && !makes_dc(dc, spec));
    spec[0] = 0;
    spec[15] = 255;
    spec[14] = 2; /* 257 symbols */
    CHECK(!makes_ac(ac, spec));
    memset(spec, 0, sizeof spec);
    spec[1] = 1;
    spec[16] = 16; /* of a value of 16 bits */
    CHECK(makes_ac(ac, spec));
    CHECK(!makes_dc(dc, spec));
    spec[1] = 0;
    spec[15] = 1;
    CHECK(!makes_dc(dc, spec)); /* after a long code as well */
    free(ac);
    free(dc);
}

/* The same table is returned from the same place. Three tables of an image stay valid while it is decoded. */
static void store(void)
{
    struct huff_store *s = huff_store_new();
    uint8_t specs[60][SPEC], bad[SPEC] = {2};
    CHECK(s != NULL);
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t seed = i;
        make_spec(specs[i], &seed, 16);
    }
    const struct huff_ac *first = huff_store_ac(s, specs[0]);
    const struct huff_dc *first_dc = huff_store_dc(s, specs[0]);
    for (int i = 1; i < 60; i++) {
        const struct huff_ac *a = huff_store_ac(s, specs[i]);
        CHECK(a && a != first);
        CHECK(huff_store_dc(s, specs[i]) != first_dc);
        CHECK(huff_store_ac(s, bad) == NULL && huff_store_dc(s, bad) == NULL);
        CHECK(huff_store_ac(s, specs[0]) == first && huff_store_dc(s, specs[0]) == first_dc);
        CHECK(huff_store_ac(s, specs[i]) == a);
        check_codes(specs[i], &a->codes);
    }
    check_codes(specs[0], &first->codes);
    huff_store_free(s);
    huff_store_free(NULL);
}

int main(int argc, char **argv)
{
    TESTS(T(ac_tables), T(dc_tables), T(no_tables), T(store))
}
