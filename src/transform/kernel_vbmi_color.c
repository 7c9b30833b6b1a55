/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_vbmi_color.c -- kernels of point steps for AVX-512 with VBMI, which looks up 64 bytes in 128 at a time.
 */
#include "transform/kernel_color.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* Tables: of(i) for i on. */
#define TABLE4(of, i)  of(i), of((i) + 1), of((i) + 2), of((i) + 3)
#define TABLE16(of, i) TABLE4(of, i), TABLE4(of, (i) + 4), TABLE4(of, (i) + 8), TABLE4(of, (i) + 12)
#define TABLE64(of, i) TABLE16(of, i), TABLE16(of, (i) + 16), TABLE16(of, (i) + 32), TABLE16(of, (i) + 48)
#define TABLE256(of)   TABLE64(of, 0), TABLE64(of, 64), TABLE64(of, 128), TABLE64(of, 192)

/* The first bytes of pixels. */
#define TRIPLE(i) 3 * (i)
static const uint8_t triple[64] = {TABLE64(TRIPLE, 0)};
/* The pixels of bytes. */
#define THIRD(i) (i) / 3
static const uint8_t third[192] = {TABLE64(THIRD, 0), TABLE64(THIRD, 64), TABLE64(THIRD, 128)};

/* Bit i is set if byte i of a run that starts with channel `first` belongs to channel 0. */
INLINE __mmask64 channel0(int first)
{
    const uint64_t every = 0x9249249249249249u; /* bits 0, 3, 6, ... 63 */
    return first == 0 ? every : first == 1 ? every << 2 : every << 1;
}

/* The bytes of 64 pixels. */
struct three {
    __m512i at[3];
};

/* The bytes of vector i that belong to w pixels, of up to 64. */
INLINE __mmask64 some_bytes(int32_t w, int i)
{
    const int32_t n = 3 * w - 64 * i;
    return n <= 0 ? 0 : n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}

INLINE struct three load_three(const uint8_t *src, int32_t w)
{
    struct three t;
    for (int i = 0; i < 3; i++)
        t.at[i] = w >= RUN ? _mm512_loadu_si512(src + 64 * i) : _mm512_maskz_loadu_epi8(some_bytes(w, i), src + 64 * i);
    return t;
}

INLINE void store_three(uint8_t *dst, int32_t w, struct three t)
{
    for (int i = 0; i < 3; i++)
        if (w >= RUN)
            _mm512_storeu_si512(dst + 64 * i, t.at[i]);
        else
            _mm512_mask_storeu_epi8(dst + 64 * i, some_bytes(w, i), t.at[i]);
}

/* Does body(t) for 64 pixels at a time, of w. */
#define THREES(dst, src, w, body)                                                                                      \
    do {                                                                                                               \
        int32_t x = 0;                                                                                                 \
        for (; x + RUN <= w; x += RUN) {                                                                               \
            const struct three t = load_three(src + 3 * (size_t)x, RUN);                                               \
            store_three(dst + 3 * (size_t)x, RUN, body);                                                               \
        }                                                                                                              \
        if (x < w) {                                                                                                   \
            const struct three t = load_three(src + 3 * (size_t)x, w - x);                                             \
            store_three(dst + 3 * (size_t)x, w - x, body);                                                             \
        }                                                                                                              \
    } while (0)

/* Pixels to channels. Byte 128 is the first of the last vector. */
INLINE struct three channels_of(struct three t)
{
    struct three c;
    for (int ch = 0; ch < 3; ch++) {
        const __m512i at = _mm512_add_epi8(_mm512_loadu_si512(triple), _mm512_set1_epi8((char)ch));
        const __m512i two = _mm512_permutex2var_epi8(t.at[0], at, t.at[1]);
        c.at[ch] = _mm512_mask_permutexvar_epi8(two, _mm512_movepi8_mask(at), at, t.at[2]);
    }
    return c;
}

INLINE struct three pixels_of(struct three c)
{
    struct three t;
    for (int i = 0; i < 3; i++) {
        const __m512i at = _mm512_loadu_si512(third + 64 * i);
        __m512i v = _mm512_permutexvar_epi8(at, c.at[2]);
        v = _mm512_mask_permutexvar_epi8(v, channel0(i), at, c.at[0]);
        t.at[i] = _mm512_mask_permutexvar_epi8(v, channel0((i + 2) % 3), at, c.at[1]);
    }
    return t;
}

INLINE void split(struct planes *p, const uint8_t *src)
{
    const struct three c = channels_of(load_three(src, RUN));
    memcpy(p, &c, sizeof c);
}

INLINE void join(uint8_t *dst, const struct planes *p)
{
    struct three c;
    memcpy(&c, p, sizeof c);
    store_three(dst, RUN, pixels_of(c));
}

INLINE __m512 to_floats(__m512i v)
{
    return _mm512_cvtepi32_ps(v);
}

/* Narrowing clips at 255. */
INLINE void blend_run(uint8_t *dst, const uint8_t *from, const uint8_t *to, float alpha)
{
    for (int i = 0; i < RUN; i += 16) {
        const __m512i a = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(from + i)));
        const __m512i b = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(to + i)));
        const __m512 part = _mm512_mul_ps(_mm512_set1_ps(alpha), to_floats(_mm512_sub_epi32(b, a)));
        const __m512 v = _mm512_max_ps(_mm512_add_ps(to_floats(a), part), _mm512_setzero_ps());
        _mm_storeu_si128((__m128i *)(void *)(dst + i), _mm512_cvtusepi32_epi8(_mm512_cvttps_epi32(v)));
    }
}

COLOR_KERNELS(vbmi)

struct table {
    __m512i t[4];
};

INLINE struct table load_table(const uint8_t t[256])
{
    return (struct table){
        {_mm512_loadu_si512(t), _mm512_loadu_si512(t + 64), _mm512_loadu_si512(t + 128), _mm512_loadu_si512(t + 192)}};
}

INLINE __m512i look_up(const struct table *t, __m512i v)
{
    const __m512i low = _mm512_permutex2var_epi8(t->t[0], v, t->t[1]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(v), _mm512_permutex2var_epi8(t->t[2], v, t->t[3]));
}

static void table1_u8_vbmi(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t t[256])
{
    const struct table table = load_table(t);
    for (size_t i = 0; i < n; i += 64) {
        const __mmask64 some = n - i < 64 ? ((__mmask64)1 << (n - i)) - 1 : ~(__mmask64)0;
        _mm512_mask_storeu_epi8(dst + i, some, look_up(&table, _mm512_maskz_loadu_epi8(some, src + i)));
    }
}

static void table3_u8_vbmi(uint8_t *dst, const uint8_t *src, int32_t w, const uint8_t t[3][256])
{
    const struct table r = load_table(t[0]), g = load_table(t[1]), b = load_table(t[2]);
    const size_t n = 3 * (size_t)w;
    int first = 0;
    for (size_t i = 0; i < n; i += 64, first = (first + 1) % 3) {
        const __mmask64 some = n - i < 64 ? ((__mmask64)1 << (n - i)) - 1 : ~(__mmask64)0;
        const __mmask64 red = channel0(first), green = channel0((first + 2) % 3);
        const __m512i v = _mm512_maskz_loadu_epi8(some, src + i);
        const __m512i blue = look_up(&b, v), both = _mm512_mask_mov_epi8(blue, green, look_up(&g, v));
        _mm512_mask_storeu_epi8(dst + i, some, _mm512_mask_mov_epi8(both, red, look_up(&r, v)));
    }
}

/* ------------------------------------------------------------------ greys */

/*
 * The greys of 16 pixels, in the second byte of words. v has their red, green, blue, and green again, with the weights
 * 19595, 19235, 7471 and 19235: each is 256 times a signed byte and another signed byte.
 */
INLINE __m512i grey16(__m512i v)
{
    const __m512i high = _mm512_set1_epi32(75 << 24 | 29 << 16 | 75 << 8 | 77);
    const __m512i low = _mm512_set1_epi32(35 << 24 | 47 << 16 | 35 << 8 | (-117 & 255));
    const __m512i rest = _mm512_srai_epi32(_mm512_dpbusd_epi32(_mm512_set1_epi32(0x8000), v, low), 8);
    return _mm512_dpbusd_epi32(rest, v, high);
}

/* Red, green, blue and green of 16 pixels. */
#define RGBG(i) (i) / 4 * 3 + ((i) % 4 == 3 ? 1 : (i) % 4)
static const uint8_t rgbg[64] = {TABLE64(RGBG, 0)};
/* The second bytes of 32 words in two vectors; the rest of the table does not matter. */
#define SECOND(i) 4 * (i) + 1
static const uint8_t second[64] = {TABLE64(SECOND, 0)};

INLINE __m512i grey64(struct three t)
{
    const __m512i at = _mm512_loadu_si512(rgbg), bytes = _mm512_loadu_si512(second);
    const __m512i a = _mm512_permutexvar_epi8(at, t.at[0]);
    const __m512i b = _mm512_permutex2var_epi8(t.at[0], _mm512_add_epi8(at, _mm512_set1_epi8(48)), t.at[1]);
    const __m512i c = _mm512_permutex2var_epi8(t.at[1], _mm512_add_epi8(at, _mm512_set1_epi8(32)), t.at[2]);
    const __m512i d = _mm512_permutexvar_epi8(_mm512_add_epi8(at, _mm512_set1_epi8(16)), t.at[2]);
    const __m512i low = _mm512_permutex2var_epi8(grey16(a), bytes, grey16(b));
    const __m512i high = _mm512_permutex2var_epi8(grey16(c), bytes, grey16(d));
    return _mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1);
}

static void grey_u8_vbmi(uint8_t *dst, const uint8_t *src, int32_t w)
{
    for (; w >= RUN; w -= RUN, src += 3 * RUN, dst += RUN)
        _mm512_storeu_si512(dst, grey64(load_three(src, RUN)));
    if (w > 0)
        _mm512_mask_storeu_epi8(dst, ((__mmask64)1 << w) - 1, grey64(load_three(src, w)));
}

INLINE struct three grey_three(struct three t)
{
    const __m512i grey = grey64(t);
    for (int i = 0; i < 3; i++)
        t.at[i] = _mm512_permutexvar_epi8(_mm512_loadu_si512(third + 64 * i), grey);
    return t;
}

static void grey3_u8_vbmi(uint8_t *dst, const uint8_t *src, int32_t w)
{
    THREES(dst, src, w, grey_three(t));
}

/* ------------------------------------------------------------------ blends by tables */

/*
 * from + alpha * (to - from) adds a number that depends on the difference alone: its whole part below, unless the sum
 * is so near to a whole number that floats may round up to it. So two tables of bytes replace the floats: what is added
 * for a difference, and what is subtracted for a negative one.
 */
struct steps {
    struct table add, subtract;
};

/* Tables for a factor; false: some product is too near to a whole number. */
INLINE bool steps_init(struct steps *s, float alpha)
{
    const __m512 least = _mm512_set1_ps(0x1p-14f), most = _mm512_set1_ps(1.0f - 0x1p-14f), top = _mm512_set1_ps(255.0f);
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __mmask16 unsure = 0;
    for (int i = 0; i < 4; i++) {
        __m128i add[4], subtract[4];
        for (int k = 0; k < 4; k++) {
            const __m512i difference = _mm512_add_epi32(first, _mm512_set1_epi32(64 * i + 16 * k));
            const __m512 p = _mm512_mul_ps(_mm512_set1_ps(alpha), to_floats(difference));
            const __m512 below = _mm512_roundscale_ps(p, 1), above = _mm512_roundscale_ps(p, 2);
            const __m512 rest = _mm512_sub_ps(p, below);
            const __mmask16 some = _mm512_cmp_ps_mask(rest, _mm512_setzero_ps(), _CMP_NEQ_OQ);
            unsure |= _mm512_mask_cmp_ps_mask(some, rest, least, _CMP_LT_OQ);
            unsure |= _mm512_cmp_ps_mask(rest, most, _CMP_GT_OQ);
            add[k] = _mm512_cvtusepi32_epi8(_mm512_cvttps_epi32(_mm512_min_ps(below, top)));
            subtract[k] = _mm512_cvtusepi32_epi8(_mm512_cvttps_epi32(_mm512_min_ps(above, top)));
        }
        s->add.t[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(add[1], add[0])),
                                         _mm256_set_m128i(add[3], add[2]), 1);
        s->subtract.t[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(subtract[1], subtract[0])),
                                              _mm256_set_m128i(subtract[3], subtract[2]), 1);
    }
    return !unsure && alpha >= 0.0f;
}

INLINE __m512i blend64(const struct steps *s, __m512i from, __m512i to)
{
    const __m512i up = look_up(&s->add, _mm512_subs_epu8(to, from));
    const __m512i down = look_up(&s->subtract, _mm512_subs_epu8(from, to));
    return _mm512_subs_epu8(_mm512_adds_epu8(from, up), down);
}

/* Pixels between their greys and themselves. */
INLINE struct three mix_three(const struct steps *s, struct three t)
{
    const struct three grey = grey_three(t);
    for (int i = 0; i < 3; i++)
        t.at[i] = blend64(s, grey.at[i], t.at[i]);
    return t;
}

static void mix_u8_fast(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t w, int32_t rows,
                        float factor)
{
    struct steps s;
    if (w < RUN || !steps_init(&s, factor)) {
        mix_u8_vbmi(dst, dst_stride, src, src_stride, w, rows, factor);
        return;
    }
    for (; rows > 0; rows--, dst += dst_stride, src += src_stride)
        THREES(dst, src, w, mix_three(&s, t));
}

/* ------------------------------------------------------------------ sharpening */

/* 64 bytes as numbers of 16 bits, in the order of unpacking. */
struct wide {
    __m512i low, high;
};

INLINE struct wide widened(__m512i v)
{
    return (struct wide){_mm512_unpacklo_epi8(v, _mm512_setzero_si512()),
                         _mm512_unpackhi_epi8(v, _mm512_setzero_si512())};
}

INLINE struct wide sum_of(struct wide a, struct wide b)
{
    return (struct wide){_mm512_add_epi16(a.low, b.low), _mm512_add_epi16(a.high, b.high)};
}

/* Bytes with their neighbours to the left and right. */
INLINE struct wide three_of(const uint8_t *p, size_t step)
{
    const __m512i ones = _mm512_set1_epi8(1), left = _mm512_loadu_si512(p - step), right = _mm512_loadu_si512(p + step);
    const struct wide beside = {_mm512_maddubs_epi16(_mm512_unpacklo_epi8(left, right), ones),
                                _mm512_maddubs_epi16(_mm512_unpackhi_epi8(left, right), ones)};
    return sum_of(beside, widened(_mm512_loadu_si512(p)));
}

/* (2 * sum + 13) / 26, where sum has four times more of the byte itself; up to 13 * 255. */
INLINE __m512i thirteenth(__m512i nine, __m512i self)
{
    const __m512i sum = _mm512_add_epi16(_mm512_add_epi16(nine, _mm512_slli_epi16(self, 2)), _mm512_set1_epi16(6));
    return _mm512_srli_epi16(_mm512_mulhi_epu16(sum, _mm512_set1_epi16((short)40330)), 3);
}

/* 64 columns, from the top down. */
INLINE void sharpen64(const struct steps *s, uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride,
                      size_t step, int32_t rows)
{
    struct wide above = three_of(src - src_stride, step), at = three_of(src, step);
    for (; rows > 0; rows--, dst += dst_stride, src += src_stride) {
        const struct wide below = three_of(src + src_stride, step), nine = sum_of(sum_of(above, at), below);
        const __m512i v = _mm512_loadu_si512(src);
        const struct wide self = widened(v);
        const __m512i smooth = _mm512_packus_epi16(thirteenth(nine.low, self.low), thirteenth(nine.high, self.high));
        _mm512_storeu_si512(dst, blend64(s, smooth, v));
        above = at;
        at = below;
    }
}

static void sharpen_u8_fast(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, size_t step,
                            size_t n, int32_t rows, float factor)
{
    struct steps s;
    if (n < RUN || !steps_init(&s, factor)) {
        sharpen_u8_vbmi(dst, dst_stride, src, src_stride, step, n, rows, factor);
        return;
    }
    for (size_t i = 0; i < n - RUN; i += RUN)
        sharpen64(&s, dst + i, dst_stride, src + i, src_stride, step, rows);
    sharpen64(&s, dst + n - RUN, dst_stride, src + n - RUN, src_stride, step, rows);
}

/* ------------------------------------------------------------------ hue */

/*
 * Pillow's floats, in whole numbers. v is the largest of the three, `range` the largest minus the smallest, and `num`
 * the largest minus the one between. Then saturation is 255 * range / v, and hue is `middle` of two sextants plus or
 * minus (85 * num + range) / (2 * range). Where this division has no rest, some of Pillow's hues are one less, because
 * its floats round down. A quotient is estimated from a reciprocal, at most one too small.
 */
#define RECIPROCAL(i) ((i) < 2 ? 65535 : 65536 / ((i) + ((i) == 0)))
#define LOW_BYTE(i)   RECIPROCAL(i) & 255
#define HIGH_BYTE(i)  RECIPROCAL(i) >> 8
#define LESS(i)       ((i) < 64 ? 0xfffffffeu : (i) < 128 ? 0x11111000000u : (i) < 192 ? 0x23232222222aaaaau : 0x22222u)
#define ONE_LESS(i)   LESS(i) >> (i) % 64 & 1
/* The sextant of a hue, from 0 to 6, and the share of the color that is left where it ends. */
#define SEXTANT(i) (6 * (i) / 255)
#define PART(i)    (6 * (i)-255 * SEXTANT(i))
#define SHARE(i)   (SEXTANT(i) % 2 ? PART(i) : 255 - PART(i))
/* Which channel is v in a sextant (1, 2, 4 for red, green, blue), and which is the smallest (8, 16, 32). */
#define LARGE(s)  ((s) == 1 || (s) == 2 ? 2 : (s) == 3 || (s) == 4 ? 4 : 1)
#define SMALL(s)  ((s) == 2 || (s) == 3 ? 8 : (s) == 4 || (s) == 5 ? 16 : 32)
#define PLACES(i) (LARGE(SEXTANT(i)) | SMALL(SEXTANT(i)))

static const uint8_t reciprocal_low[256] = {TABLE256(LOW_BYTE)}, reciprocal_high[256] = {TABLE256(HIGH_BYTE)};
static const uint8_t one_less[256] = {TABLE256(ONE_LESS)};
static const uint8_t shares[256] = {TABLE256(SHARE)}, places[256] = {TABLE256(PLACES)};

INLINE struct wide reciprocals(__m512i v)
{
    const struct table low = load_table(reciprocal_low), high = load_table(reciprocal_high);
    const __m512i a = look_up(&low, v), b = look_up(&high, v);
    return (struct wide){_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)};
}

/* n / d from an estimate; *rest: what the division leaves. */
INLINE __m512i quotient(__m512i n, __m512i d, __m512i estimate, __m512i *rest)
{
    const __m512i left = _mm512_sub_epi16(n, _mm512_mullo_epi16(estimate, d));
    const __mmask32 more = _mm512_cmpge_epu16_mask(left, d);
    *rest = _mm512_mask_sub_epi16(left, more, left, d);
    return _mm512_mask_add_epi16(estimate, more, estimate, _mm512_set1_epi16(1));
}

INLINE __m512i saturation32(__m512i range, __m512i v, __m512i reciprocal)
{
    const __m512i n = _mm512_sub_epi16(_mm512_slli_epi16(range, 8), range);
    __m512i rest;
    return quotient(n, v, _mm512_mulhi_epu16(n, reciprocal), &rest);
}

INLINE __m512i from_middle32(__m512i num, __m512i range, __m512i reciprocal, __m512i *rest)
{
    const __m512i n = _mm512_add_epi16(_mm512_mullo_epi16(num, _mm512_set1_epi16(85)), range);
    const __m512i estimate = _mm512_srli_epi16(_mm512_mulhi_epu16(n, reciprocal), 1);
    return quotient(n, _mm512_slli_epi16(range, 1), estimate, rest);
}

INLINE __m512i hue64(__m512i r, __m512i g, __m512i b, __m512i v, __m512i least)
{
    const __mmask64 red = _mm512_cmpeq_epi8_mask(r, v), green = ~red & _mm512_cmpeq_epi8_mask(g, v);
    const __mmask64 blue = ~(red | green), no_blue = _mm512_cmpeq_epi8_mask(b, least);
    const __mmask64 up = ((no_blue ^ red) & ~blue) | (blue & _mm512_cmpeq_epi8_mask(r, least));
    const __m512i range = _mm512_sub_epi8(v, least);
    const __m512i ends = _mm512_sub_epi8(_mm512_sub_epi8(_mm512_add_epi8(_mm512_add_epi8(v, v), least), r), g);
    const struct wide num = widened(_mm512_sub_epi8(ends, b)), wide = widened(range), by = reciprocals(range);
    __m512i rest_low, rest_high;
    const __m512i low = from_middle32(num.low, wide.low, by.low, &rest_low);
    const __m512i high = from_middle32(num.high, wide.high, by.high, &rest_high);
    const __m512i far = _mm512_packus_epi16(low, high), rest = _mm512_packus_epi16(rest_low, rest_high);
    const __mmask64 even = _mm512_testn_epi8_mask(rest, rest);
    __m512i hue = _mm512_set1_epi8((char)212);
    hue = _mm512_mask_mov_epi8(hue, (red & ~up) | (green & up), _mm512_set1_epi8(42));
    hue = _mm512_mask_mov_epi8(hue, (green & ~up) | (blue & up), _mm512_set1_epi8(127));
    hue = _mm512_mask_sub_epi8(_mm512_add_epi8(hue, far), ~up, hue, far);
    hue = _mm512_mask_add_epi8(hue, even & ~up, hue, _mm512_set1_epi8(1));
    const struct table less = load_table(one_less);
    return _mm512_mask_sub_epi8(hue, even, hue, look_up(&less, hue));
}

/* v * (65025 - s * share) / 65025, rounded. A product of 24 bits takes two of 16 bits. */
INLINE __m512i between16(__m512i v, __m512i part)
{
    const __m512 x = _mm512_cvtepi32_ps(_mm512_madd_epi16(v, part));
    return _mm512_cvttps_epi32(_mm512_fmadd_ps(x, _mm512_set1_ps(1.0f / 65025.0f), _mm512_set1_ps(0.5f)));
}

INLINE __m512i between32(__m512i v, __m512i s, __m512i share)
{
    const __m512i part = _mm512_sub_epi16(_mm512_set1_epi16((short)(65025 - 32768)), _mm512_mullo_epi16(s, share));
    const __m512i half = _mm512_slli_epi16(v, 7), unit = _mm512_set1_epi16(256);
    return _mm512_packs_epi32(between16(_mm512_unpacklo_epi16(v, half), _mm512_unpacklo_epi16(part, unit)),
                              between16(_mm512_unpackhi_epi16(v, half), _mm512_unpackhi_epi16(part, unit)));
}

/* v * (255 - s) / 255, rounded. */
INLINE __m512i small32(__m512i v, __m512i s)
{
    const __m512i left = _mm512_sub_epi16(_mm512_set1_epi16(255), s);
    const __m512i n = _mm512_add_epi16(_mm512_mullo_epi16(v, left), _mm512_set1_epi16(128));
    return _mm512_srli_epi16(_mm512_add_epi16(n, _mm512_srli_epi16(n, 8)), 8);
}

INLINE struct three turn_three(struct three t, uint8_t shift)
{
    struct three c = channels_of(t);
    const __m512i r = c.at[0], g = c.at[1], b = c.at[2];
    const __m512i v = _mm512_max_epu8(r, _mm512_max_epu8(g, b)), least = _mm512_min_epu8(r, _mm512_min_epu8(g, b));
    const __m512i hue = _mm512_add_epi8(hue64(r, g, b, v, least), _mm512_set1_epi8((char)shift));
    const struct table share_of = load_table(shares), places_of = load_table(places);
    const __m512i at = look_up(&places_of, hue);
    const struct wide share = widened(look_up(&share_of, hue)), top = widened(v), by = reciprocals(v);
    const struct wide range = widened(_mm512_sub_epi8(v, least));
    const __m512i s_low = saturation32(range.low, top.low, by.low),
                  s_high = saturation32(range.high, top.high, by.high);
    const __m512i small = _mm512_packus_epi16(small32(top.low, s_low), small32(top.high, s_high));
    const __m512i between =
        _mm512_packus_epi16(between32(top.low, s_low, share.low), between32(top.high, s_high, share.high));
    for (int ch = 0; ch < 3; ch++) {
        const __mmask64 large = _mm512_test_epi8_mask(at, _mm512_set1_epi8((char)(1 << ch)));
        const __mmask64 little = _mm512_test_epi8_mask(at, _mm512_set1_epi8((char)(8 << ch)));
        const __m512i color = _mm512_mask_mov_epi8(between, large, v);
        c.at[ch] = _mm512_mask_mov_epi8(color, little, small);
    }
    return pixels_of(c);
}

static void hue_u8_vbmi(uint8_t *dst, const uint8_t *src, int32_t w, uint8_t shift)
{
    THREES(dst, src, w, turn_three(t, shift));
}

void kernels_vbmi_color(struct kernels *k)
{
    kernels_vbmi_points(k);
    k->grey = grey_u8_vbmi;
    k->grey3 = grey3_u8_vbmi;
    k->mix = mix_u8_fast;
    k->sharpen = sharpen_u8_fast;
    k->hue = hue_u8_vbmi;
    k->table1 = table1_u8_vbmi;
    k->table3 = table3_u8_vbmi;
}
#endif
