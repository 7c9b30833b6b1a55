/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strip.h -- one block of memory, handed out in pieces that return roughly in the order they were taken.
 *
 *     const int64_t p = strip_take(&s, n);       < 0: no room now
 *     ... strip_at(&s, p) ...                    n bytes, aligned to STRIP_ALIGN
 *     strip_give(&s, p);
 *
 * The caller locks.
 */
#ifndef STRIP_H
#define STRIP_H

#include <stddef.h>
#include <stdint.h>

enum { STRIP_ALIGN = 4096 };

struct strip_piece;

struct strip {
    uint8_t *memory;
    size_t bytes, limit;        /* allocated; in use for now */
    struct strip_piece *pieces; /* piece p is pieces[p % n_pieces] */
    int64_t n_pieces;
    int64_t head, tail; /* the oldest piece that is taken; the next to be taken */
};

/* At most n_pieces are taken at a time. 0, or -1: no memory. */
int strip_init(struct strip *s, size_t bytes, int64_t n_pieces);
void strip_done(struct strip *s); /* also zeroed, also twice */

int64_t strip_take(struct strip *s, size_t n);
void strip_give(struct strip *s, int64_t piece);
uint8_t *strip_at(const struct strip *s, int64_t piece);
/* From now on uses the first n bytes only. Memory that is reused soon is still in the CPU's caches. */
void strip_limit(struct strip *s, size_t n);
size_t strip_room(const struct strip *s); /* the largest piece that could be taken now */

#endif
