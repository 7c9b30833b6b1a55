/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c -- reads the wire format of protocol buffers.
 */
#include "format/wire.h"

#include "base/bytes.h"

enum { VARINT_MAX = 10 };

static const uint64_t tops = UINT64_C(0x8080808080808080); /* set if the varint continues */

/* The size of a varint; 0: it does not end within n bytes. Most have one or two bytes. */
static inline size_t varint(const uint8_t *p, size_t n, uint64_t *out)
{
    if (n > 0 && p[0] < 128) {
        *out = p[0];
        return 1;
    }
    if (n > 1 && p[1] < 128) {
        *out = (p[0] & 127u) | (uint64_t)p[1] << 7;
        return 2;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < n && i < VARINT_MAX; i++) {
        v |= (uint64_t)(p[i] & 127) << (7 * i);
        if (p[i] < 128) {
            *out = v;
            return i + 1;
        }
    }
    return 0;
}

static inline bool read_head(const uint8_t *p, size_t n, struct wire_head *h)
{
    uint64_t tag;
    const size_t first = varint(p, n, &tag);
    if (first == 0 || tag >> 3 == 0 || tag >> 32 != 0)
        return false;
    h->number = (uint32_t)(tag >> 3);
    h->type = (enum wire_type)(tag & 7);
    h->bytes = first;
    switch (h->type) {
    case WIRE_BYTES: {
        const size_t second = varint(p + first, n - first, &h->n);
        h->bytes += second;
        return second > 0;
    }
    case WIRE_VARINT:
        h->n = varint(p + first, n - first, &tag);
        return h->n > 0;
    case WIRE_FIXED64:
    case WIRE_FIXED32:
        h->n = h->type == WIRE_FIXED64 ? 8 : 4;
        return true;
    }
    return false;
}

bool wire_head(const uint8_t *p, size_t n, struct wire_head *h)
{
    return read_head(p, n, h);
}

int wire_next(struct wire *w, struct wire_field *f)
{
    const size_t left = (size_t)(w->end - w->p);
    struct wire_head h;
    if (left == 0)
        return 0;
    if (!read_head(w->p, left, &h) || h.n > left - h.bytes)
        return -1;
    *f = (struct wire_field){.number = h.number, .type = h.type, .p = w->p + h.bytes, .n = (size_t)h.n};
    w->p = f->p + f->n;
    return 1;
}

/* ------------------------------------------------------------------ runs of numbers */

size_t wire_count(const uint8_t *p, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += p[i] < 128;
    return count;
}

/* Joins the groups of 7 bits of eight bytes. */
static uint64_t close_up(uint64_t v)
{
    v = (v & UINT64_C(0x007f007f007f007f)) | (v & UINT64_C(0x7f007f007f007f00)) >> 1;
    v = (v & UINT64_C(0x00003fff00003fff)) | (v & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (v & UINT64_C(0x0fffffff)) | (v & UINT64_C(0x0fffffff00000000)) >> 4;
}

/* Decodes the varints that end within eight bytes; returns how many. */
static int look(const uint8_t *p, int64_t *to, size_t *took)
{
    const uint64_t v = le64(p), ends = ~v & tops;
    if (ends == tops) { /* one byte each */
        for (int i = 0; i < 8; i++)
            to[i] = p[i];
        *took = 8;
        return 8;
    }
    if (!ends)
        return 0;
    to[0] = (int64_t)close_up(v & (ends ^ (ends - 1)));
    *took = ((unsigned)__builtin_ctzll(ends) + 1) / 8;
    return 1;
}

bool wire_ints(const uint8_t *p, size_t n, int64_t *to)
{
    while (n > 0) {
        size_t took = 0;
        int numbers = n >= 8 ? look(p, to, &took) : 0;
        if (numbers == 0) {
            uint64_t v;
            took = varint(p, n, &v);
            if (took == 0)
                return false;
            *to = (int64_t)v;
            numbers = 1;
        }
        to += numbers;
        p += took;
        n -= took;
    }
    return true;
}
