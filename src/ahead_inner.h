/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead_inner.h -- what the workers' side (ahead.c) and the reader's (ahead_reader.c) share.
 */
#ifndef AHEAD_INNER_H
#define AHEAD_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "ahead.h"
#include "base/pool.h"
#include "base/strip.h"
#include "read/depth.h"

enum {
    WINDOW = 1024,           /* rows ahead */
    MOST = 128,              /* files under way */
    BELLS = 16,              /* that workers wait at, by serial */
    FIRST_GUESS = 128 << 10, /* bytes of a file, before any was seen */
    LIMIT_LEAST = 4 << 20,   /* bytes of memory, for files larger than the mean */
    /* Cold reads add 4 to the temperature, warm ones take 1 off: a fifth is the limit between the two. */
    COLD = 4,
    WAKE = 16,
    AWAKE = 64
};

enum state { NOTHING, COMING, HERE, LOST };

struct entry {
    enum state state;
    bool waited;  /* a worker is at the bell */
    bool dropped; /* nobody will come for it */
    bool taken;   /* somebody has come */
    int64_t serial, epoch, piece;
    struct pick pick;
    struct ahead_file file;
};

struct ahead {
    struct ahead_options o;
    pthread_mutex_t lock;
    pthread_cond_t work, bells[BELLS];
    struct pool thread;
    struct entry *entries;
    struct strip strip;
    int64_t passed; /* rows before this serial were asked for */
    int waits;      /* workers who came too early, in this window of reads */
    bool started, stopped, poked, broken;
    stk_error why; /* of broken */
    atomic_bool awake;
    _Atomic int64_t cursor;       /* rows from this serial on were never claimed */
    atomic_int temperature;       /* how cold the last reads were */
    _Atomic int64_t files, bytes; /* that were read, for their mean size */

    /* Of the reader's thread alone. */
    struct fetch *fetch;
    struct foresight walk;
    struct walk shuffle;
    struct row_ahead {
        int64_t serial, epoch;
        struct pick pick;
    } rows[MOST];
    int n_rows, homeless; /* files under way that have no memory yet */
    struct depth depth;
    uint64_t window_ns;
    int64_t window_files, window_bytes;
    _Atomic int64_t direct_files, part_files, all_files;
    atomic_int depth_now; /* for explain() */
};

/* ahead.c, all under lock but the first */
struct entry *ahead_entry(struct ahead *a, int64_t serial);
void ahead_release(struct ahead *a, struct entry *e); /* its memory goes back */
void ahead_feel(struct ahead *a, bool warm);          /* how a file was found that was fetched */

/* ahead_reader.c: the thread, from when it is first needed until the end. */
void ahead_reader(void *user, int i);

#endif
