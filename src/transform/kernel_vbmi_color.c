/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_vbmi_color.c -- kernels of point steps for AVX-512 with VBMI, which looks up 64 bytes in 128 at a time.
 */
#include "transform/kernel_color.h"
#include "transform/kernel_vbmi.h"

#if defined(__x86_64__)

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

static void table1_u8_vbmi(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t t[256])
{
    const struct table table = load_table(t);
    size_t i = 0;
    for (; i + 64 <= n; i += 64)
        _mm512_storeu_si512(dst + i, look_up(&table, _mm512_loadu_si512(src + i)));
    const __mmask64 rest = ((__mmask64)1 << (n - i)) - 1;
    _mm512_mask_storeu_epi8(dst + i, rest, look_up(&table, _mm512_maskz_loadu_epi8(rest, src + i)));
}

/* Each byte in the tables of all channels, of which its own is kept. */
INLINE struct three look_up_three(const struct table c[3], struct three t)
{
    for (int i = 0; i < 3; i++) {
        const __m512i red = look_up(&c[0], t.at[i]), green = look_up(&c[1], t.at[i]), blue = look_up(&c[2], t.at[i]);
        const __m512i both = _mm512_mask_mov_epi8(blue, channel0((i + 2) % 3), green);
        t.at[i] = _mm512_mask_mov_epi8(both, channel0(i), red);
    }
    return t;
}

static void table3_u8_vbmi(uint8_t *dst, const uint8_t *src, int32_t w, const uint8_t table[3][256])
{
    const struct table c[3] = {load_table(table[0]), load_table(table[1]), load_table(table[2])};
    THREES(dst, src, w, look_up_three(c, t));
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

/* ------------------------------------------------------------------ mirrors */

/* 21 pixels fill a vector but for a byte. */
enum { MIRRORED = 21 };
#define MIRROR(i) (uint8_t)((i) < 3 * MIRRORED ? 3 * (MIRRORED - 1 - (i) / 3) + (i) % 3 : 0)
static const uint8_t mirror[64] = {TABLE64(MIRROR, 0)};

static void mirror3_u8_vbmi(uint8_t *dst, const uint8_t *src, int32_t w)
{
    const __m512i from = _mm512_loadu_si512(mirror);
    for (; w > MIRRORED; w -= MIRRORED, dst += 3 * MIRRORED) /* the next pixels overwrite the last byte */
        _mm512_storeu_si512(dst, _mm512_permutexvar_epi8(from, _mm512_loadu_si512(src + 3 * (w - MIRRORED))));
    /* w pixels are the last ones of the mirrored vector that ends with them. */
    const __m512i last = _mm512_maskz_loadu_epi8(some_bytes(w, 0), src);
    const __m512i back = _mm512_sub_epi8(from, _mm512_set1_epi8((char)(3 * (MIRRORED - w))));
    _mm512_mask_storeu_epi8(dst, some_bytes(w, 0), _mm512_permutexvar_epi8(back, last));
}

void kernels_vbmi_color(struct kernels *k)
{
    kernels_vbmi_points(k);
    k->grey = grey_u8_vbmi;
    k->grey3 = grey3_u8_vbmi;
    k->mix = mix_u8_fast;
    k->sharpen = sharpen_u8_fast;
    k->mirror3 = mirror3_u8_vbmi;
    k->table1 = table1_u8_vbmi;
    k->table3 = table3_u8_vbmi;
}
#endif
