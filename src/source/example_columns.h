/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_columns.h -- the columns of a dataset of tf.train.Examples, from a survey of all of them.
 *
 *     struct example_survey survey = {0};
 *     example_glance(&feature, &g);               for each feature of each example
 *     example_survey_add(&survey, name, n, &g);
 *     example_columns(&survey, &columns);
 *     example_survey_done(&survey);
 *
 * The survey of some shards can be written to bytes and merged into that of others.
 */
#ifndef EXAMPLE_COLUMNS_H
#define EXAMPLE_COLUMNS_H

#include "base/crc32c.h"
#include "format/example.h"
#include "source/columns.h"
#include "source/records.h"

struct example_survey {
    struct seen *features; /* in the order in which they were first seen */
    int n, room;
    int next;                 /* the feature that probably follows */
    int64_t examples, others; /* records that are examples, and other records */
};

/* The values of a feature in one example. */
struct example_glance {
    enum feature_kind kind; /* NONE: missing */
    bool steps;
    bool empty;              /* no steps, so the number of values per step is unknown */
    int64_t count;           /* values; with steps: values per step, -1: they differ */
    int64_t strings, images; /* byte strings that are not empty, and those that start like an image */
    bool several, texts;     /* several byte strings; all byte strings are text */
};

/* f must have been measured. */
void example_glance(const struct feature *f, struct example_glance *out);
/* Whether n bytes are text. Unless whole is true, they are the start of a string, and an incomplete last character is
 * accepted. */
bool example_is_text(const uint8_t *p, size_t n, bool whole);

/* Whether adding the glance would change more than counts. */
bool example_survey_is_new(const struct example_survey *l, const uint8_t *name, size_t n,
                           const struct example_glance *g);
/* Adds a glance. Ignores features beyond a limit, and names that a column cannot have. Returns 0, or -1: out of memory.
 */
int example_survey_add(struct example_survey *l, const uint8_t *name, size_t n, const struct example_glance *g);

/* Appends the survey as bytes. Returns 0, or -1: out of memory. */
int example_survey_write(const struct example_survey *l, struct buf *to);
/* Adds bytes that example_survey_write wrote. Returns 0, -1: out of memory, or 1: the bytes are damaged. */
int example_survey_merge(struct example_survey *l, const uint8_t *p, size_t n);

/* Adds the columns. Returns 0, or -1: out of memory. */
int example_columns(const struct example_survey *l, struct columns *c);
void example_survey_done(struct example_survey *l);

/* example_scan.c: surveys one record while its TFRecord file is scanned. Its data has `bytes` bytes at `at`, followed
 * by the checksum. Returns 0, or -1: out of memory. */
int example_scan(struct example_survey *l, struct record_scan *sc, const struct crc32c *crc, int64_t at, int64_t bytes);

#endif
