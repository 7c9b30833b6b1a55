/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32_clmul.c -- CRC-32 by carry-less multiplication.
 *
 * A CRC is a remainder. It does not change if the leading bytes are multiplied by a power of x, reduced, and added to
 * bytes that follow n bytes later. So each 64 bytes are folded into the next 64 until 16 are left; the CRC of those is
 * the CRC of all. The factors for a distance of n bytes are x^(8n + 32) and x^(8n - 32) modulo the polynomial, with
 * reflected bits.
 */
#include "base/crc32.h"

#include <immintrin.h>

static __m128i load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static __m128i fold(__m128i v, __m128i by, __m128i next)
{
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(v, by, 0x00), _mm_clmulepi64_si128(v, by, 0x11)), next);
}

uint32_t crc32_clmul(const uint8_t *p, size_t n)
{
    if (n < 64)
        return ~crc32_add(UINT32_MAX, p, n);
    const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), by_16 = _mm_set_epi64x(0xccaa009e, 0x1751997d0);
    __m128i v[4] = {load(p), load(p + 16), load(p + 32), load(p + 48)};
    v[0] = _mm_xor_si128(v[0], _mm_cvtsi32_si128(-1));
    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
        for (int i = 0; i < 4; i++)
            v[i] = fold(v[i], by_64, load(p + 16 * i));
    __m128i one = fold(fold(fold(v[0], by_16, v[1]), by_16, v[2]), by_16, v[3]);
    for (; n >= 16; p += 16, n -= 16)
        one = fold(one, by_16, load(p));
    uint8_t rest[16];
    _mm_storeu_si128((__m128i *)(void *)rest, one);
    return ~crc32_add(crc32_add(0, rest, sizeof rest), p, n);
}
