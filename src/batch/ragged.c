/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ragged.c -- the rows of ragged fields. Threads make them separately; they are joined once all of them exist.
 *
 * Their lengths are not known in advance. So the ragged rows of a batch have a limit in bytes, and rows beyond it are
 * not kept. No further batch is started while the rows of all batches under way exceed that limit.
 */
#include "batch/batch.h"

#include <string.h>

#include "base/error.h"

/* ------------------------------------------------------------------ rows */

static void count(struct stk_batch *b, int64_t n)
{
    atomic_fetch_add_explicit(&b->ragged, n, memory_order_relaxed);
    atomic_fetch_add_explicit(&b->depot->ragged, n, memory_order_relaxed);
}

static bool exceeds(const struct depot *d, int64_t bytes)
{
    return d->ragged_most > 0 && bytes > d->ragged_most;
}

bool depot_is_full(const struct depot *d)
{
    return d->ragged_most > 0 && atomic_load_explicit(&d->ragged, memory_order_relaxed) >= d->ragged_most;
}

void ragged_begin(struct stk_batch *b)
{
    for (int i = 0; i < b->n_fields; i++)
        for (int64_t row = 0; b->ragged_rows[i] && row < batch_entries(&b->depot->fields[i], b->depot->rows); row++)
            b->ragged_rows[i][row].n = 0;
    atomic_store_explicit(&b->too_large, false, memory_order_relaxed);
}

void ragged_end(struct stk_batch *b)
{
    count(b, -atomic_load_explicit(&b->ragged, memory_order_relaxed));
}

void ragged_drop(struct stk_batch *b)
{
    for (int i = 0; i < b->n_fields; i++)
        for (int64_t row = 0; b->ragged_rows[i] && row < batch_entries(&b->depot->fields[i], b->depot->rows); row++) {
            atomic_fetch_sub_explicit(&b->depot->allocated, (int64_t)b->ragged_rows[i][row].cap, memory_order_relaxed);
            ragged_row_done(&b->ragged_rows[i][row]);
        }
}

void ragged_copy(struct stk_batch *b, int field, int64_t from, int64_t to)
{
    struct ragged_row *p = &b->ragged_rows[field][to];
    const int64_t cap = (int64_t)p->cap, n = (int64_t)p->n;
    if (ragged_row_copy(p, from < 0 ? NULL : &b->ragged_rows[field][from]))
        ragged_row_copy(p, NULL);
    atomic_fetch_add_explicit(&b->depot->allocated, (int64_t)p->cap - cap, memory_order_relaxed);
    count(b, (int64_t)p->n - n);
}

struct ragged_row *batch_open_ragged(struct stk_batch *b, int field, int64_t row)
{
    struct ragged_row *p = batch_ragged_row(b, field, row);
    if (atomic_load_explicit(&b->too_large, memory_order_relaxed)) {
        ragged_copy(b, field, -1, row);
        return NULL;
    }
    atomic_fetch_sub_explicit(&b->depot->allocated, (int64_t)p->cap, memory_order_relaxed);
    count(b, -(int64_t)p->n);
    return p;
}

void batch_close_ragged(struct stk_batch *b, const struct ragged_row *p)
{
    atomic_fetch_add_explicit(&b->depot->allocated, (int64_t)p->cap, memory_order_relaxed);
    count(b, (int64_t)p->n);
    if (exceeds(b->depot, atomic_load_explicit(&b->ragged, memory_order_relaxed)))
        atomic_store_explicit(&b->too_large, true, memory_order_relaxed);
}

/* ------------------------------------------------------------------ joining */

/* How many rows of a ragged field the batch has. */
static int64_t rows_of(const struct stk_batch *b, int i)
{
    return batch_entries(&b->depot->fields[i], b->rows);
}

static int64_t longest(const struct stk_batch *b, int i)
{
    int64_t most = 0;
    for (int64_t row = 0; row < rows_of(b, i); row++)
        if (b->ragged_rows[i][row].shape[0] > most)
            most = b->ragged_rows[i][row].shape[0];
    return most;
}

static struct stk_memory *join_memory(struct stk_batch *b, int i, uint64_t bytes)
{
    enum { LEAST = 4096 };
    if (bytes > SIZE_MAX / 4 || exceeds(b->depot, (int64_t)bytes)) {
        atomic_store_explicit(&b->too_large, true, memory_order_relaxed);
        return NULL;
    }
    const size_t room = bytes < LEAST ? LEAST : (size_t)bytes + (size_t)bytes / 8;
    stk_memory_release(b->memory[i]);
    b->memory[i] = depot_memory(b->depot, i, room);
    b->arrays[i].data = b->memory[i] ? b->memory[i]->data : NULL;
    return b->memory[i];
}

int batch_open_row(struct stk_batch *b, int field, const int64_t *shape, size_t bytes, uint8_t **row, stk_error *e)
{
    const struct depot *d = b->depot;
    const int64_t had = b->memory[field] ? (int64_t)b->memory[field]->bytes : 0, mib = 1 << 20;
    if (exceeds(d, (int64_t)bytes))
        return error_set(
            e, STK_EDATA, "batch",
            "the image takes %lld MiB in a batch, but the memory limit leaves only %lld MiB for it; raise memory",
            ((long long)bytes + mib - 1) / mib, (long long)d->ragged_most / mib);
    count(b, -had);
    if (!join_memory(b, field, bytes))
        return error_nomem(e, "batch", bytes);
    count(b, (int64_t)b->memory[field]->bytes);
    memcpy(&b->shapes[field][1], shape, (size_t)d->fields[field].ndim * sizeof *shape);
    *row = b->memory[field]->data;
    return STK_OK;
}

/* Joins the values of all rows, and writes where each row begins. */
static int join_values(struct stk_batch *b, int i)
{
    const struct field *f = &b->depot->fields[i];
    const int64_t rows = rows_of(b, i);
    int64_t *offsets = (void *)b->memory[f->beside]->data, all = 0;
    uint64_t bytes = 0;
    for (int64_t row = 0; row < rows; row++) {
        offsets[row] = all;
        const struct ragged_row *p = &b->ragged_rows[i][row];
        all += field_is_flat(f) ? (int64_t)(p->n / dtype_bytes(f->dtype)) : p->shape[0];
        bytes += p->n;
    }
    offsets[rows] = all;
    if (!join_memory(b, i, bytes))
        return -1;
    uint8_t *to = b->memory[i]->data;
    for (int64_t row = 0; row < rows; row++) {
        const struct ragged_row *p = &b->ragged_rows[i][row];
        if (p->n > 0)
            memcpy(to, p->data, p->n);
        to += p->n;
    }
    b->arrays[i].ndim = field_is_flat(f) ? 1 : f->ndim;
    b->shapes[i][0] = all;
    for (int k = 1; k < f->ndim; k++)
        b->shapes[i][k] = f->shape[k];
    return 0;
}

/* Rows of the longest one's length. */
static int join_padded(struct stk_batch *b, int i)
{
    const struct field *f = &b->depot->fields[i];
    const int64_t most = longest(b, i), rows = rows_of(b, i);
    const size_t row_bytes = (size_t)most * f->bytes, item = dtype_bytes(f->dtype);
    const bool counts = (uint64_t)most <= SIZE_MAX / 4 / f->bytes / (uint64_t)(rows + 1);
    if (!join_memory(b, i, counts ? row_bytes * (uint64_t)rows : UINT64_MAX))
        return -1;
    int64_t *lengths = (void *)b->memory[f->beside]->data;
    for (int64_t row = 0; row < rows; row++) {
        const struct ragged_row *p = &b->ragged_rows[i][row];
        uint8_t *to = b->memory[i]->data + (size_t)row * row_bytes;
        lengths[row] = p->shape[0];
        if (p->n > 0)
            memcpy(to, p->data, p->n);
        for (size_t at = p->n; at < row_bytes; at += item)
            memcpy(to + at, f->fill, item);
    }
    b->arrays[i].ndim = f->ndim + 1;
    b->shapes[i][0] = rows;
    b->shapes[i][1] = most;
    for (int k = 1; k < f->ndim; k++)
        b->shapes[i][k + 1] = f->shape[k];
    return 0;
}

/* Images of the largest height and width. */
static int join_frames(struct stk_batch *b, int i)
{
    const struct field *f = &b->depot->fields[i];
    const int y = f->frame - 1, last = f->ndim - 1;
    const size_t item = dtype_bytes(f->dtype);
    int64_t most[2] = {0}, planes = y > 0 ? f->shape[0] : 1, pixel = last > y + 1 ? f->shape[last] : 1;
    for (int64_t row = 0; row < b->rows; row++)
        for (int k = 0; k < 2; k++)
            if (b->ragged_rows[i][row].shape[y + k] > most[k])
                most[k] = b->ragged_rows[i][row].shape[y + k];
    const uint64_t line = (uint64_t)most[1] * (uint64_t)pixel * item, plane = line * (uint64_t)most[0];
    const bool counts = plane <= SIZE_MAX / 4 / (uint64_t)planes / (uint64_t)(b->rows + 1);
    if (!join_memory(b, i, counts ? plane * (uint64_t)planes * (uint64_t)b->rows : UINT64_MAX))
        return -1;
    int64_t *sizes = (void *)b->memory[f->beside]->data;
    uint8_t *to = b->memory[i]->data;
    for (int64_t row = 0; row < b->rows; row++) {
        const struct ragged_row *p = &b->ragged_rows[i][row];
        const size_t own = (size_t)(p->shape[y + 1] * pixel) * item;
        const uint8_t *from = p->data;
        memcpy(sizes + 2 * row, &p->shape[y], 2 * sizeof *sizes);
        for (int64_t at = 0; at < planes * most[0]; at++, to += line) {
            const bool inside = at % most[0] < p->shape[y];
            if (inside && own > 0)
                memcpy(to, from, own);
            from += inside ? own : 0;
            for (size_t k = inside ? own : 0; k < line; k += item)
                memcpy(to + k, f->fill, item);
        }
    }
    b->arrays[i].ndim = f->ndim + 1;
    b->shapes[i][0] = b->rows;
    for (int k = 0; k < f->ndim; k++)
        b->shapes[i][k + 1] = k == y ? most[0] : k == y + 1 ? most[1] : f->shape[k];
    return 0;
}

static void join_shapes(struct stk_batch *b, int i)
{
    const struct field *f = &b->depot->fields[i];
    for (int64_t row = 0; row < rows_of(b, i); row++)
        memcpy(batch_row(b, f->beside + 1, row), b->ragged_rows[i][row].shape, (size_t)f->ndim * sizeof(int64_t));
}

static int fails(const struct stk_batch *b, int i, stk_error *e)
{
    if (!atomic_load_explicit(&b->too_large, memory_order_relaxed))
        return error_nomem(e, "batch", 0);
    return error_set(e, STK_ENOMEM, "batch",
                     "the rows of the ragged field %s take more than the %lld MiB that the memory limit leaves for "
                     "them in a batch; raise memory, or use a smaller batch_size",
                     b->depot->fields[i].name, (long long)(b->depot->ragged_most >> 20));
}

int batch_join(struct stk_batch *b, stk_error *e)
{
    const struct depot *d = b->depot;
    for (int i = 0; i < d->n_fields; i++) {
        const struct field *f = &d->fields[i];
        if (f->kind == FIELD_OPEN && !b->memory[i] && !join_memory(b, i, 0)) /* the batch has no row */
            return fails(b, i, e);
        if (f->kind != FIELD_RAGGED)
            continue;
        if (atomic_load_explicit(&b->too_large, memory_order_relaxed) || (f->frame && f->pad ? join_frames(b, i)
                                                                          : f->pad           ? join_padded(b, i)
                                                                                             : join_values(b, i)))
            return fails(b, i, e);
        if (field_is_flat(f) && !(f->frame && f->pad))
            join_shapes(b, i);
    }
    ragged_end(b);
    if (exceeds(d, atomic_load_explicit(&d->allocated, memory_order_relaxed)))
        ragged_drop(b);
    return STK_OK;
}
