/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_chunks.c -- finds the chunks of a dataset, in most files through a B-tree version 1.
 *
 * The leaves of the B-tree are linked from left to right, so one path down to the first leaf is enough.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/hdf5_index.h"

const char HDF5_INDEX_DAMAGED[] = "the index of its chunks is damaged";
const char HDF5_TOO_MANY[] = "it has, or can grow to, more than the 67,108,864 chunks that Stoker can read";

const char *hdf5_chunks_init(struct hdf5_chunks *c)
{
    c->n = 1;
    for (int d = 0; d < c->ndim; d++) {
        if (c->chunk[d] < 1 || c->shape[d] < 0)
            return "its chunks have a size of 0";
        c->grid[d] = c->shape[d] / c->chunk[d] + (c->shape[d] % c->chunk[d] != 0);
        if (c->grid[d] > HDF5_CHUNKS_MOST || (c->n *= c->grid[d]) > HDF5_CHUNKS_MOST)
            return HDF5_TOO_MANY;
    }
    c->of = calloc(c->n ? (size_t)c->n : 1, sizeof *c->of);
    return c->of ? NULL : HDF5_NO_MEMORY;
}

void hdf5_chunks_done(struct hdf5_chunks *c)
{
    free(c->of);
    c->of = NULL;
}

bool hdf5_chunks_put(const struct hdf5_view *v, struct hdf5_chunks *c, int64_t i, int64_t at, int64_t bytes,
                     uint32_t mask)
{
    if (i < 0 || i >= c->n || c->of[i].at != 0 || at <= 0 || bytes < 0 || bytes > UINT32_MAX)
        return false;
    if (at > v->size - v->base || bytes > v->size - v->base - at)
        return false;
    c->of[i] = (struct hdf5_chunk){at, (uint32_t)bytes, mask};
    return true;
}

/* The index of the chunk that starts at this element. -1: it is outside the dataset, which may have shrunk. -2: no
 * chunk starts there. */
static int64_t number_of(const struct hdf5_chunks *c, const uint8_t *offsets)
{
    int64_t i = 0;
    for (int d = 0; d < c->ndim; d++) {
        const int64_t at = hdf5_number(offsets + 8 * d, 8);
        if (at < 0 || at % c->chunk[d] != 0)
            return -2;
        if (at / c->chunk[d] >= c->grid[d])
            return -1;
        i = i * c->grid[d] + at / c->chunk[d];
    }
    return i;
}

/* ------------------------------------------------------------------ a B-tree of them */

/* Node: "TREE", 1, level, entries (2), left, right; then key, child, key, child, ..., key. A key is the size of the
 * chunk (4), its mask (4), and its start in each dimension (8) and in the element (8). */
struct tree {
    const struct hdf5_view *v;
    struct hdf5_chunks *c;
    size_t head, key, entry;
    struct buf node;
    int level, entries;
    int64_t right;
    int64_t last[HDF5_DIMS]; /* start of the previous chunk */
    bool any;
};

static const char *node_read(struct tree *t, int64_t at)
{
    uint8_t head[24];
    if (!hdf5_view_read(t->v, at, head, t->head))
        return HDF5_CUT;
    if (memcmp(head, "TREE\1", 5) != 0)
        return HDF5_INDEX_DAMAGED;
    t->level = head[5];
    t->entries = le16(head + 6);
    t->right = hdf5_address(t->v, head + 8 + t->v->offset_bytes);
    const size_t bytes = (size_t)t->entries * t->entry;
    if (buf_reserve(&t->node, bytes + 1))
        return HDF5_NO_MEMORY;
    return hdf5_view_read(t->v, at + (int64_t)t->head, t->node.data, bytes) ? NULL : HDF5_CUT;
}

/* Whether the key is greater than the previous one. This detects circular links. */
static bool in_order(struct tree *t, const uint8_t *offsets)
{
    int order = t->any ? 0 : 1;
    for (int d = 0; d < t->c->ndim; d++) {
        const int64_t at = hdf5_number(offsets + 8 * d, 8);
        if (order == 0)
            order = at > t->last[d] ? 1 : at < t->last[d] ? -1 : 0;
        t->last[d] = at;
    }
    t->any = true;
    return order > 0;
}

static const char *take_leaf(struct tree *t)
{
    for (int k = 0; k < t->entries; k++) {
        const uint8_t *key = t->node.data + (size_t)k * t->entry;
        if (!in_order(t, key + 8))
            return HDF5_INDEX_DAMAGED;
        const int64_t i = number_of(t->c, key + 8);
        if (i == -1)
            continue;
        if (!hdf5_chunks_put(t->v, t->c, i, hdf5_address(t->v, key + t->key), le32(key), le32(key + 4)))
            return HDF5_INDEX_DAMAGED;
    }
    return NULL;
}

static const char *tree_read(const struct hdf5_view *v, int64_t at, struct hdf5_chunks *c)
{
    const size_t o = (size_t)v->offset_bytes, key = 8 + 8 * ((size_t)c->ndim + 1);
    struct tree t = {.v = v, .c = c, .head = 8 + 2 * o, .key = key, .entry = key + o};
    const char *why = node_read(&t, at);
    for (int level = t.level; !why && t.level > 0; level--) {
        if (t.level != level || t.entries == 0)
            why = HDF5_INDEX_DAMAGED;
        else
            why = node_read(&t, hdf5_address(v, t.node.data + t.key));
        if (!why && t.level != level - 1)
            why = HDF5_INDEX_DAMAGED;
    }
    while (!why) {
        why = take_leaf(&t);
        if (why || t.right < 0)
            break;
        why = node_read(&t, t.right);
        if (!why && (t.level != 0 || t.entries == 0))
            why = HDF5_INDEX_DAMAGED;
    }
    buf_done(&t.node);
    return why;
}

/* ------------------------------------------------------------------ a B-tree of the second version */

struct in_tree_2 {
    const struct hdf5_view *v;
    struct hdf5_chunks *c;
};

/* Address, size (variable)? and mask (4)?, then the index of the chunk along each dimension (8). */
static const char *take_record(void *user, const uint8_t *p, int bytes)
{
    const struct in_tree_2 *t = user;
    const int o = t->v->offset_bytes, width = bytes - o - 8 * t->c->ndim - 4;
    if (t->c->filtered ? width < 1 || width > 8 : width != -4)
        return HDF5_INDEX_DAMAGED;
    const uint8_t *scaled = p + bytes - 8 * t->c->ndim;
    int64_t i = 0;
    for (int d = 0; d < t->c->ndim; d++) {
        const int64_t at = hdf5_number(scaled + 8 * d, 8);
        if (at < 0)
            return HDF5_INDEX_DAMAGED;
        if (at >= t->c->grid[d])
            return NULL;
        i = i * t->c->grid[d] + at;
    }
    const int64_t n = t->c->filtered ? hdf5_number(p + o, width) : t->c->chunk_bytes;
    const uint32_t mask = t->c->filtered ? le32(p + o + width) : 0;
    return hdf5_chunks_put(t->v, t->c, i, hdf5_address(t->v, p), n, mask) ? NULL : HDF5_INDEX_DAMAGED;
}

static const char *tree_2_read(const struct hdf5_view *v, int64_t at, struct hdf5_chunks *c)
{
    enum { PLAIN = 10, FILTERED = 11 };
    struct in_tree_2 t = {v, c};
    return hdf5_tree_2(v, at, c->filtered ? FILTERED : PLAIN, take_record, &t);
}

/* ------------------------------------------------------------------ all of them */

const char *hdf5_chunks_read(const struct hdf5_view *v, const struct hdf5_layout *l, struct hdf5_chunks *c)
{
    if (l->place != HDF5_IN_CHUNKS || c->n == 0)
        return NULL;
    switch (l->index) {
    case HDF5_INDEX_TREE:
        return tree_read(v, l->at, c);
    case HDF5_INDEX_SINGLE:
        return hdf5_chunks_put(v, c, 0, l->at, l->filtered ? l->single_bytes : c->chunk_bytes, l->single_mask)
                   ? NULL
                   : HDF5_INDEX_DAMAGED;
    case HDF5_INDEX_IMPLICIT:
        return hdf5_implicit_read(v, l->at, c);
    case HDF5_INDEX_FIXED:
        return hdf5_fixed_read(v, l->at, c);
    case HDF5_INDEX_EXTENSIBLE:
        return hdf5_extensible_read(v, l->at, c);
    default:
        return tree_2_read(v, l->at, c);
    }
}
