/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_vbmi_color.c -- kernels of point steps for AVX-512 with VBMI, which looks up 64 bytes in 128 at a time.
 */
#include "transform/kernel_color.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* Three times i, for the first bytes of pixels. */
static const uint8_t triple[64] = {0,   3,   6,   9,   12,  15,  18,  21,  24,  27,  30,  33,  36,  39,  42,  45,
                                   48,  51,  54,  57,  60,  63,  66,  69,  72,  75,  78,  81,  84,  87,  90,  93,
                                   96,  99,  102, 105, 108, 111, 114, 117, 120, 123, 126, 129, 132, 135, 138, 141,
                                   144, 147, 150, 153, 156, 159, 162, 165, 168, 171, 174, 177, 180, 183, 186, 189};
/* A third of i, for the pixels of bytes. */
static const uint8_t third[192] = {
    0,  0,  0,  1,  1,  1,  2,  2,  2,  3,  3,  3,  4,  4,  4,  5,  5,  5,  6,  6,  6,  7,  7,  7,  8,  8,  8,  9,
    9,  9,  10, 10, 10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15, 16, 16, 16, 17, 17, 17, 18, 18,
    18, 19, 19, 19, 20, 20, 20, 21, 21, 21, 22, 22, 22, 23, 23, 23, 24, 24, 24, 25, 25, 25, 26, 26, 26, 27, 27, 27,
    28, 28, 28, 29, 29, 29, 30, 30, 30, 31, 31, 31, 32, 32, 32, 33, 33, 33, 34, 34, 34, 35, 35, 35, 36, 36, 36, 37,
    37, 37, 38, 38, 38, 39, 39, 39, 40, 40, 40, 41, 41, 41, 42, 42, 42, 43, 43, 43, 44, 44, 44, 45, 45, 45, 46, 46,
    46, 47, 47, 47, 48, 48, 48, 49, 49, 49, 50, 50, 50, 51, 51, 51, 52, 52, 52, 53, 53, 53, 54, 54, 54, 55, 55, 55,
    56, 56, 56, 57, 57, 57, 58, 58, 58, 59, 59, 59, 60, 60, 60, 61, 61, 61, 62, 62, 62, 63, 63, 63};

/* Bit i is set if byte i of a run that starts with channel `first` belongs to channel 0. */
INLINE __mmask64 channel0(int first)
{
    const uint64_t every = 0x9249249249249249u; /* bits 0, 3, 6, ... 63 */
    return first == 0 ? every : first == 1 ? every << 2 : every << 1;
}

/* The bytes of 64 pixels are in three vectors, and byte 128 is the first of the last one. */
INLINE void split(struct planes *p, const uint8_t *src)
{
    const __m512i a = _mm512_loadu_si512(src), b = _mm512_loadu_si512(src + 64), c = _mm512_loadu_si512(src + 128);
    for (int ch = 0; ch < 3; ch++) {
        const __m512i at = _mm512_add_epi8(_mm512_loadu_si512(triple), _mm512_set1_epi8((char)ch));
        const __m512i two = _mm512_permutex2var_epi8(a, at, b);
        _mm512_storeu_si512(p->at[ch], _mm512_mask_permutexvar_epi8(two, _mm512_movepi8_mask(at), at, c));
    }
}

INLINE void join(uint8_t *dst, const struct planes *p)
{
    const __m512i r = _mm512_loadu_si512(p->at[0]), g = _mm512_loadu_si512(p->at[1]), b = _mm512_loadu_si512(p->at[2]);
    for (int i = 0; i < 3; i++) {
        const __m512i at = _mm512_loadu_si512(third + 64 * i);
        __m512i v = _mm512_permutexvar_epi8(at, b);
        v = _mm512_mask_permutexvar_epi8(v, channel0(i), at, r);
        v = _mm512_mask_permutexvar_epi8(v, channel0((i + 2) % 3), at, g);
        _mm512_storeu_si512(dst + 64 * i, v);
    }
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

COLOR_KERNELS(vbmi, turn_bytes)

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

/* The greys of 16 pixels. The weight of green, 38470, takes two 16-bit numbers: 19235 each. */
INLINE __m128i grey16(const uint8_t *src)
{
    const __m512i step = _mm512_set_epi32(45, 42, 39, 36, 33, 30, 27, 24, 21, 18, 15, 12, 9, 6, 3, 0);
    const __m512i places = _mm512_or_si512(step, _mm512_slli_epi32(step, 16)); /* of words */
    const __m512i v = _mm512_maskz_loadu_epi8((__mmask64)0xffffffffffff, src);
    const __mmask64 low = 0x5555555555555555;
    const __m512i rg = _mm512_maskz_permutexvar_epi8(low, _mm512_add_epi32(places, _mm512_set1_epi32(1 << 16)), v);
    const __m512i gb = _mm512_maskz_permutexvar_epi8(low, _mm512_add_epi32(places, _mm512_set1_epi32(2 << 16 | 1)), v);
    const __m512i a = _mm512_madd_epi16(rg, _mm512_set1_epi32(19235 << 16 | 19595));
    const __m512i b = _mm512_madd_epi16(gb, _mm512_set1_epi32(7471 << 16 | 19235));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_set1_epi32(0x8000));
    return _mm512_cvtepi32_epi8(_mm512_srli_epi32(sum, 16));
}

INLINE __m512i grey64(const uint8_t *src)
{
    const __m256i low = _mm256_set_m128i(grey16(src + 48), grey16(src));
    const __m256i high = _mm256_set_m128i(grey16(src + 144), grey16(src + 96));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

static void grey_u8_vbmi(uint8_t *dst, const uint8_t *src, int32_t w)
{
    for (; w >= 16; w -= 16, src += 48, dst += 16)
        _mm_storeu_si128((__m128i *)(void *)dst, grey16(src));
    if (w > 0) {
        uint8_t rest[48] = {0};
        memcpy(rest, src, 3 * (size_t)w);
        _mm_mask_storeu_epi8(dst, (__mmask16)((1u << w) - 1), grey16(rest));
    }
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

/* The bytes of 64 pixels between their greys and themselves. */
INLINE void mix64(const struct steps *s, uint8_t *dst, const uint8_t *src)
{
    const __m512i grey = grey64(src);
    for (int i = 0; i < 3; i++) {
        const __m512i from = _mm512_permutexvar_epi8(_mm512_loadu_si512(third + 64 * i), grey);
        _mm512_storeu_si512(dst + 64 * i, blend64(s, from, _mm512_loadu_si512(src + 64 * i)));
    }
}

INLINE void grey64x3(uint8_t *dst, const uint8_t *src)
{
    const __m512i grey = grey64(src);
    for (int i = 0; i < 3; i++)
        _mm512_storeu_si512(dst + 64 * i, _mm512_permutexvar_epi8(_mm512_loadu_si512(third + 64 * i), grey));
}

/* Calls body(to, from) for runs of 64 pixels; the last run goes through a buffer. */
#define WHOLE_RUNS(dst, src, w, body)                                                                                  \
    do {                                                                                                               \
        uint8_t rest[3 * RUN];                                                                                         \
        for (; w >= RUN; w -= RUN, src += 3 * RUN, dst += 3 * RUN)                                                     \
            body(dst, src);                                                                                            \
        if (w > 0) {                                                                                                   \
            memset(rest, 0, sizeof rest);                                                                              \
            memcpy(rest, src, 3 * (size_t)w);                                                                          \
            body(rest, rest);                                                                                          \
            memcpy(dst, rest, 3 * (size_t)w);                                                                          \
        }                                                                                                              \
    } while (0)

static void grey3_fast_vbmi(uint8_t *dst, const uint8_t *src, int32_t w)
{
    WHOLE_RUNS(dst, src, w, grey64x3);
}

static void mix_fast_vbmi(uint8_t *dst, const uint8_t *src, int32_t w, float factor)
{
    struct steps s;
    if (w < RUN || !steps_init(&s, factor)) {
        mix_u8_vbmi(dst, src, w, factor);
        return;
    }
#define MIX(to, from) mix64(&s, to, from)
    WHOLE_RUNS(dst, src, w, MIX);
#undef MIX
}

static void sharpen_fast_vbmi(uint8_t *dst, const uint8_t *src, size_t stride, size_t step, size_t n, float factor)
{
    struct steps s;
    if (n >= 3 * RUN && steps_init(&s, factor)) {
        _Alignas(64) uint8_t smooth[RUN];
        for (; n >= RUN; n -= RUN, src += RUN, dst += RUN) {
            smooth_run(smooth, src - stride, src, src + stride, step);
            _mm512_storeu_si512(dst, blend64(&s, _mm512_load_si512(smooth), _mm512_loadu_si512(src)));
        }
    }
    sharpen_u8_vbmi(dst, src, stride, step, n, factor);
}

void kernels_vbmi_color(struct kernels *k)
{
    kernels_vbmi_points(k);
    k->grey = grey_u8_vbmi;
    k->grey3 = grey3_fast_vbmi;
    k->mix = mix_fast_vbmi;
    k->sharpen = sharpen_fast_vbmi;
    k->table1 = table1_u8_vbmi;
    k->table3 = table3_u8_vbmi;
}
#endif
