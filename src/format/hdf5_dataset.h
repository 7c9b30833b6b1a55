/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_dataset.h -- what a dataset is: type, shape, filters, and where its bytes are.
 */
#ifndef HDF5_DATASET_H
#define HDF5_DATASET_H

#include "base/names.h"
#include "format/hdf5_rows.h"

/* Why a dataset is not read. */
struct hdf5_odd {
    const char *why; /* NULL: it is */
    bool shaped;     /* type and shape are known all the same */
    int filter;      /* the one that is not read, and its name in the file */
    char name[48];
};

/* The dataset whose header is at this address, or that member of its structures; NULL: it has none. `whole`: all of it
 * is one row. Where it is not read, *out has type and shape if `shaped`, else nothing. */
void hdf5_describe(const struct hdf5_view *v, int64_t header, const char *member, bool whole, struct hdf5_array *out,
                   struct hdf5_odd *odd);

/* Adds the names of the members that the dataset's structures have, none where it has no structures. NULL, or what is
 * wrong. */
const char *hdf5_dataset_members(const struct hdf5_view *v, int64_t header, struct names *out);

#endif
