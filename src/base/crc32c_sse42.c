/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c_sse42.c -- CRC-32C with the CPU's instruction.
 *
 * The instruction takes three cycles, but one can start every cycle. So three parts of a block are summed in parallel.
 * To append n bytes to a part, its CRC is multiplied (carry-less) by K(n) = x^(8n - 33) modulo the polynomial, with
 * reflected bits; the instruction itself reduces the product.
 */
#include "base/crc32c.h"

#include <nmmintrin.h>
#include <string.h>
#include <wmmintrin.h>

enum { STRETCH = 256, BLOCK = 3 * STRETCH };

static const uint32_t over_one = 0xb9e02b86, over_two = 0xdd7e3b0c; /* K(STRETCH), K(2 * STRETCH) */

static uint64_t load(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t carry(uint64_t crc, uint32_t k)
{
    const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi64_si128(k), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

static uint64_t block(uint64_t a, const uint8_t *p)
{
    uint64_t b = 0, c = 0;
    for (int i = 0; i < STRETCH; i += 8) {
        a = _mm_crc32_u64(a, load(p + i));
        b = _mm_crc32_u64(b, load(p + i + STRETCH));
        c = _mm_crc32_u64(c, load(p + i + 2 * STRETCH));
    }
    return carry(a, over_two) ^ carry(b, over_one) ^ c;
}

uint32_t crc32c_sse42(const uint8_t *p, size_t n)
{
    uint64_t crc = UINT32_MAX;
    for (; n >= BLOCK; p += BLOCK, n -= BLOCK)
        crc = block(crc, p);
    for (; n >= 8; p += 8, n -= 8)
        crc = _mm_crc32_u64(crc, load(p));
    uint32_t rest = (uint32_t)crc;
    for (; n > 0; p++, n--)
        rest = _mm_crc32_u8(rest, *p);
    return ~rest;
}
