/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protos.h -- writes messages of protocol buffers, for the tests of examples.
 *
 *     struct buf list = {0}, feature = {0};
 *     proto_bytes(&list, 1, "abc", 3);
 *     proto_message(&feature, 1, &list);         empties list
 */
#ifndef PROTOS_H
#define PROTOS_H

#include <string.h>

#include "base/buf.h"

static inline void proto_varint(struct buf *b, uint64_t v)
{
    uint8_t to[10];
    size_t n = 0;
    for (; v > 127; v >>= 7)
        to[n++] = (uint8_t)(v | 128);
    to[n++] = (uint8_t)v;
    buf_add(b, to, n);
}

static inline void proto_bytes(struct buf *b, unsigned number, const void *p, size_t n)
{
    proto_varint(b, number << 3 | 2);
    proto_varint(b, n);
    buf_add(b, p, n);
}

static inline void proto_message(struct buf *b, unsigned number, struct buf *inner)
{
    proto_bytes(b, number, inner->data, inner->len);
    inner->len = 0;
}

/* Features of the three kinds, as the value of an entry. */
static inline void proto_ints(struct buf *feature, const int64_t *v, int n, int packed)
{
    struct buf run = {0}, list = {0};
    for (int i = 0; i < n; i++) {
        if (!packed)
            proto_varint(&list, 1 << 3);
        proto_varint(packed ? &run : &list, (uint64_t)v[i]);
    }
    if (packed)
        proto_message(&list, 1, &run);
    proto_message(feature, 3, &list);
    buf_done(&run);
    buf_done(&list);
}

static inline void proto_floats(struct buf *feature, const float *v, int n, int packed)
{
    struct buf list = {0};
    for (int i = 0; i < n && !packed; i++) {
        proto_varint(&list, 1 << 3 | 5);
        buf_add(&list, &v[i], sizeof v[i]);
    }
    if (packed)
        proto_bytes(&list, 1, v, (size_t)n * sizeof *v);
    proto_message(feature, 2, &list);
    buf_done(&list);
}

/* n strings, each ended by 0. */
static inline void proto_strings(struct buf *feature, const char *const *v, int n)
{
    struct buf list = {0};
    for (int i = 0; i < n; i++)
        proto_bytes(&list, 1, v[i], strlen(v[i]));
    proto_message(feature, 1, &list);
    buf_done(&list);
}

/* An entry of a map; empties value. */
static inline void proto_entry(struct buf *map, const char *name, struct buf *value)
{
    struct buf entry = {0};
    proto_bytes(&entry, 1, name, strlen(name));
    proto_message(&entry, 2, value);
    proto_message(map, 1, &entry);
    buf_done(&entry);
}

#endif
