/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.c -- a cache of decompressed pieces.
 *
 * Invariants:
 *   (1) the lock protects all members of all pieces, except the bytes of a pinned piece.
 *   (2) a piece is being filled by one thread (filling, pins == 1), or ready (owner), or neither.
 *   (3) held is the sum of room, and at most `most` after every call that allocates.
 */
#include "format/pieces.h"

#include <pthread.h>
#include <stdlib.h>

struct pieces {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a piece was published, discarded or unpinned */
    int waiting;
    uint64_t clock;
    size_t held, most;
    int n;
    struct piece of[];
};

struct pieces *pieces_new(int slots, size_t most)
{
    struct pieces *c = calloc(1, sizeof *c + (size_t)slots * sizeof c->of[0]);
    if (!c)
        return NULL;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->n = slots;
    c->most = most;
    return c;
}

void pieces_free(struct pieces *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->n; i++)
        free(c->of[i].bytes);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void pieces_limit(struct pieces *c, size_t most)
{
    pthread_mutex_lock(&c->lock);
    c->most = most;
    pthread_mutex_unlock(&c->lock);
}

void pieces_memory(struct pieces *c, size_t *held, size_t *most)
{
    pthread_mutex_lock(&c->lock);
    *held = c->held;
    *most = c->most;
    pthread_mutex_unlock(&c->lock);
}

/* ------------------------------------------------------------------ with the lock held */

static void wait(struct pieces *c)
{
    c->waiting++;
    pthread_cond_wait(&c->changed, &c->lock);
    c->waiting--;
}

static void wake(struct pieces *c)
{
    if (c->waiting > 0)
        pthread_cond_broadcast(&c->changed);
}

static struct piece *find(struct pieces *c, const void *owner, int64_t index)
{
    for (int i = 0; i < c->n; i++)
        if (c->of[i].owner == owner && c->of[i].index == index)
            return &c->of[i];
    return NULL;
}

static struct piece *find_ready(struct pieces *c, const void *owner, int64_t index)
{
    struct piece *p;
    while ((p = find(c, owner, index)) && p->filling)
        wait(c);
    if (p) {
        p->pins++;
        p->used = ++c->clock;
    }
    return p;
}

/* Of the pieces that are not pinned. */
static struct piece *oldest(struct pieces *c, bool allocated)
{
    struct piece *best = NULL;
    for (int i = 0; i < c->n; i++) {
        struct piece *p = &c->of[i];
        if (p->pins == 0 && (p->room > 0 || !allocated) && (!best || p->used < best->used))
            best = p;
    }
    return best;
}

static void drop(struct pieces *c, struct piece *p)
{
    c->held -= p->room;
    free(p->bytes);
    *p = (struct piece){0};
}

/* Returns a piece that may have `bytes`, after dropping others for it. NULL: too many are pinned. */
static struct piece *make_room(struct pieces *c, size_t bytes)
{
    struct piece *p, *other;
    if (bytes > c->most)
        return NULL;
    while ((p = oldest(c, false)) && c->held - p->room > c->most - bytes) {
        if (!(other = oldest(c, true)))
            return NULL;
        drop(c, other);
    }
    return p;
}

static struct piece *reserve(struct pieces *c, struct piece *p, const void *owner, int64_t index, size_t bytes)
{
    if (p->room != bytes) {
        drop(c, p);
        if (!(p->bytes = malloc(bytes)))
            return NULL;
        p->room = bytes;
        c->held += bytes;
    }
    p->owner = owner;
    p->index = index;
    p->pins = 1;
    p->filling = true;
    return p;
}

/* ------------------------------------------------------------------ for callers */

struct piece *pieces_find(struct pieces *c, const void *owner, int64_t index)
{
    pthread_mutex_lock(&c->lock);
    struct piece *p = find_ready(c, owner, index);
    pthread_mutex_unlock(&c->lock);
    return p;
}

struct piece *pieces_get(struct pieces *c, const void *owner, int64_t index, size_t bytes, bool *mine)
{
    pthread_mutex_lock(&c->lock);
    struct piece *p = find_ready(c, owner, index);
    *mine = !p && (p = make_room(c, bytes)) && (p = reserve(c, p, owner, index, bytes));
    pthread_mutex_unlock(&c->lock);
    return p;
}

struct piece *pieces_take(struct pieces *c, size_t bytes)
{
    struct piece *p;
    pthread_mutex_lock(&c->lock);
    while (!(p = make_room(c, bytes)))
        wait(c);
    p = reserve(c, p, NULL, 0, bytes);
    pthread_mutex_unlock(&c->lock);
    return p;
}

void pieces_publish(struct pieces *c, struct piece *p, const void *owner, int64_t index, size_t n)
{
    pthread_mutex_lock(&c->lock);
    p->owner = owner;
    p->index = index;
    p->n = n;
    p->filling = false;
    p->used = ++c->clock;
    wake(c);
    pthread_mutex_unlock(&c->lock);
}

void pieces_unpin(struct pieces *c, struct piece *p)
{
    pthread_mutex_lock(&c->lock);
    p->pins--;
    if (p->filling) {
        p->filling = false;
        p->owner = NULL;
        p->used = 0;
    }
    if (p->pins == 0)
        wake(c);
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
