/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx512_store.c -- rows of bytes to rows of the batch, for AVX-512 (F, BW, DQ, VL).
 *
 * As kernel_avx2_store.c, with sixteen values at a time. Masks write the end of a row.
 */
#include "transform/kernel_store.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* The numbers of struct levels, for sixteen values by their channels. */
struct scale {
    __m512 unit, unit_rest, mean, factor, factor_rest;
};

/* Value i belongs to channel (first + i * step) % 3. */
INLINE struct scale scale_of(const struct levels *v, int first, int step)
{
    struct numbers n;
    numbers_init(&n, v, 16, first, step);
    return (struct scale){_mm512_set1_ps(v->unit), _mm512_set1_ps(v->unit_rest), _mm512_loadu_ps(n.mean),
                          _mm512_loadu_ps(n.factor), _mm512_loadu_ps(n.rest)};
}

INLINE __m512 scaled(__m512i bytes, const struct scale *s)
{
    const __m512 v = _mm512_cvtepi32_ps(bytes);
    const __m512 x = _mm512_sub_ps(_mm512_fmadd_ps(v, s->unit, _mm512_mul_ps(v, s->unit_rest)), s->mean);
    return _mm512_fmadd_ps(x, s->factor, _mm512_mul_ps(x, s->factor_rest));
}

/* Rounds to nearest, ties to even; there are no NaNs here. */
INLINE __m256i bf16_of(__m512 x)
{
    const __m512i u = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), one);
    const __m512i r = _mm512_add_epi32(_mm512_add_epi32(u, odd), _mm512_set1_epi32(0x7fff));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(r, 16));
}

/* Writes up to sixteen results, from element `at` on. */
INLINE void put16(void *dst, size_t at, __m512 x, size_t left, struct form f)
{
    const __mmask16 part = (__mmask16)((1u << (left < 16 ? left : 16)) - 1);
    if (f.stream) {
        _mm512_stream_ps((float *)dst + at, x);
    } else if (f.dtype == STORE_F32) {
        _mm512_mask_storeu_ps((float *)dst + at, part, x);
    } else {
        const __m256i h = f.dtype == STORE_F16 ? _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT) : bf16_of(x);
        _mm256_mask_storeu_epi16((uint16_t *)dst + at, part, h);
    }
}

INLINE __m512i load16(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

INLINE void single(void *dst, const uint8_t *src, int32_t w, const struct levels *v, struct form f)
{
    const struct scale s = scale_of(v, 0, 0);
    const size_t n = (size_t)w;
    for (size_t x = 0; x < n; x += 16)
        put16(dst, x, scaled(load16(src + x), &s), n - x, f);
}

/* Sixteen pixels are 48 bytes: four pixels to every lane, then their channels to words. */
INLINE void planar(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v, struct form f)
{
    const struct scale s[3] = {scale_of(v, 0, 0), scale_of(v, 1, 0), scale_of(v, 2, 0)};
    const __m512i words = _mm512_setr_epi32(0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12);
    const __m512i r = _mm512_broadcast_i32x4(_mm_setr_epi8(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1));
    const __m512i one = _mm512_set1_epi32(1), g = _mm512_add_epi8(r, one), b = _mm512_add_epi8(g, one);
    const size_t n = (size_t)w;
    for (size_t x = 0; x < n; x += 16, src += 48) {
        const __m512i px = _mm512_permutexvar_epi32(words, _mm512_loadu_si512(src));
        put16(dst, x, scaled(_mm512_shuffle_epi8(px, r), &s[0]), n - x, f);
        put16(dst, x + plane, scaled(_mm512_shuffle_epi8(px, g), &s[1]), n - x, f);
        put16(dst, x + 2 * plane, scaled(_mm512_shuffle_epi8(px, b), &s[2]), n - x, f);
    }
}

INLINE void interleaved(void *dst, const uint8_t *src, int32_t w, const struct levels *v, struct form f)
{
    const struct scale s[3] = {scale_of(v, 0, 1), scale_of(v, 16, 1), scale_of(v, 32, 1)};
    const size_t n = 3 * (size_t)w;
    for (size_t i = 0; i < n; i += 48)
        for (size_t k = 0, at = i; k < 3 && at < n; k++, at += 16)
            put16(dst, at, scaled(load16(src + at), &s[k]), n - at, f);
}

STORES(f16_avx512, STORE_F16, false)
STORES(bf16_avx512, STORE_BF16, false)
STORES(f32_avx512, STORE_F32, false)
STORES(f32_stream_avx512, STORE_F32, true)

void kernels_avx512_store(struct kernels *k)
{
    store_fill(k, STORE_SINGLE, single_f16_avx512, single_bf16_avx512, single_f32_avx512, single_f32_stream_avx512);
    store_fill(k, STORE_PLANAR, planar_f16_avx512, planar_bf16_avx512, planar_f32_avx512, planar_f32_stream_avx512);
    store_fill(k, STORE_INTERLEAVED, interleaved_f16_avx512, interleaved_bf16_avx512, interleaved_f32_avx512,
               interleaved_f32_stream_avx512);
}
#endif
