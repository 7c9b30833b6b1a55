/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_parts.h -- the parts of one sample, read out of its shard.
 */
#ifndef RECORDS_PARTS_H
#define RECORDS_PARTS_H

#include "source/shard_files.h"

/* The parts of a sample that are to be read, in the order in which they lie. */
struct records_parts {
    int64_t shard;
    int n, largest;
    int part[RECORD_PARTS];
    int64_t from, to; /* all of them, and what lies between */
    int64_t bytes;
};

/* The parts of sample i that are wanted, a bit for each; an error: the sample is bad. */
int records_parts_plan(const struct records_index *x, int64_t i, uint64_t wanted, struct records_parts *p,
                       stk_error *e);
/* Whether one read gets them all, without much that is not wanted. */
bool records_parts_near(const struct records_parts *p);
/* Reads them into r->file, each followed by zeros, or takes them from where r->ahead has them. */
int records_parts_read(const struct shard_files *files, struct reading *r, int64_t i, uint64_t wanted,
                       int64_t max_bytes, struct record *out, stk_error *e);

#endif
