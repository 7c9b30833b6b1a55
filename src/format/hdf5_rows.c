/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_rows.c -- reads rows of datasets in an HDF5 file.
 *
 * Several chunks may contain parts of a row: all those with the same first index. In each chunk the part is one
 * contiguous block, since the first index varies slowest. If a chunk is as wide as the row, the block is the row and is
 * read to the destination; otherwise the row is assembled from blocks.
 */
#include "format/hdf5_rows.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/size.h"
#include "format/npy.h"
#include "format/pieces.h"

enum { CHUNKS_KEPT = 128 };

const char HDF5_COSTS[] = "decompressing its chunk needs more memory than is allowed";

struct hdf5_rows {
    struct pieces *kept;  /* chunks */
    pthread_mutex_t lock; /* of what follows */
    struct hdf5_scratch *idle;
    size_t idle_bytes, idle_most;
};

struct hdf5_rows *hdf5_rows_new(size_t kept, size_t idle)
{
    struct hdf5_rows *k = calloc(1, sizeof *k);
    if (!k || !(k->kept = pieces_new(CHUNKS_KEPT, kept))) {
        free(k);
        return NULL;
    }
    pthread_mutex_init(&k->lock, NULL);
    k->idle_most = idle;
    return k;
}

void hdf5_rows_limit(struct hdf5_rows *k, size_t kept, size_t idle)
{
    pieces_limit(k->kept, kept);
    k->idle_most = idle;
}

void hdf5_rows_memory(struct hdf5_rows *k, size_t *held, size_t *most)
{
    pieces_memory(k->kept, held, most);
    pthread_mutex_lock(&k->lock);
    *held += k->idle_bytes;
    *most += k->idle_most;
    pthread_mutex_unlock(&k->lock);
}

void hdf5_rows_free(struct hdf5_rows *k)
{
    if (!k)
        return;
    pieces_free(k->kept);
    while (k->idle) {
        struct hdf5_scratch *w = k->idle;
        k->idle = w->next;
        hdf5_scratch_done(w);
        free(w);
    }
    pthread_mutex_destroy(&k->lock);
    free(k);
}

void hdf5_array_done(struct hdf5_array *a)
{
    hdf5_chunks_done(&a->chunks);
    hdf5_filters_done(&a->filters);
    free(a->fill);
    a->fill = NULL;
}

/* ------------------------------------------------------------------ scratch */

static struct hdf5_scratch *scratch_take(struct hdf5_rows *k)
{
    pthread_mutex_lock(&k->lock);
    struct hdf5_scratch *w = k->idle;
    if (w) {
        k->idle = w->next;
        k->idle_bytes -= hdf5_scratch_bytes(w);
    }
    pthread_mutex_unlock(&k->lock);
    return w ? w : calloc(1, sizeof *w);
}

/* Frees scratch that exceeds the limit. */
static void scratch_give(struct hdf5_rows *k, struct hdf5_scratch *w)
{
    const size_t bytes = hdf5_scratch_bytes(w);
    pthread_mutex_lock(&k->lock);
    const bool stays = k->idle_bytes <= k->idle_most && bytes <= k->idle_most - k->idle_bytes;
    if (stays) {
        w->next = k->idle;
        k->idle = w;
        k->idle_bytes += bytes;
    }
    pthread_mutex_unlock(&k->lock);
    if (stays)
        return;
    hdf5_scratch_done(w);
    free(w);
}

/* ------------------------------------------------------------------ one chunk */

/* An array, and what is needed to read it. */
struct from {
    struct hdf5_rows *k;
    const struct hdf5_view *v;
    const struct hdf5_array *a;
    struct hdf5_scratch *w;
    bool may_decompress;
};

static bool reaches_over(const struct hdf5_array *a, int64_t i)
{
    const struct hdf5_chunks *c = &a->chunks;
    for (int d = c->ndim - 1; d >= 0; d--) {
        if ((i % c->grid[d] + 1) * c->chunk[d] > c->shape[d])
            return true;
        i /= c->grid[d];
    }
    return false;
}

/* Whether chunk i is stored without filters. */
static bool is_plain(const struct hdf5_array *a, int64_t i)
{
    const uint32_t all = a->filters.n ? UINT32_MAX >> (32 - a->filters.n) : 0;
    return (a->chunks.of[i].mask & all) == all || (a->edges_unfiltered && reaches_over(a, i));
}

static const char *decompress(const struct from *f, int64_t i, uint8_t *to)
{
    const struct hdf5_chunk *c = &f->a->chunks.of[i];
    if (buf_reserve(&f->w->in, (size_t)c->bytes + 1))
        return HDF5_NO_MEMORY;
    if (!hdf5_view_read(f->v, c->at, f->w->in.data, c->bytes))
        return HDF5_CUT;
    return hdf5_unfilter(&f->a->filters, c->mask, f->w, c->bytes, to, f->a->chunks.chunk_bytes);
}

/* ------------------------------------------------------------------ the block of a row in a chunk */

static size_t block_bytes(const struct hdf5_array *a)
{
    return a->chunks.chunk_bytes / (size_t)a->chunks.chunk[0];
}

static void fill(const struct hdf5_array *a, uint8_t *to, size_t bytes)
{
    if (!a->fill)
        memset(to, 0, bytes);
    for (size_t at = 0; a->fill && at < bytes; at += a->element)
        memcpy(to + at, a->fill, a->element);
}

/* Reads a block through the cache of chunks. If that has no room, decompresses the chunk into the scratch. */
static const char *kept_block(const struct from *f, int64_t i, size_t at, uint8_t *to)
{
    const size_t bytes = f->a->chunks.chunk_bytes;
    bool mine = false;
    struct piece *p =
        f->may_decompress ? pieces_get(f->k->kept, f->a, i, bytes, &mine) : pieces_find(f->k->kept, f->a, i);
    if (!p && !f->may_decompress)
        return HDF5_COSTS;
    if (!p && buf_reserve(&f->w->whole, bytes))
        return HDF5_NO_MEMORY;
    uint8_t *data = p ? p->bytes : f->w->whole.data;
    const char *why = !p || mine ? decompress(f, i, data) : NULL;
    if (!why)
        memcpy(to, data + at, block_bytes(f->a));
    if (mine && !why)
        pieces_publish(f->k->kept, p, f->a, i, bytes);
    if (p)
        pieces_unpin(f->k->kept, p);
    return why;
}

/* Row r of chunk i. */
static const char *block(const struct from *f, int64_t i, int64_t r, uint8_t *to)
{
    const struct hdf5_chunk *c = &f->a->chunks.of[i];
    const size_t bytes = block_bytes(f->a), at = (size_t)r * bytes;
    if (c->at == 0) {
        fill(f->a, to, bytes);
        return NULL;
    }
    if (is_plain(f->a, i)) {
        if (c->bytes != f->a->chunks.chunk_bytes)
            return "its size differs from the size of a chunk";
        return hdf5_view_read(f->v, c->at + (int64_t)at, to, bytes) ? NULL : HDF5_CUT;
    }
    if (f->a->chunks.chunk[0] > 1)
        return kept_block(f, i, at, to);
    return f->may_decompress ? decompress(f, i, to) : HDF5_COSTS;
}

/* ------------------------------------------------------------------ a row of several chunks */

/* Copies the block of the k-th chunk of a row to its place in the row, run by run along the last dimension. */
static void place(const struct hdf5_array *a, int64_t k, const uint8_t *from, uint8_t *row)
{
    const struct hdf5_chunks *c = &a->chunks;
    int64_t n[HDF5_DIMS], at[HDF5_DIMS] = {0};
    size_t row_step[HDF5_DIMS], block_step[HDF5_DIMS], r = a->element, b = a->element;
    for (int d = c->ndim - 1; d > 0; d--) {
        const int64_t first = k % c->grid[d] * c->chunk[d];
        n[d] = c->chunk[d] < c->shape[d] - first ? c->chunk[d] : c->shape[d] - first;
        k /= c->grid[d];
        row += (size_t)first * r;
        row_step[d] = r;
        block_step[d] = b;
        r *= (size_t)c->shape[d];
        b *= (size_t)c->chunk[d];
    }
    const int last = c->ndim - 1;
    const size_t run = (size_t)n[last] * a->element;
    for (;;) {
        memcpy(row, from, run);
        int d = last - 1;
        for (; d > 0; d--) {
            row += row_step[d];
            from += block_step[d];
            if (++at[d] < n[d])
                break;
            row -= row_step[d] * (size_t)n[d];
            from -= block_step[d] * (size_t)n[d];
            at[d] = 0;
        }
        if (d <= 0)
            return;
    }
}

static bool as_wide_as_row(const struct hdf5_chunks *c)
{
    for (int d = 1; d < c->ndim; d++)
        if (c->chunk[d] != c->shape[d])
            return false;
    return true;
}

/* Assembles a row from its chunks, of which `first` is the first. */
static const char *put_together(const struct from *f, int64_t first, int64_t across, int64_t r, uint8_t *to)
{
    if (buf_reserve(&f->w->block, block_bytes(f->a)))
        return HDF5_NO_MEMORY;
    const char *why = NULL;
    for (int64_t k = 0; k < across && !why; k++) {
        why = block(f, first + k, r, f->w->block.data);
        if (!why)
            place(f->a, k, f->w->block.data, to);
    }
    return why;
}

/* The chunk as stored and decompressed, the buffers between filters, and the stored row that values are extracted from.
 */
size_t hdf5_row_cost(const struct hdf5_array *a, int64_t row)
{
    const struct hdf5_chunks *c = &a->chunks;
    const size_t picked = hdf5_is_dense(a) ? 0 : a->stored_bytes;
    if (a->place != HDF5_IN_CHUNKS || a->filters.n == 0 || c->n == 0)
        return picked;
    const int64_t across = c->n / c->grid[0], first = row / c->chunk[0] * across;
    size_t compressed = 0;
    for (int64_t k = first; k < first + across; k++)
        compressed = (size_t)c->of[k].bytes > compressed ? (size_t)c->of[k].bytes : compressed;
    const size_t copies = a->filters.n < 3 ? (size_t)a->filters.n : 3;
    return size_add(picked, size_add(compressed, size_mul(c->chunk_bytes, copies)));
}

static const char *chunked(struct from *f, int64_t row, size_t allowed, uint8_t *to)
{
    const struct hdf5_chunks *c = &f->a->chunks;
    const int64_t across = c->n / c->grid[0], first = row / c->chunk[0] * across, r = row % c->chunk[0];
    const bool wide = as_wide_as_row(c);
    if (wide && (c->of[first].at == 0 || is_plain(f->a, first)))
        return block(f, first, r, to); /* needs no scratch */
    f->may_decompress = hdf5_row_cost(f->a, row) <= allowed;
    f->w = scratch_take(f->k);
    if (!f->w)
        return HDF5_NO_MEMORY;
    const char *why = wide ? block(f, first, r, to) : put_together(f, first, across, r, to);
    scratch_give(f->k, f->w);
    return why;
}

/* ------------------------------------------------------------------ rows */

/* Looks at a limited number of chunks; the caller asks again for more. */
int64_t hdf5_rows_unwritten(const struct hdf5_array *a, int64_t row)
{
    enum { LOOKS = 1 << 16 };
    const struct hdf5_chunks *c = &a->chunks;
    if (a->place == HDF5_ABSENT)
        return a->shape[0] - row;
    if (a->place != HDF5_IN_CHUNKS || c->n == 0)
        return 0;
    const int64_t across = c->n / c->grid[0], begin = row / c->chunk[0] * across;
    int64_t k = begin;
    while (k < c->n && k - begin < LOOKS && c->of[k].at == 0)
        k++;
    const int64_t end = k / across * c->chunk[0];
    return end <= row ? 0 : (end < a->shape[0] ? end : a->shape[0]) - row;
}

static const char *row_as_stored(struct hdf5_rows *k, const struct hdf5_view *v, const struct hdf5_array *a,
                                 int64_t row, size_t allowed, uint8_t *to)
{
    if (a->stored_bytes == 0)
        return NULL;
    if (a->place == HDF5_ABSENT) {
        fill(a, to, a->stored_bytes);
        return NULL;
    }
    if (a->place == HDF5_IN_ONE)
        return hdf5_view_read(v, a->at + row * (int64_t)a->stored_bytes, to, a->stored_bytes) ? NULL : HDF5_CUT;
    struct from f = {.k = k, .v = v, .a = a};
    return chunked(&f, row, allowed, to);
}

/* Reads the values of a row in the file's byte order. */
static const char *row_values(struct hdf5_rows *k, const struct hdf5_view *v, const struct hdf5_array *a, int64_t row,
                              size_t allowed, uint8_t *to)
{
    if (hdf5_is_dense(a))
        return row_as_stored(k, v, a, row, allowed, to);
    if (a->stored_bytes > allowed)
        return HDF5_COSTS;
    struct hdf5_scratch *w = scratch_take(k);
    if (!w)
        return HDF5_NO_MEMORY;
    const char *why =
        buf_reserve(&w->row, a->stored_bytes) ? HDF5_NO_MEMORY : row_as_stored(k, v, a, row, allowed, w->row.data);
    if (!why)
        hdf5_gather(a, w->row.data, to);
    scratch_give(k, w);
    return why;
}

const char *hdf5_row(struct hdf5_rows *k, const struct hdf5_view *v, const struct hdf5_array *a, int64_t row,
                     size_t allowed, void *to)
{
    const char *why = row_values(k, v, a, row, allowed, to);
    if (!why && a->type == HDF5_NUMBERS && a->swapped && !a->form.odd)
        npy_swap(to, a->row_bytes / a->item, a->item);
    return why;
}

/* Elements (4), heap, object (4). */
const char *hdf5_row_far(struct hdf5_rows *k, const struct hdf5_view *v, const struct hdf5_array *a, int64_t row,
                         size_t allowed, struct hdf5_far *out)
{
    uint8_t at[4 + 8 + 4];
    if (a->row_bytes != a->item || a->item > sizeof at)
        return "it has several elements of variable length";
    const char *why = row_values(k, v, a, row, allowed, at);
    if (why)
        return why;
    out->bytes = size_mul(le32(at), dtype_bytes(a->dtype));
    out->heap = hdf5_address(v, at + 4);
    out->object = le32(at + 4 + v->offset_bytes);
    return NULL;
}
