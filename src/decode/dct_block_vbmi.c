/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct_block_vbmi.c -- decoding and encoding blocks with AVX-512 (F, BW, VL, VBMI, VBMI2) and BMI2.
 *
 * vpexpandb puts the bytes of a stream where a mask has ones; vpcompressb is the reverse. Each is one instruction per
 * block.
 */
#include "decode/dct_block.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* In a register: expanding from memory is several times slower. */
INLINE __m512i load64(const uint8_t *p)
{
    __m512i v = _mm512_loadu_si512(p);
    __asm__("" : "+v"(v));
    return v;
}

/* A bit for every coefficient of the block. */
INLINE uint64_t take_mask(struct dct_in *in)
{
    uint64_t columns;
    const unsigned rows = *in->rows++;
    memcpy(&columns, in->columns, sizeof columns);
    in->columns += __builtin_popcount(rows);
    return _pdep_u64(columns, _pdep_u64(rows, 0x0101010101010101) * 255);
}

/* 4 bits each to bytes. */
INLINE __m512i take_small(struct dct_in *in, unsigned n)
{
    const __m512i v = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)in->small));
    in->small += (n + 1) / 2;
    return _mm512_and_si512(_mm512_or_si512(v, _mm512_slli_epi16(v, 4)), _mm512_set1_epi8(15));
}

/* Coefficients of the lower or upper half of a block; words where `wide` has ones. */
INLINE __m512i half(struct dct_in *in, __m256i v, __mmask32 wide)
{
    const __m512i v16 = _mm512_cvtepi8_epi16(v);
    const __m512i words = _mm512_mask_expand_epi16(v16, wide, load64(in->words));
    in->words += 2 * __builtin_popcount(wide);
    return words;
}

INLINE void decode_one(struct dct_in *in, const struct dct_place *to)
{
    const uint64_t mask = take_mask(in);
    const unsigned n = (unsigned)__builtin_popcountll(mask);
    const __m512i codes = take_small(in, n);
    const __mmask64 there = _bzhi_u64(~(uint64_t)0, n);
    const __mmask64 in_bytes = _mm512_mask_cmpeq_epi8_mask(there, codes, _mm512_set1_epi8(8));
    const __mmask64 in_words = _mm512_mask_testn_epi8_mask(there, codes, codes);
    /* Two's complement of 4 bits. */
    const __m512i small = _mm512_sub_epi8(_mm512_xor_si512(codes, _mm512_set1_epi8(8)), _mm512_set1_epi8(8));
    const __m512i all = _mm512_mask_expand_epi8(small, in_bytes, load64(in->bytes));
    in->bytes += __builtin_popcountll(in_bytes);
    const __m512i block = _mm512_maskz_expand_epi8(mask, all);
    __m512i low = _mm512_cvtepi8_epi16(_mm512_castsi512_si256(block));
    __m512i high = _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(block, 1));
    if (__builtin_expect(in_words != 0, 0)) {
        const uint64_t wide = _pdep_u64(in_words, mask);
        low = half(in, _mm512_castsi512_si256(block), (__mmask32)wide);
        high = half(in, _mm512_extracti64x4_epi64(block, 1), (__mmask32)(wide >> 32));
    }
    int16_t dc;
    memcpy(&dc, in->dc, sizeof dc);
    in->dc += sizeof dc;
    _mm512_storeu_si512(to->coef, _mm512_mask_set1_epi16(low, 1, dc));
    _mm512_storeu_si512(to->coef + 32, high);
    *to->last = dct_last(mask);
}

bool dct_decode_vbmi(struct dct_in *in, const struct dct_place *to, size_t n)
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

/* ------------------------------------------------------------------ encoding */

/* The mask of a block, from its rows and columns. */
INLINE void put_mask(struct dct_out *out, uint64_t mask)
{
    const unsigned rows = (unsigned)_mm_test_epi8_mask(_mm_cvtsi64_si128((long long)mask), _mm_set1_epi8(-1)) & 255;
    const uint64_t columns = _pext_u64(mask, _pdep_u64(rows, 0x0101010101010101) * 255);
    *out->rows++ = (uint8_t)rows;
    memcpy(out->columns, &columns, sizeof columns);
    out->columns += __builtin_popcount(rows);
}

/* Bytes below 16 to 4 bits each. */
INLINE void put_small(struct dct_out *out, __m512i codes, unsigned n)
{
    const __m512i pairs = _mm512_or_si512(codes, _mm512_srli_epi16(codes, 4));
    _mm256_storeu_si256((__m256i *)(void *)out->small, _mm512_cvtepi16_epi8(pairs));
    out->small += (n + 1) / 2;
}

INLINE void put_words(struct dct_out *out, __m512i v, __mmask32 wide)
{
    _mm512_storeu_si512(out->words, _mm512_maskz_compress_epi16(wide, v));
    out->words += 2 * __builtin_popcount(wide);
}

/* Values that do not fit a byte. */
INLINE __mmask32 wide_ones(__m512i v, __m256i saturated)
{
    return _mm512_cmpneq_epi16_mask(v, _mm512_cvtepi8_epi16(saturated));
}

void dct_encode_vbmi(struct dct_out *out, const int16_t *coef)
{
    memcpy(out->dc, coef, 2);
    out->dc += 2;
    const __m512i low = _mm512_maskz_loadu_epi16(0xfffffffe, coef), high = _mm512_loadu_si512(coef + 32);
    const __m256i low8 = _mm512_cvtsepi16_epi8(low), high8 = _mm512_cvtsepi16_epi8(high);
    const __m512i block = _mm512_inserti64x4(_mm512_castsi256_si512(low8), high8, 1);
    const uint64_t mask = _mm512_test_epi8_mask(block, block);
    const uint64_t wide = wide_ones(low, low8) | (uint64_t)wide_ones(high, high8) << 32;
    put_mask(out, mask);
    const unsigned n = (unsigned)__builtin_popcountll(mask);
    const __m512i all = _mm512_maskz_compress_epi8(mask, block);
    const __mmask64 small = _mm512_cmple_epu8_mask(_mm512_abs_epi8(all), _mm512_set1_epi8(7));
    const __mmask64 in_words = _pext_u64(wide, mask), in_bytes = ~small & ~in_words;
    const __m512i codes = _mm512_and_si512(all, _mm512_set1_epi8(15));
    put_small(out, _mm512_maskz_mov_epi8(~in_words, _mm512_mask_mov_epi8(codes, ~small, _mm512_set1_epi8(8))), n);
    _mm512_storeu_si512(out->bytes, _mm512_maskz_compress_epi8(in_bytes, all));
    out->bytes += __builtin_popcountll(in_bytes);
    if (wide) {
        put_words(out, low, (__mmask32)wide);
        put_words(out, high, (__mmask32)(wide >> 32));
    }
}

#endif
