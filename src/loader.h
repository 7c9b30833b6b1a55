/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h -- the loader, as the files of src/ share it.
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
#include "loader_cache.h"
#include "loader_device.h"
#include "loader_follow.h"
#include "loader_views.h"
#include "order/order.h"
#include "transform/plan.h"

/* Work and waiting of one thread, in nanoseconds. The thread writes them, anyone may read them. */
struct counters {
    _Atomic uint64_t read_ns, decode_ns, transform_ns, op_ns, idle_ns, busy_ns;
    _Atomic uint64_t read_bytes, warnings, held_bytes;
};

enum { PICKS = 16 }; /* a power of two */

struct worker {
    struct desk desk;
    struct walk walk;
    struct pick picks[PICKS]; /* of the rows of the ticket's batch up to `picked`, each at its row modulo PICKS */
    int64_t picked;
    struct stk_batch *to; /* where the current row goes */
    uint8_t *made;        /* the image that the caller's op turns into the row; NULL: the op works in place */
    struct following follow;
    struct job *jobs;        /* one per view and copy; NULL: no images */
    uint8_t *spare;          /* for ops that combine the rows of a batch; NULL: there are none */
    int64_t run;             /* rows per ticket, so that one takes about 50 µs */
    uint64_t identity;       /* the version of the current sample, once it was asked for */
    bool identified;         /* it was asked for */
    bool from_cache;         /* the bytes of its file come from a cache */
    size_t checkpoint_bytes; /* that the decoder has for it */
    struct counters count;
};

/* A source as the caller sees it. */
struct stk_source {
    struct source *source;
    struct decode_limits limits;
    int64_t max_bytes;
};

struct stk_loader {
    pid_t pid;
    stk_options options; /* with defaults; its pointers are not used after open */
    struct machine machine;
    struct source *source;
    struct stk_source lent; /* the same, for stk_loader_source */
    struct plan *plan;      /* of the first view; NULL: no images */
    struct view views[VIEWS_MAX];
    int n_views, copies; /* copies: of all views together */
    struct loader_follow follow;
    bool ops_unused; /* ops were given, but `fields` leaves the images out */
    struct order order;
    uint64_t subset_hash; /* of subset and take; 0: neither */
    struct depot *depot;  /* in host memory */
    struct loader_device device;
    struct ring ring;
    struct ahead *ahead; /* NULL: samples are read in their turn */
    struct budget budget;
    struct loader_cache cache;
    struct worker *workers;
    struct pool pool;
    struct pool reader; /* the thread that reads ahead, once it was started */
    stk_op_hook op;
    stk_log_hook log;
    stk_array made; /* describes the image that workers make separately for the op */
    int64_t made_shape[FIELD_DIMS];
    size_t made_bytes; /* 0: none */
    size_t batch_bytes;
    size_t source_most;                /* how much memory the source may hold */
    pthread_mutex_t getting;           /* protects the last worker, which has no thread */
    int image, index, position, valid; /* the indices of these fields; -1: none */
    int soft;                          /* the label, if it is a row of floats; -1: it is not */
    size_t spare_bytes;                /* of a worker */
    bool reads;                        /* fields besides the image are read */

    /* Counts of what was delivered, under lock. No function of the caller is called while it is held. A thread that
     * holds the ring's lock may take it, but not the other way round. */
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
/* A hash of the relative path, size and label of every sample that is read, in order. The first call may take a while:
 * it looks at every file. */
uint64_t loader_fingerprint(const struct stk_loader *l);
/* Drops prefetched batches and continues at a position of an epoch. Waits for the rows under way. The caller's function
 * may be making them and may call this loader, so no lock is held meanwhile. */
void loader_restart(struct stk_loader *l, int64_t epoch, int64_t position);

enum { OWN_FIELDS = 3 }; /* index, position and valid */

/* loader_fields.c: describes the fields of batches, and makes the plan for the image. */
int loader_fields(struct stk_loader *l, struct field *fields, int *n, stk_error *e);
/* Makes f ragged pixels, as options.sizes says; frame: as in struct field. */
void loader_fields_frame(const struct stk_loader *l, struct field *f, int frame);

/* loader.c: what a thread does until it is stopped; and making one row, by worker w. */
void loader_work(void *user, int i);
int loader_make_row(struct stk_loader *l, struct worker *w, struct stk_batch *b, int64_t row, int64_t position,
                    struct pick p, stk_error *e);
/* Makes all rows of a ticket, with the policy on bad samples; *at is the row under way. Stops at the first bad sample
 * if that is fatal. */
void loader_make_rows(struct stk_loader *l, struct worker *w, struct ticket *t, int64_t *at);
/* Makes one row of a ticket, with that policy. */
void loader_make_or_replace(struct stk_loader *l, struct worker *w, struct ticket *t, int64_t row, struct pick p);
/* get.c: lends the last worker, for rows outside of the order, and takes it back. */
struct worker *loader_get_begin(struct stk_loader *l);
void loader_get_end(struct stk_loader *l, struct worker *w);
/* loader_again.c: before a batch is delivered, makes those rows again whose scans the device found to be damaged. Adds
 * bad ones to the ticket, whose rows are all those of the batch. Returns false if the ring wants the batch back. */
bool loader_again(struct stk_loader *l, struct ticket *t);
/* Adds the path of a sample to an error. */
void loader_blame(const struct source *s, int64_t sample, stk_error *e);
/* STK_EUSAGE if the source has no such sample. */
int loader_check_sample(const struct source *s, const char *stage, int64_t sample, stk_error *e);
/* The key of the random decisions of a row. */
struct draw loader_draw(const struct stk_loader *l, int64_t epoch, struct pick p);
struct draw loader_blend_draw(const struct stk_loader *l, int64_t epoch, int64_t first); /* for plan_blend */

/* loader_ahead.c: starts the thread that reads ahead, if it is needed and was not started yet. */
void loader_start_ahead(struct stk_loader *l);

/* delivery.c: how many bad samples an epoch may have on this rank. */
int64_t loader_bad_limit(const struct stk_loader *l);
/* Applies the policy on bad samples to a batch. STK_AGAIN: the batch is left out. */
int loader_finish(struct stk_loader *l, struct stk_batch *b, int64_t rows, struct bad *bads, stk_error *e);

/* stoker.c: checks options and fills in defaults. */
int options_take(stk_options *to, const stk_options *from, size_t size, struct machine *m, stk_error *e);
/* Copies a struct of options. The `known` bytes of this version are copied; a program built for a later header may pass
 * more, which must be zero. */
int options_copy(void *to, size_t known, const void *from, size_t size, stk_error *e);
/* Calls close() of the caller's hooks. It must be called exactly once, even if opening fails: options_take and
 * options_source call this if they fail; source_close calls close() itself. */
void options_close(const stk_options *o);
int options_source(const stk_options *o, bool all_columns, struct source **out, stk_error *e);
/* STK_EUSAGE if the subset names a sample that does not exist. */
int options_check_subset(const int64_t *subset, int64_t n, int64_t count, stk_error *e);
struct decode_limits options_limits(const stk_options *o);

#endif
