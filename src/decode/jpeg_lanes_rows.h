/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_lanes_rows.h -- upsampling and colour conversion of a row in one pass, on vectors.
 *
 * Besides what jpeg_lanes_idct.h asks for, the file of an instruction set defines:
 *
 *     load(p)               as many bytes as a vector has
 *     low_bytes(v)          the lower 8 of every 16 bits
 *     spread(p)             half as many bytes, to 16 bits each
 *     put(rgb, r, g, b, n)  writes at most n pixels; in a lane the even ones come first, then the odd ones
 *
 * Pixels of even and of odd columns are processed separately, 16 bits each. So upsampled chroma is where it is needed,
 * and nothing is shuffled before the end. Chroma c is used as 2 * (c - 128): one rounding multiplication by 2^15 times
 * a factor then gives what libjpeg-turbo's tables hold, for all 256 values, and the factors of green fit 16 bits.
 */
#ifndef JPEG_LANES_ROWS_H
#define JPEG_LANES_ROWS_H

enum { PIXELS = 16 * LANES };

struct halves {
    vec even, odd;
};

INLINE struct halves split(const uint8_t *p)
{
    const vec v = load(p);
    return (struct halves){low_bytes(v), OP(srli_epi16)(v, 8)};
}

INLINE vec sum(vec a, vec b)
{
    return OP(add_epi16)(a, b);
}

INLINE vec thrice(vec v)
{
    return sum(sum(v, v), v);
}

/* A quarter, rounded by `round`. */
INLINE vec quarter(vec v, int round)
{
    return OP(srli_epi16)(sum(v, OP(set1_epi16)((short)round)), 2);
}

INLINE struct halves chroma_422(const uint8_t *p)
{
    const vec here = thrice(spread(p));
    return (struct halves){quarter(sum(here, spread(p - 1)), 1), quarter(sum(here, spread(p + 1)), 2)};
}

/* Four times the interpolation of two rows. */
INLINE vec rows_at(const uint8_t *p, const uint8_t *other)
{
    return sum(thrice(spread(p)), spread(other));
}

INLINE struct halves chroma_420(const uint8_t *p, const uint8_t *other)
{
    const vec here = thrice(rows_at(p, other)), before = rows_at(p - 1, other - 1), after = rows_at(p + 1, other + 1);
    const vec even = sum(sum(here, before), OP(set1_epi16)(8)), odd = sum(sum(here, after), OP(set1_epi16)(7));
    return (struct halves){OP(srli_epi16)(even, 4), OP(srli_epi16)(odd, 4)};
}

INLINE struct halves chroma_440(const uint8_t *p, const uint8_t *other, int round)
{
    const struct halves a = split(p), b = split(other);
    return (struct halves){quarter(sum(thrice(a.even), b.even), round), quarter(sum(thrice(a.odd), b.odd), round)};
}

INLINE struct halves chroma(enum jpeg_sampling s, const uint8_t *p, const uint8_t *other, size_t x, bool odd)
{
    switch (s) {
    case JPEG_422:
        return chroma_422(p + x / 2);
    case JPEG_420:
        return chroma_420(p + x / 2, other + x / 2);
    case JPEG_440:
        return chroma_440(p + x, other + x, odd ? 2 : 1);
    default:
        return split(p + x);
    }
}

INLINE vec centred(vec c)
{
    return OP(sub_epi16)(sum(c, c), OP(set1_epi16)(256));
}

INLINE vec times(vec c, int factor)
{
    return OP(mulhrs_epi16)(c, OP(set1_epi16)((short)factor));
}

INLINE vec green(vec cb, vec cr)
{
    const vec k = OP(set1_epi32)((int)((uint32_t)-23401 << 16 | (uint16_t)-11277)), half = OP(set1_epi32)(1 << 15);
    const vec lo = madd_add(half, OP(unpacklo_epi16)(cb, cr), k), hi = madd_add(half, OP(unpackhi_epi16)(cb, cr), k);
    return OP(packs_epi32)(shifted(lo, 16), shifted(hi, 16));
}

struct colours {
    vec r, g, b;
};

INLINE struct colours coloured(vec y, vec cb, vec cr)
{
    const vec blue = centred(cb), red = centred(cr);
    return (struct colours){sum(y, times(red, 22970)), sum(y, green(blue, red)), sum(y, times(blue, 29033))};
}

INLINE void row_lanes(uint8_t *rgb, const struct jpeg_row *r, size_t w, enum jpeg_sampling s)
{
    for (size_t x = 0; x < w; x += PIXELS, rgb += 3 * PIXELS) {
        const struct halves y = split(r->y + x);
        const struct halves cb = chroma(s, r->cb, r->cb_other, x, r->odd);
        const struct halves cr = chroma(s, r->cr, r->cr_other, x, r->odd);
        const struct colours a = coloured(y.even, cb.even, cr.even), b = coloured(y.odd, cb.odd, cr.odd);
        put(rgb, OP(packus_epi16)(a.r, b.r), OP(packus_epi16)(a.g, b.g), OP(packus_epi16)(a.b, b.b), w - x);
    }
}

INLINE void row_grey_lanes(uint8_t *rgb, const struct jpeg_row *r, size_t w)
{
    for (size_t x = 0; x < w; x += PIXELS, rgb += 3 * PIXELS) {
        const struct halves y = split(r->y + x);
        const vec v = OP(packus_epi16)(y.even, y.odd);
        put(rgb, v, v, v, w - x);
    }
}

/* The functions of the table, for an instruction set. */
#define ROW_FUNCTIONS(set)                                                                                             \
    static void row_grey_##set(uint8_t *rgb, const struct jpeg_row *r, size_t w)                                       \
    {                                                                                                                  \
        row_grey_lanes(rgb, r, w);                                                                                     \
    }                                                                                                                  \
    static void row_444_##set(uint8_t *rgb, const struct jpeg_row *r, size_t w)                                        \
    {                                                                                                                  \
        row_lanes(rgb, r, w, JPEG_444);                                                                                \
    }                                                                                                                  \
    static void row_422_##set(uint8_t *rgb, const struct jpeg_row *r, size_t w)                                        \
    {                                                                                                                  \
        row_lanes(rgb, r, w, JPEG_422);                                                                                \
    }                                                                                                                  \
    static void row_420_##set(uint8_t *rgb, const struct jpeg_row *r, size_t w)                                        \
    {                                                                                                                  \
        row_lanes(rgb, r, w, JPEG_420);                                                                                \
    }                                                                                                                  \
    static void row_440_##set(uint8_t *rgb, const struct jpeg_row *r, size_t w)                                        \
    {                                                                                                                  \
        row_lanes(rgb, r, w, JPEG_440);                                                                                \
    }

#endif
