/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_heap.c -- reads elements of variable length from a global heap.
 *
 * A heap is "GCOL", a version, 3 bytes, its size; then objects: index (2), references (2), 4 bytes, size, and the
 * bytes, padded to a multiple of 8. A large object has its own heap; small ones share a heap of 4096 bytes. So one read
 * that is a little longer than the object almost always contains it.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/size.h"
#include "format/hdf5_index.h"

enum { WINDOW = 4096, OBJECTS_MOST = 65536 };
static const char DAMAGED[] = "the heap that holds it is damaged";

/* The range of a heap that is in memory. */
struct window {
    const struct hdf5_view *v;
    struct buf *buf;
    int64_t at; /* in the file */
    size_t n, want, slack;
};

/* Reads at least n bytes from `at`, and as many as the object may have. */
static const char *look(struct window *w, int64_t at, size_t n)
{
    if (at >= w->at && at - w->at <= (int64_t)w->n && n <= w->n - (size_t)(at - w->at))
        return NULL;
    const int64_t left = w->v->size - w->v->base - at;
    const size_t most = size_add(w->want, n);
    if (at < 0 || left < (int64_t)n)
        return HDF5_CUT;
    w->at = at;
    w->n = left < (int64_t)most ? (size_t)left : most;
    if (buf_reserve(w->buf, size_add(w->n, w->slack)))
        return HDF5_NO_MEMORY;
    return hdf5_view_read(w->v, at, w->buf->data, w->n) ? NULL : HDF5_CUT;
}

static const uint8_t *bytes_at(const struct window *w, int64_t at)
{
    return w->buf->data + (at - w->at);
}

/* Finds the object; headers have h bytes. */
static const char *find(struct window *w, int64_t heap, uint32_t object, size_t h, int64_t *at, int64_t *bytes)
{
    const char *why = look(w, heap, h);
    if (why)
        return why;
    const int64_t size = hdf5_number(bytes_at(w, heap) + 8, w->v->length_bytes);
    if (memcmp(bytes_at(w, heap), "GCOL\1", 5) != 0 || size < 0 || size > w->v->size)
        return DAMAGED;
    int64_t next = heap + (int64_t)h;
    for (int i = 0; i < OBJECTS_MOST && next <= heap + size - (int64_t)h; i++) {
        why = look(w, next, h);
        if (why)
            return why;
        const uint8_t *p = bytes_at(w, next);
        *at = next + (int64_t)h;
        *bytes = hdf5_number(p + 8, w->v->length_bytes);
        if (*bytes < 0 || *bytes > heap + size - *at || le16(p) == 0)
            return DAMAGED;
        if (le16(p) == object)
            return NULL;
        next = *at + (*bytes + 7) / 8 * 8;
    }
    return DAMAGED;
}

const char *hdf5_heap_read(const struct hdf5_view *v, int64_t heap, uint32_t object, size_t bytes, size_t slack,
                           struct buf *out, size_t *begin)
{
    const size_t h = (8 + (size_t)v->length_bytes + 7) / 8 * 8;
    struct window w = {.v = v, .buf = out, .at = -1, .want = size_add(bytes, 2 * h), .slack = slack};
    int64_t at = 0, has = 0;
    if (bytes > (uint64_t)v->size)
        return HDF5_CUT;
    if (w.want < WINDOW)
        w.want = WINDOW;
    const char *why = find(&w, heap, object, h, &at, &has);
    if (!why && has < (int64_t)bytes)
        why = "its object in the heap is too short";
    if (!why)
        why = look(&w, at, bytes);
    *begin = why ? 0 : (size_t)(at - w.at);
    return why;
}
