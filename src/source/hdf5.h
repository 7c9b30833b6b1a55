/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5.h -- datasets that are not read here, read by libhdf5: slowly, under its one lock. Other filters (szip, nbit,
 * scaleoffset, plugins), bytes in other files.
 */
#ifndef SOURCE_HDF5_H /* HDF5_H is the library's */
#define SOURCE_HDF5_H

#include "source/hdf5_rows.h"

/* A file that libhdf5 has open. */
struct hdf5;

/* Has rows of the array be read by libhdf5, which opens the file where *h is NULL. Its type and shape are known. */
int hdf5_attach(struct hdf5 **h, const char *path, const char *dataset, struct hdf5_array *a, stk_error *e);
void hdf5_close(struct hdf5 *h); /* also NULL */

#endif
