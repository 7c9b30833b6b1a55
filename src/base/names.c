/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c -- distinct byte strings: one pool of bytes, open addressing, linear probing.
 */
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const uint64_t *ends_of(const struct names *s)
{
    return (const uint64_t *)(const void *)s->ends.data;
}

static size_t begin_of(const struct names *s, uint32_t i)
{
    return i ? (size_t)ends_of(s)[i - 1] : 0;
}

const char *names_at(const struct names *s, uint32_t i)
{
    return (const char *)s->pool.data + begin_of(s, i);
}

size_t names_length(const struct names *s, uint32_t i)
{
    return (size_t)ends_of(s)[i] - begin_of(s, i) - 1;
}

/* The slot of the string, or the free slot where it belongs. */
static uint32_t slot_of(const struct names *s, const void *p, size_t n)
{
    uint32_t at = (uint32_t)hash_bytes(p, n, 0) & (s->n_slots - 1);
    for (; s->slots[at]; at = (at + 1) & (s->n_slots - 1)) {
        const uint32_t i = s->slots[at] - 1;
        if (names_length(s, i) == n && memcmp(names_at(s, i), p, n) == 0)
            break;
    }
    return at;
}

static int grow(struct names *s)
{
    const uint32_t n_slots = s->n_slots ? 2 * s->n_slots : 16;
    if (n_slots > UINT32_MAX / 2)
        return -1;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return -1;
    free(s->slots);
    s->slots = slots;
    s->n_slots = n_slots;
    for (uint32_t i = 0; i < s->n; i++)
        slots[slot_of(s, names_at(s, i), names_length(s, i))] = i + 1;
    return 0;
}

bool names_find(const struct names *s, const void *p, size_t n, uint32_t *out)
{
    if (s->n == 0)
        return false;
    const uint32_t held = s->slots[slot_of(s, p, n)];
    if (held)
        *out = held - 1;
    return held != 0;
}

int names_add(struct names *s, const void *p, size_t n, uint32_t *out)
{
    if (names_find(s, p, n, out))
        return 0;
    if (s->n >= s->n_slots / 2 && grow(s))
        return -1;
    const size_t before = s->pool.len;
    if (buf_add(&s->pool, p, n) || buf_add(&s->pool, "", 1)) {
        s->pool.len = before;
        return -1;
    }
    const uint64_t end = s->pool.len;
    if (buf_add(&s->ends, &end, sizeof end)) {
        s->pool.len = before;
        return -1;
    }
    s->slots[slot_of(s, p, n)] = s->n + 1;
    *out = s->n++;
    return 1;
}

void names_done(struct names *s)
{
    buf_done(&s->pool);
    buf_done(&s->ends);
    free(s->slots);
    *s = (struct names){0};
}

int bytes_compare(const void *a, size_t n_a, const void *b, size_t n_b)
{
    const size_t n = n_a < n_b ? n_a : n_b;
    const int c = n ? memcmp(a, b, n) : 0;
    return c ? c : (n_a > n_b) - (n_a < n_b);
}

struct sortable {
    const char *p;
    size_t n;
    uint32_t i;
};

static int compare(const void *a, const void *b)
{
    const struct sortable *x = a, *y = b;
    return bytes_compare(x->p, x->n, y->p, y->n);
}

uint32_t *names_sorted(const struct names *s)
{
    struct sortable *all = malloc((size_t)s->n * sizeof *all);
    uint32_t *order = malloc((size_t)s->n * sizeof *order);
    if (all && order) {
        for (uint32_t i = 0; i < s->n; i++)
            all[i] = (struct sortable){names_at(s, i), names_length(s, i), i};
        qsort(all, s->n, sizeof *all, compare);
        for (uint32_t k = 0; k < s->n; k++)
            order[k] = all[k].i;
    } else {
        free(order);
        order = NULL;
    }
    free(all);
    return order;
}

/* ------------------------------------------------------------------ what may have been meant */

enum { NAMES_LOOKED_AT = 10000 };

void names_nearest(const struct names *s, struct nearest *n)
{
    for (uint32_t i = 0; i < s->n && i < NAMES_LOOKED_AT; i++)
        nearest_try(n, names_at(s, i), names_length(s, i));
}
