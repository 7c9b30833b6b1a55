/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_cells.h -- from a tf.train.Example to the cells of a sample.
 */
#ifndef EXAMPLE_CELLS_H
#define EXAMPLE_CELLS_H

#include "format/example.h"
#include "source/columns.h"
#include "source/shard.h"

/* What is wanted of every example, and for whom. */
struct example_wanted {
    struct example_names names; /* distinct, in the order of the columns; they lie in `of` */
    struct column of[FIELD_MAX];
    bool json[FIELD_MAX];      /* byte strings become a JSON array of them */
    int feature_of[FIELD_MAX]; /* by field; -1: none */
};

/* For the fields of s, which are bound to these columns. w may not move afterwards. */
void example_want(struct example_wanted *w, const struct source *s, const struct columns *c);
/* Fills r->cells, which lie in the example or in r->made. */
int example_cells(const struct example_wanted *w, const struct source *s, const uint8_t *p, size_t n, struct reading *r,
                  stk_error *e);

#endif
