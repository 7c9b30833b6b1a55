/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_view.c -- reads the superblock of an HDF5 file, and the headers of its objects.
 *
 * The header of an object is a list of messages in one or more blocks. It has two versions.
 */
#include "format/hdf5_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/io.h"

const char HDF5_CUT[] = "the file ends inside its data, or cannot be read";
const char HDF5_DAMAGED[] = "its description in the file is damaged";
const char HDF5_NO_MEMORY[] = "not enough memory to read it";

enum { BLOCKS_MOST = 256, BLOCK_BYTES_MOST = 16 << 20, CONTINUES = 16 };

bool hdf5_view_read(const struct hdf5_view *v, int64_t at, void *to, size_t n)
{
    if (at < 0 || at > v->size - v->base || n > (uint64_t)(v->size - v->base - at))
        return false;
    if (v->fd >= 0)
        return io_pread(v->fd, to, n, v->base + at) == (ssize_t)n;
    if (n > 0)
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

static const int64_t ADDRESS_MOST = INT64_MAX / 4; /* past the end of every file, but adding to it does not overflow */

int64_t hdf5_address(const struct hdf5_view *v, const uint8_t *p)
{
    bool none = true;
    for (int i = 0; i < v->offset_bytes; i++)
        none = none && p[i] == 0xff;
    const int64_t at = none ? -1 : hdf5_number(p, v->offset_bytes);
    return at < ADDRESS_MOST ? at : ADDRESS_MOST;
}

/* ------------------------------------------------------------------ the first block */

/* Versions 0 and 1: 8 + versions and 0 (5), sizes of addresses and of lengths, 0, two numbers (4), flags (4), [4], then
 * addresses: base, free space, end, driver; name and header of the root group. */
static bool old_block(struct hdf5_view *v, const uint8_t *p, int64_t *base)
{
    v->offset_bytes = p[13];
    v->length_bytes = p[14];
    if (v->offset_bytes < 2 || v->offset_bytes > 8 || v->length_bytes < 2 || v->length_bytes > 8)
        return false;
    p += p[8] == 0 ? 24 : 28;
    *base = hdf5_address(v, p);
    v->root = hdf5_address(v, p + 5 * v->offset_bytes);
    return true;
}

/* Versions 2 and 3: 8 + version, sizes of addresses and of lengths, flags, then addresses: base, extension, end, header
 * of the root group. */
static bool new_block(struct hdf5_view *v, const uint8_t *p, int64_t *base)
{
    v->offset_bytes = p[9];
    v->length_bytes = p[10];
    if (v->offset_bytes < 2 || v->offset_bytes > 8 || v->length_bytes < 2 || v->length_bytes > 8)
        return false;
    *base = hdf5_address(v, p + 12);
    v->root = hdf5_address(v, p + 12 + 3 * v->offset_bytes);
    return true;
}

/* The superblock is at the start, or after a user block: at 512, 1024, 2048 ... */
const char *hdf5_view_open(struct hdf5_view *v)
{
    uint8_t p[96];
    v->base = 0;
    for (int64_t at = 0; at <= v->size; at = at ? 2 * at : 512) {
        memset(p, 0, sizeof p);
        const int64_t left = v->size - at;
        if (!hdf5_view_read(v, at, p, left < (int64_t)sizeof p ? (size_t)left : sizeof p))
            break;
        if (memcmp(p, "\x89HDF\r\n\x1a\n", 8) != 0)
            continue;
        int64_t base = -1;
        const bool known = p[8] < 2 ? old_block(v, p, &base) : p[8] < 4 && new_block(v, p, &base);
        if (!known || base < 0)
            return "its superblock is damaged or has an unknown version";
        v->base = at; /* the stored base is wrong if a user block was added later */
        return v->root < 0 || v->root > v->size - at ? HDF5_CUT : NULL;
    }
    return "is not an HDF5 file";
}

/* ------------------------------------------------------------------ messages */

bool hdf5_has(const struct hdf5_message *m, size_t n)
{
    return (size_t)(m->end - m->p) >= n;
}

void hdf5_skip(struct hdf5_message *m, size_t n)
{
    m->p += n;
    m->at += (int64_t)n;
}

int64_t hdf5_take(struct hdf5_message *m, int bytes)
{
    if (!hdf5_has(m, (size_t)bytes)) {
        m->p = m->end;
        return -1;
    }
    const int64_t x = hdf5_number(m->p, bytes);
    hdf5_skip(m, (size_t)bytes);
    return x;
}

int64_t hdf5_take_address(const struct hdf5_view *v, struct hdf5_message *m)
{
    const int64_t at = hdf5_has(m, (size_t)v->offset_bytes) ? hdf5_address(v, m->p) : -1;
    hdf5_take(m, v->offset_bytes);
    return at;
}

/* The blocks of messages that are not read yet. */
struct header {
    const struct hdf5_view *v;
    hdf5_each *each;
    void *user;
    int version;  /* 1 or 2 */
    bool ordered; /* messages of version 2 have an index */
    int n;
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

/* Version 1: version, 0, messages (2), references (4), size (4), 0 (4). */
static bool begin_1(struct header *h, const uint8_t *p, int64_t at)
{
    h->version = 1;
    return add_block(h, at + 16, le32(p + 8));
}

/* Version 2: "OHDR", version, flags, times (16)?, limits (4)?, size (1, 2, 4 or 8). */
static bool begin_2(struct header *h, const uint8_t *p, int64_t at)
{
    const int flags = p[5], width = 1 << (flags & 3);
    const int ahead = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
    h->version = 2;
    h->ordered = flags & 4;
    return p[4] == 2 && add_block(h, at + ahead + width, hdf5_number(p + ahead, width));
}

/* A block of version 2 starts with "OCHK" and ends with a checksum. */
static bool continues(struct header *h, struct hdf5_message *m)
{
    const int64_t at = hdf5_take_address(h->v, m), bytes = hdf5_take(m, h->v->length_bytes);
    return h->version == 1 ? add_block(h, at, bytes) : at >= 0 && add_block(h, at + 4, bytes - 8);
}

/* Type (2 or 1), size (2), flags, then 0 (3), or an index (2)?; *all then starts after it. */
static bool next_message(const struct header *h, struct hdf5_message *all, struct hdf5_message *m)
{
    const bool first = h->version == 1;
    const int64_t type = hdf5_take(all, first ? 2 : 1), bytes = hdf5_take(all, 2), flags = hdf5_take(all, 1);
    const size_t rest = first ? 3 : h->ordered ? 2 : 0;
    if (type < 0 || bytes < 0 || flags < 0 || !hdf5_has(all, rest + (size_t)bytes))
        return false;
    hdf5_skip(all, rest);
    *m = (struct hdf5_message){(int)type, (int)flags, all->p, all->p + bytes, all->at};
    hdf5_skip(all, (size_t)bytes);
    return true;
}

static const char *show_block(struct header *h, struct hdf5_message all)
{
    struct hdf5_message m;
    const char *why = NULL;
    while (!why && next_message(h, &all, &m))
        why = m.type != CONTINUES ? h->each(h->user, &m) : continues(h, &m) ? NULL : HDF5_DAMAGED;
    return why;
}

static const char *begin(struct header *h, int64_t at)
{
    uint8_t first[40] = {0};
    const int64_t left = h->v->size - h->v->base - at; /* the file may end after a short one */
    if (at < 0 || left < 16 || !hdf5_view_read(h->v, at, first, left < 40 ? (size_t)left : 40))
        return HDF5_CUT;
    if (memcmp(first, "OHDR", 4) == 0)
        return begin_2(h, first, at) ? NULL : HDF5_DAMAGED;
    return first[0] == 1 && begin_1(h, first, at) ? NULL : HDF5_DAMAGED;
}

const char *hdf5_messages(const struct hdf5_view *v, int64_t header, hdf5_each *each, void *user)
{
    struct header h = {.v = v, .each = each, .user = user};
    uint8_t *block = NULL;
    const char *why = begin(&h, header);
    for (int i = 0; i < h.n && !why; i++) {
        const int64_t at = h.blocks[i].at, bytes = h.blocks[i].bytes;
        uint8_t *grown = at + bytes > v->size - v->base ? NULL : realloc(block, (size_t)bytes + 1);
        block = grown ? grown : block;
        if (at + bytes > v->size - v->base || (grown && !hdf5_view_read(v, at, block, (size_t)bytes)))
            why = HDF5_CUT;
        else if (!grown)
            why = HDF5_NO_MEMORY;
        else
            why = show_block(&h, (struct hdf5_message){0, 0, block, block + bytes, at});
    }
    free(block);
    return why;
}
