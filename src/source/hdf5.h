/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5.h -- the structure of an HDF5 file, through libhdf5: which datasets there are, of what type and shape, and where
 * their bytes lie. One thread, while a source is opened; what comes after needs no libhdf5 and none of its locks, but
 * for datasets that only libhdf5 can read (hdf5_array.foreign). A build without libhdf5 has none of this.
 */
#ifndef SOURCE_HDF5_H /* HDF5_H is the library's */
#define SOURCE_HDF5_H

#include "source/hdf5_rows.h"
#include "source/names.h"

struct hdf5;
int hdf5_open(struct hdf5 **out, const char *path, stk_error *e);
void hdf5_close(struct hdf5 *h); /* also NULL */
const struct hdf5_view *hdf5_view(const struct hdf5 *h);

/* The names in a group ("" is the whole file), in byte order: those of datasets and those of groups. What is neither,
 * or leads out of the file, is counted in *others. *seen knows the groups that were listed: one that was is empty. */
int hdf5_list(struct hdf5 *h, const char *group, struct names *seen, struct names *datasets, struct names *groups,
              int64_t *others, stk_error *e);

/* What a dataset is. `whole`: it is one row. STK_EDATA: it cannot be read, and why. */
int hdf5_describe(struct hdf5 *h, const char *name, bool whole, struct hdf5_array *out, stk_error *e);

/* Closes what libhdf5 has open; not where there is a dataset that it has to read. */
void hdf5_settle(struct hdf5 *h);

#endif
