/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_cache.c -- what streams share: the pieces, and the memory of their decompressors, for which they take turns.
 */
#include <stdlib.h>

#include "base/error.h"
#include "format/stream_inner.h"

enum { PIECES_LEAST = 4 };

struct stream_cache *stream_cache_new(size_t kept, size_t work)
{
    struct stream_cache *c = calloc(1, sizeof *c);
    const int n = kept / STREAM_PIECE < PIECES_LEAST ? PIECES_LEAST : (int)(kept / STREAM_PIECE);
    if (!c || !(c->pieces = pieces_new(n, (size_t)n * STREAM_PIECE))) {
        free(c);
        return NULL;
    }
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->rested, NULL);
    c->most = work > STREAM_WORK_MOST ? STREAM_WORK_MOST : work < STREAM_WORK_LEAST ? STREAM_WORK_LEAST : work;
    return c;
}

void stream_cache_memory(struct stream_cache *c, size_t *held, size_t *most)
{
    pieces_memory(c->pieces, held, most);
    pthread_mutex_lock(&c->lock);
    *held += c->cost;
    *most += c->most;
    pthread_mutex_unlock(&c->lock);
}

void stream_cache_free(struct stream_cache *c)
{
    if (!c)
        return;
    pieces_free(c->pieces);
    pthread_cond_destroy(&c->rested);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ------------------------------------------------------------------ decompressors */

static void leave(struct stream *s)
{
    struct stream_cache *c = s->cache;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < STREAM_OPEN; i++)
        if (c->open[i] == s)
            c->open[i] = NULL;
    c->cost -= s->cost;
    s->cost = 0;
    pthread_cond_broadcast(&c->rested);
    pthread_mutex_unlock(&c->lock);
}

void stream_close_decompressor(struct stream *s)
{
    if (!decompress_is_open(&s->decompressor))
        return;
    decompress_close(&s->decompressor);
    free(s->input);
    s->input = NULL;
    leave(s);
}

void stream_let_go(struct stream *s)
{
    struct stream_cache *c = s->cache;
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_lock(&c->lock);
    if (c->waiting > 0)
        pthread_cond_broadcast(&c->rested);
    pthread_mutex_unlock(&c->lock);
}

/* Adds s to the open streams, if there is room. */
static bool admit(struct stream_cache *c, struct stream *s)
{
    for (int i = 0; i < STREAM_OPEN && s->need <= c->most - c->cost; i++)
        if (!c->open[i]) {
            c->open[i] = s;
            s->opened = ++c->clock;
            s->cost = s->need;
            c->cost += s->cost;
            return true;
        }
    return false;
}

/* Returns, locked, the stream whose decompressor was opened first, of those that no thread is using. NULL: none. */
static struct stream *find_idle(const struct stream_cache *c)
{
    struct stream *best = NULL;
    for (int i = 0; i < STREAM_OPEN; i++) {
        struct stream *r = c->open[i];
        if (!r || r->stays || (best && r->opened > best->opened) || pthread_mutex_trylock(&r->lock) != 0)
            continue;
        if (best)
            pthread_mutex_unlock(&best->lock);
        best = r;
    }
    return best;
}

/* Closes a decompressor, or waits for another thread to finish. Releases the cache's lock meanwhile. */
static void make_room(struct stream_cache *c)
{
    struct stream *r = find_idle(c);
    if (!r) {
        c->waiting++;
        pthread_cond_wait(&c->rested, &c->lock);
        c->waiting--;
        return;
    }
    pthread_mutex_unlock(&c->lock);
    stream_close_decompressor(r);
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_lock(&c->lock);
}

static void enter(struct stream *s)
{
    struct stream_cache *c = s->cache;
    pthread_mutex_lock(&c->lock);
    while (!admit(c, s))
        make_room(c);
    pthread_mutex_unlock(&c->lock);
}

int stream_open_decompressor(struct stream *s, stk_error *e)
{
    enter(s);
    s->input = malloc(STREAM_INPUT);
    if (s->input && decompress_open(&s->decompressor, s->form))
        return STK_OK;
    free(s->input);
    s->input = NULL;
    leave(s);
    return error_nomem(e, "read", STREAM_INPUT);
}
