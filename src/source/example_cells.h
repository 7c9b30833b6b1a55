/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_cells.h -- converts a tf.train.Example into the cells of a sample.
 */
#ifndef EXAMPLE_CELLS_H
#define EXAMPLE_CELLS_H

#include "format/example.h"
#include "source/columns.h"
#include "source/source_ops.h"

/* The features to read from every example, and their fields. */
struct example_wanted {
    struct example_names names; /* distinct, in the order of the columns; they point into `columns` */
    struct column columns[FIELD_MAX];
    bool json[FIELD_MAX];      /* byte strings become a JSON array */
    int feature_of[FIELD_MAX]; /* by field; -1: none */
};

/* Sets w for the fields of s, which refer to these columns. w must not move afterwards. */
void example_want(struct example_wanted *w, const struct source *s, const struct columns *c);
/* Fills r->cells, which point into the example or into r->derived. */
int example_cells(const struct example_wanted *w, const struct source *s, const uint8_t *p, size_t n, struct reading *r,
                  stk_error *e);

#endif
