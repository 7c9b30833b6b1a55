/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead_inner.h -- shared by the workers' side (ahead.c) and the thread's side (ahead_reader.c).
 */
#ifndef AHEAD_INNER_H
#define AHEAD_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "read/ahead.h"
#include "read/fifo.h"

enum {
    WINDOW = 1024,           /* rows ahead */
    BELLS = 16,              /* condition variables that workers wait at, by serial */
    FIRST_GUESS = 128 << 10, /* bytes of a file, before any was read */
    LIMIT_LEAST = 4 << 20,   /* bytes of memory, for files larger than the mean */
    /* A cold read adds COLD to the temperature, a warm one subtracts 1: with a fifth of cold reads it stays level. */
    COLD = 4,
    WAKE = 16,
    AWAKE = 64
};

enum state { NOTHING, COMING, HERE, LOST };

struct entry {
    enum state state;
    bool waited;  /* a worker waits for it */
    bool dropped; /* no worker will take it */
    bool taken;   /* a worker has taken it */
    int64_t slot;
    struct ahead_row row;
    struct ahead_file file;
};

/*
 * How many reads to have under way, found by trying.
 *
 * While workers wait for bytes, twice as many reads are tried, and kept if they brought more bytes per second. Storage
 * changes, so the trial is repeated from time to time. While nobody waits, the number shrinks.
 */
struct depth {
    int now, min, max;
    int before;         /* during a trial: the depth to return to; 0: no trial */
    double before_rate; /* the rate at that depth */
    int hold;           /* windows until the next trial */
    int calm;           /* windows without waiting */
};

void depth_init(struct depth *d, int min, int start, int max);
/* After a window of reads: its bytes per second, and whether a worker had to wait. */
void depth_window(struct depth *d, double rate, bool waited);

struct ahead {
    struct ahead_options o;
    pthread_mutex_t lock;
    pthread_cond_t work, bells[BELLS];
    struct entry *entries;
    struct fifo fifo;
    int64_t passed; /* workers have asked for rows below this serial */
    int waits;      /* how often a worker had to wait for its bytes, in this window of reads */
    bool stopped, poked, broken;
    stk_error why; /* why broken */
    atomic_bool awake, started;
    _Atomic int64_t cursor;       /* rows from this serial on were never claimed */
    atomic_int temperature;       /* how cold the last reads were */
    _Atomic int64_t files, bytes; /* read so far, for their mean size */

    /* Used by the thread alone. */
    struct fetch *fetch;
    int64_t born;
    int homeless; /* files under way that have no memory yet */
    struct depth depth;
    uint64_t window_ns;
    int64_t window_files, window_bytes;
    _Atomic int64_t direct_files, range_files, all_files;
    atomic_int depth_now; /* for ahead_explain() */
};

/* ahead.c; the last two under lock */
struct entry *ahead_entry(struct ahead *a, int64_t serial);
void ahead_release(struct ahead *a, struct entry *e); /* gives its memory back */
void ahead_feel(struct ahead *a, bool warm);          /* records whether a file was in the page cache */

#endif
