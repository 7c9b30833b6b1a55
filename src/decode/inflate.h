/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate.h -- decompresses a zlib stream that lies in pieces, quickly, and only as far as it is wanted.
 *
 *     inflate_begin(&z, next, user)
 *     inflate_run(&z, out, &at, want)     until out[0..at) has at least `want` bytes, or the stream ends
 *     inflate_end(&z, &sum)               after INFLATE_END
 *
 * It is stricter than zlib: what zlib refuses it refuses, and some of what zlib takes, since it is never
 * the last to judge. So it needs no words for what is wrong: INFLATE_ODD, and another has to look.
 */
#ifndef INFLATE_H
#define INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INFLATE_WINDOW = 32768, /* bytes in front of out[at] that the stream may refer to */
    INFLATE_SLACK = 320,    /* room behind out[want]: a run may end as much later, or write there */
    LITERAL_BITS = 11,
    DISTANCE_BITS = 9,
    /* Codes longer than that have a second table, of 2^(15 - bits), for at least two of them. */
    LITERAL_TABLE = (1 << LITERAL_BITS) + 286 / 2 * (1 << (15 - LITERAL_BITS)),
    DISTANCE_TABLE = (1 << DISTANCE_BITS) + 30 / 2 * (1 << (15 - DISTANCE_BITS)),
};

enum inflate_state { INFLATE_MORE, INFLATE_END, INFLATE_ODD };

/* The next piece of input; false when there is none, whatever became of *p. */
typedef bool inflate_next(void *user, const uint8_t **p, size_t *n);

struct inflate {
    inflate_next *next;
    void *user;
    const uint8_t *in, *in_end;
    uint64_t bits;   /* those to come next are the lowest */
    unsigned n_bits; /* that count; what lies above is 0 */
    int block;       /* kind of block it is in */
    bool last;       /* which is the last one */
    size_t stored;   /* bytes to come of a block that is stored */
    uint32_t literals[LITERAL_TABLE], distances[DISTANCE_TABLE];
};

void inflate_begin(struct inflate *z, inflate_next *next, void *user);
/* out[0] is the first byte that may be referred to. */
enum inflate_state inflate_run(struct inflate *z, uint8_t *out, size_t *at, size_t want);
/* The checksum behind the stream; false when it is missing, or more follows in its piece. */
bool inflate_end(struct inflate *z, uint32_t *sum);

/* For inflate.c. */
enum {
    ENTRY_LITERAL = 1 << 15,
    ENTRY_ODD = 1 << 14, /* none of the ordinary: */
    ENTRY_LONG = 1 << 13,
    ENTRY_END = 1 << 12,
};
/* Fills a table with the codes of the lengths; false when they make no code that zlib would take. */
bool inflate_literals(uint32_t *table, const uint8_t *lengths, int n);
bool inflate_distances(uint32_t *table, const uint8_t *lengths, int n);

#endif
