/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h -- 64-bit hashes for fingerprints, checksums and keys. States and caches store them, so they are the same in
 * every version and on every machine. They do not resist an attacker.
 */
#ifndef HASH_H
#define HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_K0 UINT64_C(0x9e3779b97f4a7c15)
#define HASH_K1 UINT64_C(0xbf58476d1ce4e5b9)
#define HASH_K2 UINT64_C(0x94d049bb133111eb)

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);

static inline uint64_t hash_finish(uint64_t v)
{
    v = (v ^ v >> 30) * HASH_K1;
    v = (v ^ v >> 27) * HASH_K2;
    return v ^ v >> 31;
}

/* Mixes two numbers into one; their order matters. Inline, because shuffling consists of it. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
    const uint64_t v = hash_finish(a + HASH_K0);
    return hash_finish((v << 32 | v >> 32) ^ (b * HASH_K2 + HASH_K1));
}

#endif
