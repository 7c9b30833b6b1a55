/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_huff.h -- tables that decode Huffman codes, and a store of them for one thread.
 */
#ifndef JPEG_HUFF_H
#define JPEG_HUFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HUFF_BITS = 10,    /* looked up at once, for AC */
    HUFF_MOST = 14,    /* bits that a look-up consumes, at most */
    HUFF_DC_BITS = 9,  /* looked up at once, for DC */
    HUFF_END = 128,    /* added to the index of the coefficient by the end of a block */
    HUFF_SYMBOLS = 256 /* at most */
};

/* Codes of any length. A code of `length` bits, shifted to 16, is below limit[length] and not below limit[length - 1].
 */
struct huff_codes {
    uint32_t limit[17];
    int32_t offset[17]; /* index of a code's symbol, minus the code */
    uint8_t symbols[HUFF_SYMBOLS];
};

/* Takes the next table off a DHT segment: *table is its class and slot, then the counts and symbols; NULL at the end.
 * Returns false if the segment is damaged. */
bool huff_next_table(const uint8_t **segment, size_t *n, const uint8_t **table);
/* From a table of a file: 16 counts, then as many symbols. Returns false if libjpeg would refuse it. */
bool huff_codes_make(struct huff_codes *c, const uint8_t *spec);
/* Whether libjpeg would accept such a table, for DC or AC. */
bool huff_is_good(const uint8_t *spec, bool dc);
/* Finds the code at the top of `bits`: its length, and its symbol << 8. Returns -1 if there is no such code. */
int huff_codes_find(const struct huff_codes *c, uint64_t bits);

/*
 * What the next HUFF_BITS bits hold: one or two coefficients. The first is complete; of the second at least the start
 * of its value is known. An entry, from its lowest bit on:
 *
 *      0 (6 bits)          bits of both, at most HUFF_MOST
 *      6 (2), 30 (2)       bits of the first alone
 *      8 (8), 16 (8)       how far the first, and both together, advance the index
 *     24 (6)               63 minus the count of bits of the second's value that are beyond the look-up, to be added
 *     32 (16), 48 (16)     the values
 *
 * A single coefficient is stored as the second; the first goes to the same place. The lowest byte is 0 if too little of
 * the value is known, or if it ends too far away (see huff_long). The whole entry is 0 if the code is longer.
 */
struct huff_ac {
    uint64_t pair[1 << HUFF_BITS];
    struct huff_codes codes;
};

/* The length of a code, and above it that of the value that follows; 0: the code is longer. */
struct huff_dc {
    uint16_t look[1 << HUFF_DC_BITS];
    struct huff_codes codes;
};

static inline unsigned huff_first_bits(uint64_t entry)
{
    return (unsigned)(entry >> 6 & 3) | (unsigned)(entry >> 28 & 12);
}

/* How far a symbol advances the index. */
static inline uint8_t huff_advance(uint8_t symbol)
{
    if (symbol & 15)
        return (uint8_t)((symbol >> 4) + 1);
    return symbol == 0xf0 ? 16 : HUFF_END;
}

/* A code without its value: 0, the advance, the bits of the value, and the bits of both. */
static inline uint32_t huff_long(unsigned length, uint8_t symbol)
{
    const unsigned size = symbol & 15;
    return (uint32_t)huff_advance(symbol) << 8 | size << 16 | (length + size) << 24;
}

/* From a table of a file, as huff_codes_make. */
bool huff_ac_make(struct huff_ac *t, const uint8_t *spec);
bool huff_dc_make(struct huff_dc *t, const uint8_t *spec);

/*
 * Tables that were made recently. Most photos bring their own, so few are kept. Those of the current image are never
 * among the oldest.
 */
struct huff_store;
struct huff_store *huff_store_new(void);    /* NULL: no memory */
void huff_store_free(struct huff_store *s); /* accepts NULL */
/* NULL: libjpeg would refuse the table. Valid until a dozen others have been asked for. */
const struct huff_ac *huff_store_ac(struct huff_store *s, const uint8_t *spec);
const struct huff_dc *huff_store_dc(struct huff_store *s, const uint8_t *spec);

#endif
