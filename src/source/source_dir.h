/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_dir.h -- folders whose samples have other fields than one image.
 */
#ifndef SOURCE_DIR_H
#define SOURCE_DIR_H

#include "source/source_ops.h"

/* dir_sidecar.c: a packed folder with further fields in files next to the images. Sets the fields that o->fields
 * chooses from o->sidecar_fields. */
int dir_sidecar_fields(struct source *s, const struct source_options *o, stk_error *e);

/* dir_npy.c: a folder of npy files. Each file is a sample, and its array is the field "data". */
bool dir_npy_is(const struct source *s);
/* Sets the fields from the headers of some of the files. */
int dir_npy_fields(struct source *s, const struct source_options *o, stk_error *e);

#endif
