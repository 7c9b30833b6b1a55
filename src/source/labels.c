/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.c -- labels stored as text.
 */
#include "source/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static bool whole_number(const char *s, int64_t *value)
{
    char *end;
    while (*s == ' ' || *s == '\n')
        s++;
    if ((*s < '0' || *s > '9') && *s != '-' && *s != '+')
        return false;
    errno = 0;
    const long long v = strtoll(s, &end, 10);
    if (end == s || errno == ERANGE)
        return false;
    while (*end == ' ' || *end == '\n' || *end == '\r')
        end++;
    *value = v;
    return *end == 0;
}

static int not_among(const struct names *given, const char *name, stk_error *e)
{
    struct nearest near = {.word = name};
    names_nearest(given, &near);
    return error_set(e, STK_EUSAGE, "open", "the label %.100s is not one of the %d given classes%s", name,
                     (int)given->n, near.found ? nearest_hint(&near) : "; add it to classes");
}

/* Whether all labels are integers; sets their values. */
static bool are_numbers(struct labels *all)
{
    bool numbers = true;
    for (uint32_t k = 0; k < all->names.n && numbers; k++)
        numbers = whole_number(names_at(&all->names, k), &all->value[k]);
    return numbers;
}

int labels_resolve(struct labels *all, const struct names *given, stk_error *e)
{
    all->value = calloc((size_t)all->names.n + 1, sizeof *all->value);
    if (!all->value)
        return error_nomem(e, "open", (size_t)all->names.n * sizeof *all->value);
    const bool words = !are_numbers(all);
    for (uint32_t k = 0; k < all->names.n; k++) {
        const char *name = names_at(&all->names, k);
        uint32_t number;
        if (!words) {
            if (given->n > 0 && (all->value[k] < 0 || all->value[k] >= (int64_t)given->n))
                return not_among(given, name, e);
        } else if (given->n > 0) {
            if (!names_find(given, name, strlen(name), &number))
                return not_among(given, name, e);
            all->value[k] = number;
        }
    }
    if (!words || given->n > 0)
        return STK_OK;
    all->rank = names_sorted(&all->names);
    if (!all->rank)
        return error_nomem(e, "open", all->names.pool.len);
    for (uint32_t k = 0; k < all->names.n; k++)
        all->value[all->rank[k]] = k;
    return STK_OK;
}

void labels_done(struct labels *all)
{
    names_done(&all->names);
    free(all->value);
    free(all->rank);
}
