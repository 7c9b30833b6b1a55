/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example.h -- reads and writes tf.train.Example, and reads tf.train.SequenceExample.
 *
 *     Example          { Features features = 1 }
 *     SequenceExample  { Features context = 1, FeatureLists feature_lists = 2 }
 *     Features         { map<string, Feature> = 1 }          FeatureLists  { map<string, FeatureList> = 1 }
 *
 * One reader serves both: an Example is a SequenceExample without lists. If a name appears twice, the last one counts,
 * as in all protocol buffers.
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include "base/sample.h"
#include "format/feature.h"

struct example_walk {
    struct wire example, map;
    bool steps;
};

struct example_entry {
    const uint8_t *name;
    size_t name_bytes;
    struct feature feature; /* not measured */
};

void example_begin(struct example_walk *w, const uint8_t *p, size_t n);
/* 1 and a feature; 0 at the end; -1: not an example. */
int example_next(struct example_walk *w, struct example_entry *out);

/* Parses one entry of a map; false: it is not one. */
bool example_entry(const uint8_t *p, size_t n, bool steps, struct example_entry *out);

/* The features to find. Finding is fastest if they are in the order of the file. */
struct example_names {
    struct example_name {
        const char *p;
        size_t n;
    } of[FIELD_MAX];
    int n;
};

/* out[i] becomes the feature names->of[i], not measured; its p is NULL if there is none. false: not an example. */
bool example_find(const struct example_names *names, const uint8_t *p, size_t n, struct feature *out);

/* ------------------------------------------------------------------ example_out.c: writing
 *
 *     struct example_out x = {0};
 *     example_out_bytes(&x, "image/encoded", p, n);
 *     example_out_ints(&x, "image/height", &h, 1);
 *     if (example_out_end(&x, &out)) ...           appends the message to out; -1: no memory
 *     example_out_done(&x);
 */

struct example_out {
    struct buf features; /* the entries of the map so far */
    bool failed;
};

void example_out_bytes(struct example_out *x, const char *name, const void *bytes, size_t n);
void example_out_ints(struct example_out *x, const char *name, const int64_t *values, size_t n);
void example_out_floats(struct example_out *x, const char *name, const float *values, size_t n);
int example_out_end(struct example_out *x, struct buf *out);
void example_out_done(struct example_out *x);

#endif
