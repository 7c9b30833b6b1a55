/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature.h -- the values of one feature of a tf.train.Example, or of all steps of one of a SequenceExample.
 *
 *     Feature      { bytes_list = 1 | float_list = 2 | int64_list = 3 }, each { repeated value = 1 }, packed or not
 *     FeatureList  { repeated Feature = 1 }
 *
 * Nothing is copied that lies in one piece.
 */
#ifndef FEATURE_H
#define FEATURE_H

#include "base/buf.h"
#include "format/wire.h"

enum feature_kind { FEATURE_NONE, FEATURE_BYTES, FEATURE_FLOATS, FEATURE_INTS }; /* numbered as in the message */

struct feature {
    const uint8_t *p; /* the message; NULL: there is none */
    size_t n;
    bool steps; /* it is a FeatureList */
    /* What feature_measure finds. */
    enum feature_kind kind; /* NONE: no list of values is there, not even an empty one */
    size_t count, bytes;    /* of all values; bytes as stored */
    int64_t n_steps, each;  /* how many steps, of how many values each; -1: they differ */
    const uint8_t *whole;   /* the bytes of all values where they lie in one piece and need no making; else NULL */
};

/* false: it is damaged. */
bool feature_measure(struct feature *f);

/* What follows is for features that were measured. */
/* Bytes that the values take one behind the other: int64, float32, or those of all byte strings. */
size_t feature_room(const struct feature *f);
/* Puts them there; `to` is aligned for int64. false: damaged. */
bool feature_make(const struct feature *f, void *to);
/* Adds byte strings that are UTF-8 as a JSON array of strings; false: no memory, or damaged. */
bool feature_json(const struct feature *f, struct buf *to);

/* The values in pieces, in order. */
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
