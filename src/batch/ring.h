/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h -- the ring of batches between the workers and the caller.
 *
 * Workers take tickets (a run of rows of one batch), fill the rows and give the ticket back; the
 * caller takes whole batches in order. See ring.c for how it works.
 */
#ifndef RING_H
#define RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "batch/batch.h"
#include "batch/pace.h"

/* A row that could not be made: kept until its batch is delivered. */
struct bad {
    struct bad *next;
    int64_t row, sample;
    bool replaced; /* another sample stands in its row */
    bool machine;  /* no memory, no descriptors: not the sample's fault, and no policy passes over it */
    int code, os_error;
    char stage[16];
    char reason[640];
};

struct ticket {
    int64_t batch; /* number in the ring's own count */
    struct stk_batch *to;
    int64_t epoch, first; /* position of row 0 of the batch */
    int64_t row, rows;    /* the run */
    int64_t serial;       /* of its first row, in the order in which rows are handed out */
    struct bad *bads;     /* what went wrong in it, given back with it */
    bool no_memory;       /* something went wrong that could not even be noted */
};

struct slot {
    struct stk_batch *batch;
    int64_t rows, missing;
    struct bad *bads; /* newest first */
    bool no_memory;
};

/* Where a walk along the epochs is: the next batch of an epoch. */
struct place {
    int64_t epoch, batch;
};

/* What the ring asks: how many batches an epoch has (-1: not known yet), and the rows of one. */
struct ring_plan {
    void *user;
    int64_t (*batches)(void *user, int64_t epoch);
    void (*span)(void *user, struct place at, int64_t *first, int64_t *rows);
};

/* A walk along the rows that will be handed out, ahead of the tickets; zeroed at first. */
struct foresight {
    int64_t serial;                  /* of the next row */
    int64_t born;                    /* what was foreseen before this serial will never come */
    int64_t epoch, first, row, rows; /* the batch it is in */
    struct place next;               /* the batch after it */
};

struct ring {
    pthread_mutex_t lock;
    pthread_cond_t work, ready, quiet;
    struct slot *slots;
    int64_t n_slots;
    int64_t head, tail;   /* batches delivered; batches begun */
    int64_t row;          /* next row of the batch that is being handed out, tail - 1 */
    struct place in, out; /* of the next batch to begin; of the next to deliver */
    int64_t serial;       /* of the next row to be handed out; a restart leaves out those that were foreseen */
    int64_t born;         /* its value at the last restart */
    int64_t foreseen;     /* rows before this serial may have been foreseen */
    int in_flight;        /* tickets that are with workers */
    bool paused, stopped;
    atomic_int dropping; /* whether either is set, for those without the lock */
    struct pace pace;
    struct depot *depot;
    struct ring_plan plan;
};

/* At first `depth` batches ahead; up to n_slots when the caller waits nevertheless. */
int ring_init(struct ring *r, int threads, int64_t depth, int64_t n_slots, struct depot *d, struct ring_plan plan,
              stk_error *e);
void ring_done(struct ring *r); /* no thread may be in it any more */

/* For workers, numbered from 0. Waits for work; a run of at most max_rows rows. false: stopped. */
bool ring_take(struct ring *r, int worker, int64_t max_rows, struct ticket *out);
void ring_give(struct ring *r, struct ticket *t);
/* Whether the rest of a ticket will never be seen: it may be given back at once. */
bool ring_wants_back(struct ring *r);

/* Calls each() for up to max rows that will be handed out next and were not foreseen yet, under the ring's lock: what
 * the plan answers does not change meanwhile. How many there were; fewer when more is not known yet. */
int64_t ring_foresee(struct ring *r, struct foresight *f, int64_t max,
                     void (*each)(void *user, int64_t serial, int64_t epoch, int64_t position), void *user);

/* For callers. Waits up to ms (< 0: for ever): STK_OK with the batch, its rows as laid out and its bad rows (the
 * caller frees them), STK_END, STK_AGAIN, STK_STOPPED, STK_ENOMEM, or STK_EUSAGE when nobody knows the epoch. */
int ring_deliver(struct ring *r, int ms, struct stk_batch **out, int64_t *rows, struct bad **bads);

void ring_stop(struct ring *r);
/* Drops all that is prefetched and goes on at another place. set, called in between, may change what
 * the plan answers. */
void ring_restart(struct ring *r, struct place at, void (*set)(void *user), void *user);
/* Adds to what the plan answers, under the ring's lock, and wakes who waits for it; returns what set returns. */
int ring_change(struct ring *r, int (*set)(void *user, struct place out), void *user);
struct place ring_place(struct ring *r); /* of the next batch to be delivered */
struct pace ring_pace(struct ring *r);

void bads_free(struct bad *b);

#endif
