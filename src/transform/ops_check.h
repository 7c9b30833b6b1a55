/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_check.h -- whether ops go together, and what comes out of them.
 */
#ifndef OPS_CHECK_H
#define OPS_CHECK_H

#include "transform/ops.h"
#include "transform/ops_text.h"

/* Fills in what the ops come to: size, channels, how bytes become floats. The size that is in *ops before is that of
 * every picture, 0 when they differ. */
int ops_check(struct ops *ops, struct text *t, stk_dtype dtype, bool open);

#endif
