/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h -- batches, and the depot that their memory comes from and returns to.
 *
 *     depot --take--> ring --deliver--> caller --release--> depot
 *
 * Every field of a batch has its own reference-counted memory, so that a label that the caller keeps does not hold the
 * images. The depot allocates new memory in place of what the caller keeps, and never hands out memory that is still
 * referenced. Depot, batches and memories may outlive the loader, and may be released in any order.
 */
#ifndef BATCH_H
#define BATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/sample.h"

struct depot;

/* Follows memory that a device uses after the host has released it: every memory of the depot has a fence. All may be
 * NULL. */
struct memory_hooks {
    void *user;
    void *(*open)(void *user);    /* NULL: no memory */
    void (*close)(void *fence);   /* waits for the device */
    void (*reuse)(void *fence);   /* the host is about to write to the memory */
    void (*release)(void *fence); /* the last reference is gone */
    int (*use)(void *fence, void *stream, stk_error *e);
    int (*read)(void *fence, const void *data, void *to, size_t bytes, stk_error *e);
};

struct stk_memory {
    atomic_int refs;
    uint8_t *data;
    size_t bytes; /* allocated */
    int field;
    void *fence;               /* NULL: only the host uses it */
    struct stk_memory *source; /* memory of a device: the host memory with the same content; NULL: not kept */
    struct depot *depot;
    struct stk_memory *next; /* in the depot */
};

struct stk_batch {
    atomic_int refs;
    struct depot *depot;
    int n_fields;
    int64_t epoch, first, rows; /* as laid out; the arrays do not contain rows that were skipped */
    stk_array arrays[FIELD_MAX];
    int64_t shapes[FIELD_MAX][FIELD_DIMS + 1];
    struct stk_memory *memory[FIELD_MAX];      /* NULL: ragged and not joined yet, or open and not made yet */
    struct ragged_row *ragged_rows[FIELD_MAX]; /* until they are joined; NULL for fields that are not ragged */
    _Atomic int64_t ragged;                    /* bytes in these rows */
    atomic_bool too_large;                     /* they exceed the limit of the depot; the rest was left out */
    struct stk_batch *twin;                    /* the same batch in the memory of a device; NULL: not sent */
    struct stk_batch *next;                    /* in the depot */
};

struct depot {
    atomic_int refs; /* one for the loader, and one for every batch and memory outside the depot */
    pid_t pid;
    pthread_mutex_t lock;
    bool closed;
    int keep;              /* how many of each exist, unless the caller keeps more */
    int64_t rows;          /* of a batch */
    int n_fields, n_plain; /* stk_field_at() shows the first n_plain */
    struct field fields[FIELD_MAX];
    stk_allocator allocator;
    struct memory_hooks hooks;
    int device, device_id; /* as in stk_array */
    struct stk_batch *batches;
    int n_batches;
    struct stk_memory *memories[FIELD_MAX];
    int n_memories[FIELD_MAX], n_out[FIELD_MAX]; /* in the depot; outside */
    _Atomic int64_t bytes_out, bytes_in;         /* outside; in the depot */
    /* Rows of ragged fields: bytes allocated, bytes in use, and the limit for one batch; 0: no limit. */
    _Atomic int64_t allocated, ragged;
    int64_t ragged_most;
};

/* fields describe one row; arrays get the number of rows as their first dimension. allocator may be NULL. */
int depot_open(struct depot **out, const struct field *fields, int n_fields, int n_plain, int64_t rows, int keep,
               const stk_allocator *allocator, stk_error *e);
/* The loader no longer uses it. Accepts NULL. */
void depot_close(struct depot *d);

/* Raises the number of batches that exist, unless the caller keeps more. It never falls. */
void depot_keep(struct depot *d, int keep);
/* Allocates all batches now, so that none has to be allocated later. */
int depot_fill(struct depot *d, stk_error *e);
/* A batch with room for all rows and one reference. NULL: out of memory. */
struct stk_batch *depot_take(struct depot *d);
/* Memory for at least this many bytes of a field, with one reference. NULL: out of memory. */
struct stk_memory *depot_memory(struct depot *d, int field, size_t bytes);
size_t depot_batch_bytes(const struct field *fields, int n_fields, int64_t rows); /* 0: overflow */

static inline uint8_t *batch_row(const struct stk_batch *b, int field, int64_t row)
{
    return b->memory[field]->data + b->depot->fields[field].bytes * (size_t)row;
}
/* How many ragged rows, or entries beside them, n rows of the batch have. */
static inline int64_t batch_entries(const struct field *f, int64_t n)
{
    return f->copies > 1 ? n * f->copies : n;
}
/* A row of a ragged field, before it is joined; counted as batch_entries() counts. */
struct ragged_row *batch_ragged_row(const struct stk_batch *b, int field, int64_t row);
/* Such a row, to be filled; batch_close_ragged() then counts its bytes. NULL: the batch is too large already. */
struct ragged_row *batch_open_ragged(struct stk_batch *b, int field, int64_t row);
void batch_close_ragged(struct stk_batch *b, const struct ragged_row *p);
/* Allocates the row of an open field, and frees what it had. */
int batch_open_row(struct stk_batch *b, int field, const int64_t *shape, size_t bytes, uint8_t **row, stk_error *e);
/* Joins the rows of ragged fields, once all of them exist. Can fail with STK_ENOMEM. */
int batch_join(struct stk_batch *b, stk_error *e);
/* Whether ragged rows already use what one batch may have, so that no other batch should be started now. */
bool depot_is_full(const struct depot *d);
/* Sets the number of rows. */
void batch_set_rows(struct stk_batch *b, int64_t n);
/* Removes the rows whose keep[row] is 0, and returns how many are left. */
int64_t batch_compact(struct stk_batch *b, const uint8_t *keep, int64_t rows);
/* Copies row `from` to row `to` in all fields except one. from < 0: writes zeros. */
void batch_copy_row(struct stk_batch *b, int64_t from, int64_t to, int but_field);

/* ------------------------------------------------------------------ between batch.c, memory.c and ragged.c */

void depot_unref(struct depot *d);
void memory_destroy(struct stk_memory *m); /* no list and no reference has it */

void ragged_begin(struct stk_batch *b); /* makes all rows empty */
void ragged_end(struct stk_batch *b);   /* the rows are no longer in use; their memory stays */
void ragged_drop(struct stk_batch *b);  /* frees their memory */
/* Copies a row. from < 0: makes the row empty, which needs no memory. */
void ragged_copy(struct stk_batch *b, int field, int64_t from, int64_t to);

#endif
