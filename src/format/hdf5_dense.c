/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_dense.c -- the links of a large group: messages in a fractal heap, found through a B-tree of their names.
 *
 * A fractal heap stores bytes in rows of `width` blocks. Blocks have the same size in the first two rows, and double
 * with every row after. The first rows are direct blocks, which contain bytes. The others are indirect blocks, which
 * contain the addresses of further rows. A small heap is one direct block.
 */
#include <string.h>

#include "base/bytes.h"
#include "format/hdf5_group.h"
#include "format/hdf5_index.h"

struct heap {
    struct hdf5_links *l;
    int offset_bytes, length_bytes; /* of offsets and sizes in the heap */
    int width, rows;                /* rows of the root; 0: it is a direct block */
    int64_t least, most;            /* size of direct blocks */
    int64_t root;
    struct buf object;
};

static int log_2(int64_t n)
{
    int bits = 0;
    while (n >> (bits + 1))
        bits++;
    return bits;
}

static bool is_power(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* "FRHP", version, size of an offset (2), of filters (2), flags, largest object (4), [length, address, length, address,
 * 8 lengths], width (2), smallest and largest block, bits of offsets (2), 2 bytes, root, its rows (2). */
static const char *open_heap(struct heap *h, int64_t at)
{
    const struct hdf5_view *v = h->l->v;
    const int length = v->length_bytes, o = v->offset_bytes;
    uint8_t p[14 + 12 * 8 + 3 * 8 + 8];
    const int table = 14 + 10 * length + 2 * o;
    if (!hdf5_view_read(v, at, p, (size_t)(table + 8 + 2 * length + o)))
        return HDF5_CUT;
    const uint8_t *q = p + table;
    h->width = le16(q);
    h->least = hdf5_number(q + 2, length);
    h->most = hdf5_number(q + 2 + length, length);
    const int bits = le16(q + 2 + 2 * length);
    h->root = hdf5_address(v, q + 6 + 2 * length);
    h->rows = le16(q + 6 + 2 * length + o);
    if (memcmp(p, "FRHP", 4) != 0 || !is_power(h->width) || !is_power(h->least) || !is_power(h->most) ||
        h->most < h->least || h->most > 1 << 30 || bits > 62 || h->rows > 64)
        return HDF5_DAMAGED;
    if (le16(p + 7) != 0)
        return "it is in a group whose names are compressed";
    h->offset_bytes = (bits + 7) / 8;
    const int by_block = (log_2(h->most) + 7) / 8, by_object = log_2(le32(p + 10)) / 8 + 1;
    h->length_bytes = by_block < by_object ? by_block : by_object;
    return NULL;
}

static int64_t row_bytes(const struct heap *h, int row)
{
    return row < 2 ? h->least : row - 1 > 40 ? INT64_MAX / 4 : h->least << (row - 1);
}

/* The file offset of an offset in the heap. */
static const char *locate(const struct heap *h, int64_t place, int64_t *at)
{
    const struct hdf5_view *v = h->l->v;
    const int direct = log_2(h->most) - log_2(h->least) + 2;
    int64_t block = h->root;
    int rows = h->rows;
    for (int depth = 0; rows > 0; depth++) {
        int row = 0;
        int64_t first = 0;
        while (row < rows && row_bytes(h, row) < INT64_MAX / 4 / h->width &&
               place - first >= h->width * row_bytes(h, row))
            first += h->width * row_bytes(h, row++);
        if (row >= rows || depth > 8)
            return HDF5_DAMAGED;
        const int64_t column = (place - first) / row_bytes(h, row);
        uint8_t p[8];
        const int64_t entry = 5 + v->offset_bytes + h->offset_bytes + (row * h->width + column) * v->offset_bytes;
        if (!hdf5_view_read(v, block + entry, p, (size_t)v->offset_bytes))
            return HDF5_CUT;
        block = hdf5_address(v, p);
        place -= first + column * row_bytes(h, row);
        rows = row < direct ? 0 : log_2(row_bytes(h, row)) - log_2(h->least * h->width) + 1;
    }
    *at = block + place;
    return block < 0 || place > h->most ? HDF5_DAMAGED : NULL;
}

/* A record is the hash of the name (4) and an identifier: kind, and offset and length, or the bytes themselves. */
static const char *take_record(void *user, const uint8_t *p, int bytes)
{
    enum { MANAGED = 0, TINY = 2 };
    struct heap *h = user;
    const int kind = bytes > 4 ? p[4] >> 4 & 3 : -1, rest = bytes - 5;
    if (kind == TINY) {
        const int n = (p[4] & 15) + 1;
        struct hdf5_message m = {.p = p + 5, .end = p + 5 + n};
        return n <= rest ? hdf5_link_parse(h->l, &m) : HDF5_DAMAGED;
    }
    if (kind != MANAGED || h->offset_bytes + h->length_bytes > rest)
        return HDF5_DAMAGED;
    const int64_t place = hdf5_number(p + 5, h->offset_bytes),
                  n = hdf5_number(p + 5 + h->offset_bytes, h->length_bytes);
    int64_t at = 0;
    const char *why = place < 0 || n < 0 || n > h->most ? HDF5_DAMAGED : locate(h, place, &at);
    if (!why && buf_reserve(&h->object, (size_t)n + 1))
        why = HDF5_NO_MEMORY;
    if (!why && !hdf5_view_read(h->l->v, at, h->object.data, (size_t)n))
        why = HDF5_CUT;
    if (why)
        return why;
    struct hdf5_message m = {.p = h->object.data, .end = h->object.data + n, .at = at};
    return hdf5_link_parse(h->l, &m);
}

const char *hdf5_dense_read(struct hdf5_links *l, int64_t heap, int64_t index)
{
    enum { NAMES = 5 };
    struct heap h = {.l = l};
    const char *why = open_heap(&h, heap);
    if (!why)
        why = hdf5_tree_2(l->v, index, NAMES, take_record, &h);
    buf_done(&h.object);
    return why;
}
