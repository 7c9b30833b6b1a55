/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_listed.h -- lists all datasets below a group of an HDF5 file, and finds one by name.
 *
 * A dataset of a compound type is listed as its members: "dataset.member".
 */
#ifndef HDF5_LISTED_H
#define HDF5_LISTED_H

#include "format/hdf5_dataset.h"
#include "format/hdf5_group.h"

struct hdf5_listed {
    struct hdf5_names names;
    struct buf members; /* uint32_t: where the member starts in the name; 0: not a member */
};
/* Lists all datasets below a group, by their paths from there, and counts the other objects. */
int hdf5_listed_all(const struct hdf5_view *v, int64_t group, struct hdf5_listed *out, struct hdf5_others *others,
                    stk_error *e);
const char *hdf5_listed_member(const struct hdf5_listed *l, uint32_t i); /* NULL: not a member */
void hdf5_listed_done(struct hdf5_listed *l);

/* Finds the dataset `name` below a group; *member is the part of the name that names a member, or NULL. *at is -1 if
 * there is none. NULL, or what is wrong. */
const char *hdf5_find_dataset(const struct hdf5_view *v, int64_t group, const char *name, int64_t *at,
                              const char **member);
/* Set errors: the dataset does not exist (lists those that do); it cannot be read; a group cannot be read. */
int hdf5_find_none(const struct hdf5_view *v, int64_t at, const char *name, stk_error *e);
int hdf5_refuse(const char *name, const struct hdf5_odd *odd, stk_error *e);
int hdf5_fails(const char *why, stk_error *e);

#endif
