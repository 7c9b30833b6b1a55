/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_match.h -- the common fields and classes of sources that are joined.
 */
#ifndef JOIN_MATCH_H
#define JOIN_MATCH_H

#include "source/source_ops.h"

struct joined {
    struct source **sources;
    const char *const *names; /* as typed */
    int n;
};

/* Writes the fields that all sources have, in the form of stk_options.fields. Writes the other fields and the sources
 * that lack them into left_out. */
int join_common_fields(const struct joined *j, struct buf *fields, struct buf *left_out, stk_error *e);
/* Sets the fields of s. All sources must have the same field names in the same order. */
int join_fields(struct source *s, const struct joined *j, stk_error *e);
/* Sets the classes of s. (*numbers)[p][c] is the index in s of class c of source p; NULL: all sources have the same. */
int join_classes(struct source *s, const struct joined *j, uint32_t ***numbers, stk_error *e);
void join_numbers_free(uint32_t **numbers, int n); /* accepts NULL */

#endif
