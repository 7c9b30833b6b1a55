/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.h -- stretches of unpacked bytes, kept until others need the room.
 *
 *     struct piece *p = pieces_find(c, owner, 7);      pinned, or NULL
 *     if (!p) { p = pieces_take(c); ...; pieces_publish(c, p, owner, 7, n); }
 *     ... p->bytes, p->n ...
 *     pieces_unpin(c, p);
 *
 * From any thread. While a piece is pinned it stays as it is; nobody waits for anything with a piece pinned, but for
 * storage: so pieces_take, which may have to wait for one, comes to its end.
 */
#ifndef PIECES_H
#define PIECES_H

#include <stddef.h>
#include <stdint.h>

enum { PIECE_BYTES = 1 << 20 };

struct piece {
    const void *owner; /* NULL: none; found by nobody */
    int64_t number;
    size_t n; /* of PIECE_BYTES */
    int pins;
    uint64_t used;
    uint8_t *bytes; /* had when first needed */
};

struct pieces;
struct pieces *pieces_new(size_t bytes); /* NULL: no memory */
void pieces_free(struct pieces *c);      /* also NULL */
/* Bytes of those that were had so far, and of all. */
size_t pieces_held(struct pieces *c);
size_t pieces_most(const struct pieces *c);

struct piece *pieces_find(struct pieces *c, const void *owner, int64_t number);
/* The one that was not used for the longest time, to be filled; NULL: no memory. */
struct piece *pieces_take(struct pieces *c);
/* It is filled: others may find it. It stays pinned. */
void pieces_publish(struct pieces *c, struct piece *p, const void *owner, int64_t number, size_t n);
void pieces_unpin(struct pieces *c, struct piece *p);
/* Nobody will find those of this owner. */
void pieces_forget(struct pieces *c, const void *owner);

#endif
