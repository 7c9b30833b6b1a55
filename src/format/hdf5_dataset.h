/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_dataset.h -- reads the description of a dataset: type, shape, filters, and where its bytes are.
 */
#ifndef HDF5_DATASET_H
#define HDF5_DATASET_H

#include "base/names.h"
#include "format/hdf5_rows.h"

/* Why a dataset cannot be read. */
struct hdf5_odd {
    const char *why; /* NULL: it can */
    bool shaped;     /* type and shape are known nevertheless */
    int filter;      /* the unsupported filter, and its name in the file */
    char name[48];
};

/* Describes the dataset whose header is at this address, or a member of its compound type; member NULL: it has none.
 * `whole`: the whole dataset is one row. If it cannot be read, *out has type and shape only if odd->shaped. */
void hdf5_describe(const struct hdf5_view *v, int64_t header, const char *member, bool whole, struct hdf5_array *out,
                   struct hdf5_odd *odd);

/* Appends the names of the members of the dataset's compound type; none if it has another type. NULL, or what is
 * wrong. */
const char *hdf5_dataset_members(const struct hdf5_view *v, int64_t header, struct names *out);

#endif
