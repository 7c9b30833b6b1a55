/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h -- what loader*.c, delivery.c, get.c, state.c, stats.c, scan.c, browse.c and stoker.c share.
 */
#ifndef LOADER_H
#define LOADER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/cpu.h"
#include "base/pool.h"
#include "batch/ring.h"
#include "desk.h"
#include "keep.h"
#include "order/order.h"
#include "transform/plan.h"

/* Work and waiting of one thread, in nanoseconds; written by it, read by anyone. */
struct counters {
    _Atomic uint64_t read_ns, decode_ns, transform_ns, op_ns, idle_ns;
    _Atomic uint64_t read_bytes, warnings, held_bytes;
};

enum { PICKS = 16 }; /* a power of two */

struct worker {
    struct desk desk;
    struct walk walk;
    struct pick picks[PICKS]; /* of rows up to `picked` of the ticket's batch, each at its number modulo PICKS */
    int64_t picked;
    struct stk_batch *to; /* where the row at hand goes */
    uint8_t *made;        /* the picture that an op turns into the row; NULL: the op works in place */
    int64_t run;          /* rows a ticket, so that one is worth some 50 µs */
    uint64_t identity;    /* of the sample at hand, when it was asked for */
    bool identified;      /* it was */
    bool from_cache;      /* its bytes are the cache's */
    size_t notes;         /* that the decoder has on it: bytes */
    struct counters count;
};

struct stk_loader {
    pid_t pid;
    stk_options options; /* defaults filled in; its pointers are not used after open */
    struct machine machine;
    struct source *source;
    struct plan *plan; /* NULL: no pictures */
    struct order order;
    int64_t *subset;      /* index in the order -> sample; NULL: the same */
    uint64_t subset_hash; /* of subset and take; 0: neither */
    struct depot *depot;
    struct ring ring;
    struct ahead *ahead; /* NULL: samples are read when it is their turn */
    struct budget budget;
    struct keep keep;
    struct worker *workers;
    struct pool pool;
    stk_op_hook op;
    stk_log_hook log;
    stk_array made; /* describes what workers make apart for the op */
    int64_t made_shape[FIELD_DIMS];
    size_t made_bytes; /* 0: nothing */
    size_t batch_bytes;
    size_t unpacked_most;                /* what the source may hold of memory */
    pthread_mutex_t getting;             /* held by whoever uses the last worker, which has no thread */
    int picture, index, position, valid; /* numbers of these fields; -1: none */
    bool reads;                          /* there are fields that are read besides the picture */

    /* Of what was delivered, under lock; no function of the caller's is called under it. Whoever holds the ring's lock
     * may take this one, not the other way round. */
    pthread_mutex_t lock;
    int64_t opened_s; /* since 1970 */
    uint64_t opened_ns, waited_ns;
    int64_t batches, samples, bad, bad_epoch, bad_in_epoch;
    bool rotten;
    stk_error *bads;
    int64_t n_bads;
};

enum { BADS_KEPT = 1000 };

/* loader_open.c */
int loader_open(struct stk_loader *l, stk_error *e);
void loader_close(struct stk_loader *l);
int loader_check(const struct stk_loader *l, stk_error *e); /* STK_EFORK in a forked child */
/* Of the samples that are read, in order: relative path, size and label of each. The first call may take a while: it
 * looks at every file. */
uint64_t loader_fingerprint(const struct stk_loader *l);
/* Goes to a position of an epoch and forgets what was prefetched. Waits for the rows under way, which may be with a
 * function of the caller's that asks this loader something: no lock is held meanwhile. */
void loader_restart(struct stk_loader *l, int64_t epoch, int64_t position);

/* state.c: the next batch to be delivered, and the position in the order that it begins at. */
struct place loader_place(struct stk_loader *l, int64_t *position);

/* loader_fields.c: describes the fields of its batches, and makes the plan for its picture. */
int loader_fields(struct stk_loader *l, struct field *fields, int *n, stk_error *e);

/* loader.c: what a thread does until it is stopped; and one sample to its row, by the worker w. */
void loader_work(void *user, int i);
/* Sets *row where it is NULL: rows of open size get their memory when the job says how large they are. */
int loader_row(struct stk_loader *l, struct worker *w, const struct job *j, uint8_t **row, stk_error *e);
int loader_make_row(struct stk_loader *l, struct worker *w, struct stk_batch *b, int64_t row, int64_t position,
                    struct pick p, stk_error *e);
/* Which sample stands at a position of our own order, and what names its random decisions. */
struct pick loader_pick(const struct stk_loader *l, struct walk *w, int64_t epoch, int64_t position);
struct draw loader_draw(const struct stk_loader *l, int64_t epoch, struct pick p);

/* delivery.c: how many bad samples an epoch may have on this rank. */
int64_t loader_bad_limit(const struct stk_loader *l);

/* stoker.c: options checked, defaults filled in. */
int options_take(stk_options *to, const stk_options *from, size_t size, struct machine *m, stk_error *e);
/* Any struct of options, of which `known` bytes are ours: a program built for a later header may know more; those must
 * be unset. */
int options_copy(void *to, size_t known, const void *from, size_t size, stk_error *e);
/* The caller's close() of his hooks is called once, whatever becomes of the opening: by this, options_take and
 * options_source where they fail, and by source_close. */
void options_close(const stk_options *o);
int options_source(const stk_options *o, bool all_columns, struct source **out, stk_error *e);
int options_check_subset(const stk_options *o, int64_t count, stk_error *e);
struct decode_limits options_limits(const stk_options *o);

#endif
