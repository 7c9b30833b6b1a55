/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask_files.h -- masks that a column names by their paths.
 */
#ifndef MASK_FILES_H
#define MASK_FILES_H

#include "source/source.h"

/* Replaces the cells of such fields of sample i, which have paths, by the content of the files, in r->masks. */
int mask_files_read(const struct source *s, struct reading *r, int64_t i, stk_error *e);

#endif
