/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow.h -- tables in Arrow's memory, for arrow.c and hooks.c.
 */
#ifndef ARROW_H
#define ARROW_H

#include "extension.h"

int arrow_reader_init(struct arrow_reader *r, PyObject *table); /* 0, or -1 with an exception */
void arrow_reader_done(struct arrow_reader *r);                 /* under the GIL; also zeroed */
/* Fills the hooks that read the table. */
void arrow_hooks(struct hooks *h, stk_cells_hooks *to);

#endif
