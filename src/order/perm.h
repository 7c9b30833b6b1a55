/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perm.h -- a shuffle of 0..n-1 as a function. It needs constant memory for any n.
 */
#ifndef PERM_H
#define PERM_H

#include <stdint.h>

/* Up to PERM_SMALL numbers are shuffled as a table, because a cipher over so few is biased. */
enum { PERM_ROUNDS = 8, PERM_RUN = 16, PERM_SMALL = 32 };

struct perm {
    uint64_t n;
    uint8_t small[PERM_SMALL]; /* the whole shuffle, if n <= PERM_SMALL; the rest is then unused */
    uint64_t keys[PERM_ROUNDS];
    int low_bits, high_bits;
    void (*scramble)(const struct perm *p, uint64_t *v, int n); /* the rounds, on n <= PERM_RUN numbers */
};

void perm_init(struct perm *p, uint64_t n, uint64_t seed, uint64_t epoch); /* n > 0 */
uint64_t perm_at(const struct perm *p, uint64_t i);                        /* i < n */
/* perm_at of first .. first + PERM_RUN - 1 (those below n), in half the time or less. */
void perm_run(const struct perm *p, uint64_t first, uint64_t to[PERM_RUN]);

/* ------------------------------------------------------------------ between perm*.c, and for their test */

void perm_scramble_c(const struct perm *p, uint64_t *v, int n);
void perm_scramble_avx512(const struct perm *p, uint64_t *v, int n);

#endif
