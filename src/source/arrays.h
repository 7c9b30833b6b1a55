/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays.h -- how arrays, in memory or in files, become fields. Their first dimension is the sample.
 *
 * uint8 images become pixels ("image"). A one-dimensional array of integers named label, labels or y becomes the label.
 * Every other array becomes a tensor under its own name.
 */
#ifndef ARRAYS_H
#define ARRAYS_H

#include "source/source_ops.h"

struct arrays_plan {
    int n;                        /* arrays */
    struct field form[FIELD_MAX]; /* one sample of each array, as stored */
    int label;                    /* the array with the labels; -1: none */
    int array_of[FIELD_MAX];      /* the array that field f is copied from, if it has no column */
    bool ragged[FIELD_MAX];       /* set by the caller: a sample has any number of rows of the array */
};

/* Checks types, dimensions, and that all arrays have the same number of samples. Does not read their memory. */
int arrays_check(const stk_array *a, int n, stk_error *e);
/* Sets the fields of s as `fields` says; NULL: the image, the label, then the others in order. A field that differs
 * from its array in type or shape has the array's index as its column. */
int arrays_fields(struct source *s, const stk_array *a, int n, const char *fields, struct arrays_plan *out,
                  stk_error *e);
/* row() writes the first n bytes of sample i of array k. */
struct arrays_reader {
    int (*row)(const struct source *s, int k, int64_t i, size_t n, void *to, stk_error *e);
    int (*bytes)(const struct source *s, int k, int64_t i, size_t *n, stk_error *e); /* of ragged arrays; NULL: none */
};
/* Fills the cells of the fields that have a column. */
int arrays_cells(const struct source *s, const struct arrays_plan *m, struct reading *r, int64_t i,
                 struct arrays_reader by, stk_error *e);
/* Covers types, shapes, and the first bytes of some rows spread over all. */
uint64_t arrays_fingerprint(const struct source *s, const struct arrays_plan *m, struct arrays_reader by);
/* Check that the label of sample i, or all labels, fit into int64 and the classes. source_label must work already. t:
 * the type of the labels. */
int arrays_check_label(const struct source *s, stk_dtype t, int64_t i, stk_error *e);
int arrays_check_labels(const struct source *s, stk_dtype t, stk_error *e);

#endif
