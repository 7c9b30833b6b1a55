/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meant.c -- the word that was probably meant.
 */
#include <string.h>

#include "args.h"

enum { LONGEST = 31 };

static int min3(int a, int b, int c)
{
    const int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Letters to change, add, drop or swap with a neighbour, to make a out of b. */
static int distance(const char *a, const char *b)
{
    const int n = (int)strlen(a), m = (int)strlen(b);
    int rows[3][LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return 2 * LONGEST;
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_above[j - 2] + 1 < row[j])
                row[j] = two_above[j - 2] + 1;
        }
    }
    return rows[n % 3][m];
}

void meant_try(struct meant *n, const char *candidate)
{
    const int len = (int)strlen(n->typed), near = len < 4 ? 1 : len < 8 ? 2 : 3;
    int d = distance(n->typed, candidate);
    /* The start of a longer word is a good guess, too. */
    if (len >= 2 && d > near && strncmp(n->typed, candidate, strlen(n->typed)) == 0)
        d = near;
    if (d <= near && (!n->best || d < n->distance)) {
        n->best = candidate;
        n->distance = d;
    }
}
