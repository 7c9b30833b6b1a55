/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.c -- names by the number of letters that are otherwise.
 */
#include "base/nearest.h"

#include <string.h>

enum { WORD_MAX = 64 }; /* longer ones are not compared */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Letters to insert, delete or exchange; capitals count for nothing. Both at most WORD_MAX long. */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t row[WORD_MAX + 1];
    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 0; i < n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n_b; j++) {
            const size_t replaced = diagonal + (lower(a[i]) != lower(b[j]));
            diagonal = row[j + 1];
            const size_t shorter = (diagonal < row[j] ? diagonal : row[j]) + 1;
            row[j + 1] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[n_b];
}

void nearest_try(struct nearest *n, const char *name, size_t name_bytes)
{
    const size_t bytes = strlen(n->word);
    if (bytes > WORD_MAX || name_bytes > WORD_MAX)
        return;
    const size_t d = distance(n->word, bytes, name, name_bytes);
    if (n->found ? d < n->distance : d <= (bytes < 6 ? 2 : bytes / 3)) {
        n->found = name;
        n->distance = d;
    }
}
