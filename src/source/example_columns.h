/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_columns.h -- what columns a set of tf.train.Examples has, by looking at some.
 *
 *     struct example_look look = {0};
 *     example_see(&look, p, n);                   for each sample
 *     example_columns(&look, &columns);
 *     example_look_done(&look);
 */
#ifndef EXAMPLE_COLUMNS_H
#define EXAMPLE_COLUMNS_H

#include "source/columns.h"
#include "source/example.h"

struct example_look {
    struct seen *of; /* features, in the order in which they came */
    int n, room;
    int examples, others; /* samples that were examples, and those that were something else */
};

/* 0, or -1: no memory. What is no example is counted and not looked into. */
int example_see(struct example_look *l, const uint8_t *p, size_t n);
/* Adds the columns; 0, or -1: no memory. */
int example_columns(const struct example_look *l, struct columns *c);
void example_look_done(struct example_look *l);

#endif
