/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.c -- the pieces that were used last stay.
 *
 * The table is the lock's; the bytes of a pinned piece are whoever's has it pinned.
 */
#include "format/pieces.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"

enum { PIECES_MIN = 4 };

struct pieces {
    pthread_mutex_t lock;
    pthread_cond_t unpinned;
    uint64_t clock;
    int n, n_had;
    struct piece of[];
};

struct pieces *pieces_new(size_t bytes)
{
    const size_t n = bytes / PIECE_BYTES < PIECES_MIN ? PIECES_MIN : bytes / PIECE_BYTES;
    struct pieces *c = calloc(1, sizeof *c + n * sizeof c->of[0]);
    if (!c)
        return NULL;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->unpinned, NULL);
    c->n = (int)n;
    return c;
}

void pieces_free(struct pieces *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->n; i++)
        pages_free(c->of[i].bytes, PIECE_BYTES);
    pthread_cond_destroy(&c->unpinned);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

struct piece *pieces_find(struct pieces *c, const void *owner, int64_t number)
{
    struct piece *found = NULL;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < c->n && !found; i++)
        if (c->of[i].owner == owner && c->of[i].number == number)
            found = &c->of[i];
    if (found) {
        found->pins++;
        found->used = ++c->clock;
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

void pieces_unpin(struct pieces *c, struct piece *p)
{
    pthread_mutex_lock(&c->lock);
    if (--p->pins == 0)
        pthread_cond_signal(&c->unpinned);
    pthread_mutex_unlock(&c->lock);
}

static struct piece *oldest(struct pieces *c)
{
    struct piece *p = NULL;
    for (int i = 0; i < c->n; i++)
        if (c->of[i].pins == 0 && (!p || c->of[i].used < p->used))
            p = &c->of[i];
    return p;
}

struct piece *pieces_take(struct pieces *c)
{
    pthread_mutex_lock(&c->lock);
    struct piece *p;
    while (!(p = oldest(c)))
        pthread_cond_wait(&c->unpinned, &c->lock);
    p->pins = 1;
    p->owner = NULL;
    const bool first = !p->bytes && (p->bytes = pages_new(PIECE_BYTES)) != NULL;
    c->n_had += first;
    pthread_mutex_unlock(&c->lock);
    if (p->bytes)
        return p;
    pieces_unpin(c, p);
    return NULL;
}

size_t pieces_held(struct pieces *c)
{
    pthread_mutex_lock(&c->lock);
    const size_t n = (size_t)c->n_had;
    pthread_mutex_unlock(&c->lock);
    return n * PIECE_BYTES;
}

size_t pieces_most(const struct pieces *c)
{
    return (size_t)c->n * PIECE_BYTES;
}

void pieces_publish(struct pieces *c, struct piece *p, const void *owner, int64_t number, size_t n)
{
    pthread_mutex_lock(&c->lock);
    p->owner = owner;
    p->number = number;
    p->n = n;
    p->used = ++c->clock;
    pthread_mutex_unlock(&c->lock);
}

void pieces_forget(struct pieces *c, const void *owner)
{
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < c->n; i++)
        if (c->of[i].owner == owner)
            c->of[i].owner = NULL;
    pthread_mutex_unlock(&c->lock);
}
