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

struct nearest {
    const char *word;
    const char *found;
    size_t distance; /* of what was found */
};

void nearest_try(struct nearest *n, const char *name, size_t name_bytes);

#endif
