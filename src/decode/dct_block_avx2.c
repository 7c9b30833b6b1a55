/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct_block_avx2.c -- decoding blocks with AVX2.
 *
 * A table of 256 shuffles puts bytes where 8 bits of a mask are ones: the columns of the rows that exist, the bytes
 * among the small values, the coefficients of a row. The sum of all earlier masks is where a row's values start; one
 * multiplication computes it for all eight rows.
 */
#include "decode/dct_block.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* spread[m][i] counts the ones of m below bit i, or is 128 (nothing) where bit i is 0. */
#define BIT(m, i) ((m) >> (i)&1)
#define BELOW(m, i)                                                                                                    \
    (BIT(m, 0) * (0 < (i)) + BIT(m, 1) * (1 < (i)) + BIT(m, 2) * (2 < (i)) + BIT(m, 3) * (3 < (i)) +                   \
     BIT(m, 4) * (4 < (i)) + BIT(m, 5) * (5 < (i)) + BIT(m, 6) * (6 < (i)))
#define AT(m, i) (BIT(m, i) ? BELOW(m, i) : 128)
#define ROW(m)                                                                                                         \
    {                                                                                                                  \
        AT(m, 0), AT(m, 1), AT(m, 2), AT(m, 3), AT(m, 4), AT(m, 5), AT(m, 6), AT(m, 7)                                 \
    }
#define ROWS4(m)  ROW(m), ROW((m) + 1), ROW((m) + 2), ROW((m) + 3)
#define ROWS16(m) ROWS4(m), ROWS4((m) + 4), ROWS4((m) + 8), ROWS4((m) + 12)
#define ROWS64(m) ROWS16(m), ROWS16((m) + 16), ROWS16((m) + 32), ROWS16((m) + 48)
static const uint8_t spread[256][8] = {ROWS64(0), ROWS64(64), ROWS64(128), ROWS64(192)};

INLINE __m128i load8(const void *p)
{
    return _mm_loadl_epi64((const __m128i *)p);
}

/* The next bytes of p where mask has ones, else 0. */
INLINE __m128i spread8(const uint8_t *p, unsigned mask)
{
    return _mm_shuffle_epi8(load8(p), load8(spread[mask]));
}

INLINE uint64_t take_mask(struct dct_in *in)
{
    const unsigned rows = *in->rows++;
    const __m128i mask = spread8(in->columns, rows);
    in->columns += __builtin_popcount(rows);
    return (uint64_t)_mm_cvtsi128_si64(mask);
}

/* Byte r counts the ones of bytes 0 to r: at most 64. */
INLINE uint64_t sums(uint64_t mask)
{
    const uint64_t pairs = mask - (mask >> 1 & 0x5555555555555555);
    const uint64_t fours = (pairs & 0x3333333333333333) + (pairs >> 2 & 0x3333333333333333);
    return ((fours + (fours >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101;
}

/* The next of `bytes` where `which` has ones; else what is there. */
INLINE __m256i put_bytes(struct dct_in *in, __m256i v, uint32_t which)
{
    __m128i part[4], from[4];
    for (int i = 0; i < 4; i++) {
        const unsigned mask = which >> 8 * i & 255;
        from[i] = load8(spread[mask]);
        part[i] = _mm_shuffle_epi8(load8(in->bytes), from[i]);
        in->bytes += __builtin_popcount(mask);
    }
    const __m256i bytes = _mm256_set_m128i(_mm_unpacklo_epi64(part[2], part[3]), _mm_unpacklo_epi64(part[0], part[1]));
    const __m256i none = _mm256_set_m128i(_mm_unpacklo_epi64(from[2], from[3]), _mm_unpacklo_epi64(from[0], from[1]));
    return _mm256_blendv_epi8(bytes, v, none);
}

INLINE uint32_t ones_of(__m256i v)
{
    return (uint32_t)_mm256_movemask_epi8(v);
}

/* Decodes up to 32 values from 16 bytes of small in one go, so that later reads fall within one store. Returns the
 * places of words. */
INLINE uint32_t take_values(struct dct_in *in, const uint8_t *small, uint8_t *values, uint32_t there)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)small), low4 = _mm_set1_epi8(15);
    const __m128i low = _mm_and_si128(v, low4), high = _mm_and_si128(_mm_srli_epi16(v, 4), low4);
    const __m256i codes = _mm256_set_m128i(_mm_unpackhi_epi8(low, high), _mm_unpacklo_epi8(low, high));
    const __m256i eight = _mm256_set1_epi8(8);
    const __m256i own = _mm256_sub_epi8(_mm256_xor_si256(codes, eight), eight);
    const __m256i all = put_bytes(in, own, ones_of(_mm256_cmpeq_epi8(codes, eight)) & there);
    _mm256_storeu_si256((__m256i *)(void *)values, all);
    return ones_of(_mm256_cmpeq_epi8(codes, _mm256_setzero_si256())) & there;
}

INLINE uint32_t first_bits(unsigned n)
{
    return n < 32 ? ((uint32_t)1 << n) - 1 : UINT32_MAX;
}

/* Puts the words of a block into place: `which` of the coefficients of the mask. */
static void put_words(struct dct_in *in, int16_t *coef, uint64_t mask, uint64_t which)
{
    for (; which; which >>= 1, mask &= mask - 1)
        if (which & 1) {
            memcpy(coef + __builtin_ctzll(mask), in->words, 2);
            in->words += 2;
        }
}

INLINE void decode_one(struct dct_in *in, const struct dct_place *to)
{
    uint8_t values[64 + 8];
    const uint64_t mask = take_mask(in), ends = sums(mask);
    const unsigned n = (unsigned)__builtin_popcountll(mask);
    uint64_t words = take_values(in, in->small, values, first_bits(n));
    if (n > 32)
        words |= (uint64_t)take_values(in, in->small + 16, values + 32, first_bits(n - 32)) << 32;
    in->small += (n + 1) / 2;
    for (unsigned r = 0; r < 8; r++) {
        const unsigned begin = r == 0 ? 0 : (unsigned)(ends >> (8 * r - 8)) & 127;
        const __m128i row = _mm_cvtepi8_epi16(spread8(values + begin, mask >> 8 * r & 255));
        _mm_storeu_si128((__m128i *)(void *)(to->coef + 8 * r), row);
    }
    if (__builtin_expect(words != 0, 0))
        put_words(in, to->coef, mask, words);
    memcpy(to->coef, in->dc, 2);
    in->dc += 2;
    *to->last = dct_last(mask);
}

bool dct_decode_avx2(struct dct_in *in, const struct dct_place *to, size_t n)
{
    struct dct_in at = *in;
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        decode_one(&at, &to[i]);
        good = dct_in_good(&at);
    }
    *in = at;
    return good;
}

#endif
