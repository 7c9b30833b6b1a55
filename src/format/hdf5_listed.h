/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_listed.h -- all datasets below a group of an HDF5 file, and those of a name.
 *
 * The members of a dataset's structures are listed instead of it: "dataset.member".
 */
#ifndef HDF5_LISTED_H
#define HDF5_LISTED_H

#include "format/hdf5_dataset.h"
#include "format/hdf5_group.h"

struct hdf5_listed {
    struct hdf5_names names;
    struct buf members; /* uint32_t: where in the name the member's begins; 0: there is none */
};
/* Lists all datasets below a group, by their paths from there, and counts the other objects. */
int hdf5_listed_all(const struct hdf5_view *v, int64_t group, struct hdf5_listed *out, struct hdf5_others *others,
                    stk_error *e);
const char *hdf5_listed_member(const struct hdf5_listed *l, uint32_t i); /* NULL: none */
void hdf5_listed_done(struct hdf5_listed *l);

/* The dataset `name` below a group, or the member of its structures that the name ends with. *at -1: there is none.
 * NULL, or what is wrong. */
const char *hdf5_find_dataset(const struct hdf5_view *v, int64_t group, const char *name, int64_t *at,
                              const char **member);
/* Errors: for a dataset that is not below the group at `at`, with those that are; for one that is not read; for a group
 * that cannot be read. */
int hdf5_find_none(const struct hdf5_view *v, int64_t at, const char *name, stk_error *e);
int hdf5_refuse(const char *name, const struct hdf5_odd *odd, stk_error *e);
int hdf5_fails(const char *why, stk_error *e);

#endif
