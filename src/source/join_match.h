/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_match.h -- whether sources go together, and as what: the fields that all of them have, and their classes.
 */
#ifndef JOIN_MATCH_H
#define JOIN_MATCH_H

#include "source/shard.h"

struct joined {
    struct source **parts;
    const char *const *names; /* as the caller has them */
    int n;
};

/* The fields that every part has, as stk_options.fields says it; those of some parts alone into left_out, with words.
 */
int join_shared(const struct joined *j, struct buf *fields, struct buf *left_out, stk_error *e);
/* Makes the fields of s of those of the parts, which have the same names in the same order. */
int join_fields(struct source *s, const struct joined *j, stk_error *e);
/* Makes the classes of s. (*numbers)[p][c] is the number that class c of part p has in s; NULL: all are alike. */
int join_classes(struct source *s, const struct joined *j, uint32_t ***numbers, stk_error *e);
void join_numbers_free(uint32_t **numbers, int n); /* also NULL */

#endif
