/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_group.h -- lists the groups of an HDF5 file.
 */
#ifndef HDF5_GROUP_H
#define HDF5_GROUP_H

#include "base/names.h"
#include "format/hdf5_view.h"

/* Names, and the address of the object that each refers to. */
struct hdf5_names {
    struct names names;
    struct buf at; /* int64_t */
};
/* A name that exists already keeps its address. 0, or -1: no memory. */
int hdf5_names_add(struct hdf5_names *n, const char *name, size_t bytes, int64_t at);
int64_t hdf5_names_at(const struct hdf5_names *n, uint32_t i);
void hdf5_names_done(struct hdf5_names *n);

/* Objects that are neither datasets nor groups, and links out of the file or to nothing. */
struct hdf5_others {
    int64_t n;
    int64_t damaged; /* of these, objects whose description is damaged */
};

/* Appends the datasets and groups in the group at this address, in byte order of their names, and counts the rest. */
const char *hdf5_list(const struct hdf5_view *v, int64_t group, struct hdf5_names *datasets, struct hdf5_names *groups,
                      struct hdf5_others *others);

/* Finds the object "a/b/c", relative to a group. *at is -1 if there is none. */
const char *hdf5_find_path(const struct hdf5_view *v, int64_t group, const char *path, int64_t *at);

/* The links of a group, for hdf5_dense.c. A hard link has an address, a soft link a path. */
struct hdf5_links {
    const struct hdf5_view *v;
    struct hdf5_names hard, soft; /* soft: at is the index in paths */
    struct names paths;
    int64_t others;
};
const char *hdf5_link_parse(struct hdf5_links *l, struct hdf5_message *m);
/* Reads links that are stored in a fractal heap, with an index at this address. */
const char *hdf5_dense_read(struct hdf5_links *l, int64_t heap, int64_t index);

#endif
