/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature.h -- the values of a feature of a tf.train.Example, or of a feature list of a SequenceExample.
 *
 *     Feature      { bytes_list = 1 | float_list = 2 | int64_list = 3 }, each { repeated value = 1 }, packed or not
 *     FeatureList  { repeated Feature = 1 }
 *
 * Values that are contiguous in the message are not copied.
 */
#ifndef FEATURE_H
#define FEATURE_H

#include "base/buf.h"
#include "format/wire.h"

enum feature_kind { FEATURE_NONE, FEATURE_BYTES, FEATURE_FLOATS, FEATURE_INTS }; /* as in the message */

struct feature {
    const uint8_t *p; /* the message; NULL: there is none */
    size_t n;
    bool steps; /* it is a FeatureList */
    /* Set by feature_measure(): */
    enum feature_kind kind; /* NONE: there is no list of values, not even an empty one */
    size_t count, bytes;    /* of all values; bytes as stored */
    int64_t n_steps, each;  /* steps, and values of each step; -1: the steps differ */
    const uint8_t *whole;   /* all values, if they are contiguous and need no conversion; otherwise NULL */
};

/* false: damaged. */
bool feature_measure(struct feature *f);

/* The following need a measured feature. */
/* Bytes that feature_make() writes: int64, float32, or the concatenated byte strings. */
size_t feature_room(const struct feature *f);
/* Writes all values; `to` is aligned for int64. false: damaged. */
bool feature_make(const struct feature *f, void *to);
/* Appends UTF-8 byte strings as a JSON array of strings. false: no memory, or damaged. */
bool feature_json(const struct feature *f, struct buf *to);

/* Walks over runs of contiguous values, in order. */
struct feature_run {
    const uint8_t *p;
    size_t n, count; /* bytes; values in them */
};
struct feature_walk {
    struct wire steps, feature, list;
    enum feature_kind kind;
    int64_t n_steps, each;
    size_t in_step;
};
void feature_begin(struct feature_walk *w, const struct feature *f);
/* 1 and a run; 0 at the end; -1: damaged. Every byte string is a run. */
int feature_next(struct feature_walk *w, struct feature_run *run);

#endif
