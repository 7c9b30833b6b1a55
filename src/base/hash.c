/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.c -- 64 bits from bytes: four lanes of multiply-and-rotate, then a finaliser.
 *
 * The lanes keep four multiplications in flight, so that a checksum costs a small part of the
 * memory traffic of its batch. Bytes are read as little-endian words on every machine.
 */
#include "base/hash.h"

#include "base/bytes.h"

static const uint64_t K0 = 0x9e3779b97f4a7c15u, K1 = 0xbf58476d1ce4e5b9u, K2 = 0x94d049bb133111ebu;

static uint64_t rotate(uint64_t v, int n)
{
    return v << n | v >> (64 - n);
}

static uint64_t finish(uint64_t v)
{
    v = (v ^ v >> 30) * K1;
    v = (v ^ v >> 27) * K2;
    return v ^ v >> 31;
}

static uint64_t step(uint64_t lane, uint64_t word)
{
    return rotate((lane ^ word * K1) * K0, 29) + K2;
}

uint64_t hash_mix(uint64_t a, uint64_t b)
{
    return finish(rotate(finish(a + K0), 32) ^ (b * K2 + K1));
}

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
    const uint8_t *s = p;
    uint64_t lane[4] = {seed ^ K0, seed + K1, seed ^ K2, seed - K0};
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
