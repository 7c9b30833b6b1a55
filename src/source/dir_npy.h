/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dir_npy.h -- folders whose files are arrays: a file is a sample, its array the field "data".
 */
#ifndef DIR_NPY_H
#define DIR_NPY_H

#include "source/shard.h"

/* Whether the samples of a folder, which is ready, are such files. */
bool dir_npy_is(const struct source *s);
/* Makes its fields: by looking at some of the files. */
int dir_npy_fields(struct source *s, const struct source_options *o, stk_error *e);

#endif
