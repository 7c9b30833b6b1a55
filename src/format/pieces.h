/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.h -- a cache of decompressed pieces: stretches of a stream, chunks of an HDF5 dataset. The piece that was not
 * used for the longest time makes room for another.
 *
 *     bool mine;
 *     struct piece *p = pieces_get(c, owner, 7, bytes, &mine);    pinned; NULL: no room
 *     if (mine) { ... fill p->bytes ...; pieces_publish(c, p, owner, 7, n); }
 *     ... use p->bytes, p->n ...
 *     pieces_unpin(c, p);
 *
 * All functions may be called from any thread. A pinned piece does not change. A thread that has pinned a piece must
 * not wait for another piece; otherwise pieces_take() could wait forever.
 */
#ifndef PIECES_H
#define PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct piece {
    const void *owner; /* with index, the key; NULL: the piece cannot be found */
    int64_t index;
    uint8_t *bytes;
    size_t n;    /* bytes that are filled */
    size_t room; /* bytes that are allocated */
    int pins;
    bool filling;
    uint64_t used; /* time of the last use; 0: never */
};

struct pieces;
/* At most `slots` pieces with at most `most` bytes together. NULL: no memory. */
struct pieces *pieces_new(int slots, size_t most);
void pieces_free(struct pieces *c); /* accepts NULL */
void pieces_limit(struct pieces *c, size_t most);
/* Bytes that are allocated now, and the limit. */
void pieces_memory(struct pieces *c, size_t *held, size_t *most);

/* Returns the piece, pinned, or NULL. Waits while another thread fills it. */
struct piece *pieces_find(struct pieces *c, const void *owner, int64_t index);
/* Like pieces_find(), but reserves a piece if there is none: then *mine is true, and the caller fills it and publishes
 * it. NULL: the other pieces are pinned, the limit is too small, or there is no memory. */
struct piece *pieces_get(struct pieces *c, const void *owner, int64_t index, size_t bytes, bool *mine);
/* Returns a piece to fill whose key is not known yet. Waits until there is room; bytes must not exceed the limit.
 * NULL: no memory. */
struct piece *pieces_take(struct pieces *c, size_t bytes);
/* Lets others find a piece that has been filled. It stays pinned. */
void pieces_publish(struct pieces *c, struct piece *p, const void *owner, int64_t index, size_t n);
/* A piece that was reserved but not published is discarded. */
void pieces_unpin(struct pieces *c, struct piece *p);
/* Makes the pieces of this owner impossible to find. */
void pieces_forget(struct pieces *c, const void *owner);

#endif
