/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_inner.h -- the parts of a stream, for stream.c and stream_cache.c.
 *
 * Invariants:
 *   (1) a stream's lock protects its decompressor, members and end. The cache's lock protects the list of streams that
 *       have a decompressor.
 *   (2) a thread may take the cache's lock while it has a stream's. It only tries the lock of another stream.
 *   (3) a piece is pinned only while it is copied or filled.
 *   (4) the decompressors that are open need at most `most` bytes together. A thread that finds no room closes a
 *       decompressor that no thread is using, or waits for one; meanwhile it has neither a decompressor nor a piece. So
 *       every thread that unlocks a stream with an open decompressor wakes the waiting ones (stream_let_go).
 */
#ifndef STREAM_INNER_H
#define STREAM_INNER_H

#include <pthread.h>

#include "format/pieces.h"
#include "format/stream.h"

enum {
    STREAM_PIECE = 1 << 20, /* decompressed bytes of a piece */
    STREAM_INPUT = 1 << 17, /* compressed bytes read at once */
    STREAM_OPEN = 32,       /* decompressors at a time */
};

struct stream_cache {
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t rested;
    struct pieces *pieces;
    struct stream *open[STREAM_OPEN]; /* those with a decompressor */
    uint64_t clock;
    size_t cost, most; /* of all decompressors */
    int waiting;
};

struct stream_member {
    int64_t compressed, raw;
};

struct stream {
    pthread_mutex_t lock;
    struct stream_cache *cache;
    enum stream_form form;
    struct decompressor decompressor;
    uint64_t opened; /* by the cache's clock, under the cache's lock */
    bool stays;      /* other threads must not close the decompressor */
    size_t cost;     /* of the decompressor; 0: it is closed */
    size_t need;     /* the most that a member needed so far */
    uint8_t *input;
    size_t input_at, input_n;
    int64_t compressed; /* file offset of the end of the input */
    int64_t raw;        /* bytes decompressed so far */
    bool between;       /* at the start of a member */
    int64_t end;        /* decompressed size up to the end or to damage; -1: not known */
    char broken[160];
    bool refused;                  /* it needs too much memory */
    struct stream_member *members; /* ascending; the beginning is not among them */
    int n_members;
};

/* Waits for room among the open decompressors, then opens this stream's. */
int stream_open_decompressor(struct stream *s, stk_error *e);
/* Does nothing if it is closed. */
void stream_close_decompressor(struct stream *s);
/* Unlocks the stream and wakes threads that may now close its decompressor. */
void stream_let_go(struct stream *s);

#endif
