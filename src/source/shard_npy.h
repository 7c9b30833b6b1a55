/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_npy.h -- NumPy's files and raw binary files as rows: what their kin have in common.
 */
#ifndef SHARD_NPY_H
#define SHARD_NPY_H

#include "base/npy.h"
#include "source/rows.h"

/* The header of a file. */
int shard_npy_head(const char *path, struct npy *h, stk_error *e);
/* What it holds as rows, without name and path; the shape is lent from h. */
int shard_npy_rows(const struct npy *h, struct rows_array *out, stk_error *e);

/* dtype= of a query; otherwise: what is taken without it, or NULL. */
int shard_raw_type(const char *query, const char *otherwise, struct rows_array *out, stk_error *e);
/* The size of a regular file. */
int shard_raw_bytes(const char *path, int64_t *bytes, stk_error *e);

#endif
