/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_check.h -- checks that ops fit together, and computes what they result in.
 */
#ifndef OPS_CHECK_H
#define OPS_CHECK_H

#include "transform/ops.h"
#include "transform/ops_text.h"

/* Sets size, channels and unit of *ops. On entry, its size is that of every image; 0 if they differ. */
int ops_check(struct ops *ops, struct text *t, stk_dtype dtype, bool open);

#endif
