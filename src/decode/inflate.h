/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate.h -- decompresses a zlib stream that comes in pieces, fast, and only as far as needed.
 *
 *     inflate_begin(&z, next, user)
 *     inflate_run(&z, out, &at, want)     until out[0..at) has at least `want` bytes, or the stream ends
 *     inflate_end(&z, &sum)               after INFLATE_END
 *
 * It is stricter than zlib: it refuses everything that zlib refuses, and some of what zlib accepts. It never has the
 * last word, so it has no error messages: after INFLATE_ODD another decoder decides.
 */
#ifndef INFLATE_H
#define INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INFLATE_WINDOW = 32768, /* bytes before out[at] that the stream may refer to */
    INFLATE_SLACK = 320,    /* room after out[want]: output may run over, or be overwritten there */
    LITERAL_BITS = 11,
    DISTANCE_BITS = 9,
    /* Longer codes have a second table of 2^(15 - bits) entries, for at least two codes. */
    LITERAL_TABLE = (1 << LITERAL_BITS) + 286 / 2 * (1 << (15 - LITERAL_BITS)),
    DISTANCE_TABLE = (1 << DISTANCE_BITS) + 30 / 2 * (1 << (15 - DISTANCE_BITS)),
};

enum inflate_state { INFLATE_MORE, INFLATE_END, INFLATE_ODD };

/* Sets *p and *n to the next piece of input. Returns false if there is none. */
typedef bool inflate_next(void *user, const uint8_t **p, size_t *n);

struct inflate {
    inflate_next *next;
    void *user;
    const uint8_t *in, *in_end;
    uint64_t bits;   /* the next one is the lowest */
    unsigned n_bits; /* count of valid bits; those above are 0 */
    int block;       /* kind of the current block */
    bool last;       /* the current block is the last one */
    size_t stored;   /* bytes left in a stored block */
    uint32_t literals[LITERAL_TABLE], distances[DISTANCE_TABLE];
};

void inflate_begin(struct inflate *z, inflate_next *next, void *user);
/* out[0] is the first byte that the stream may refer to. */
enum inflate_state inflate_run(struct inflate *z, uint8_t *out, size_t *at, size_t want);
/* Reads the checksum after the stream. Returns false if it is missing, or if its piece has more bytes. */
bool inflate_end(struct inflate *z, uint32_t *sum);

/* For inflate.c. */
enum {
    ENTRY_LITERAL = 1 << 15,
    ENTRY_ODD = 1 << 14, /* not a literal, length or distance: */
    ENTRY_LONG = 1 << 13,
    ENTRY_END = 1 << 12,
};
/* Fills a table from the lengths of codes. Returns false if zlib would refuse them. */
bool inflate_literals(uint32_t *table, const uint8_t *lengths, int n);
bool inflate_distances(uint32_t *table, const uint8_t *lengths, int n);

#endif
