/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.c -- a 64-bit hash of bytes: four lanes of multiply and rotate, then a finaliser.
 *
 * The lanes keep four multiplications in flight, so that the checksum of a batch takes little time compared with
 * reading its memory. Bytes are read as little-endian words on every machine.
 */
#include "base/hash.h"

#include "base/bytes.h"

static uint64_t step(uint64_t lane, uint64_t word)
{
    const uint64_t v = (lane ^ word * HASH_K1) * HASH_K0;
    return (v << 29 | v >> 35) + HASH_K2;
}

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
    const uint8_t *s = p;
    uint64_t lane[4] = {seed ^ HASH_K0, seed + HASH_K1, seed ^ HASH_K2, seed - HASH_K0};
    size_t left = n;
    for (; left >= 32; left -= 32, s += 32)
        for (int i = 0; i < 4; i++)
            lane[i] = step(lane[i], le64(s + 8 * i));
    for (int i = 0; left >= 8; left -= 8, s += 8, i++)
        lane[i] = step(lane[i], le64(s));
    uint64_t tail = 0;
    for (size_t i = 0; i < left; i++)
        tail |= (uint64_t)s[i] << 8 * i;
    lane[3] = step(lane[3], tail ^ (uint64_t)n << 56);
    uint64_t h = n;
    for (int i = 0; i < 4; i++)
        h = hash_mix(h, lane[i]);
    return h;
}
