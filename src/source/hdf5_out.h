/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_out.h -- writes a file of pictures and labels through libhdf5.
 *
 *     hdf5_out_new(&o, path, e)
 *     hdf5_out_row(o, bytes, n, ndim, shape, e)    one row of "images": an array, or (ndim 0) any number of bytes
 *     hdf5_out_end(o, labels, keys, n, classes, n_classes, e)
 *     hdf5_out_free(o)                             also NULL, also in the middle
 */
#ifndef HDF5_OUT_H
#define HDF5_OUT_H

#include "stoker.h"

struct hdf5_out;

int hdf5_out_new(struct hdf5_out **out, const char *path, stk_error *e);
int hdf5_out_row(struct hdf5_out *o, const uint8_t *bytes, size_t n, int ndim, const int64_t *shape, stk_error *e);
/* labels: NULL: there are none. The classes become an attribute of "labels". */
int hdf5_out_end(struct hdf5_out *o, const int64_t *labels, const char *const *keys, int64_t n,
                 const char *const *classes, int n_classes, stk_error *e);
void hdf5_out_free(struct hdf5_out *o);

#endif
