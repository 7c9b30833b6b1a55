/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h -- distinct byte strings, indexed in the order they were added.
 *
 *     struct names s = {0};
 *     uint32_t i;
 *     if (names_add(&s, "cat", 3, &i) < 0) ...   no memory; 1: it is new, 0: it was there already
 *     names_done(&s);
 */
#ifndef NAMES_H
#define NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/nearest.h"

struct names {
    struct buf pool; /* all strings, each followed by a 0 */
    struct buf ends; /* uint64_t: the end of string i in pool, after its 0 */
    uint32_t *slots; /* hash table of index + 1 */
    uint32_t n, n_slots;
};

int names_add(struct names *s, const void *p, size_t n, uint32_t *out);
bool names_find(const struct names *s, const void *p, size_t n, uint32_t *out);
const char *names_at(const struct names *s, uint32_t i);
size_t names_length(const struct names *s, uint32_t i);
/* Tries the names, the first 10,000 at most. */
void names_nearest(const struct names *s, struct nearest *n);
/* The indices in byte order of their strings, from malloc. NULL: no memory. n > 0. */
uint32_t *names_sorted(const struct names *s);
void names_done(struct names *s); /* accepts a zeroed struct; may be called twice */

/* Compares in byte order; a prefix comes first. */
int bytes_compare(const void *a, size_t n_a, const void *b, size_t n_b);

#endif
