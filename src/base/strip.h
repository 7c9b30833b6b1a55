/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strip.h -- one stretch of memory, handed out in pieces that come back about in the order they went.
 *
 *     const int64_t p = strip_take(&s, n);       < 0: no room now
 *     ... strip_at(&s, p) ...                    n bytes, aligned to STRIP_ALIGN
 *     strip_give(&s, p);
 *
 * Without a lock of its own.
 */
#ifndef STRIP_H
#define STRIP_H

#include <stddef.h>
#include <stdint.h>

enum { STRIP_ALIGN = 4096 };

struct strip_piece;

struct strip {
    uint8_t *memory;
    size_t bytes, limit;        /* all there is; how much of it is used for now */
    struct strip_piece *pieces; /* number p is in pieces[p % n_pieces] */
    int64_t n_pieces;
    int64_t head, tail; /* the oldest that is out; the next to go out */
};

/* At most n_pieces out at a time. 0, or -1 when there is no memory. */
int strip_init(struct strip *s, size_t bytes, int64_t n_pieces);
void strip_done(struct strip *s); /* also zeroed, also twice */

int64_t strip_take(struct strip *s, size_t n);
void strip_give(struct strip *s, int64_t piece);
uint8_t *strip_at(const struct strip *s, int64_t piece);
/* Uses the first n bytes only, from now on: memory that is used again soon is still in the CPU's caches. */
void strip_limit(struct strip *s, size_t n);
size_t strip_room(const struct strip *s); /* the largest piece that could be taken now */

#endif
