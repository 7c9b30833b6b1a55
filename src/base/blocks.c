/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.c -- blocks of samples: those of a subset, and those of joined sources.
 */
#include "base/blocks.h"

#include <stdlib.h>

#include "base/search.h"

/* A block ends where the next sample belongs to another one. */
int blocks_init(struct blocks *b, const struct blocks *all, const int64_t *subset, int64_t n)
{
    *b = (struct blocks){.window = all->window};
    int64_t most = subset ? n : all->n;
    b->starts = malloc((size_t)(most + 1) * sizeof *b->starts);
    if (!b->starts)
        return -1;
    for (int64_t i = 0, last = -1; i < n;) {
        const int64_t block = search_last(all->starts, sizeof *all->starts, all->n, subset ? subset[i] : i);
        if (block != last)
            b->starts[b->n++] = i;
        last = block;
        i = subset ? i + 1 : all->starts[block + 1];
    }
    b->starts[b->n] = n;
    return 0;
}

/* A source without blocks is divided into windows. */
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
