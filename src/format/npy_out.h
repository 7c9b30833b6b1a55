/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy_out.h -- writes the head of an npy: numbers of this machine's order follow it, dense, the last index running
 * fastest.
 */
#ifndef NPY_OUT_H
#define NPY_OUT_H

#include "base/buf.h"
#include "base/sample.h"

/* Behind what out holds; a multiple of 64 bytes, however many rows there are. bfloat16, which NumPy has not, becomes
 * "<V2". 0, or -1: no memory. */
int npy_out_head(struct buf *out, stk_dtype dtype, int ndim, const int64_t *shape);

#endif
