/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_vbmi_hue.c -- turns the hue of 64 pixels at a time, with AVX-512 and VBMI.
 *
 * Pillow's floats, in whole numbers. v is the largest of the three, `range` the largest minus the smallest, and `num`
 * the largest minus the one between. Then saturation is 255 * range / v, and hue is `middle` of two sextants plus or
 * minus (85 * num + range) / (2 * range). Where this division has no rest, some of Pillow's hues are one less, because
 * its floats round down. A quotient is estimated from a reciprocal, at most one too small.
 */
#include "transform/kernel.h"
#include "transform/kernel_vbmi.h"

#if defined(__x86_64__)
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

void kernels_vbmi_hue(struct kernels *k)
{
    k->hue = hue_u8_vbmi;
}
#endif
