/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ragged.h -- the rows of ragged fields, for the inside of batch/.
 */
#ifndef RAGGED_H
#define RAGGED_H

#include "batch/batch.h"

void ragged_begin(struct stk_batch *b); /* all rows are empty */
void ragged_end(struct stk_batch *b);   /* they are not needed any more; their memory stays */
void ragged_drop(struct stk_batch *b);  /* and goes */
/* Copies a row; from < 0: makes it empty, as it is without memory. */
void ragged_copy(struct stk_batch *b, int field, int64_t from, int64_t to);

#endif
