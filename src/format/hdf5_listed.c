/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_listed.c -- lists all datasets below a group, and finds one by name.
 *
 * Groups are listed breadth first. No group is listed twice, so circular links end.
 */
#include "format/hdf5_listed.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest_list.h"
#include "format/hdf5_index.h"

enum { DATASETS_MOST = 1 << 16 };

static int no_memory(stk_error *e)
{
    return error_nomem(e, "open", 0);
}

int hdf5_fails(const char *why, stk_error *e)
{
    return why == HDF5_NO_MEMORY ? no_memory(e)
                                 : error_set(e, STK_EDATA, "open", "has a group that cannot be read: %s", why);
}

void hdf5_listed_done(struct hdf5_listed *l)
{
    hdf5_names_done(&l->names);
    buf_done(&l->members);
}

const char *hdf5_listed_member(const struct hdf5_listed *l, uint32_t i)
{
    uint32_t at;
    memcpy(&at, l->members.data + (size_t)i * sizeof at, sizeof at);
    return at ? names_at(&l->names.names, i) + at : NULL;
}

static int too_many(const struct hdf5_names *n, stk_error *e)
{
    return n->names.n <= DATASETS_MOST
               ? STK_OK
               : error_set(e, STK_EUSAGE, "open", "has more than %d datasets; name those to read (?image=...)",
                           DATASETS_MOST);
}

/* Adds "path" or "path.member", unless it is listed already. */
static int add_dataset(struct hdf5_listed *to, struct buf *path, const char *member, int64_t at, stk_error *e)
{
    const uint32_t before = to->names.names.n, begin = member ? (uint32_t)path->len + 1 : 0;
    const size_t n = path->len;
    if ((member && buf_printf(path, ".%s", member)) ||
        hdf5_names_add(&to->names, (const char *)path->data, path->len, at) ||
        (to->names.names.n > before && buf_add(&to->members, &begin, sizeof begin)))
        return no_memory(e);
    path->len = n;
    return too_many(&to->names, e);
}

static int add_datasets(const struct hdf5_view *v, struct hdf5_listed *to, const char *prefix,
                        const struct hdf5_names *from, stk_error *e)
{
    struct buf path = {0};
    int rc = STK_OK;
    for (uint32_t i = 0; i < from->names.n && rc == STK_OK; i++) {
        struct names members = {0};
        const int64_t at = hdf5_names_at(from, i);
        path.len = 0;
        if (buf_printf(&path, "%s%s%s", prefix, prefix[0] ? "/" : "", names_at(&from->names, i)) ||
            hdf5_dataset_members(v, at, &members) == HDF5_NO_MEMORY)
            rc = no_memory(e);
        else if (members.n == 0)
            rc = add_dataset(to, &path, NULL, at, e);
        for (uint32_t k = 0; k < members.n && rc == STK_OK; k++)
            rc = add_dataset(to, &path, names_at(&members, k), at, e);
        names_done(&members);
    }
    buf_done(&path);
    return rc;
}

/* Adds prefix/name for every group. */
static int add_groups(struct hdf5_names *to, const char *prefix, const struct hdf5_names *from, stk_error *e)
{
    struct buf path = {0};
    int rc = STK_OK;
    for (uint32_t i = 0; i < from->names.n && rc == STK_OK; i++) {
        path.len = 0;
        if (buf_printf(&path, "%s%s%s", prefix, prefix[0] ? "/" : "", names_at(&from->names, i)) ||
            hdf5_names_add(to, (const char *)path.data, path.len, hdf5_names_at(from, i)))
            rc = no_memory(e);
        else
            rc = too_many(to, e);
    }
    buf_done(&path);
    return rc;
}

int hdf5_listed_all(const struct hdf5_view *v, int64_t group, struct hdf5_listed *out, struct hdf5_others *others,
                    stk_error *e)
{
    struct hdf5_names queue = {0};
    struct names seen = {0};
    int rc = hdf5_names_add(&queue, "", 0, group) ? no_memory(e) : STK_OK;
    for (uint32_t i = 0; i < queue.names.n && rc == STK_OK; i++) {
        struct hdf5_names datasets = {0}, groups = {0};
        const int64_t at = hdf5_names_at(&queue, i);
        char *here = strdup(names_at(&queue.names, i)); /* adding to the queue may move its names */
        uint32_t number;
        const int new = here ? names_add(&seen, &at, sizeof at, &number) : -1; /* 0: it was listed already */
        if (new < 0)
            rc = no_memory(e);
        if (new > 0) {
            const char *why = hdf5_list(v, at, &datasets, &groups, others);
            rc = why ? hdf5_fails(why, e) : STK_OK;
        }
        if (rc == STK_OK)
            rc = add_datasets(v, out, here, &datasets, e);
        if (rc == STK_OK)
            rc = add_groups(&queue, here, &groups, e);
        free(here);
        hdf5_names_done(&datasets);
        hdf5_names_done(&groups);
    }
    hdf5_names_done(&queue);
    names_done(&seen);
    return rc;
}

int hdf5_find_none(const struct hdf5_view *v, int64_t at, const char *name, stk_error *e)
{
    struct hdf5_listed all = {0};
    struct nearest_list list = {.like.word = name};
    struct hdf5_others others = {0};
    int rc = hdf5_listed_all(v, at, &all, &others, e);
    for (uint32_t i = 0; i < all.names.names.n; i++)
        nearest_list_add(&list, names_at(&all.names.names, i));
    if (rc != STK_ENOMEM) /* of a damaged file, what could be listed */
        rc = nearest_list_error(&list, "has no", "dataset", e);
    buf_done(&list.all);
    hdf5_listed_done(&all);
    return rc;
}

/* Whether the compound type of a dataset has a member of this name. */
static const char *has_member(const struct hdf5_view *v, int64_t header, const char *member, bool *has)
{
    struct names members = {0};
    uint32_t i;
    const char *why = hdf5_dataset_members(v, header, &members);
    *has = !why && names_find(&members, member, strlen(member), &i);
    names_done(&members);
    return why == HDF5_NO_MEMORY ? why : NULL;
}

/* Names of datasets may contain dots, too: the longest one that exists is taken. */
const char *hdf5_find_dataset(const struct hdf5_view *v, int64_t group, const char *name, int64_t *at,
                              const char **member)
{
    const char *why = hdf5_find_path(v, group, name, at);
    *member = NULL;
    for (size_t n = strlen(name); !why && *at < 0 && n > 0 && name[n - 1] != '/'; n--) {
        if (name[n - 1] != '.')
            continue;
        bool has = false;
        char *dataset = strndup(name, n - 1);
        why = dataset ? hdf5_find_path(v, group, dataset, at) : HDF5_NO_MEMORY;
        free(dataset);
        if (!why && *at >= 0)
            why = has_member(v, *at, name + n, &has);
        *member = has ? name + n : NULL;
        *at = has ? *at : -1;
    }
    return why;
}

int hdf5_refuse(const char *name, const struct hdf5_odd *odd, stk_error *e)
{
    if (odd->why == HDF5_NO_MEMORY)
        return no_memory(e);
    if (odd->filter)
        return error_set(e, STK_EDATA, "open",
                         "%.200s: is compressed with filter %d (%s), which Stoker does not read; write it with gzip, "
                         "lzf or no filter (h5repack -f GZIP=1)",
                         name, odd->filter, odd->name[0] ? odd->name : "without a name");
    const bool damaged = odd->why == HDF5_DAMAGED || odd->why == HDF5_CUT || odd->why == HDF5_INDEX_DAMAGED;
    return error_set(e, STK_EDATA, "open", "%.200s: %s%s", name, odd->why,
                     damaged ? "; replace the file, or name the datasets to read (?x=NAME)" : "");
}
