/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_arrays.h -- what the targets have in common that write columns: samples x rows x columns x channels, numbers,
 * runs of values.
 */
#ifndef TARGET_ARRAYS_H
#define TARGET_ARRAYS_H

#include "pack/target.h"

/* One column of a sample: its bytes. */
struct target_arrays_cell {
    const uint8_t *bytes;
    size_t n;
};

struct target_arrays_cell target_arrays_cell(const struct target *t, const struct packed *p, int column);
/* Columns of their own, in which a picture has the form that the first sample has; NULL: no memory. */
struct target_column *target_arrays_columns(const struct target *t, const struct packed *p);
/* Whether the picture of a sample is of that form. */
int target_arrays_check(const struct target *t, const struct target_column *columns, const struct packed *p,
                        stk_error *e);

#endif
