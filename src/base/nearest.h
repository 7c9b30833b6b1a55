/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.h -- which of some names was probably meant by a word that is none of them.
 *
 *     struct nearest n = {.word = "Rezise"};
 *     nearest_try(&n, "Resize", 6); ...
 *     n.found                            NULL when none is near
 */
#ifndef NEAREST_H
#define NEAREST_H

#include <stddef.h>

#include "base/buf.h"
#include "base/sample.h"

struct nearest {
    const char *word;
    const char *found;
    size_t distance; /* of what was found */
};

void nearest_try(struct nearest *n, const char *name, size_t name_bytes);

/* All of the names, for the words of an error: those that there is room for, the number of the others, and the nearest
 * one. They are lent until the error is made, which leaves nothing behind. */
struct nearest_list {
    struct nearest like; /* .word */
    struct buf all;
    int n, shown;
};
void nearest_list_add(struct nearest_list *l, const char *name);
/* "there is no column X (is Y meant?); the columns are Y, Z and 3 more": before is "there is no", noun "column". */
int nearest_list_error(struct nearest_list *l, const char *before, const char *noun, stk_error *e);

#endif
