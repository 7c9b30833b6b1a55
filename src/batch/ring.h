/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h -- the ring of batches between the workers and the caller.
 *
 * Workers take tickets (a run of rows of one batch), fill the rows and give the ticket back. The caller takes whole
 * batches in order. ring.c explains how it works.
 */
#ifndef RING_H
#define RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "batch/batch.h"
#include "order/order.h"

/* A row that could not be made. It is kept until its batch is delivered. */
struct bad {
    struct bad *next;
    int64_t row, sample;
    bool replaced; /* the row has another sample */
    bool machine;  /* out of memory or descriptors: not the sample's fault, and fatal under every policy */
    int code, os_error;
    char stage[16];
    char reason[640];
};

struct ticket {
    int64_t batch; /* counted by the ring, through all epochs */
    struct stk_batch *to;
    int64_t epoch, first;   /* first: the position of row 0 of the batch */
    int64_t row, rows;      /* the run */
    int64_t all_rows;       /* of the batch */
    int64_t serial;         /* of its first row; rows are counted in the order in which they are handed out */
    const int64_t *samples; /* of all rows, if they are not those of the order */
    struct bad *bads;       /* the worker adds its bad rows here */
    bool no_memory;         /* a bad row could not be recorded */
    bool flawless;          /* if ring_give returns true: no row of the batch is bad */
};

struct slot {
    struct stk_batch *batch;
    int64_t rows, missing;
    struct bad *bads; /* newest first */
    bool no_memory;
};

/* A batch of an epoch. */
struct place {
    int64_t epoch, batch;
};

/* A row that will be handed out. */
struct foreseen {
    int64_t serial, epoch, position;
    struct pick pick;
};

/* A walk along the rows that will be handed out, ahead of the tickets. It starts as {.walk.pass = -1}. */
struct foresight {
    int64_t serial;                  /* of the next row */
    int64_t born;                    /* rows with a smaller serial that were foreseen earlier will never come */
    int64_t epoch, first, row, rows; /* the current batch */
    struct place next;               /* the batch after it */
    struct walk walk;
};

/*
 * How many threads work, and how many batches they may be ahead.
 *
 * When the caller waits, all threads work again. If the ring had been full for a while before it ran empty, it also
 * becomes deeper: the caller takes batches in bursts, or some samples are slow. When the caller never waits, fewer
 * threads are enough: after `patience` batches that were ready with a full ring behind them, one thread goes to sleep.
 * patience doubles whenever that turns out to have been one thread too many.
 */
struct pace {
    int threads, active;       /* workers with an index below active may work */
    int64_t depth_most, depth; /* batches ahead: the largest limit; the limit now */
    int64_t calm, patience;    /* batches ready in time since the last change; how many a change takes */
    int64_t easy;              /* batches since the caller last waited that were ready with a full ring behind them */
    bool idle;                 /* the ring was full since the caller was last served */
};

void pace_init(struct pace *p, int threads, int64_t depth, int64_t depth_most);
void pace_full(struct pace *p);   /* workers found no room */
void pace_waits(struct pace *p);  /* the caller came and nothing was ready */
void pace_served(struct pace *p); /* the caller came and got a batch at once */

struct ring {
    bool completes; /* workers work on a batch once all of its rows exist, and then call ring_complete */
    bool amends;    /* callers change rows of the batches they take, and then call ring_delivered */
    pthread_mutex_t lock;
    pthread_cond_t work, ready, quiet;
    struct slot *slots;
    int64_t n_slots;
    int64_t head, tail;   /* batches delivered; batches started */
    int64_t row;          /* the next row of batch tail - 1, whose rows are being handed out */
    struct place in, out; /* the next batch to start; the next batch to deliver */
    int64_t serial;       /* of the next row to hand out; a restart skips serials that were foreseen */
    int64_t born;         /* its value at the last restart */
    int64_t foreseen;     /* rows with a smaller serial may have been foreseen */
    int in_flight;        /* tickets that workers hold */
    int in_delivery;      /* batches that callers change */
    bool idle;            /* no batch is started before the caller asks for one */
    bool paused, stopped;
    int64_t restart;      /* while paused: the epoch after the restart */
    struct given late[2]; /* orders that were given meanwhile */
    atomic_int dropping;  /* whether paused or stopped is set, for readers without the lock */
    struct pace pace;
    struct depot *depot;
    struct order *order; /* changed only under lock */
};

/* At first up to `depth` batches ahead, and up to n_slots when the caller still has to wait. */
int ring_init(struct ring *r, int threads, int64_t depth, int64_t n_slots, struct depot *d, struct order *order,
              stk_error *e);
void ring_done(struct ring *r); /* no thread may use it any more */

/* For workers, which count from 0. Waits for work, and takes a run of at most max_rows rows. false: stopped. */
bool ring_take(struct ring *r, int worker, int64_t max_rows, struct ticket *out);
/* Returns true if all rows of the batch exist now and the worker is to call ring_complete. Until then the batch is not
 * ready, and nobody else uses it. */
bool ring_give(struct ring *r, struct ticket *t);
void ring_complete(struct ring *r, const struct ticket *t);
/* Whether the rest of a ticket will be dropped, so that the worker can give it back at once. This does not change back
 * before the ticket is given back, or before ring_delivered. */
bool ring_wants_back(struct ring *r);

/* Returns up to max rows that will be handed out next and were not foreseen yet. Fewer: the rest is not known yet. */
int ring_foresee(struct ring *r, struct foresight *f, struct foreseen *rows, int max);

/* For the caller. Waits up to ms milliseconds (< 0: forever). STK_OK with the batch, its rows as laid out and its bad
 * rows, which the caller frees; or STK_END, STK_AGAIN, STK_STOPPED, STK_ENOMEM, or STK_EUSAGE when the epoch has no
 * order yet. */
int ring_deliver(struct ring *r, int ms, struct stk_batch **out, int64_t *rows, struct bad **bads);
void ring_delivered(struct ring *r); /* after STK_OK, if the ring amends */

/* The rows of the batch that comes `ahead` batches after the next one, in this epoch or a later one; -1: the one that
 * was delivered last. STK_END: it is not known. STK_EUSAGE: the epoch has no order yet. */
int ring_span(struct ring *r, int64_t ahead, struct span *out);
/* While idle: moves past the next batch as if it was delivered. STK_END: past the end of the epoch. */
int ring_pass(struct ring *r);

void ring_stop(struct ring *r);
/* Drops everything that is prefetched and continues at the first batch of an epoch, from this position on. Orders that
 * were given before are freed. */
void ring_restart(struct ring *r, int64_t epoch, int64_t position);
/* Gives the order of one epoch, and takes ownership of it on success. During a restart it is an order for the epoch
 * that the restart goes to, or the one after it. */
int ring_give_order(struct ring *r, const struct given *g, stk_error *e);
struct place ring_place(struct ring *r, int64_t *position); /* the next batch to deliver, and where it starts */
struct pace ring_pace(struct ring *r);

void bads_free(struct bad *b);

#endif
