/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_npy.h -- what npy files, raw binary files, npz archives and token files share.
 */
#ifndef SOURCE_NPY_H
#define SOURCE_NPY_H

#include "format/npy.h"
#include "source/rows.h"

/* Reads the header of a file. */
int source_npy_head(const char *path, struct npy *h, stk_error *e);
/* Describes its rows, without name and path. out->shape points into h. */
int source_npy_rows(const struct npy *h, struct rows_array *out, stk_error *e);

/* Reads dtype= of a query. otherwise: the default type, or NULL: required. */
int source_raw_type(const char *query, const char *otherwise, struct rows_array *out, stk_error *e);
/* The size of a regular file. */
int source_raw_bytes(const char *path, int64_t *bytes, stk_error *e);

#endif
