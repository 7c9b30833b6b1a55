/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fifo.c -- one block of memory, used as a ring.
 *
 *     |      head ... tail      |        slots follow each other,
 *     | tail        head ...    |        and start again at the front if the next does not fit
 *
 * A slot that returns early is freed after those before it. So there is no search and no fragmentation. This suits
 * bytes that are used in the order in which they are read.
 */
#include "read/fifo.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"

struct fifo_slot {
    size_t at, bytes;
    bool back;
};

int fifo_init(struct fifo *s, size_t bytes, int64_t n_slots)
{
    *s = (struct fifo){.n_slots = n_slots, .bytes = bytes / FIFO_ALIGN * FIFO_ALIGN};
    s->limit = s->bytes;
    s->memory = pages_new(s->bytes);
    s->slots = calloc((size_t)n_slots, sizeof *s->slots);
    if (s->memory && s->slots)
        return 0;
    fifo_done(s);
    return -1;
}

void fifo_done(struct fifo *s)
{
    pages_free(s->memory, s->bytes);
    free(s->slots);
    *s = (struct fifo){0};
}

static struct fifo_slot *slot_of(const struct fifo *s, int64_t slot)
{
    return &s->slots[slot % s->n_slots];
}

/* Offset and maximum size of the next slot. */
static size_t gap(const struct fifo *s, size_t *room)
{
    if (s->head == s->tail) {
        *room = s->limit;
        return 0;
    }
    const struct fifo_slot *last = slot_of(s, s->tail - 1);
    const size_t begin = slot_of(s, s->head)->at, end = last->at + last->bytes;
    if (end <= begin) { /* wraps around */
        *room = begin - end;
        return end;
    }
    const size_t after = end < s->limit ? s->limit - end : 0; /* the limit may be lower by now */
    const bool behind = after >= begin;
    *room = behind ? after : begin;
    return behind ? end : 0;
}

void fifo_limit(struct fifo *s, size_t n)
{
    const size_t whole = n / FIFO_ALIGN * FIFO_ALIGN;
    s->limit = whole < s->bytes ? whole : s->bytes;
}

size_t fifo_room(const struct fifo *s)
{
    size_t room = 0;
    if (s->tail - s->head < s->n_slots)
        gap(s, &room);
    return room;
}

int64_t fifo_take(struct fifo *s, size_t n)
{
    if (n == 0 || n > fifo_room(s))
        return -1;
    size_t room, at = gap(s, &room);
    *slot_of(s, s->tail) = (struct fifo_slot){.at = at, .bytes = (n + FIFO_ALIGN - 1) / FIFO_ALIGN * FIFO_ALIGN};
    return s->tail++;
}

void fifo_give(struct fifo *s, int64_t slot)
{
    slot_of(s, slot)->back = true;
    while (s->head < s->tail && slot_of(s, s->head)->back)
        s->head++;
}

uint8_t *fifo_at(const struct fifo *s, int64_t slot)
{
    return s->memory + slot_of(s, slot)->at;
}
