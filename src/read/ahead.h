/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.h -- reads files before their turn, in the order of need, when storage is cold.
 *
 * Workers:
 *
 *     if (ahead_take(a, serial, sample, &file))     the bytes were read ahead
 *         use them
 *     else
 *         read the sample, and report with ahead_report(a, cold, n) whether storage was cold
 *     ahead_done(a, serial)                         in any case: the bytes are no longer used
 *
 * One more thread, which knows the rows to come and where their bytes are (loader_ahead.c):
 *
 *     do {
 *         while (ahead_opened(a, &file))
 *             ahead_read(a, &file, ranges)           reads all of an open file, or some ranges
 *         n = ahead_wanted(a)                       how many more rows can be read now
 *         n = ahead_claim(a, rows, n, born, next)   keeps those that no worker has asked for yet
 *         ahead_file(), ahead_extent()              for each of these
 *     } while (ahead_wait(a))
 *
 * The workers' functions accept NULL: then nothing is read ahead.
 */
#ifndef AHEAD_H
#define AHEAD_H

#include "base/buf.h"
#include "base/sample.h"
#include "read/fetch.h"

enum { AHEAD_MOST = 128 }; /* rows under way at a time */

struct ahead;

struct ahead_options {
    stk_reader reader; /* auto: when it pays off; uring: always */
    int threads;
    size_t memory;       /* for bytes that were read and not used yet */
    int most;            /* files under way at a time; 0: as many as pay off */
    int64_t max_bytes;   /* of a file */
    int64_t samples;     /* in an epoch, approximately */
    int64_t cache_bytes; /* how large the page cache may become */
};

/* A row that will come. Its sample is draw.sample. */
struct ahead_row {
    int64_t serial;
    struct draw draw;
};

/* A file that was read ahead. */
struct ahead_file {
    const uint8_t *bytes;
    size_t n;
    struct ranges ranges; /* the ranges that were read, with undefined bytes in between; none: all of it */
    size_t read;          /* bytes in these ranges */
};

int ahead_open(struct ahead **out, const struct ahead_options *o, stk_error *e);
void ahead_stop(struct ahead *a);  /* makes ahead_wait() return false */
void ahead_close(struct ahead *a); /* after the workers and the thread have ended */

/* ------------------------------------------------------------------ workers */

bool ahead_take(struct ahead *a, int64_t serial, int64_t sample, struct ahead_file *out);
void ahead_report(struct ahead *a, bool cold, size_t bytes);
void ahead_done(struct ahead *a, int64_t serial);
bool ahead_probes(const struct ahead *a); /* whether ahead_report() needs to know what is cold */
/* Whether the thread is needed and was not started yet. true only once: the caller starts it. */
bool ahead_starts(struct ahead *a);

/* ------------------------------------------------------------------ the thread */

/* Opens io_uring. false: nothing can be read ahead here. */
bool ahead_begin(struct ahead *a);
void ahead_end(struct ahead *a);
/* Nothing is read ahead from now on. */
void ahead_give_up(struct ahead *a, const stk_error *why);

/* How many rows can be claimed now. -1: the thread is asleep; otherwise ahead_claim must follow. */
int ahead_wanted(struct ahead *a);
/* Moves the rows that are to be read to the front and returns how many they are. Rows with a serial below `born` that
 * were claimed earlier will never come; `next` is the serial after the last row foreseen. */
int ahead_claim(struct ahead *a, struct ahead_row *rows, int n, int64_t born, int64_t next);
/* Whether this sample is to be read without going through the page cache. */
bool ahead_is_direct(struct ahead *a, int64_t sample);
/* Starts reading a claimed row: a whole file, or an extent. x is NULL: it cannot be read ahead. */
void ahead_file(struct ahead *a, const struct ahead_row *r, int dir, const char *path, bool direct);
void ahead_extent(struct ahead *a, const struct ahead_row *r, const struct extent *x);

/* A file that is open and can be read in ranges instead of as a whole. */
struct ahead_open {
    struct ahead_row row;
    struct fetch_event event;
};
/* Returns the next such file. Reading checkpoints before the file is open could block: they are found by its size and
 * modification time. */
bool ahead_opened(struct ahead *a, struct ahead_open *out);
/* Reads these ranges of it; none: all of it. */
void ahead_read(struct ahead *a, const struct ahead_open *o, const struct ranges *ranges);

/* Waits for something to do. false: the thread has to end. */
bool ahead_wait(struct ahead *a);

/* ------------------------------------------------------------------ statistics */

size_t ahead_held(struct ahead *a); /* bytes of memory */
/* Which way files are read, and why. */
void ahead_explain(struct ahead *a, struct buf *to);

#endif
