/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_columns.h -- which columns a set of tf.train.Examples has, from what all of them hold.
 *
 *     struct example_look look = {0};
 *     example_glance(&feature, &g);               for each feature of each example
 *     example_see(&look, name, n, &g);
 *     example_columns(&look, &columns);
 *     example_look_done(&look);
 *
 * What was seen of some shards can be written to bytes, and added to what was seen of others.
 */
#ifndef EXAMPLE_COLUMNS_H
#define EXAMPLE_COLUMNS_H

#include "format/example.h"
#include "source/columns.h"

struct example_look {
    struct seen *of; /* features, in the order in which they came */
    int n, room;
    int next;                 /* the one that is likely to come next */
    int64_t examples, others; /* records that were examples, and those that were something else */
};

/* What one example has of a feature. */
struct example_glance {
    enum feature_kind kind; /* NONE: it is missing */
    bool steps;
    bool empty;                /* of steps: there is none, so nothing says how many values one has */
    int64_t count;             /* values; of steps: values of each, -1: they differ */
    int64_t strings, pictures; /* that are not empty; and that begin like a picture */
    bool several, texts;       /* byte strings; all of them are text */
};

/* Of a feature that was measured. */
void example_glance(const struct feature *f, struct example_glance *out);
/* Whether n bytes are text, or, where they are only the beginning of a string, could be. */
bool example_is_text(const uint8_t *p, size_t n, bool whole);

/* Whether the glance would change what is known of the feature, beyond counts. */
bool example_is_news(const struct example_look *l, const uint8_t *name, size_t n, const struct example_glance *g);
/* Counts it; 0, or -1: no memory. Features beyond a limit are left out, and names that no column can have. */
int example_see(struct example_look *l, const uint8_t *name, size_t n, const struct example_glance *g);

/* Adds what was seen to bytes; 0, or -1: no memory. */
int example_look_write(const struct example_look *l, struct buf *to);
/* Adds what example_look_write wrote; 0, -1: no memory, or 1: it did not. */
int example_look_add(struct example_look *l, const uint8_t *p, size_t n);

/* Adds the columns; 0, or -1: no memory. */
int example_columns(const struct example_look *l, struct columns *c);
void example_look_done(struct example_look *l);

#endif
