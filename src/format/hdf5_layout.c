/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_layout.c -- parses the message that says where the bytes of a dataset are.
 */
#include "format/hdf5_index.h"

static void set_place(struct hdf5_layout *out, enum hdf5_place place, int64_t at)
{
    out->place = at < 0 ? HDF5_ABSENT : place;
    out->at = at;
}

/* The dimensions of chunks, numbers of this size; the last one is the size of an element. */
static const char *take_chunk(struct hdf5_message *m, int64_t ndim, int width, struct hdf5_layout *out)
{
    out->chunk_ndim = (int)ndim - 1;
    for (int d = 0; d < (int)ndim; d++) {
        const int64_t n = hdf5_take(m, width);
        if (n < 1)
            return HDF5_DAMAGED;
        if (d < HDF5_DIMS)
            out->chunk[d] = n;
    }
    return ndim > 0 ? NULL : HDF5_DAMAGED;
}

/* Versions 1 and 2: ndim, class, 5 bytes, address unless compact, sizes; compact data follows. */
static const char *old_layout(const struct hdf5_view *v, struct hdf5_message *m, struct hdf5_layout *out)
{
    const int64_t ndim = hdf5_take(m, 1), kind = hdf5_take(m, 1);
    if (!hdf5_has(m, 5) || ndim < 0 || kind < 0 || kind > 2)
        return HDF5_DAMAGED;
    hdf5_skip(m, 5);
    if (kind > 0) {
        set_place(out, kind == 1 ? HDF5_IN_ONE : HDF5_IN_CHUNKS, hdf5_take_address(v, m));
        out->bytes = INT64_MAX;
        return kind == 2 ? take_chunk(m, ndim, 4, out) : NULL;
    }
    if (!hdf5_has(m, 4 * (size_t)ndim + 4))
        return HDF5_DAMAGED;
    hdf5_skip(m, 4 * (size_t)ndim);
    out->bytes = hdf5_take(m, 4);
    set_place(out, HDF5_IN_ONE, m->at);
    return hdf5_has(m, (size_t)out->bytes) ? NULL : HDF5_DAMAGED;
}

static const char *single_layout(const struct hdf5_view *v, struct hdf5_message *m, bool filtered,
                                 struct hdf5_layout *out)
{
    out->filtered = filtered;
    if (filtered) {
        const int64_t bytes = hdf5_take(m, v->length_bytes), mask = hdf5_take(m, 4);
        if (bytes < 0 || bytes > UINT32_MAX || mask < 0)
            return HDF5_DAMAGED;
        out->single_bytes = (uint32_t)bytes;
        out->single_mask = (uint32_t)mask;
    }
    set_place(out, HDF5_IN_CHUNKS, hdf5_take_address(v, m));
    return NULL;
}

/* Version 4: flags, ndim, width of sizes, sizes, kind of index, parameters of the index, address. */
static const char *chunk_layout(const struct hdf5_view *v, struct hdf5_message *m, struct hdf5_layout *out)
{
    static const uint8_t own[] = {
        [HDF5_INDEX_IMPLICIT] = 0, [HDF5_INDEX_FIXED] = 1, [HDF5_INDEX_EXTENSIBLE] = 5, [HDF5_INDEX_TREE_2] = 6};
    const int64_t flags = hdf5_take(m, 1), ndim = hdf5_take(m, 1), width = hdf5_take(m, 1);
    if (flags < 0 || ndim < 1 || width < 1 || width > 8)
        return HDF5_DAMAGED;
    const char *why = take_chunk(m, ndim, (int)width, out);
    const int64_t kind = hdf5_take(m, 1);
    if (why || kind < HDF5_INDEX_SINGLE || kind > HDF5_INDEX_TREE_2)
        return why ? why : "the index of its chunks has an unknown type";
    out->index = (enum hdf5_index_kind)kind;
    out->edges_unfiltered = flags & 1;
    if (kind == HDF5_INDEX_SINGLE)
        return single_layout(v, m, flags & 2, out);
    if (!hdf5_has(m, own[kind]))
        return HDF5_DAMAGED;
    hdf5_skip(m, own[kind]);
    set_place(out, HDF5_IN_CHUNKS, hdf5_take_address(v, m));
    return NULL;
}

const char *hdf5_layout_parse(const struct hdf5_view *v, struct hdf5_message *m, struct hdf5_layout *out)
{
    *out = (struct hdf5_layout){.bytes = -1};
    int64_t ndim;
    const int64_t version = hdf5_take(m, 1);
    if (version == 1 || version == 2)
        return old_layout(v, m, out);
    const int64_t kind = version == 3 || version == 4 ? hdf5_take(m, 1) : -1;
    switch (kind) {
    case 0:
        out->bytes = hdf5_take(m, 2);
        set_place(out, HDF5_IN_ONE, m->at);
        return out->bytes >= 0 && hdf5_has(m, (size_t)out->bytes) ? NULL : HDF5_DAMAGED;
    case 1:
        set_place(out, HDF5_IN_ONE, hdf5_take_address(v, m));
        out->bytes = hdf5_take(m, v->length_bytes);
        return NULL;
    case 2:
        if (version == 4)
            return chunk_layout(v, m, out);
        ndim = hdf5_take(m, 1);
        set_place(out, HDF5_IN_CHUNKS, hdf5_take_address(v, m));
        return take_chunk(m, ndim, 4, out);
    case 3:
        out->place = HDF5_ELSEWHERE;
        return NULL;
    default:
        return "its layout has an unknown version";
    }
}
