/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32_vpclmul.c -- CRC-32 by carry-less multiplication of four at once; how it works, crc32_clmul.c says.
 *
 * 256 bytes are folded into the next 256, then the four vectors into one, and that into 16 bytes.
 */
#include "base/crc32.h"

#include <immintrin.h>

static __m512i load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

static __m512i pair(uint64_t high, uint64_t low)
{
    return _mm512_broadcast_i32x4(_mm_set_epi64x((int64_t)high, (int64_t)low));
}

static __m512i fold(__m512i v, __m512i by, __m512i next)
{
    enum { XOR3 = 0x96 };
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, by, 0x00), _mm512_clmulepi64_epi128(v, by, 0x11), next,
                                     XOR3);
}

static __m128i fold_16(__m128i v, __m128i next)
{
    const __m128i by_16 = _mm_set_epi64x(0xccaa009e, 0x1751997d0);
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(v, by_16, 0x00), _mm_clmulepi64_si128(v, by_16, 0x11)),
                         next);
}

static __m128i to_16(__m512i v)
{
    const __m128i first = fold_16(_mm512_castsi512_si128(v), _mm512_extracti32x4_epi32(v, 1));
    return fold_16(fold_16(first, _mm512_extracti32x4_epi32(v, 2)), _mm512_extracti32x4_epi32(v, 3));
}

uint32_t crc32_vpclmul(const uint8_t *p, size_t n)
{
    if (n < 256)
        return crc32_clmul(p, n);
    const __m512i by_256 = pair(0x1322d1430, 0x11542778a), by_64 = pair(0x1c6e41596, 0x154442bd4);
    __m512i v[4] = {load(p), load(p + 64), load(p + 128), load(p + 192)};
    v[0] = _mm512_xor_si512(v[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(-1)));
    for (p += 256, n -= 256; n >= 256; p += 256, n -= 256)
        for (int i = 0; i < 4; i++)
            v[i] = fold(v[i], by_256, load(p + 64 * i));
    __m512i all = fold(fold(fold(v[0], by_64, v[1]), by_64, v[2]), by_64, v[3]);
    for (; n >= 64; p += 64, n -= 64)
        all = fold(all, by_64, load(p));
    uint8_t rest[16];
    __m128i one = to_16(all);
    for (; n >= 16; p += 16, n -= 16)
        one = fold_16(one, _mm_loadu_si128((const __m128i *)(const void *)p));
    _mm_storeu_si128((__m128i *)(void *)rest, one);
    return ~crc32_add(crc32_add(0, rest, sizeof rest), p, n);
}
