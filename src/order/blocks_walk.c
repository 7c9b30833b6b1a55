/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks_walk.c -- shuffles the order of blocks, and the samples within each window.
 *
 *     blocks, in shuffled order:  |  4  |    1    | 3 |   0   |  2  |
 *     windows:                    |       |       |       |       | |
 *
 * A sample moves only inside its window. Windows cross the boundaries of blocks, so at any time the samples in use are
 * from at most two windows.
 */
#include "order/blocks_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/search.h"

void blocks_walk_init(struct blocks_walk *w, const struct blocks *b)
{
    *w = (struct blocks_walk){.pass = -1};
    w->begins = b->n > 0 ? malloc((size_t)b->n * sizeof *w->begins) : NULL;
}

void blocks_walk_done(struct blocks_walk *w)
{
    free(w->begins);
    w->begins = NULL;
}

static int64_t size_at(const struct blocks *b, const struct blocks_walk *w, int64_t k, int64_t *first)
{
    const int64_t block = (int64_t)perm_at(&w->order, (uint64_t)k);
    *first = b->starts[block];
    return b->starts[block + 1] - *first;
}

static void begin_pass(const struct blocks *b, struct blocks_walk *w, uint64_t seed, int64_t pass)
{
    perm_init(&w->order, (uint64_t)b->n, seed, (uint64_t)pass);
    w->pass = pass;
    w->near = -1;
    int64_t at = 0, first;
    for (int64_t k = 0; w->begins && k < b->n; k++) {
        w->begins[k] = at;
        at += size_at(b, w, k, &first);
    }
}

/* Moves a position within its window. */
static int64_t move(const struct blocks *b, struct blocks_walk *w, uint64_t seed, int64_t i)
{
    const int64_t near = i / b->window, begin = near * b->window, left = b->starts[b->n] - begin;
    if (w->near != near) {
        const uint64_t n = (uint64_t)(left < b->window ? left : b->window);
        perm_init(&w->within, n, hash_mix(seed, (uint64_t)near), (uint64_t)w->pass);
        w->near = near;
    }
    return begin + (int64_t)perm_at(&w->within, (uint64_t)(i - begin));
}

int64_t blocks_at(const struct blocks *b, struct blocks_walk *w, uint64_t seed, int64_t pass, int64_t i)
{
    if (w->pass != pass || w->order.n == 0)
        begin_pass(b, w, seed, pass);
    int64_t at = move(b, w, seed, i), first, k = 0;
    if (w->begins) {
        k = search_last(w->begins, sizeof *w->begins, b->n, at);
        at -= w->begins[k];
    }
    for (int64_t size; (size = size_at(b, w, k, &first)) <= at; k++)
        at -= size;
    return first + at;
}
