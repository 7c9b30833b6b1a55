/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perm.c -- a keyed permutation of 0..n-1: a Feistel network over the next power of two, walked
 * until it lands below n.
 *
 * The two halves differ by at most one bit, so the domain is under 2n and the walk takes under two
 * steps on average. Each round replaces one half by itself XOR a function of the other, which is a
 * bijection whatever the function is; walking along the cycles of a bijection of the larger domain
 * is a bijection of the smaller.
 */
#include "base/perm.h"

#include "base/hash.h"

enum { ROUNDS = 8 };

void perm_init(struct perm *p, uint64_t n, uint64_t seed, uint64_t epoch)
{
    int bits = 2;
    while (bits < 64 && (uint64_t)1 << bits < n)
        bits++;
    *p = (struct perm){.n = n, .low_bits = bits / 2, .high_bits = bits - bits / 2};
    uint64_t key = hash_mix(hash_mix(seed, epoch), n);
    for (int i = 0; i < ROUNDS; i++)
        p->keys[i] = key = hash_mix(key, (uint64_t)i);
}

static uint64_t scramble(const struct perm *p, uint64_t v)
{
    const uint64_t low_mask = ((uint64_t)1 << p->low_bits) - 1, high_mask = ((uint64_t)1 << p->high_bits) - 1;
    uint64_t low = v & low_mask, high = v >> p->low_bits;
    for (int i = 0; i < ROUNDS; i += 2) {
        high ^= hash_mix(low, p->keys[i]) & high_mask;
        low ^= hash_mix(high, p->keys[i + 1]) & low_mask;
    }
    return high << p->low_bits | low;
}

uint64_t perm_at(const struct perm *p, uint64_t i)
{
    do
        i = scramble(p, i);
    while (i >= p->n);
    return i;
}
