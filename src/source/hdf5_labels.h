/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_labels.h -- the labels of HDF5 files, read when the source is opened.
 *
 * Rows that were never written all have the same label and are kept as one run. So a dataset of 2^31 rows takes time
 * and memory only for what was written.
 */
#ifndef HDF5_LABELS_H
#define HDF5_LABELS_H

#include "source/hdf5_table.h"

struct hdf5_labels {
    struct buf runs;   /* struct label_run, ascending */
    struct buf values; /* int64_t */
    int64_t count;     /* samples */
};

extern const char HDF5_NO_VALUE[]; /* what is wrong with a sample that lacks a value */

/* Reads the labels of column c. A label that cannot be read is LABEL_NONE. Fails if none can be read, or if there is no
 * memory. Labels that are text become class indices: sets the classes of s. */
int hdf5_labels_read(struct hdf5_labels *l, struct source *s, const struct hdf5_table *t, int c, stk_error *e);
void hdf5_labels_done(struct hdf5_labels *l); /* accepts a zeroed struct */

int64_t hdf5_labels_at(const struct hdf5_labels *l, int64_t i);
/* Returns at least 1: how many samples from i on are known to have the same label. */
int64_t hdf5_labels_alike(const struct hdf5_labels *l, int64_t i);

#endif
