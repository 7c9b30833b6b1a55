/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_tree.c -- reads B-trees version 2. All records have the same size, and so do all nodes.
 *
 *     header   "BTHD", version, type, size of a node (4), of a record (2), depth (2), 2 bytes,
 *              root, its records (2), all records
 *     leaf     "BTLF", version, type, records
 *     node     "BTIN", version, type, records, and one child more than records:
 *              address, its records, all records below it
 *
 * The size of a number of records depends on how many a node can hold.
 */
#include <string.h>

#include "base/bytes.h"
#include "format/hdf5_index.h"

enum { DEPTH_MOST = 12, HEAD = 6, FRAME = 10 };

struct tree {
    const struct hdf5_view *v;
    hdf5_record *each;
    void *user;
    int type, record, depth;
    size_t node_bytes;
    int count_bytes;                 /* size of the number of a child's records */
    int below_bytes[DEPTH_MOST + 1]; /* size of the number of all records below a child at this level */
    int64_t left;                    /* records and nodes that the file has room for */
    struct buf node, stack;
};

/* A node that is not read yet. */
struct pending {
    int64_t at;
    int32_t records, level; /* 0: a leaf */
};

static int bytes_for(uint64_t most)
{
    int bytes = 1;
    while (bytes < 8 && most >> 8 * bytes)
        bytes++;
    return bytes;
}

/* Computes the sizes of these numbers, level by level. */
static bool measure(struct tree *t)
{
    uint64_t below = (t->node_bytes - FRAME) / (size_t)t->record;
    t->count_bytes = bytes_for(below);
    for (int level = 1; level <= t->depth; level++) {
        const size_t child = (size_t)(t->v->offset_bytes + t->count_bytes + t->below_bytes[level - 1]);
        if (t->node_bytes < FRAME + child + (size_t)t->record + child)
            return false;
        const uint64_t most = (t->node_bytes - FRAME - child) / ((size_t)t->record + child);
        if (below > UINT64_MAX / 2 / (most + 1))
            return false;
        below = (most + 1) * below + most;
        t->below_bytes[level] = bytes_for(below);
    }
    return true;
}

static const char *push_children(struct tree *t, const struct pending *n, const uint8_t *p)
{
    const int o = t->v->offset_bytes, child = o + t->count_bytes + t->below_bytes[n->level - 1];
    for (int i = 0; i <= n->records; i++, p += child) {
        const struct pending one = {hdf5_address(t->v, p), (int32_t)hdf5_number(p + o, t->count_bytes), n->level - 1};
        if (one.records < 0 || buf_add(&t->stack, &one, sizeof one))
            return one.records < 0 ? HDF5_DAMAGED : HDF5_NO_MEMORY;
    }
    return NULL;
}

static const char *look_at(struct tree *t, const struct pending *n)
{
    const bool leaf = n->level == 0;
    const int child = leaf ? 0 : t->v->offset_bytes + t->count_bytes + t->below_bytes[n->level - 1];
    const size_t records = (size_t)n->records * (size_t)t->record;
    const size_t bytes = HEAD + records + (leaf ? 0 : ((size_t)n->records + 1) * (size_t)child);
    t->left -= n->records + 1;
    if (t->left < 0 || bytes > t->node_bytes)
        return HDF5_DAMAGED;
    if (!hdf5_view_read(t->v, n->at, t->node.data, bytes))
        return HDF5_CUT;
    if (memcmp(t->node.data, leaf ? "BTLF" : "BTIN", 4) != 0 || t->node.data[5] != t->type)
        return HDF5_DAMAGED;
    const char *why = NULL;
    for (int i = 0; i < n->records && !why; i++)
        why = t->each(t->user, t->node.data + HEAD + i * t->record, t->record);
    return why || leaf ? why : push_children(t, n, t->node.data + HEAD + records);
}

static const char *walk(struct tree *t, struct pending root)
{
    const char *why = buf_add(&t->stack, &root, sizeof root) ? HDF5_NO_MEMORY : NULL;
    while (!why && t->stack.len > 0) {
        struct pending n;
        t->stack.len -= sizeof n;
        memcpy(&n, t->stack.data + t->stack.len, sizeof n);
        why = look_at(t, &n);
    }
    return why;
}

const char *hdf5_tree_2(const struct hdf5_view *v, int64_t at, int type, hdf5_record *each, void *user)
{
    uint8_t p[16 + 8 + 2 + 8];
    const int o = v->offset_bytes;
    if (!hdf5_view_read(v, at, p, (size_t)(16 + o + 2 + v->length_bytes)))
        return HDF5_CUT;
    struct tree t = {.v = v, .each = each, .user = user, .type = type, .node_bytes = le32(p + 6)};
    t.record = le16(p + 10);
    t.depth = le16(p + 12);
    const int64_t root = hdf5_address(v, p + 16), all = hdf5_number(p + 18 + o, v->length_bytes);
    if (memcmp(p, "BTHD", 4) != 0 || p[5] != type || t.record < 1 || t.depth > DEPTH_MOST || t.node_bytes > 1 << 24 ||
        t.node_bytes < FRAME + (size_t)t.record || all < 0 || all > HDF5_CHUNKS_MOST || all > v->size / t.record ||
        !measure(&t))
        return HDF5_DAMAGED;
    if (root < 0 || all == 0)
        return NULL;
    t.left = 2 * all + 1;
    const char *why = buf_reserve(&t.node, t.node_bytes) ? HDF5_NO_MEMORY : NULL;
    if (!why)
        why = walk(&t, (struct pending){root, le16(p + 16 + o), t.depth});
    buf_done(&t.node);
    buf_done(&t.stack);
    return why;
}
