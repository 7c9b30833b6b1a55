/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fifo.h -- one block of memory, handed out in slots that return roughly in the order they were taken.
 *
 *     const int64_t p = fifo_take(&s, n);       < 0: no room now
 *     ... fifo_at(&s, p) ...                    n bytes, aligned to FIFO_ALIGN
 *     fifo_give(&s, p);
 *
 * The caller locks.
 */
#ifndef FIFO_H
#define FIFO_H

#include <stddef.h>
#include <stdint.h>

enum { FIFO_ALIGN = 4096 };

struct fifo_slot;

struct fifo {
    uint8_t *memory;
    size_t bytes, limit;     /* allocated; in use for now */
    struct fifo_slot *slots; /* slot p is slots[p % n_slots] */
    int64_t n_slots;
    int64_t head, tail; /* the oldest slot that is taken; the next to be taken */
};

/* At most n_slots are taken at a time. 0, or -1: no memory. */
int fifo_init(struct fifo *s, size_t bytes, int64_t n_slots);
void fifo_done(struct fifo *s); /* accepts a zeroed struct; may be called twice */

int64_t fifo_take(struct fifo *s, size_t n);
void fifo_give(struct fifo *s, int64_t slot);
uint8_t *fifo_at(const struct fifo *s, int64_t slot);
/* From now on uses the first n bytes only. Memory that is reused soon is still in the CPU's caches. */
void fifo_limit(struct fifo *s, size_t n);
size_t fifo_room(const struct fifo *s); /* the largest slot that could be taken now */

#endif
