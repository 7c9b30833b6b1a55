/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.c -- edit distance between a word and the names it may stand for.
 */
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { WORD_MAX = 64 /* longer words are not compared */, ROW = WORD_MAX + 1 };

static size_t least(size_t a, size_t b, size_t c)
{
    const size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Letters to insert, delete, replace or swap with a neighbour, ignoring case. Both are at most WORD_MAX long. */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t rows[3][ROW];
    for (size_t j = 0; j <= n_b; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            const char x = text_lower(a[i - 1]), y = text_lower(b[j - 1]);
            row[j] = least(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == text_lower(b[j - 2]) && text_lower(a[i - 2]) == y &&
                two_above[j - 2] + 1 < row[j])
                row[j] = two_above[j - 2] + 1;
        }
    }
    return rows[n_a % 3][n_b];
}

void nearest_try(struct nearest *n, const char *name, size_t name_bytes)
{
    const size_t bytes = strlen(n->word), limit = bytes < 6 ? 2 : bytes / 3;
    if (bytes > WORD_MAX || name_bytes > WORD_MAX)
        return;
    size_t d = distance(n->word, bytes, name, name_bytes);
    /* The start of a longer name is a good guess, too. */
    if (d > limit && bytes >= 3 && bytes < name_bytes && distance(n->word, bytes, name, bytes) == 0)
        d = limit;
    if (n->found ? d < n->distance : d <= limit) {
        n->found = name;
        n->distance = d;
    }
}

void nearest_try_all(struct nearest *n, const char *const *names, int n_names)
{
    for (int i = 0; i < n_names; i++)
        nearest_try(n, names[i], strlen(names[i]));
}

const char *nearest_hint(struct nearest *n)
{
    if (n->found)
        snprintf(n->hint, sizeof n->hint, "; did you mean %s%.64s?", n->prefix ? n->prefix : "", n->found);
    return n->hint;
}
