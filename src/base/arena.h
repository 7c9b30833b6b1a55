/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h -- scratch memory of one thread: reserved once, handed out in order, reset per sample.
 *
 * A stage says beforehand what it needs; the worker reserves the sum, so that arena_alloc cannot
 * fail for a stage that kept its word (then it returns NULL, and the stage reports STK_EBUG).
 */
#ifndef ARENA_H
#define ARENA_H

#include <stddef.h>
#include <stdint.h>

enum { ARENA_ALIGN = 64, ARENA_SLACK = 64 };

struct arena {
    uint8_t *base;
    size_t used, cap;
    size_t recent; /* the most that was reserved lately, less than half of cap */
    int calm;      /* how many times in a row */
};

/* What arena_alloc(n) takes from an arena: n rounded up, with slack. Saturates at SIZE_MAX. */
size_t arena_cost(size_t n);
/* Makes room for n bytes in all and forgets what was in it; 0, or -1 when there is no memory. */
int arena_reserve(struct arena *a, size_t n);
/* Aligned to 64 bytes, followed by 64 readable bytes. NULL when it does not fit. */
void *arena_alloc(struct arena *a, size_t n);
/* Frees; also a zeroed one, also twice. */
void arena_done(struct arena *a);

/* Pages straight from the system, zeroed, given back at once when freed. NULL when there are none. */
void *pages_new(size_t bytes);
/* The same for what is large and will be filled: of huge pages, where the system has them, which costs a fifth of the
 * time when they are touched first. */
void *pages_new_large(size_t bytes);
void pages_free(void *p, size_t bytes);

#endif
