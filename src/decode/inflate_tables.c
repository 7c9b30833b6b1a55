/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_tables.c -- the tables in which codes are looked up.
 *
 * A table is indexed by the next bits of the stream, lowest first. Bits of an entry:
 *
 *     literals         0-7 bits to drop           8-9 count, 1 or 2            16-23, 24-31 the literals
 *     length           0-7 bits to drop in all    8-11 bits of the code        16-31 base; extra bits are in between
 *     distance         the same
 *     longer (LONG)    0-7 bits to drop           8-11 bits of the 2nd table   16-31 its position
 *
 * Images are mostly literals with short codes. If two of them fit an index, one look-up gives both.
 */
#include <string.h>

#include "decode/inflate.h"

enum { MAX_BITS = 15, MAX_SYMBOLS = 288, END_SYMBOL = 256 };

/* A set of codes: symbols sorted by length, then value. */
struct code {
    uint16_t count[MAX_BITS + 1];
    uint16_t sorted[MAX_SYMBOLS];
    int longest;
    unsigned left; /* unused codes; 0: every sequence of bits means something */
};

/* Returns false if there are more codes than their lengths allow. */
static bool sort(struct code *c, const uint8_t *lengths, int n)
{
    uint16_t at[MAX_BITS + 2] = {0};
    *c = (struct code){0};
    for (int i = 0; i < n; i++)
        c->count[lengths[i]]++;
    c->count[0] = 0;
    int left = 1;
    for (int bits = 1; bits <= MAX_BITS; bits++) {
        left = 2 * left - c->count[bits];
        if (left < 0)
            return false;
        at[bits + 1] = (uint16_t)(at[bits] + c->count[bits]);
        if (c->count[bits])
            c->longest = bits;
    }
    for (int i = 0; i < n; i++)
        if (lengths[i])
            c->sorted[at[lengths[i]]++] = (uint16_t)i;
    c->left = (unsigned)left;
    return true;
}

/* The next code of the same length, with reversed bits: the carry runs from the highest bit down. */
static unsigned next_code(unsigned code, int bits)
{
    unsigned bit = 1u << (bits - 1);
    while (code & bit)
        bit >>= 1;
    return bit ? (code & (bit - 1)) | bit : 0;
}

static void spread(uint32_t *table, unsigned from, unsigned step, unsigned end, uint32_t entry)
{
    for (; from < end; from += step)
        table[from] = entry;
}

/* The entry of a symbol with a code of `bits` bits; bits 0-15 of `symbol` are its extra bits. */
static uint32_t entry_of(uint32_t symbol, unsigned bits)
{
    if (symbol & ENTRY_LITERAL)
        return symbol | 1 << 8 | bits;
    if (symbol & ENTRY_ODD)
        return symbol | bits;
    return (symbol & 0xffff0000) | bits << 8 | (bits + (symbol & 0xff));
}

/* Adds codes in the order of their length: those that fit `root` bits, then longer ones. Neighbours among these
 * share a second table. */
static void fill(uint32_t *table, const struct code *c, int root, const uint32_t *symbols)
{
    const unsigned size = 1u << root, second = c->longest > root ? (unsigned)(c->longest - root) : 0;
    unsigned code = 0, end = size, prefix = ~0u;
    int i = 0;
    for (int bits = 1; bits <= c->longest; bits++) {
        for (int k = 0; k < c->count[bits]; k++, i++) {
            const uint32_t symbol = symbols[c->sorted[i]];
            if (bits <= root) {
                spread(table, code, 1u << bits, size, entry_of(symbol, (unsigned)bits));
            } else {
                if ((code & (size - 1)) != prefix) {
                    prefix = code & (size - 1);
                    table[prefix] = (uint32_t)end << 16 | ENTRY_ODD | ENTRY_LONG | second << 8 | (unsigned)root;
                    end += 1u << second;
                }
                spread(table + end - (1u << second), code >> root, 1u << (bits - root), 1u << second,
                       entry_of(symbol, (unsigned)(bits - root)));
            }
            code = next_code(code, bits);
        }
    }
}

/* Goes from the highest index down: what follows a literal is found at a lower index, which still has a single
 * literal. */
static void pair(uint32_t *table)
{
    for (unsigned i = 1 << LITERAL_BITS; i-- > 0;) {
        const uint32_t first = table[i], bits = first & 0xff;
        if (!(first & ENTRY_LITERAL))
            continue;
        const uint32_t then = table[i >> bits];
        if (then & ENTRY_LITERAL && (then & 0xff) + bits <= LITERAL_BITS)
            table[i] = (first & 0xff0000) | (then & 0xff0000) << 8 | ENTRY_LITERAL | 2 << 8 | (bits + (then & 0xff));
    }
}

#define VALUE(base, extra) ((uint32_t)(base) << 16 | (extra))

static void literal_symbols(uint32_t *to)
{
    static const uint16_t base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                      31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    for (unsigned i = 0; i < 256; i++)
        to[i] = i << 16 | ENTRY_LITERAL;
    to[END_SYMBOL] = ENTRY_ODD | ENTRY_END;
    for (unsigned i = 0; i < 29; i++)
        to[257 + i] = VALUE(base[i], i < 8 || i == 28 ? 0 : (i - 4) / 4);
    to[286] = to[287] = ENTRY_ODD;
}

bool inflate_literals(uint32_t *table, const uint8_t *lengths, int n)
{
    uint32_t symbols[MAX_SYMBOLS];
    struct code c;
    if (n <= END_SYMBOL || lengths[END_SYMBOL] == 0 || !sort(&c, lengths, n) || c.left != 0)
        return false;
    literal_symbols(symbols);
    fill(table, &c, LITERAL_BITS, symbols);
    pair(table);
    return true;
}

/* An incomplete code has no code, or a single one of 1 bit; the other bit is odd. */
bool inflate_distances(uint32_t *table, const uint8_t *lengths, int n)
{
    uint32_t symbols[32];
    struct code c;
    if (n > 32 || !sort(&c, lengths, n) || (c.left != 0 && c.longest > 1))
        return false;
    for (unsigned i = 0; i < 4; i++)
        symbols[i] = VALUE(i + 1, 0);
    for (unsigned i = 4; i < 30; i++)
        symbols[i] = VALUE(1 + ((2 + (i & 1)) << (i / 2 - 1)), i / 2 - 1);
    symbols[30] = symbols[31] = ENTRY_ODD;
    if (c.left != 0)
        spread(table, 0, 1, 1 << DISTANCE_BITS, ENTRY_ODD | 1);
    fill(table, &c, DISTANCE_BITS, symbols);
    return true;
}
