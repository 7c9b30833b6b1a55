/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx2_color.c -- kernels of point steps for AVX2.
 */
#include "transform/kernel_color.h"

#if defined(__x86_64__)
#include <immintrin.h>

INLINE __m128i load16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

INLINE void store16(uint8_t *p, __m128i v)
{
    _mm_storeu_si128((__m128i *)(void *)p, v);
}

INLINE __m128i pick3(__m128i a, __m128i b, __m128i c, __m128i from_a, __m128i from_b, __m128i from_c)
{
    return _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, from_a), _mm_shuffle_epi8(b, from_b)),
                        _mm_shuffle_epi8(c, from_c));
}

/* 48 bytes are 16 pixels. */
INLINE void split(struct planes *p, const uint8_t *src)
{
    enum { N = -1 };
    for (int i = 0; i < RUN; i += 16, src += 48) {
        const __m128i a = load16(src), b = load16(src + 16), c = load16(src + 32);
        store16(p->at[0] + i, pick3(a, b, c, _mm_setr_epi8(0, 3, 6, 9, 12, 15, N, N, N, N, N, N, N, N, N, N),
                                    _mm_setr_epi8(N, N, N, N, N, N, 2, 5, 8, 11, 14, N, N, N, N, N),
                                    _mm_setr_epi8(N, N, N, N, N, N, N, N, N, N, N, 1, 4, 7, 10, 13)));
        store16(p->at[1] + i, pick3(a, b, c, _mm_setr_epi8(1, 4, 7, 10, 13, N, N, N, N, N, N, N, N, N, N, N),
                                    _mm_setr_epi8(N, N, N, N, N, 0, 3, 6, 9, 12, 15, N, N, N, N, N),
                                    _mm_setr_epi8(N, N, N, N, N, N, N, N, N, N, N, 2, 5, 8, 11, 14)));
        store16(p->at[2] + i, pick3(a, b, c, _mm_setr_epi8(2, 5, 8, 11, 14, N, N, N, N, N, N, N, N, N, N, N),
                                    _mm_setr_epi8(N, N, N, N, N, 1, 4, 7, 10, 13, N, N, N, N, N, N),
                                    _mm_setr_epi8(N, N, N, N, N, N, N, N, N, N, 0, 3, 6, 9, 12, 15)));
    }
}

INLINE void join(uint8_t *dst, const struct planes *p)
{
    enum { N = -1 };
    for (int i = 0; i < RUN; i += 16, dst += 48) {
        const __m128i r = load16(p->at[0] + i), g = load16(p->at[1] + i), b = load16(p->at[2] + i);
        store16(dst, pick3(r, g, b, _mm_setr_epi8(0, N, N, 1, N, N, 2, N, N, 3, N, N, 4, N, N, 5),
                           _mm_setr_epi8(N, 0, N, N, 1, N, N, 2, N, N, 3, N, N, 4, N, N),
                           _mm_setr_epi8(N, N, 0, N, N, 1, N, N, 2, N, N, 3, N, N, 4, N)));
        store16(dst + 16, pick3(r, g, b, _mm_setr_epi8(N, N, 6, N, N, 7, N, N, 8, N, N, 9, N, N, 10, N),
                                _mm_setr_epi8(5, N, N, 6, N, N, 7, N, N, 8, N, N, 9, N, N, 10),
                                _mm_setr_epi8(N, 5, N, N, 6, N, N, 7, N, N, 8, N, N, 9, N, N)));
        store16(dst + 32, pick3(r, g, b, _mm_setr_epi8(N, 11, N, N, 12, N, N, 13, N, N, 14, N, N, 15, N, N),
                                _mm_setr_epi8(N, N, 11, N, N, 12, N, N, 13, N, N, 14, N, N, 15, N),
                                _mm_setr_epi8(10, N, N, 11, N, N, 12, N, N, 13, N, N, 14, N, N, 15)));
    }
}

INLINE __m256i blend8(const uint8_t *from, const uint8_t *to, __m256 alpha)
{
    const __m256i a = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
    const __m256i b = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)to));
    const __m256 part = _mm256_mul_ps(alpha, _mm256_cvtepi32_ps(_mm256_sub_epi32(b, a)));
    return _mm256_cvttps_epi32(_mm256_add_ps(_mm256_cvtepi32_ps(a), part));
}

/* Narrowing clips at 0 and 255. */
INLINE void blend_run(uint8_t *dst, const uint8_t *from, const uint8_t *to, float alpha)
{
    const __m256 factor = _mm256_set1_ps(alpha);
    const __m256i sort = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int i = 0; i < RUN; i += 32) {
        const __m256i a = blend8(from + i, to + i, factor), b = blend8(from + i + 8, to + i + 8, factor);
        const __m256i c = blend8(from + i + 16, to + i + 16, factor), d = blend8(from + i + 24, to + i + 24, factor);
        const __m256i all = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        _mm256_storeu_si256((__m256i *)(void *)(dst + i), _mm256_permutevar8x32_epi32(all, sort));
    }
}

COLOR_KERNELS(avx2)

INLINE void grey3_run(struct planes *p)
{
    uint8_t grey[RUN];
    grey_run(grey, p);
    for (int ch = 0; ch < 3; ch++)
        memcpy(p->at[ch], grey, RUN);
}

static void grey3_u8_avx2(uint8_t *dst, const uint8_t *src, int32_t w)
{
    RUNS(dst, src, w, grey3_run(&p));
}

/* ------------------------------------------------------------------ hue */

struct rgb {
    int32_t r, g, b;
};

/*
 * The conversions between RGB and HSV use shorter formulas than Pillow's, which give the same for all colours.
 * With the share t of the middle channel, the hue in sixths of a turn is a + t or a - t. In the sector of the new hue,
 * one channel is v, one is `low`, and one between them.
 */
INLINE struct rgb turn(int32_t r, int32_t g, int32_t b, int32_t shift)
{
    const int32_t v = most(r, most(g, b)), bottom = least(r, least(g, b)), range = v - bottom;
    const int32_t in_red = r == v, in_green = (g == v) & ~in_red, in_blue = 1 - in_red - in_green;
    const int32_t up = (in_red & (g == bottom)) | (in_green & (b == bottom)) | (in_blue & (r == bottom));
    /* red: 1 - t, or -1 + t; green: 3 - t, or 1 + t; blue: 5 - t, or 3 + t */
    const float base = (float)(1 + 2 * in_green + 4 * in_blue - 2 * up);
    const float t = (float)(2 * v + bottom - r - g - b) / (float)most(range, 1);
    const float x = base + (float)(2 * up - 1) * t;
    const int32_t below = (int32_t)(x + 1.0f) < 1; /* x is negative: then it is at least -1, and t is not 1 */
    const int32_t hue = (int32_t)((x / 6.0f + (float)below) * 255.0f) & -(range != 0);
    const int32_t s = (int32_t)((float)range / (float)most(v, 1) * 255.0f);
    const int32_t six = ((hue + shift) & 255) * 6, sector = (six * 257 + 257) >> 16, part = six - 255 * sector;
    const int32_t odd = sector & 1, share = 255 * (1 - odd) + (2 * odd - 1) * part;
    const int32_t between = (int32_t)((float)(v * (65025 - s * share)) * (1.0f / 65025.0f) + 0.5f);
    const int32_t plain = v * (255 - s) + 128, low = (plain + (plain >> 8)) >> 8;
    /* Bit i of a constant: whether the channel is v, or low, in sector i. */
    return (struct rgb){
        between + ((v - between) & -(0x61 >> sector & 1)) + ((low - between) & -(0x0c >> sector & 1)),
        between + ((v - between) & -(0x06 >> sector & 1)) + ((low - between) & -(0x30 >> sector & 1)),
        between + ((v - between) & -(0x18 >> sector & 1)) + ((low - between) & -(0x43 >> sector & 1)),
    };
}

/* In words first, because compilers do not vectorise loops with both bytes and floats. */
INLINE void turn_run(struct planes *p, int32_t shift)
{
    int32_t at[3][RUN];
    for (int ch = 0; ch < 3; ch++)
        for (int i = 0; i < RUN; i++)
            at[ch][i] = p->at[ch][i];
    for (int i = 0; i < RUN; i++) {
        const struct rgb c = turn(at[0][i], at[1][i], at[2][i], shift);
        at[0][i] = c.r;
        at[1][i] = c.g;
        at[2][i] = c.b;
    }
    for (int ch = 0; ch < 3; ch++)
        for (int i = 0; i < RUN; i++)
            p->at[ch][i] = (uint8_t)at[ch][i];
}

static void hue_u8_avx2(uint8_t *dst, const uint8_t *src, int32_t w, uint8_t shift)
{
    RUNS(dst, src, w, turn_run(&p, shift));
}

/* ------------------------------------------------------------------ tables and ranges */

/* Sixteen lookups of sixteen bytes each: one whose index is too large gives 0. */
static void table1_u8_avx2(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t t[256])
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(src + i)), all = _mm256_setzero_si256();
        for (int row = 0; row < 16; row++) {
            const __m256i part = _mm256_broadcastsi128_si256(load16(t + 16 * row));
            all = _mm256_or_si256(all, _mm256_shuffle_epi8(part, _mm256_adds_epu8(v, _mm256_set1_epi8(0x70))));
            v = _mm256_sub_epi8(v, _mm256_set1_epi8(16));
        }
        _mm256_storeu_si256((__m256i *)(void *)(dst + i), all);
    }
    for (; i < n; i++)
        dst[i] = t[src[i]];
}

static void range_u8_avx2(struct kernel_range *r, const uint8_t *src, size_t n)
{
    __m256i low[3], high[3];
    size_t i = 0;
    memcpy(low, r->low, sizeof low);
    memcpy(high, r->high, sizeof high);
    for (; i + RANGE_RUN <= n; i += RANGE_RUN)
        for (int k = 0; k < 3; k++) {
            const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(src + i + 32 * k));
            low[k] = _mm256_min_epu8(low[k], v);
            high[k] = _mm256_max_epu8(high[k], v);
        }
    memcpy(r->low, low, sizeof low);
    memcpy(r->high, high, sizeof high);
    for (size_t k = 0; i < n; i++, k++) {
        r->low[k] = src[i] < r->low[k] ? src[i] : r->low[k];
        r->high[k] = src[i] > r->high[k] ? src[i] : r->high[k];
    }
}

void kernels_avx2_color(struct kernels *k)
{
    kernels_avx2_points(k);
    k->grey3 = grey3_u8_avx2;
    k->hue = hue_u8_avx2;
    k->table1 = table1_u8_avx2;
    k->range = range_u8_avx2;
}
#endif
