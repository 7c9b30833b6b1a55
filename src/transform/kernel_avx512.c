/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx512.c -- the kernels for AVX-512 (F, BW, DQ, VL, VNNI).
 *
 * Resampling: vpdpbusd sums four products of an unsigned and a signed byte. So a weight is split into three signed
 * digits,
 *     c = d2 * 2^16 + d1 * 2^8 + d0,   sum c*p = ((sum d2*p << 8) + sum d1*p << 8) + sum d0*p.
 * Weights must stay under 127 * 2^16 (1.98); those of all filters are much smaller. A group of four taps is stored as
 * d0 x4, d1 x4, d2 x4 and four unused bytes.
 */
#include "transform/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

static void arrange_weights_avx512(int32_t *c, size_t groups)
{
    /* Adding 0x8080 carries what the two low digits borrow; flipping their top bits makes them signed. */
    const __m128i bias = _mm_set1_epi32(0x8080);
    const __m128i sort = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, -1, -1, -1, -1);
    for (; groups > 0; groups--, c += 4) {
        const __m128i v = _mm_load_si128((const __m128i *)(const void *)c);
        const __m128i digits = _mm_xor_si128(_mm_add_epi32(v, bias), bias);
        _mm_store_si128((__m128i *)(void *)c, _mm_shuffle_epi8(digits, sort));
    }
}

INLINE __m128i load16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

INLINE __m512i load64(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

INLINE __m512i digit(const int32_t *c)
{
    return _mm512_set1_epi32(*c);
}

/* The same bytes or words in every lane. */
INLINE __m512i lanes(__m128i v)
{
    return _mm512_broadcast_i32x4(v);
}

/* Results have FRACTION bits after the binary point until they are narrowed to 16 bits. */
enum { FRACTION = 6 };

/* The sums of the three digits over many groups. They may wrap, so they are joined from the highest down. */
struct sums {
    __m512i d0, d1, d2;
};

INLINE struct sums sums_none(void)
{
    return (struct sums){_mm512_set1_epi32(1 << (RESAMPLE_BITS - 1)), _mm512_setzero_si512(), _mm512_setzero_si512()};
}

INLINE void sums_add(struct sums *s, __m512i v, __m512i d0, __m512i d1, __m512i d2)
{
    s->d0 = _mm512_dpbusd_epi32(s->d0, v, d0);
    s->d1 = _mm512_dpbusd_epi32(s->d1, v, d1);
    s->d2 = _mm512_dpbusd_epi32(s->d2, v, d2);
}

INLINE __m512i sums_end(const struct sums *s)
{
    const __m512i high = _mm512_add_epi32(_mm512_slli_epi32(s->d2, 8), s->d1);
    return _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(high, 8), s->d0), RESAMPLE_BITS - FRACTION);
}

/* Rounds down, clips, narrows: within every lane the bytes of q[0], q[1], q[2], q[3] in order. */
INLINE __m512i join(const __m512i q[4])
{
    const __m512i a = _mm512_srai_epi16(_mm512_packs_epi32(q[0], q[1]), FRACTION);
    const __m512i b = _mm512_srai_epi16(_mm512_packs_epi32(q[2], q[3]), FRACTION);
    return _mm512_packus_epi16(a, b);
}

INLINE __m512i four16(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d)
{
    const __m256i ab = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(a)), load16(b), 1);
    const __m256i cd = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(c)), load16(d), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(ab), cd, 1);
}

INLINE void put64(uint8_t *dst, __m512i v, size_t left)
{
    if (left >= 64)
        _mm512_storeu_si512(dst, v);
    else
        _mm512_mask_storeu_epi8(dst, ((__mmask64)1 << left) - 1, v);
}

/*
 * Across: four pixels of a row are a unit, one per lane. If their taps are close together, one load gets them all:
 * vpermd moves the words around a pixel's first tap into its lane, and vpshufb sorts its bytes to RRRR GGGG BBBB. Their
 * positions are computed once for many rows.
 */
enum { UNIT = 4, CLOSE = 16 };

struct pick {
    size_t base; /* bytes from the start of the row */
    __m512i words, bytes;
};

INLINE struct pick pick_of(const int32_t *first)
{
    const __m512i own = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i sort = lanes(_mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1));
    const __m512i copy = lanes(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1));
    const int32_t low = first[0] < first[UNIT - 1] ? first[0] : first[UNIT - 1];
    const __m512i from = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)first));
    const __m512i x = _mm512_sub_epi32(_mm512_permutexvar_epi32(own, from), _mm512_set1_epi32(low));
    const __m512i at = _mm512_add_epi32(_mm512_add_epi32(x, x), x);
    const __m512i rest = _mm512_and_si512(at, _mm512_set1_epi32(3));
    return (struct pick){
        .base = 3 * (size_t)low,
        .words = _mm512_add_epi32(_mm512_srli_epi32(at, 2), lanes(_mm_setr_epi32(0, 1, 2, 3))),
        .bytes = _mm512_add_epi8(sort, _mm512_shuffle_epi8(rest, copy)),
    };
}

INLINE __m512i picked(const uint8_t *row, const struct pick *p)
{
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(p->words, load64(row + p->base)), p->bytes);
}

/* The same for taps that are far apart. */
INLINE __m512i fetched(const uint8_t *row, const int32_t *first)
{
    const __m512i sort = lanes(_mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1));
    const size_t a = 3 * (size_t)first[0], b = 3 * (size_t)first[1], c = 3 * (size_t)first[2], d = 3 * (size_t)first[3];
    return _mm512_shuffle_epi8(four16(row + a, row + b, row + c, row + d), sort);
}

/* Transposes four dwords of four lanes. */
INLINE __m512i turned(__m512i v)
{
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v);
}

/* RGBx to RGB, twelve bytes in every lane. */
INLINE __m512i squeezed(__m512i v)
{
    return _mm512_shuffle_epi8(v, lanes(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1)));
}

/* Positions and weights of the taps of a unit, for up to FEW groups. */
enum { FEW = 4 };

struct unit {
    struct pick pick;
    __m512i d0[FEW], d1[FEW], d2[FEW];
};

INLINE void unit_init(struct unit *u, const int32_t *first, const int32_t *c, int groups)
{
    const uint8_t *p = (const uint8_t *)c;
    const size_t step = 16 * (size_t)groups;
    u->pick = pick_of(first);
    for (int g = 0; g < groups; g++, p += 16) {
        const __m512i digits = four16(p, p + step, p + 2 * step, p + 3 * step);
        u->d0[g] = _mm512_shuffle_epi32(digits, _MM_PERM_AAAA);
        u->d1[g] = _mm512_shuffle_epi32(digits, _MM_PERM_BBBB);
        u->d2[g] = _mm512_shuffle_epi32(digits, _MM_PERM_CCCC);
    }
}

/* Sums from the lowest digit up, and drops bits that no longer matter: few taps cannot wrap. */
INLINE __m512i unit_sum(const struct unit *u, const uint8_t *row, int groups)
{
    __m512i v[FEW], sum = _mm512_set1_epi32(1 << (RESAMPLE_BITS - 1));
    for (int g = 0; g < groups; g++)
        v[g] = picked(row + 12 * g, &u->pick);
    for (int g = 0; g < groups; g++)
        sum = _mm512_dpbusd_epi32(sum, v[g], u->d0[g]);
    sum = _mm512_srai_epi32(sum, 8);
    for (int g = 0; g < groups; g++)
        sum = _mm512_dpbusd_epi32(sum, v[g], u->d1[g]);
    sum = _mm512_srai_epi32(sum, 8);
    for (int g = 0; g < groups; g++)
        sum = _mm512_dpbusd_epi32(sum, v[g], u->d2[g]);
    return sum;
}

/* 16 pixels of some rows. */
INLINE void across3_block(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t rows,
                          const int32_t *first, const int32_t *c, size_t left, int groups)
{
    const __m512i close_up = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
    struct unit u[4];
    for (int k = 0; k < 4; k++)
        unit_init(&u[k], first + UNIT * k, c + 4 * UNIT * groups * k, groups);
    for (; rows > 0; rows--, dst += dst_stride, src += src_stride) {
        __m512i q[4];
        for (int k = 0; k < 4; k++)
            q[k] = unit_sum(&u[k], src, groups);
        const __m512i v = _mm512_permutexvar_epi32(close_up, squeezed(turned(join(q))));
        if (left >= 64)
            _mm512_storeu_si512(dst, v); /* the row continues */
        else
            _mm512_mask_storeu_epi8(dst, ((__mmask64)1 << (left < 48 ? left : 48)) - 1, v);
    }
}

INLINE void across3_few(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t rows,
                        const struct taps *t, int groups)
{
    enum { TILE = 16 }; /* rows that fit the L1 cache */
    for (int32_t y = 0; y < rows; y += TILE, dst += TILE * dst_stride, src += TILE * src_stride)
        for (int32_t i = 0; i < t->n; i += 16)
            across3_block(dst + 3 * (size_t)i, dst_stride, src, src_stride, rows - y < TILE ? rows - y : TILE,
                          t->first + i, t->c + 4 * (size_t)groups * (size_t)i, 3 * (size_t)(t->n - i), groups);
}

/* One unit of up to four rows, with any count of groups. */
INLINE void across3_unit(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t rows,
                         const struct taps *t, int32_t i)
{
    const int32_t *const first = t->first + i, reach = first[UNIT - 1] - first[0];
    const bool close = reach <= CLOSE && reach >= -CLOSE;
    const size_t step = 16 * (size_t)t->groups;
    const uint8_t *c = (const uint8_t *)t->c + step * (size_t)i;
    const struct pick p = pick_of(first);
    struct sums s[4] = {sums_none(), sums_none(), sums_none(), sums_none()};
    for (int32_t g = 0; g < t->groups; g++, c += 16) {
        const __m512i digits = four16(c, c + step, c + 2 * step, c + 3 * step);
        const __m512i d0 = _mm512_shuffle_epi32(digits, _MM_PERM_AAAA);
        const __m512i d1 = _mm512_shuffle_epi32(digits, _MM_PERM_BBBB);
        const __m512i d2 = _mm512_shuffle_epi32(digits, _MM_PERM_CCCC);
        for (int32_t r = 0; r < 4; r++) {
            const uint8_t *row = src + 12 * (size_t)g + (r < rows ? (size_t)r * src_stride : 0);
            sums_add(&s[r], close ? picked(row, &p) : fetched(row, first), d0, d1, d2);
        }
    }
    const __m512i q[4] = {sums_end(&s[0]), sums_end(&s[1]), sums_end(&s[2]), sums_end(&s[3])};
    const __m512i v = squeezed(turned(join(q)));
    const __mmask16 part = (__mmask16)((1u << 3 * (t->n - i < UNIT ? t->n - i : UNIT)) - 1);
    const __m128i row[4] = {_mm512_castsi512_si128(v), _mm512_extracti32x4_epi32(v, 1), _mm512_extracti32x4_epi32(v, 2),
                            _mm512_extracti32x4_epi32(v, 3)};
    for (int32_t r = 0; r < rows; r++)
        _mm_mask_storeu_epi8(dst + (size_t)r * dst_stride, part, row[r]);
}

static bool all_close(const struct taps *t)
{
    for (int32_t i = 0; i < t->n; i += UNIT) {
        const int32_t reach = t->first[i + UNIT - 1] - t->first[i];
        if (reach > CLOSE || reach < -CLOSE)
            return false;
    }
    return true;
}

static void across3_u8_avx512(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t rows,
                              const struct taps *t)
{
    switch (all_close(t) ? t->groups : 0) {
    case 1:
        across3_few(dst, dst_stride, src, src_stride, rows, t, 1);
        break;
    case 2:
        across3_few(dst, dst_stride, src, src_stride, rows, t, 2);
        break;
    case 3:
        across3_few(dst, dst_stride, src, src_stride, rows, t, 3);
        break;
    case 4:
        across3_few(dst, dst_stride, src, src_stride, rows, t, 4);
        break;
    default:
        for (int32_t y = 0; y < rows; y += 4, dst += 4 * dst_stride, src += 4 * src_stride)
            for (int32_t i = 0; i < t->n; i += UNIT)
                across3_unit(dst + 3 * (size_t)i, dst_stride, src, src_stride, rows - y < 4 ? rows - y : 4, t, i);
    }
}

/* Four outputs, one per lane: the sums of the three digits in its words. */
INLINE __m512i across1_unit(const uint8_t *src, const struct taps *t, int32_t i)
{
    const __m512i own = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const size_t step = 16 * (size_t)t->groups;
    const uint8_t *c = (const uint8_t *)t->c + step * (size_t)i;
    __m512i sum = _mm512_setzero_si512();
    for (int32_t g = 0; g < t->groups; g++, c += 16, src += 4) {
        int32_t v[4];
        for (int k = 0; k < 4; k++)
            memcpy(&v[k], src + t->first[i + k], 4);
        const __m512i four = _mm512_castsi128_si512(_mm_setr_epi32(v[0], v[1], v[2], v[3]));
        sum = _mm512_dpbusd_epi32(sum, _mm512_permutexvar_epi32(own, four),
                                  four16(c, c + step, c + 2 * step, c + 3 * step));
    }
    sum = _mm512_sllv_epi32(sum, lanes(_mm_setr_epi32(0, 8, 16, 0)));
    sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_BADC));
    return _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_CDAB));
}

static void across1_u8_avx512(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t rows,
                              const struct taps *t)
{
    const __m128i round = _mm_set1_epi32(1 << (RESAMPLE_BITS - 1));
    for (; rows > 0; rows--, dst += dst_stride, src += src_stride)
        for (int32_t i = 0; i < t->n; i += UNIT) {
            __m128i v = _mm512_castsi512_si128(turned(across1_unit(src, t, i)));
            v = _mm_srai_epi32(_mm_add_epi32(v, round), RESAMPLE_BITS);
            v = _mm_packs_epi32(v, v);
            const int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(v, v));
            memcpy(dst + i, &four, t->n - i < UNIT ? (size_t)(t->n - i) : UNIT);
        }
}

/* Interleaves four rows of 64 columns to four bytes per column. */
INLINE void four_rows(__m512i out[4], const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d)
{
    const __m512i va = load64(a), vb = load64(b), vc = load64(c), vd = load64(d);
    const __m512i ab = _mm512_unpacklo_epi8(va, vb), ab2 = _mm512_unpackhi_epi8(va, vb);
    const __m512i cd = _mm512_unpacklo_epi8(vc, vd), cd2 = _mm512_unpackhi_epi8(vc, vd);
    out[0] = _mm512_unpacklo_epi16(ab, cd);
    out[1] = _mm512_unpackhi_epi16(ab, cd);
    out[2] = _mm512_unpacklo_epi16(ab2, cd2);
    out[3] = _mm512_unpackhi_epi16(ab2, cd2);
}

/* 64 columns, and few groups of rows that all exist. */
INLINE __m512i down_block_few(const uint8_t *src, size_t stride, const int32_t *c, int groups)
{
    __m512i v[FEW][4], q[4];
    for (int g = 0; g < groups; g++, src += 4 * stride)
        four_rows(v[g], src, src + stride, src + 2 * stride, src + 3 * stride);
    for (int k = 0; k < 4; k++) {
        q[k] = _mm512_set1_epi32(1 << (RESAMPLE_BITS - 1));
        for (int g = 0; g < groups; g++)
            q[k] = _mm512_dpbusd_epi32(q[k], v[g][k], digit(c + 4 * g));
        q[k] = _mm512_srai_epi32(q[k], 8);
        for (int g = 0; g < groups; g++)
            q[k] = _mm512_dpbusd_epi32(q[k], v[g][k], digit(c + 4 * g + 1));
        q[k] = _mm512_srai_epi32(q[k], 8);
        for (int g = 0; g < groups; g++)
            q[k] = _mm512_dpbusd_epi32(q[k], v[g][k], digit(c + 4 * g + 2));
    }
    return join(q);
}

INLINE void down_few(uint8_t *dst, const uint8_t *src, size_t stride, size_t n, const int32_t *c, int groups)
{
    for (size_t x = 0; x < n; x += 64)
        put64(dst + x, down_block_few(src + x, stride, c, groups), n - x);
}

/* 64 columns. Rows past n_taps have weight 0 and may not exist: the first row replaces them. */
INLINE __m512i down_block(const uint8_t *src, size_t stride, const int32_t *c, int32_t groups, int32_t n_taps)
{
    struct sums s[4] = {sums_none(), sums_none(), sums_none(), sums_none()};
    __m512i v[4];
    for (int32_t r = 0; r < 4 * groups; r += 4, c += 4) {
        const uint8_t *p[4];
        for (int32_t k = 0; k < 4; k++)
            p[k] = src + (r + k < n_taps ? (size_t)(r + k) * stride : 0);
        four_rows(v, p[0], p[1], p[2], p[3]);
        for (int k = 0; k < 4; k++)
            sums_add(&s[k], v[k], digit(c), digit(c + 1), digit(c + 2));
    }
    for (int k = 0; k < 4; k++)
        v[k] = sums_end(&s[k]);
    return join(v);
}

static void down_u8_avx512(uint8_t *dst, const uint8_t *src, size_t stride, size_t n, const struct taps *t, int32_t i)
{
    const int32_t *c = t->c + (size_t)i * 4 * (size_t)t->groups;
    src += (size_t)t->first[i] * stride;
    switch (t->rows >= 4 * t->groups ? t->groups : 0) {
    case 1:
        down_few(dst, src, stride, n, c, 1);
        break;
    case 2:
        down_few(dst, src, stride, n, c, 2);
        break;
    case 3:
        down_few(dst, src, stride, n, c, 3);
        break;
    default:
        for (size_t x = 0; x < n; x += 64)
            put64(dst + x, down_block(src + x, stride, c, t->groups, t->rows), n - x);
    }
}

void kernels_avx512(struct kernels *k)
{
    k->arrange_weights = arrange_weights_avx512;
    k->across1 = across1_u8_avx512;
    k->across3 = across3_u8_avx512;
    k->down = down_u8_avx512;
}
#endif
