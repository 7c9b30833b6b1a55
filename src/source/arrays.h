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
    int n;                        /* arrays */
    struct field form[FIELD_MAX]; /* of a sample in each, as it is stored */
    int label;                    /* the array that is the label; -1: none */
    int of[FIELD_MAX];            /* the array that field f is copied from, where it has no column */
    bool ragged[FIELD_MAX];       /* said by the caller: a sample has any number of the array's rows */
};

/* Types, dimensions, and as many samples in each; their memory is not looked at. */
int arrays_check(const stk_array *a, int n, stk_error *e);
/* Makes the fields of s: as `fields` says; NULL: the picture, the label, then the others as they come. A field that is
 * to be another than its array is has the array's number as its column. */
int arrays_fields(struct source *s, const stk_array *a, int n, const char *fields, struct arrays_made *out,
                  stk_error *e);
/* What writes the first n bytes of what array k has of sample i. */
struct arrays_reader {
    int (*row)(const struct source *s, int k, int64_t i, size_t n, void *to, stk_error *e);
    int (*bytes)(const struct source *s, int k, int64_t i, size_t *n, stk_error *e); /* of ragged ones; NULL: none */
};
/* Fills the cells of the fields that have a column. */
int arrays_cells(const struct source *s, const struct arrays_made *m, struct reading *r, int64_t i,
                 struct arrays_reader by, stk_error *e);
/* Types, shapes, and how some rows, spread over the whole, begin. */
uint64_t arrays_fingerprint(const struct source *s, const struct arrays_made *m, struct arrays_reader by);
/* Whether the labels, which source_label has to tell already, fit into int64 and the classes. t: their type. */
int arrays_check_labels(const struct source *s, stk_dtype t, stk_error *e);

#endif
