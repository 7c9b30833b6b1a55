/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h -- a set of byte strings, numbered in the order they came.
 *
 *     struct names s = {0};
 *     uint32_t i;
 *     if (names_add(&s, "cat", 3, &i) < 0) ...   no memory; 1 when it is new, 0 when it was there
 *     names_done(&s);
 */
#ifndef NAMES_H
#define NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct names {
    struct buf pool; /* all strings, each ended by 0 */
    struct buf ends; /* uint64_t: where the i-th ends in pool, its 0 included */
    uint32_t *slots; /* hash table of number + 1 */
    uint32_t n, n_slots;
};

int names_add(struct names *s, const void *p, size_t n, uint32_t *out);
bool names_find(const struct names *s, const void *p, size_t n, uint32_t *out);
const char *names_at(const struct names *s, uint32_t i);
size_t names_length(const struct names *s, uint32_t i);
/* The name most like word, when one is near enough to be meant; else NULL. */
const char *names_nearest(const struct names *s, const char *word);
/* order[k] = number of the k-th in byte order, from malloc; NULL when there is no memory. n > 0. */
uint32_t *names_sorted(const struct names *s);
void names_done(struct names *s); /* also zeroed, also twice */

/* Byte order, the shorter first where one begins the other. */
int bytes_compare(const void *a, size_t n_a, const void *b, size_t n_b);

#endif
