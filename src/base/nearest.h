/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.h -- guesses which name a misspelt word stands for.
 *
 *     struct nearest n = {.word = "Rezise"};
 *     nearest_try(&n, "Resize", 6); ...
 *     n.found                            NULL: no name is close
 *     nearest_hint(&n)                   "; did you mean Resize?", the end of every message about an unknown name
 */
#ifndef NEAREST_H
#define NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word;
    const char *found;
    size_t distance;    /* of the found name */
    const char *prefix; /* of the name in the hint; NULL: none */
    char hint[96];
};

void nearest_try(struct nearest *n, const char *name, size_t name_bytes);
void nearest_try_all(struct nearest *n, const char *const *names, int n_names);
/* "" if no name is close. Valid as long as n. */
const char *nearest_hint(struct nearest *n);

#endif
