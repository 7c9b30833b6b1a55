/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h -- batches and where their memory comes from and goes back to.
 *
 *     depot --take--> ring --deliver--> caller --release--> depot
 *
 * Every field of a batch has memory of its own with a count of references: a kept label does not
 * hold the images. What the caller keeps is his; the depot makes new memory instead, and never hands out
 * what somebody still holds. Depot, batches and memories may outlive the loader in any order.
 */
#ifndef BATCH_H
#define BATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/field.h"

struct depot;

struct stk_memory {
    atomic_int refs;
    uint8_t *data;
    size_t bytes; /* that it has room for */
    int field;
    struct depot *depot;
    struct stk_memory *next; /* in the depot */
};

struct stk_batch {
    atomic_int refs;
    struct depot *depot;
    int n_fields;
    int64_t n_pieces;           /* of each ragged field */
    int64_t epoch, first, rows; /* as laid out; rows that were skipped are gone from the arrays */
    stk_array arrays[FIELD_MAX];
    int64_t shapes[FIELD_MAX][FIELD_DIMS + 1];
    struct stk_memory *memory[FIELD_MAX]; /* NULL: ragged and not joined, or open and not made */
    struct piece *pieces[FIELD_MAX];      /* the rows of ragged fields, until they are joined; else NULL */
    _Atomic int64_t ragged;               /* bytes of those */
    atomic_bool too_large;                /* they have more than the depot allows: the rest was left out */
    struct stk_batch *next;               /* in the depot */
};

struct depot {
    atomic_int refs; /* the loader, and everything that is not in the depot */
    pid_t pid;
    pthread_mutex_t lock;
    bool closed;
    int keep;              /* how many of each there are, unless the caller keeps more */
    int64_t rows;          /* of a batch */
    int n_fields, n_plain; /* the first n_plain are fields to be seen by stk_field_at */
    struct field fields[FIELD_MAX];
    stk_allocator allocator;
    struct stk_batch *batches;
    int n_batches;
    struct stk_memory *memories[FIELD_MAX];
    int n_memories[FIELD_MAX], n_out[FIELD_MAX]; /* waiting here; with others */
    _Atomic int64_t bytes_out, bytes_in;         /* with others; waiting here */
    /* Rows of ragged fields: the memory they have, that of which in use, and what one batch may have; 0: no limit. */
    _Atomic int64_t pieces, ragged;
    int64_t ragged_most;
};

/* fields: of one row; the arrays get the number of rows as first dimension. allocator may be NULL. */
int depot_open(struct depot **out, const struct field *fields, int n_fields, int n_plain, int64_t rows, int keep,
               const stk_allocator *allocator, stk_error *e);
/* The loader is done with it; also NULL. */
void depot_close(struct depot *d);

/* How many batches there are from now on, unless the caller keeps more: only ever more. */
void depot_keep(struct depot *d, int keep);
/* Makes all that it may keep, so that none has to be made later. */
int depot_fill(struct depot *d, stk_error *e);
/* A batch with room for all rows and one reference, or NULL when there is no memory. */
struct stk_batch *depot_take(struct depot *d);
/* Memory for at least so many bytes of a field, with one reference; NULL: there is none. */
struct stk_memory *depot_memory(struct depot *d, int field, size_t bytes);
size_t depot_batch_bytes(const struct field *fields, int n_fields, int64_t rows); /* 0: overflow */

static inline uint8_t *batch_row(const struct stk_batch *b, int field, int64_t row)
{
    return b->memory[field]->data + b->depot->fields[field].bytes * (size_t)row;
}
/* What a row of a ragged field was put together to. */
struct piece *batch_piece(const struct stk_batch *b, int field, int64_t row);
/* Puts it together. */
int batch_put(struct stk_batch *b, int field, int64_t row, const struct cell *c, stk_error *e);
/* Memory for the row of an open field, in place of what it had. */
int batch_open_row(struct stk_batch *b, int field, const int64_t *shape, size_t bytes, uint8_t **row, stk_error *e);
/* Puts the rows of ragged fields one after the other, when all are there; or STK_ENOMEM with words. */
int batch_join(struct stk_batch *b, stk_error *e);
/* Whether no batch should be begun before others are taken: ragged rows have all that one batch may have. */
bool depot_is_full(const struct depot *d);
/* Says that the batch has n rows. */
void batch_set_rows(struct stk_batch *b, int64_t n);
/* Takes out the rows whose keep[row] is 0, in order, and returns how many are left. */
int64_t batch_compact(struct stk_batch *b, const uint8_t *keep, int64_t rows);
/* Copies row `from` to row `to` in all fields but one; from < 0: zeroes. */
void batch_copy_row(struct stk_batch *b, int64_t from, int64_t to, int but_field);

#endif
