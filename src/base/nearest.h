/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.h -- guesses which name a misspelt word stands for.
 *
 *     struct nearest n = {.word = "Rezise"};
 *     nearest_try(&n, "Resize", 6); ...
 *     n.found                            NULL: no name is close
 */
#ifndef NEAREST_H
#define NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word;
    const char *found;
    size_t distance; /* of the found name */
};

void nearest_try(struct nearest *n, const char *name, size_t name_bytes);

#endif
