/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.h -- files are read before their turn, in the order of need, when storage is cold.
 *
 *     ahead_take(a, serial, sample, &taken)         by a worker whose turn it is; false: he reads himself
 *     ahead_note(a, cold, n)                        he has, and so it went
 *     ahead_done(a, serial)                         bytes that were taken are gone
 *
 * All of it takes NULL for the one who reads nothing ahead.
 */
#ifndef AHEAD_H
#define AHEAD_H

#include "base/buf.h"
#include "batch/ring.h"
#include "order/order.h"
#include "source/source.h"

struct ahead;

struct ahead_options {
    stk_reader reader; /* auto: when it pays; uring: always */
    struct ring *ring; /* opened, and closed after */
    const struct source *source;
    int threads;
    size_t memory;       /* for what was read and not used yet */
    int most;            /* files under way at a time; 0: as many as pay off */
    int64_t max_bytes;   /* of a file */
    int64_t samples;     /* in an epoch, about */
    int64_t cache_bytes; /* what the page cache may come to */
    void *user;
    struct pick (*pick)(void *user, struct walk *w, int64_t epoch, int64_t position);
    bool (*needless)(void *user, int64_t sample); /* nobody will ask for its file; NULL: any may be asked for */
    /* Which parts of its file a row will take, where that is known; else none: all of it. NULL: always all. */
    void (*parts)(void *user, int64_t epoch, struct pick p, struct parts *out);
};

/* A file that was read ahead. */
struct ahead_file {
    const uint8_t *bytes;
    size_t n;
    struct parts parts; /* of it that are there, with anything in between; none: all of it */
    size_t read;        /* bytes in them */
};

int ahead_open(struct ahead **out, const struct ahead_options *o, stk_error *e);
void ahead_close(struct ahead *a); /* after the workers */

bool ahead_take(struct ahead *a, int64_t serial, int64_t sample, struct ahead_file *out);
void ahead_note(struct ahead *a, bool cold, size_t bytes);
void ahead_done(struct ahead *a, int64_t serial);

bool ahead_probes(const struct ahead *a); /* whether it wants to be told what is cold */
size_t ahead_held(struct ahead *a);       /* bytes of memory */
/* Who reads, and why. */
void ahead_explain(struct ahead *a, struct buf *to);

#endif
