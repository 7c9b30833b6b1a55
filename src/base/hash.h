/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h -- 64-bit hashing for fingerprints, checksums and keys. Stable: the values are part of
 * states and caches, on every machine. Not against malice.
 */
#ifndef HASH_H
#define HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
/* Mixes two numbers into one; order matters. */
uint64_t hash_mix(uint64_t a, uint64_t b);

#endif
