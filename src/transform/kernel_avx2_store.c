/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx2_store.c -- rows of bytes to rows of the batch, for AVX2, FMA and F16C.
 *
 * Floats are computed (struct levels), which is faster than eight look-ups. The streaming versions bypass the caches.
 * They need whole cache lines, so dst, plane and width are such that every store is aligned.
 */
#include "transform/kernel_store.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

INLINE __m256i two16(const uint8_t *a, const uint8_t *b)
{
    const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)a);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), _mm_loadu_si128((const __m128i *)(const void *)b), 1);
}

INLINE __m256i both(__m128i v)
{
    return _mm256_broadcastsi128_si256(v);
}

INLINE __m256i load8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

/* The numbers of struct levels, for eight values by their channels. */
struct scale {
    __m256 unit, unit_rest, mean, factor, factor_rest;
};

/* Value i belongs to channel (first + i * step) % 3. */
INLINE struct scale scale_of(const struct levels *v, int first, int step)
{
    struct numbers n;
    numbers_init(&n, v, 8, first, step);
    return (struct scale){_mm256_set1_ps(v->unit), _mm256_set1_ps(v->unit_rest), _mm256_loadu_ps(n.mean),
                          _mm256_loadu_ps(n.factor), _mm256_loadu_ps(n.rest)};
}

INLINE __m256 scaled(__m256i bytes, const struct scale *s)
{
    const __m256 v = _mm256_cvtepi32_ps(bytes);
    const __m256 x = _mm256_sub_ps(_mm256_fmadd_ps(v, s->unit, _mm256_mul_ps(v, s->unit_rest)), s->mean);
    return _mm256_fmadd_ps(x, s->factor, _mm256_mul_ps(x, s->factor_rest));
}

/* Rounds to nearest, ties to even; there are no NaNs here. */
INLINE __m128i bf16_of(__m256 x)
{
    const __m256i u = _mm256_castps_si256(x), one = _mm256_set1_epi32(1);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), one);
    const __m256i r = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, odd), _mm256_set1_epi32(0x7fff)), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}

/* Writes eight results, from element `at` on. */
INLINE void put8(void *dst, size_t at, __m256 x, struct form f)
{
    if (f.stream) {
        _mm256_stream_ps((float *)dst + at, x);
    } else if (f.dtype == STORE_F32) {
        _mm256_storeu_ps((float *)dst + at, x);
    } else {
        const __m128i h = f.dtype == STORE_F16 ? _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT) : bf16_of(x);
        _mm_storeu_si128((__m128i *)(void *)((uint16_t *)dst + at), h);
    }
}

INLINE void put1(void *dst, size_t at, uint8_t byte, int ch, const struct levels *v, struct form f)
{
    if (f.dtype == STORE_F32)
        ((uint32_t *)dst)[at] = v->f32[ch][byte];
    else
        ((uint16_t *)dst)[at] = v->half[ch][byte];
}

INLINE void single(void *dst, const uint8_t *src, int32_t w, const struct levels *v, struct form f)
{
    const struct scale s = scale_of(v, 0, 0);
    size_t x = 0;
    for (; x + 8 <= (size_t)w; x += 8)
        put8(dst, x, scaled(load8(src + x), &s), f);
    for (; x < (size_t)w; x++)
        put1(dst, x, src[x], 0, v, f);
}

INLINE void planar(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v, struct form f)
{
    const struct scale s[3] = {scale_of(v, 0, 0), scale_of(v, 1, 0), scale_of(v, 2, 0)};
    const __m256i r = both(_mm_setr_epi8(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1));
    const __m256i one = both(_mm_setr_epi8(1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0));
    const __m256i g = _mm256_add_epi8(r, one), b = _mm256_add_epi8(g, one);
    size_t x = 0;
    for (; x + 8 <= (size_t)w; x += 8, src += 24) {
        const __m256i px = two16(src, src + 12);
        put8(dst, x, scaled(_mm256_shuffle_epi8(px, r), &s[0]), f);
        put8(dst, x + plane, scaled(_mm256_shuffle_epi8(px, g), &s[1]), f);
        put8(dst, x + 2 * plane, scaled(_mm256_shuffle_epi8(px, b), &s[2]), f);
    }
    for (; x < (size_t)w; x++, src += 3)
        for (int ch = 0; ch < 3; ch++)
            put1(dst, x + (size_t)ch * plane, src[ch], ch, v, f);
}

INLINE void interleaved(void *dst, const uint8_t *src, int32_t w, const struct levels *v, struct form f)
{
    const struct scale s[3] = {scale_of(v, 0, 1), scale_of(v, 8, 1), scale_of(v, 16, 1)};
    const size_t n = 3 * (size_t)w;
    size_t i = 0;
    for (; i + 24 <= n; i += 24)
        for (size_t k = 0; k < 3; k++)
            put8(dst, i + 8 * k, scaled(load8(src + i + 8 * k), &s[k]), f);
    for (; i < n; i++)
        put1(dst, i, src[i], (int)(i % 3), v, f);
}

STORES(f16_avx2, STORE_F16, false)
STORES(bf16_avx2, STORE_BF16, false)
STORES(f32_avx2, STORE_F32, false)
STORES(f32_stream_avx2, STORE_F32, true)

/* 16 pixels: sorts each quarter to RRRR GGGG BBBB, then joins the quarters by colour. */
static void planar_u8_avx2(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)
{
    const __m256i sort = both(_mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1));
    uint8_t *r = dst, *g = r + plane, *b = g + plane;
    size_t x = 0;
    (void)v;
    for (; x + 16 <= (size_t)w; x += 16, src += 48) {
        const __m256i q02 = _mm256_shuffle_epi8(two16(src, src + 24), sort);
        const __m256i q13 = _mm256_shuffle_epi8(two16(src + 12, src + 36), sort);
        const __m256i rg = _mm256_unpacklo_epi32(q02, q13), bb = _mm256_unpackhi_epi32(q02, q13);
        const __m256i rg4 = _mm256_permute4x64_epi64(rg, 0xd8), bb4 = _mm256_permute4x64_epi64(bb, 0xd8);
        _mm_storeu_si128((__m128i *)(void *)(r + x), _mm256_castsi256_si128(rg4));
        _mm_storeu_si128((__m128i *)(void *)(g + x), _mm256_extracti128_si256(rg4, 1));
        _mm_storeu_si128((__m128i *)(void *)(b + x), _mm256_castsi256_si128(bb4));
    }
    for (; x < (size_t)w; x++, src += 3) {
        r[x] = src[0];
        g[x] = src[1];
        b[x] = src[2];
    }
}

static void fence_avx2(void)
{
    _mm_sfence();
}

INLINE __m256 floats_of(__m128i h, enum store_dtype t)
{
    return t == STORE_F16 ? _mm256_cvtph_ps(h) : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

INLINE __m128i halves_of(__m256 x, enum store_dtype t)
{
    return t == STORE_F16 ? _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT) : bf16_of(x);
}

/* Rounds after every operation, as the C version does. */
INLINE void blend_halves(uint16_t *to, const uint16_t *from, size_t n, float keep, float rest, enum store_dtype t)
{
    uint16_t a[8] = {0}, b[8] = {0};
    for (size_t i = 0; i < n; i += 8) {
        const bool whole = n - i >= 8;
        uint16_t *const at = whole ? to + i : a;
        const uint16_t *const of = whole ? from + i : b;
        if (!whole) {
            memcpy(a, to + i, (n - i) * sizeof *a);
            memcpy(b, from + i, (n - i) * sizeof *b);
        }
        const __m256 x = floats_of(_mm_loadu_si128((const __m128i *)at), t);
        const __m256 y = floats_of(_mm_loadu_si128((const __m128i *)of), t);
        const __m128i kept = halves_of(_mm256_mul_ps(x, _mm256_set1_ps(keep)), t);
        const __m128i added = halves_of(_mm256_mul_ps(y, _mm256_set1_ps(rest)), t);
        _mm_storeu_si128((__m128i *)at, halves_of(_mm256_add_ps(floats_of(kept, t), floats_of(added, t)), t));
        if (!whole)
            memcpy(to + i, a, (n - i) * sizeof *a);
    }
}

static void blend_f16_avx2(void *dst, const void *src, size_t n, float keep, float rest)
{
    blend_halves(dst, src, n, keep, rest, STORE_F16);
}

static void blend_bf16_avx2(void *dst, const void *src, size_t n, float keep, float rest)
{
    blend_halves(dst, src, n, keep, rest, STORE_BF16);
}

static void blend_f32_avx2(void *dst, const void *src, size_t n, float keep, float rest)
{
    float *to = dst;
    const float *from = src;
    const __m256 k = _mm256_set1_ps(keep), r = _mm256_set1_ps(rest);
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        const __m256 a = _mm256_mul_ps(_mm256_loadu_ps(to + i), k), b = _mm256_mul_ps(_mm256_loadu_ps(from + i), r);
        _mm256_storeu_ps(to + i, _mm256_add_ps(a, b));
    }
    for (; i < n; i++)
        to[i] = to[i] * keep + from[i] * rest;
}

void kernels_avx2_store(struct kernels *k)
{
    k->blend[STORE_F16] = blend_f16_avx2;
    k->blend[STORE_BF16] = blend_bf16_avx2;
    k->blend[STORE_F32] = blend_f32_avx2;
    k->store[STORE_PLANAR][STORE_U8] = planar_u8_avx2;
    k->stream[STORE_PLANAR][STORE_U8] = planar_u8_avx2;
    store_fill(k, STORE_SINGLE, single_f16_avx2, single_bf16_avx2, single_f32_avx2, single_f32_stream_avx2);
    store_fill(k, STORE_PLANAR, planar_f16_avx2, planar_bf16_avx2, planar_f32_avx2, planar_f32_stream_avx2);
    store_fill(k, STORE_INTERLEAVED, interleaved_f16_avx2, interleaved_bf16_avx2, interleaved_f32_avx2,
               interleaved_f32_stream_avx2);
    k->fence = fence_avx2;
}
#endif
