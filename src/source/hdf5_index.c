/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_index.c -- the layout of a dataset.
 *
 * An object's header is a list of messages in one or more blocks; of two versions. The message of type 8 is the layout.
 */
#include "source/hdf5_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "source/io.h"

static const char DAMAGED[] = "its layout is damaged";

enum { BLOCKS_MOST = 64, BLOCK_BYTES_MOST = 1 << 20, MESSAGE_LAYOUT = 8, MESSAGE_CONTINUES = 16 };

bool hdf5_view_read(const struct hdf5_view *v, int64_t at, void *to, size_t n)
{
    if (at < 0 || at > v->size - v->base || n > (uint64_t)(v->size - v->base - at))
        return false;
    if (v->fd >= 0)
        return io_pread(v->fd, to, n, v->base + at) == (ssize_t)n;
    memcpy(to, v->memory + v->base + at, n);
    return true;
}

int64_t hdf5_number(const uint8_t *p, int bytes)
{
    uint64_t x = 0;
    for (int i = bytes - 1; i >= 0; i--)
        x = x << 8 | p[i];
    return x > INT64_MAX ? -1 : (int64_t)x;
}

int64_t hdf5_address(const struct hdf5_view *v, const uint8_t *p)
{
    bool none = true;
    for (int i = 0; i < v->offset_bytes; i++)
        none = none && p[i] == 0xff;
    return none ? -1 : hdf5_number(p, v->offset_bytes);
}

/* ------------------------------------------------------------------ the layout message */

struct message {
    const uint8_t *p, *end;
    int64_t at; /* of p in the file */
};

static bool has(const struct message *m, size_t n)
{
    return (size_t)(m->end - m->p) >= n;
}

static void skip(struct message *m, size_t n)
{
    m->p += n;
    m->at += (int64_t)n;
}

static int64_t take(struct message *m, int bytes)
{
    if (!has(m, (size_t)bytes))
        return -1;
    const int64_t x = hdf5_number(m->p, bytes);
    skip(m, (size_t)bytes);
    return x;
}

static int64_t take_address(const struct hdf5_view *v, struct message *m)
{
    const int64_t at = has(m, (size_t)v->offset_bytes) ? hdf5_address(v, m->p) : -1;
    take(m, v->offset_bytes);
    return at;
}

static void set_place(struct hdf5_layout *out, enum hdf5_place place, int64_t at)
{
    out->place = at < 0 ? HDF5_ABSENT : place;
    out->at = at;
}

/* Versions 1 and 2: ndim, class, 5 bytes, address unless compact, sizes; compact ones have their bytes here. */
static const char *old_layout(const struct hdf5_view *v, struct message *m, struct hdf5_layout *out)
{
    const int64_t ndim = take(m, 1), kind = take(m, 1);
    if (!has(m, 5) || ndim < 0 || kind < 0 || kind > 2)
        return DAMAGED;
    skip(m, 5);
    if (kind > 0) {
        set_place(out, kind == 1 ? HDF5_IN_ONE : HDF5_IN_CHUNKS, take_address(v, m));
        out->bytes = INT64_MAX;
        return NULL;
    }
    if (!has(m, 4 * (size_t)ndim + 4))
        return DAMAGED;
    skip(m, 4 * (size_t)ndim);
    out->bytes = take(m, 4);
    set_place(out, HDF5_IN_ONE, m->at);
    return has(m, (size_t)out->bytes) ? NULL : DAMAGED;
}

static const char *single_layout(const struct hdf5_view *v, struct message *m, bool filtered, struct hdf5_layout *out)
{
    out->filtered = filtered;
    if (filtered) {
        const int64_t bytes = take(m, v->length_bytes), mask = take(m, 4);
        if (bytes < 0 || bytes > UINT32_MAX || mask < 0)
            return DAMAGED;
        out->single_bytes = (uint32_t)bytes;
        out->single_mask = (uint32_t)mask;
    }
    set_place(out, HDF5_IN_CHUNKS, take_address(v, m));
    return NULL;
}

/* Version 4: flags, ndim, width of sizes, sizes, kind of index, what that kind has, address. */
static const char *chunk_layout(const struct hdf5_view *v, struct message *m, struct hdf5_layout *out)
{
    static const uint8_t own[] = {
        [HDF5_INDEX_IMPLICIT] = 0, [HDF5_INDEX_FIXED] = 1, [HDF5_INDEX_EXTENSIBLE] = 5, [HDF5_INDEX_TREE_2] = 6};
    const int64_t flags = take(m, 1), ndim = take(m, 1), width = take(m, 1);
    if (flags < 0 || ndim < 1 || width < 1 || width > 8 || !has(m, (size_t)(ndim * width)))
        return DAMAGED;
    skip(m, (size_t)(ndim * width));
    const int64_t kind = take(m, 1);
    if (kind < HDF5_INDEX_SINGLE || kind > HDF5_INDEX_TREE_2)
        return HDF5_INDEX_UNKNOWN;
    out->index = (enum hdf5_index_kind)kind;
    out->edges_unfiltered = flags & 1;
    if (kind == HDF5_INDEX_SINGLE)
        return single_layout(v, m, flags & 2, out);
    if (!has(m, own[kind]))
        return DAMAGED;
    skip(m, own[kind]);
    set_place(out, HDF5_IN_CHUNKS, take_address(v, m));
    return NULL;
}

static const char *layout(const struct hdf5_view *v, struct message *m, struct hdf5_layout *out)
{
    *out = (struct hdf5_layout){.bytes = -1};
    const int64_t version = take(m, 1);
    if (version == 1 || version == 2)
        return old_layout(v, m, out);
    const int64_t kind = version == 3 || version == 4 ? take(m, 1) : -1;
    switch (kind) {
    case 0:
        out->bytes = take(m, 2);
        set_place(out, HDF5_IN_ONE, m->at);
        return out->bytes >= 0 && has(m, (size_t)out->bytes) ? NULL : DAMAGED;
    case 1:
        set_place(out, HDF5_IN_ONE, take_address(v, m));
        out->bytes = take(m, v->length_bytes);
        return NULL;
    case 2:
        if (version == 4)
            return chunk_layout(v, m, out);
        take(m, 1); /* dimensions */
        set_place(out, HDF5_IN_CHUNKS, take_address(v, m));
        return NULL;
    case 3:
        out->place = HDF5_ELSEWHERE;
        return NULL;
    default:
        return "its layout is of a version that is not known here";
    }
}

/* ------------------------------------------------------------------ the header of an object */

/* Blocks of messages that are still to be looked at. */
struct header {
    const struct hdf5_view *v;
    int version;  /* 1 or 2 */
    bool ordered; /* messages of version 2 have a number */
    int n, next;
    struct {
        int64_t at, bytes;
    } blocks[BLOCKS_MOST];
};

static bool add_block(struct header *h, int64_t at, int64_t bytes)
{
    if (h->n == BLOCKS_MOST || at < 0 || bytes < 0 || bytes > BLOCK_BYTES_MOST)
        return false;
    h->blocks[h->n].at = at;
    h->blocks[h->n].bytes = bytes;
    h->n++;
    return true;
}

/* Version 1: version, 0, messages (2), references (4), bytes (4), 0 (4). */
static bool begin_1(struct header *h, const uint8_t *p, int64_t at)
{
    h->version = 1;
    return add_block(h, at + 16, le32(p + 8));
}

/* Version 2: "OHDR", version, flags, times (16)?, limits (4)?, bytes (1, 2, 4 or 8). */
static bool begin_2(struct header *h, const uint8_t *p, int64_t at)
{
    const int flags = p[5], width = 1 << (flags & 3);
    const int ahead = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
    h->version = 2;
    h->ordered = flags & 4;
    return p[4] == 2 && add_block(h, at + ahead + width, hdf5_number(p + ahead, width));
}

static bool continues(struct header *h, struct message *m)
{
    const int64_t at = take_address(h->v, m), bytes = take(m, h->v->length_bytes);
    /* A block of version 2 has "OCHK" in front and a checksum behind. */
    return h->version == 1 ? add_block(h, at, bytes) : at >= 0 && add_block(h, at + 4, bytes - 8);
}

/* The next message of a block; *all then begins behind it. */
static bool next_message(const struct header *h, struct message *all, struct message *m, int64_t *type)
{
    const bool first = h->version == 1;
    *type = take(all, first ? 2 : 1);
    const int64_t bytes = take(all, 2);
    const size_t rest = first ? 4 : h->ordered ? 3 : 1; /* flags, and what else */
    if (*type < 0 || bytes < 0 || !has(all, rest + (size_t)bytes))
        return false;
    skip(all, rest);
    *m = (struct message){all->p, all->p + bytes, all->at};
    skip(all, (size_t)bytes);
    return true;
}

/* Whether the layout is in this block, and in *out. */
static bool search(struct header *h, struct message all, struct hdf5_layout *out, const char **why)
{
    struct message m;
    for (int64_t type; next_message(h, &all, &m, &type);) {
        if (type == MESSAGE_LAYOUT) {
            *why = layout(h->v, &m, out);
            return true;
        }
        if (type == MESSAGE_CONTINUES && !continues(h, &m))
            return false;
    }
    return false;
}

const char *hdf5_layout_read(const struct hdf5_view *v, int64_t header, struct hdf5_layout *out)
{
    struct header h = {.v = v};
    uint8_t first[40] = {0}; /* fewer, where the file ends behind it */
    const int64_t left = v->size - v->base - header;
    if (left < 16 || !hdf5_view_read(v, header, first, left < 40 ? (size_t)left : 40))
        return HDF5_INDEX_CUT;
    const bool newer = memcmp(first, "OHDR", 4) == 0;
    if (!(newer ? begin_2(&h, first, header) : first[0] == 1 && begin_1(&h, first, header)))
        return "its header is damaged";
    const char *why = "its header has no layout";
    uint8_t *block = NULL;
    for (bool found = false; !found && h.next < h.n; h.next++) {
        const int64_t at = h.blocks[h.next].at, bytes = h.blocks[h.next].bytes;
        uint8_t *grown = realloc(block, (size_t)bytes + 1);
        if (!grown || !hdf5_view_read(v, at, grown, (size_t)bytes)) {
            why = grown ? HDF5_INDEX_CUT : HDF5_INDEX_NO_MEMORY;
            block = grown ? grown : block;
            break;
        }
        block = grown;
        found = search(&h, (struct message){block, block + bytes, at}, out, &why);
    }
    free(block);
    return why;
}
