/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.c -- names by the number of letters that are otherwise.
 */
#include "base/nearest.h"

#include <string.h>

#include "base/error.h"

enum { WORD_MAX = 64 /* longer ones are not compared */, LISTED_MAX = 300 /* bytes of names in an error */ };

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

void nearest_list_add(struct nearest_list *l, const char *name)
{
    nearest_try(&l->like, name, strlen(name));
    l->all.max = LISTED_MAX;
    l->shown += l->shown == l->n && buf_printf(&l->all, "%s%s", l->n > 0 ? ", " : "", name) == 0;
    l->n++;
}

int nearest_list_error(struct nearest_list *l, const char *before, const char *noun, stk_error *e)
{
    const char *like = l->like.found;
    l->all.max = LISTED_MAX + 32;
    if (l->shown < l->n)
        buf_printf(&l->all, "%s%d %s", l->shown ? " and " : "", l->n - l->shown, l->shown ? "more" : "of long names");
    const int rc = error_set(e, STK_EUSAGE, "open", "%s %s %.100s%s%.60s%s; the %s%s %s %.*s", before, noun,
                             l->like.word, like ? " (is " : "", like ? like : "", like ? " meant?)" : "", noun,
                             l->n == 1 ? "" : "s", l->n == 1 ? "is" : "are", l->all.len > 0 ? (int)l->all.len : 4,
                             l->all.len > 0 ? (char *)l->all.data : "none");
    buf_done(&l->all);
    return rc;
}
