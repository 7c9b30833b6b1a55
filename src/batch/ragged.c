/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ragged.c -- the rows of ragged fields, made apart by many threads, are put together when all are there.
 */
#include <string.h>

#include "batch/batch.h"

static int64_t longest(const struct stk_batch *b, int i)
{
    int64_t most = 0;
    for (int64_t row = 0; row < b->rows; row++)
        if (b->pieces[i][row].shape[0] > most)
            most = b->pieces[i][row].shape[0];
    return most;
}

static struct stk_memory *join_memory(struct stk_batch *b, int i, uint64_t bytes)
{
    enum { LEAST = 4096 };
    if (bytes > SIZE_MAX / 4)
        return NULL;
    const size_t room = bytes < LEAST ? LEAST : (size_t)bytes + (size_t)bytes / 8;
    stk_memory_release(b->memory[i]);
    b->memory[i] = depot_memory(b->depot, i, room);
    b->arrays[i].data = b->memory[i] ? b->memory[i]->data : NULL;
    return b->memory[i];
}

static int64_t elements(const struct field *f, const struct piece *p)
{
    return field_is_flat(f) ? (int64_t)(p->n / dtype_bytes(f->dtype)) : p->shape[0];
}

/* One after the other, and where each begins. */
static int join_values(struct stk_batch *b, int i)
{
    const struct field *f = &b->depot->fields[i];
    int64_t *offsets = (void *)b->memory[f->beside]->data, all = 0;
    uint64_t bytes = 0;
    for (int64_t row = 0; row < b->rows; row++) {
        offsets[row] = all;
        all += elements(f, &b->pieces[i][row]);
        bytes += b->pieces[i][row].n;
    }
    offsets[b->rows] = all;
    if (!join_memory(b, i, bytes))
        return -1;
    uint8_t *to = b->memory[i]->data;
    for (int64_t row = 0; row < b->rows; row++) {
        const struct piece *p = &b->pieces[i][row];
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
    const int64_t most = longest(b, i);
    const size_t row_bytes = (size_t)most * f->bytes, item = dtype_bytes(f->dtype);
    if ((uint64_t)most > SIZE_MAX / 4 / f->bytes / (uint64_t)(b->rows + 1) ||
        !join_memory(b, i, row_bytes * (uint64_t)b->rows))
        return -1;
    int64_t *lengths = (void *)b->memory[f->beside]->data;
    for (int64_t row = 0; row < b->rows; row++) {
        const struct piece *p = &b->pieces[i][row];
        uint8_t *to = b->memory[i]->data + (size_t)row * row_bytes;
        lengths[row] = p->shape[0];
        if (p->n > 0)
            memcpy(to, p->data, p->n);
        for (size_t at = p->n; at < row_bytes; at += item)
            memcpy(to + at, f->fill, item);
    }
    b->arrays[i].ndim = f->ndim + 1;
    b->shapes[i][0] = b->rows;
    b->shapes[i][1] = most;
    for (int k = 1; k < f->ndim; k++)
        b->shapes[i][k + 1] = f->shape[k];
    return 0;
}

static void join_shapes(struct stk_batch *b, int i)
{
    const struct field *f = &b->depot->fields[i];
    for (int64_t row = 0; row < b->rows; row++)
        memcpy(batch_row(b, f->beside + 1, row), b->pieces[i][row].shape, (size_t)f->ndim * sizeof(int64_t));
}

int batch_join(struct stk_batch *b)
{
    for (int i = 0; i < b->depot->n_fields; i++) {
        const struct field *f = &b->depot->fields[i];
        if (f->kind != FIELD_RAGGED)
            continue;
        if (f->pad ? join_padded(b, i) : join_values(b, i))
            return -1;
        if (field_is_flat(f))
            join_shapes(b, i);
    }
    return 0;
}
