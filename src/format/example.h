/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example.h -- tf.train.Example and tf.train.SequenceExample: features by name, where they lie.
 *
 *     Example          { Features features = 1 }
 *     SequenceExample  { Features context = 1, FeatureLists feature_lists = 2 }
 *     Features         { map<string, Feature> = 1 }          FeatureLists  { map<string, FeatureList> = 1 }
 *
 * One reader serves both, since the first has nothing that the second has not. Of a name that comes twice, the last
 * one counts, as protocol buffers say.
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
/* 1 and a feature; 0 at the end; -1: it is no example. */
int example_next(struct example_walk *w, struct example_entry *out);

/* One entry of a map; false: it is none. */
bool example_entry(const uint8_t *p, size_t n, bool steps, struct example_entry *out);

/* The features that are wanted. Best in the order in which they come: the next one is tried first. */
struct example_names {
    struct example_name {
        const char *p;
        size_t n;
    } of[FIELD_MAX];
    int n;
};

/* out[i] is the one of names->of[i], not measured; p is NULL where there is none. false: it is no example. */
bool example_find(const struct example_names *names, const uint8_t *p, size_t n, struct feature *out);

#endif
