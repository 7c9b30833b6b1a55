/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strip.c -- one block of memory, used as a ring.
 *
 *     |      head ... tail      |        pieces follow each other,
 *     | tail        head ...    |        and start again at the front if the next does not fit
 *
 * A piece that returns early is freed after those before it. So there is no search and no fragmentation. This suits
 * bytes that are used in the order in which they are read.
 */
#include "base/strip.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"

struct strip_piece {
    size_t at, bytes;
    bool back;
};

int strip_init(struct strip *s, size_t bytes, int64_t n_pieces)
{
    *s = (struct strip){.n_pieces = n_pieces, .bytes = bytes / STRIP_ALIGN * STRIP_ALIGN};
    s->limit = s->bytes;
    s->memory = pages_new(s->bytes);
    s->pieces = calloc((size_t)n_pieces, sizeof *s->pieces);
    if (s->memory && s->pieces)
        return 0;
    strip_done(s);
    return -1;
}

void strip_done(struct strip *s)
{
    pages_free(s->memory, s->bytes);
    free(s->pieces);
    *s = (struct strip){0};
}

static struct strip_piece *piece_of(const struct strip *s, int64_t piece)
{
    return &s->pieces[piece % s->n_pieces];
}

/* Offset and maximum size of the next piece. */
static size_t gap(const struct strip *s, size_t *room)
{
    if (s->head == s->tail) {
        *room = s->limit;
        return 0;
    }
    const struct strip_piece *last = piece_of(s, s->tail - 1);
    const size_t begin = piece_of(s, s->head)->at, end = last->at + last->bytes;
    if (end <= begin) { /* wraps around */
        *room = begin - end;
        return end;
    }
    const size_t after = end < s->limit ? s->limit - end : 0; /* the limit may be lower by now */
    const bool behind = after >= begin;
    *room = behind ? after : begin;
    return behind ? end : 0;
}

void strip_limit(struct strip *s, size_t n)
{
    const size_t whole = n / STRIP_ALIGN * STRIP_ALIGN;
    s->limit = whole < s->bytes ? whole : s->bytes;
}

size_t strip_room(const struct strip *s)
{
    size_t room = 0;
    if (s->tail - s->head < s->n_pieces)
        gap(s, &room);
    return room;
}

int64_t strip_take(struct strip *s, size_t n)
{
    if (n == 0 || n > strip_room(s))
        return -1;
    size_t room, at = gap(s, &room);
    *piece_of(s, s->tail) = (struct strip_piece){.at = at, .bytes = (n + STRIP_ALIGN - 1) / STRIP_ALIGN * STRIP_ALIGN};
    return s->tail++;
}

void strip_give(struct strip *s, int64_t piece)
{
    piece_of(s, piece)->back = true;
    while (s->head < s->tail && piece_of(s, s->head)->back)
        s->head++;
}

uint8_t *strip_at(const struct strip *s, int64_t piece)
{
    return s->memory + piece_of(s, piece)->at;
}
