/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays.h -- which fields arrays become, whose first dimension is the samples: in memory, in files.
 *
 * uint8 pictures become pixels ("image"), a column of whole numbers called label, labels or y the label; everything
 * else is a tensor under its own name.
 */
#ifndef ARRAYS_H
#define ARRAYS_H

#include "source/shard.h"

struct arrays_made {
    int of[FIELD_MAX]; /* the array that field f is made of */
    int label;         /* the field; -1: none */
};

/* Types, dimensions, and as many samples in each; their memory is not looked at. */
int arrays_check(const stk_array *a, int n, stk_error *e);
/* Makes the fields of s: the picture, the label, then the others as they come. */
int arrays_fields(struct source *s, const stk_array *a, int n, struct arrays_made *out, stk_error *e);
/* Whether the labels, which source_label has to tell already, fit into int64 and the classes. t: their type. */
int arrays_check_labels(const struct source *s, stk_dtype t, stk_error *e);
/* A whole number of this type. */
int64_t arrays_integer(stk_dtype t, const void *p);

#endif
