/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h -- scratch memory of one thread: reserved once, handed out in order, reset per sample.
 *
 * Each stage states beforehand what it needs, and the worker reserves the sum. If a stage allocates more than it
 * stated, arena_alloc() returns NULL and the stage reports STK_EBUG.
 */
#ifndef ARENA_H
#define ARENA_H

#include <stddef.h>
#include <stdint.h>

enum { ARENA_ALIGN = 64, ARENA_SLACK = 64 };

struct arena {
    uint8_t *base;
    size_t used, cap;
    size_t recent; /* the largest recent reservation, if below half of cap */
    int calm;      /* consecutive reservations below half of cap */
};

/* Bytes that arena_alloc(n) takes: n rounded up, plus slack. Saturates at SIZE_MAX. */
size_t arena_cost(size_t n);
/* Discards the content and makes room for n bytes. 0, or -1: no memory. */
int arena_reserve(struct arena *a, size_t n);
/* Aligned to 64 bytes and followed by 64 readable bytes. NULL: it does not fit. */
void *arena_alloc(struct arena *a, size_t n);
/* The arena may be zeroed, or freed already. */
void arena_done(struct arena *a);

/* Zeroed pages from the system. Freeing returns them to the system at once. NULL: no memory. */
void *pages_new(size_t bytes);
/* For large memory that will be filled: asks for huge pages. Touching those first takes a fifth of the time. */
void *pages_new_large(size_t bytes);
void pages_free(void *p, size_t bytes);

#endif
