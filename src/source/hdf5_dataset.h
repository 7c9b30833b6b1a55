/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_dataset.h -- what a dataset is: type, shape, filters, and where its bytes lie.
 */
#ifndef HDF5_DATASET_H
#define HDF5_DATASET_H

#include "source/hdf5_rows.h"

/* Why a dataset is not read here. */
struct hdf5_odd {
    const char *why; /* NULL: it is */
    bool foreign;    /* libhdf5 may read it: type and shape are known */
    int filter;      /* that is not known here, and what it calls itself */
    char name[48];
};

/* The dataset whose header is at this address. `whole`: all of it is one row. What is odd about it, that libhdf5 may
 * make good, leaves *out without chunks; anything else, without anything. */
void hdf5_describe(const struct hdf5_view *v, int64_t header, bool whole, struct hdf5_array *out, struct hdf5_odd *odd);

/* hdf5_type.c: the type that a message tells; an array type adds its dimensions to *out. NULL, or why not. */
const char *hdf5_type_parse(const struct hdf5_view *v, struct hdf5_message *m, struct hdf5_array *out);

#endif
