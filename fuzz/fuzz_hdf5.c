/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_hdf5.c -- a whole HDF5 file in memory: groups, datasets, chunks, filters and heaps. All small rows are read.
 */
#include <string.h>

#include "format/hdf5_dataset.h"
#include "format/hdf5_group.h"
#include "fuzz.h"

enum { ROW_MOST = 1 << 16, ROWS_MOST = 8, SETS_MOST = 16, GROUPS_MOST = 8, MEMBERS_MOST = 8 };

static void read_far(struct hdf5_rows *k, const struct hdf5_view *v, const struct hdf5_array *a, int64_t row)
{
    struct hdf5_far far;
    struct buf b = {0};
    size_t begin = 0;
    if (!hdf5_row_far(k, v, a, row, SIZE_MAX, &far) && far.bytes < ROW_MOST &&
        !hdf5_heap_read(v, far.heap, far.object, far.bytes, 64, &b, &begin))
        memset(b.data + begin, 0, far.bytes + 64);
    buf_done(&b);
}

static void read_rows(const struct hdf5_view *v, const struct hdf5_array *a)
{
    uint8_t row[ROW_MOST];
    struct hdf5_rows *k = hdf5_rows_new(1 << 20, 1 << 20);
    const int64_t step = a->shape[0] / ROWS_MOST + 1;
    const bool near = a->row_bytes <= sizeof row && a->stored_bytes <= 1 << 22 && a->chunks.chunk_bytes <= 1 << 22;
    for (int64_t i = 0; k && near && i < a->shape[0]; i += step) {
        hdf5_row(k, v, a, i, hdf5_row_cost(a, i), row);
        if (a->type == HDF5_VLEN || a->type == HDF5_VLEN_TEXT)
            read_far(k, v, a, i);
    }
    hdf5_rows_free(k);
}

static void describe(const struct hdf5_view *v, int64_t at, const char *member)
{
    for (int whole = 0; whole < 2; whole++) {
        struct hdf5_array a;
        struct hdf5_odd odd;
        hdf5_describe(v, at, member, whole, &a, &odd);
        if (!odd.why && a.ndim > 0)
            read_rows(v, &a);
        hdf5_array_done(&a);
    }
}

static void describe_all(const struct hdf5_view *v, int64_t at)
{
    struct names members = {0};
    hdf5_dataset_members(v, at, &members);
    describe(v, at, NULL);
    for (uint32_t i = 0; i < members.n && i < MEMBERS_MOST; i++)
        describe(v, at, names_at(&members, i));
    names_done(&members);
}

static void list(const struct hdf5_view *v, int64_t group, struct hdf5_names *groups)
{
    struct hdf5_names datasets = {0};
    struct hdf5_others others = {0};
    int64_t at;
    hdf5_list(v, group, &datasets, groups, &others);
    for (uint32_t i = 0; i < datasets.names.n && i < SETS_MOST; i++) {
        describe_all(v, hdf5_names_at(&datasets, i));
        hdf5_find_path(v, group, names_at(&datasets.names, i), &at);
    }
    hdf5_names_done(&datasets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hdf5_view v = {.fd = -1, .memory = data, .size = (int64_t)size};
    struct hdf5_names groups = {0};
    if (hdf5_view_open(&v))
        return 0;
    list(&v, v.root, &groups);
    for (uint32_t i = 0; i < groups.names.n && i < GROUPS_MOST; i++)
        list(&v, hdf5_names_at(&groups, i), &groups);
    hdf5_names_done(&groups);
    return 0;
}
