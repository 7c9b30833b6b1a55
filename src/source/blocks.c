/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.c -- blocks in shuffled order, windows shuffled.
 *
 *     blocks, in order:     |  4  |    1    | 3 |   0   |  2  |
 *     windows:              |   .   |   .   |   .   |   .   |.|        a position is moved inside of its window alone
 *
 * Windows go across the blocks' ends. So from one window to the next no more is in use than two windows' samples.
 */
#include "source/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/search.h"

static int64_t block_of(const struct blocks *b, int64_t sample)
{
    return search_last(b->starts, sizeof *b->starts, b->n, sample);
}

/* A block ends where the next sample lies in another one. */
int blocks_init(struct blocks *b, const struct blocks *all, const int64_t *subset, int64_t n)
{
    *b = (struct blocks){.window = all->window};
    int64_t most = subset ? n : all->n;
    b->starts = malloc((size_t)(most + 1) * sizeof *b->starts);
    if (!b->starts)
        return -1;
    for (int64_t i = 0, last = -1; i < n;) {
        const int64_t sample = subset ? subset[i] : i, block = block_of(all, sample);
        if (block != last)
            b->starts[b->n++] = i;
        last = block;
        i = subset ? i + 1 : all->starts[block + 1];
    }
    b->starts[b->n] = n;
    return 0;
}

/* What has no blocks is cut into windows. */
static int64_t n_blocks(const struct blocks *part, int64_t samples, int64_t window)
{
    return part ? part->n : (samples + window - 1) / window;
}

static int64_t least_window(const struct blocks *const *parts, int n)
{
    int64_t window = INT64_MAX;
    for (int i = 0; i < n; i++)
        window = parts[i] && parts[i]->window < window ? parts[i]->window : window;
    return window;
}

int blocks_join(struct blocks *b, const struct blocks *const *parts, const int64_t *first, int n)
{
    *b = (struct blocks){.window = least_window(parts, n)};
    if (b->window == INT64_MAX)
        return 0;
    int64_t all = 0;
    for (int i = 0; i < n; i++)
        all += n_blocks(parts[i], first[i + 1] - first[i], b->window);
    b->starts = malloc((size_t)(all + 1) * sizeof *b->starts);
    if (!b->starts)
        return -1;
    for (int i = 0; i < n; i++) {
        const int64_t more = n_blocks(parts[i], first[i + 1] - first[i], b->window);
        for (int64_t k = 0; k < more; k++)
            b->starts[b->n++] = first[i] + (parts[i] ? parts[i]->starts[k] : k * b->window);
    }
    b->starts[b->n] = first[n];
    return 0;
}

void blocks_done(struct blocks *b)
{
    free(b->starts);
    *b = (struct blocks){0};
}

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

/* Moves a position inside of its window. */
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

static int64_t find(const struct blocks *b, const struct blocks_walk *w, int64_t at)
{
    return search_last(w->begins, sizeof *w->begins, b->n, at);
}

int64_t blocks_at(const struct blocks *b, struct blocks_walk *w, uint64_t seed, int64_t pass, int64_t i)
{
    if (w->pass != pass || w->order.n == 0)
        begin_pass(b, w, seed, pass);
    int64_t at = move(b, w, seed, i), first, k = 0;
    if (w->begins) {
        k = find(b, w, at);
        at -= w->begins[k];
    }
    for (int64_t size; (size = size_at(b, w, k, &first)) <= at; k++)
        at -= size;
    return first + at;
}
