/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c -- the depot, the batches and their memories.
 *
 * Invariants:
 *   (1) depot->refs counts the loader (until depot_close) and every batch and memory outside the depot.
 *   (2) Batches and memories in the lists of the depot have no references.
 *   (3) A forked child gives nothing back: the lock may be held by a thread that does not exist there.
 */
#include "batch/batch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"

static size_t memory_bytes(const struct field *f, int64_t rows)
{
    const int64_t all = batch_entries(f, rows), n = f->kind == FIELD_OFFSETS ? all + 1 : all;
    if (f->bytes == 0 || rows <= 0 || (uint64_t)n > (SIZE_MAX / 2) / f->bytes)
        return 0;
    return f->bytes * (size_t)n;
}

size_t depot_batch_bytes(const struct field *fields, int n_fields, int64_t rows)
{
    size_t sum = 0;
    for (int i = 0; i < n_fields; i++) {
        const size_t n = memory_bytes(&fields[i], rows);
        if (n == 0 || n > SIZE_MAX / 2 - sum)
            return 0;
        sum += n;
    }
    return sum;
}

static void *system_alloc(void *user, size_t bytes)
{
    (void)user;
    return pages_new_large(bytes);
}

static void system_free(void *user, void *p, size_t bytes)
{
    (void)user;
    pages_free(p, bytes);
}

int depot_open(struct depot **out, const struct field *fields, int n_fields, int n_plain, int64_t rows, int keep,
               const stk_allocator *allocator, stk_error *e)
{
    struct depot *d = calloc(1, sizeof *d);
    *out = d;
    if (!d)
        return error_nomem(e, "open", sizeof *d);
    atomic_init(&d->refs, 1);
    d->pid = getpid();
    pthread_mutex_init(&d->lock, NULL);
    d->keep = keep;
    d->device = 1;
    d->rows = rows;
    d->n_fields = n_fields;
    d->n_plain = n_plain;
    memcpy(d->fields, fields, (size_t)n_fields * sizeof *fields);
    d->allocator = allocator ? *allocator : (stk_allocator){.alloc = system_alloc, .free = system_free};
    return STK_OK;
}

void depot_unref(struct depot *d)
{
    if (atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static void shell_free(struct stk_batch *b)
{
    ragged_drop(b);
    for (int i = 0; i < b->n_fields; i++)
        free(b->ragged_rows[i]);
    free(b);
}

void depot_close(struct depot *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->closed = true;
    pthread_mutex_unlock(&d->lock);
    /* Nothing is added to the lists from here on. */
    for (struct stk_batch *b = d->batches, *next; b; b = next) {
        next = b->next;
        b->depot = d;
        shell_free(b);
    }
    for (int i = 0; i < d->n_fields; i++)
        for (struct stk_memory *m = d->memories[i], *next; m; m = next) {
            next = m->next;
            memory_destroy(m);
        }
    depot_unref(d);
}

/* ------------------------------------------------------------------ batches */

static struct stk_batch *shell_new(struct depot *d)
{
    struct stk_batch *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->depot = d;
    b->n_fields = d->n_fields;
    for (int i = 0; i < d->n_fields; i++) {
        if (d->fields[i].kind != FIELD_RAGGED)
            continue;
        b->ragged_rows[i] = calloc((size_t)batch_entries(&d->fields[i], d->rows), sizeof *b->ragged_rows[i]);
        if (!b->ragged_rows[i]) {
            shell_free(b);
            return NULL;
        }
    }
    return b;
}

static struct stk_batch *shell_take(struct depot *d)
{
    pthread_mutex_lock(&d->lock);
    struct stk_batch *b = d->batches;
    if (b) {
        d->batches = b->next;
        d->n_batches--;
    }
    pthread_mutex_unlock(&d->lock);
    if (!b)
        b = shell_new(d);
    if (!b)
        return NULL;
    b->depot = d;
    b->next = NULL;
    atomic_init(&b->refs, 1);
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return b;
}

static void shell_give(struct stk_batch *b)
{
    struct depot *d = b->depot;
    pthread_mutex_lock(&d->lock);
    const bool wanted = !d->closed && d->n_batches < d->keep;
    if (wanted) {
        b->next = d->batches;
        d->batches = b;
        d->n_batches++;
    }
    pthread_mutex_unlock(&d->lock);
    if (!wanted)
        shell_free(b);
    depot_unref(d);
}

static void describe(struct stk_batch *b, int i)
{
    const struct field *f = &b->depot->fields[i];
    b->shapes[i][0] = batch_entries(f, b->depot->rows) + (f->kind == FIELD_OFFSETS);
    for (int k = 0; k < f->ndim; k++)
        b->shapes[i][k + 1] = f->shape[k];
    b->arrays[i] = (stk_array){
        .name = f->name,
        .data = b->memory[i] ? b->memory[i]->data : NULL,
        .dtype = f->dtype,
        .kind = f->what ? f->what : STK_TENSOR,
        .ndim = f->ndim + 1,
        .device = b->depot->device,
        .device_id = b->depot->device_id,
        .shape = b->shapes[i],
    };
}

struct stk_batch *depot_take(struct depot *d)
{
    struct stk_batch *b = shell_take(d);
    if (!b)
        return NULL;
    ragged_begin(b);
    for (int i = 0; i < d->n_fields; i++) {
        const bool later = d->fields[i].kind == FIELD_RAGGED || d->fields[i].kind == FIELD_OPEN;
        b->memory[i] = later ? NULL : depot_memory(d, i, memory_bytes(&d->fields[i], d->rows));
        if (!b->memory[i] && !later) {
            for (int k = 0; k < i; k++)
                stk_memory_release(b->memory[k]);
            ragged_end(b);
            shell_give(b);
            return NULL;
        }
        describe(b, i);
    }
    return b;
}

void depot_keep(struct depot *d, int keep)
{
    pthread_mutex_lock(&d->lock);
    if (keep > d->keep)
        d->keep = keep;
    pthread_mutex_unlock(&d->lock);
}

int depot_fill(struct depot *d, stk_error *e)
{
    struct stk_batch *list = NULL;
    int n = 0;
    for (struct stk_batch *b; n < d->keep && (b = depot_take(d)); n++) {
        b->next = list;
        list = b;
    }
    for (struct stk_batch *next; list; list = next) {
        next = list->next;
        stk_release(list);
    }
    return n == d->keep ? STK_OK : error_nomem(e, "open", depot_batch_bytes(d->fields, d->n_fields, d->rows));
}

struct ragged_row *batch_ragged_row(const struct stk_batch *b, int field, int64_t row)
{
    return &b->ragged_rows[field][row];
}

void batch_set_rows(struct stk_batch *b, int64_t n)
{
    b->rows = n;
    for (int i = 0; i < b->depot->n_fields; i++) {
        const struct field *f = &b->depot->fields[i];
        b->shapes[i][0] = batch_entries(f, n) + (f->kind == FIELD_OFFSETS);
    }
}

/* Swapping needs no memory. The row that ends up at `from` is not used any more. */
static void swap_ragged_rows(struct stk_batch *b, int field, int64_t from, int64_t to)
{
    struct ragged_row *rows = b->ragged_rows[field];
    const struct ragged_row one = rows[from];
    rows[from] = rows[to];
    rows[to] = one;
}

static void put_row(struct stk_batch *b, int64_t from, int64_t to, int but_field,
                    void (*put)(struct stk_batch *b, int field, int64_t from, int64_t to))
{
    for (int i = 0; i < b->depot->n_fields; i++) {
        const struct field *f = &b->depot->fields[i];
        const int64_t each = batch_entries(f, 1);
        const size_t bytes = f->bytes * (size_t)each;
        if (i == but_field || f->kind == FIELD_OFFSETS || f->kind == FIELD_OPEN)
            continue;
        for (int64_t k = 0; b->ragged_rows[i] && k < each; k++)
            put(b, i, from < 0 ? from : from * each + k, to * each + k);
        if (b->ragged_rows[i])
            continue;
        if (from < 0)
            memset(batch_row(b, i, to * each), 0, bytes);
        else
            memcpy(batch_row(b, i, to * each), batch_row(b, i, from * each), bytes);
    }
}

void batch_copy_row(struct stk_batch *b, int64_t from, int64_t to, int but_field)
{
    put_row(b, from, to, but_field, ragged_copy);
}

int64_t batch_compact(struct stk_batch *b, const uint8_t *keep, int64_t rows)
{
    int64_t n = 0;
    for (int64_t row = 0; row < rows; row++) {
        if (!keep[row])
            continue;
        if (n != row)
            put_row(b, row, n, -1, swap_ragged_rows);
        n++;
    }
    batch_set_rows(b, n);
    return n;
}

void stk_retain(stk_batch *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

void stk_release(stk_batch *b)
{
    if (!b || b->depot->pid != getpid())
        return;
    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    stk_release(b->twin);
    b->twin = NULL;
    for (int i = 0; i < b->depot->n_fields; i++)
        stk_memory_release(b->memory[i]);
    ragged_end(b);
    shell_give(b);
}

int64_t stk_samples(const stk_batch *b)
{
    return b->rows;
}

int64_t stk_batch_epoch(const stk_batch *b)
{
    return b->epoch;
}

int stk_batch_n_fields(const stk_batch *b)
{
    return b->depot->n_plain;
}

const stk_array *stk_field_at(const stk_batch *b, int i)
{
    return i >= 0 && i < b->depot->n_fields ? &b->arrays[i] : NULL;
}

static int find_field(const stk_batch *b, const char *name)
{
    for (int i = 0; name && i < b->depot->n_fields; i++)
        if (strcmp(b->depot->fields[i].name, name) == 0)
            return i;
    return -1;
}

const stk_array *stk_field(const stk_batch *b, const char *name)
{
    return stk_field_at(b, find_field(b, name));
}

stk_memory *stk_batch_retain_field(const stk_batch *b, const char *name)
{
    const int i = find_field(b, name);
    if (i < 0 || !b->memory[i])
        return NULL;
    stk_memory_retain(b->memory[i]);
    return b->memory[i];
}

int stk_batch_use(const stk_batch *b, void *stream, stk_error *e)
{
    int rc = STK_OK;
    for (int i = 0; i < b->depot->n_fields && rc == STK_OK; i++)
        if (b->memory[i])
            rc = stk_memory_use(b->memory[i], stream, e);
    return rc;
}
