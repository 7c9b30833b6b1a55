/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dir_beside.h -- the fields of a folder that was packed, which lie in files beside the pictures.
 */
#ifndef DIR_BESIDE_H
#define DIR_BESIDE_H

#include "source/shard.h"

/* Makes the fields that o->fields choose of o->beside. */
int dir_beside_fields(struct source *s, const struct source_options *o, stk_error *e);

#endif
