/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_kernel_avx512.c -- the JPEG kernels for AVX-512 (F, BW, DQ, VL, VNNI).
 */
#include "decode/jpeg_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define OP(name) _mm512_##name
#define LANES    4
typedef __m512i vec;

static inline vec zeros(void)
{
    return _mm512_setzero_si512();
}

static inline vec madd_add(vec sum, vec a, vec b)
{
    return _mm512_dpwssd_epi32(sum, a, b);
}

static inline vec shifted(vec v, int bits)
{
    return _mm512_srai_epi32(v, (unsigned)bits);
}

static inline bool any_bits(vec v, vec bits)
{
    return _mm512_test_epi16_mask(v, bits) != 0;
}

/* Transposes: lane l of v[r] becomes lane r of v[l]. */
static inline void turn_lanes(vec v[4])
{
    const vec a = _mm512_shuffle_i32x4(v[0], v[1], 0x44), b = _mm512_shuffle_i32x4(v[0], v[1], 0xee);
    const vec c = _mm512_shuffle_i32x4(v[2], v[3], 0x44), d = _mm512_shuffle_i32x4(v[2], v[3], 0xee);
    v[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    v[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
    v[2] = _mm512_shuffle_i32x4(b, d, 0x88);
    v[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

static inline void load_full(vec v[8], const uint16_t *q, const int16_t *const block[LANES])
{
    for (int i = 0; i < 2; i++) {
        const vec k = _mm512_loadu_si512(q + 32 * i);
        for (int l = 0; l < LANES; l++)
            v[4 * i + l] = _mm512_mullo_epi16(_mm512_loadu_si512(block[l] + 32 * i), k);
        turn_lanes(v + 4 * i);
    }
}

static inline void load_corner(vec v[4], const uint16_t *q, const int16_t *const block[2 * LANES])
{
    const vec k = _mm512_loadu_si512(q), k2 = _mm512_unpacklo_epi64(k, k);
    for (int l = 0; l < LANES; l++) {
        const vec a = _mm512_loadu_si512(block[l]), b = _mm512_loadu_si512(block[LANES + l]);
        v[l] = _mm512_mullo_epi16(_mm512_unpacklo_epi64(a, b), k2);
    }
    turn_lanes(v);
}

static inline void put32(uint8_t *dst, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)dst, v);
}

static inline void put_rows(uint8_t *dst, size_t stride, __m128i v)
{
    _mm_storel_epi64((__m128i *)(void *)dst, v);
    _mm_storeh_pi((__m64 *)(void *)(dst + stride), _mm_castsi128_ps(v));
}

static inline void store(uint8_t *dst, size_t stride, const uint8_t at[LANES], const vec v[4])
{
    /* They ascend; only the last may be repeated. */
    const bool side_by_side = at[2] == at[0] + 2 && at[3] == at[0] + 3;
    const vec even_odd = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    for (int k = 0; k < 4; k++, dst += 2 * stride) {
        if (side_by_side) {
            uint8_t *const to = dst + 8 * (size_t)at[0];
            const vec rows = _mm512_permutexvar_epi64(even_odd, v[k]);
            put32(to, _mm512_castsi512_si256(rows));
            put32(to + stride, _mm512_extracti64x4_epi64(rows, 1));
        } else {
            put_rows(dst + 8 * (size_t)at[0], stride, _mm512_castsi512_si128(v[k]));
            put_rows(dst + 8 * (size_t)at[1], stride, _mm512_extracti32x4_epi32(v[k], 1));
            put_rows(dst + 8 * (size_t)at[2], stride, _mm512_extracti32x4_epi32(v[k], 2));
            put_rows(dst + 8 * (size_t)at[3], stride, _mm512_extracti32x4_epi32(v[k], 3));
        }
    }
}

#include "decode/jpeg_lanes_idct.h"
#include "decode/jpeg_small.h"

static void idct_avx512(uint8_t *dst, size_t stride, const int16_t *coef, const uint8_t *last, size_t n,
                        const uint16_t *q)
{
    idct_lanes(dst, stride, coef, last, n, q);
}

static inline vec load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

static inline vec low_bytes(vec v)
{
    return _mm512_and_si512(v, _mm512_set1_epi16(255));
}

static inline vec spread(const uint8_t *p)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

/*
 * Interleaves three times 16 bytes to 48: byte p of third k is pixel (16 k + p) / 3 of channel (k + p) % 3. As 3 has an
 * inverse modulo 16, one shuffle per channel moves its bytes to their places, whichever third they go to.
 */
static inline vec third(vec a, vec b, vec c)
{
    const __mmask64 from_b = 0x2492249224922492, from_c = 0x4924492449244924;
    return _mm512_mask_mov_epi8(_mm512_mask_mov_epi8(a, from_b, b), from_c, c);
}

/* Writes 64 bytes, or as many as are left. */
static inline void put64(uint8_t *dst, vec v, size_t left)
{
    if (left >= 64)
        _mm512_storeu_si512(dst, v);
    else
        _mm512_mask_storeu_epi8(dst, ((__mmask64)1 << left) - 1, v);
}

static inline void put(uint8_t *rgb, vec r, vec g, vec b, size_t n)
{
    const __m128i turns[3] = {_mm_setr_epi8(0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15, 5, 10),
                              _mm_setr_epi8(10, 0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15, 5),
                              _mm_setr_epi8(5, 10, 0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15)};
    const vec red = _mm512_shuffle_epi8(r, _mm512_broadcast_i32x4(turns[0]));
    const vec green = _mm512_shuffle_epi8(g, _mm512_broadcast_i32x4(turns[1]));
    const vec blue = _mm512_shuffle_epi8(b, _mm512_broadcast_i32x4(turns[2]));
    const vec p0 = third(red, green, blue), p1 = third(green, blue, red), p2 = third(blue, red, green);
    /* Lane l of third k goes to place 3 l + k. */
    const vec v0 = _mm512_permutex2var_epi64(p0, _mm512_setr_epi64(0, 1, 8, 9, 0, 1, 2, 3), p1);
    const vec v1 = _mm512_permutex2var_epi64(p1, _mm512_setr_epi64(2, 3, 10, 11, 0, 1, 4, 5), p2);
    const vec v2 = _mm512_permutex2var_epi64(p2, _mm512_setr_epi64(4, 5, 14, 15, 0, 1, 6, 7), p0);
    const size_t left = 3 * n;
    put64(rgb, _mm512_mask_permutexvar_epi64(v0, 0x30, _mm512_setr_epi64(0, 0, 0, 0, 0, 1, 0, 0), p2), left);
    if (left > 64)
        put64(rgb + 64, _mm512_mask_permutexvar_epi64(v1, 0x30, _mm512_setr_epi64(0, 0, 0, 0, 4, 5, 0, 0), p0),
              left - 64);
    if (left > 128)
        put64(rgb + 128, _mm512_mask_permutexvar_epi64(v2, 0x30, _mm512_setr_epi64(0, 0, 0, 0, 6, 7, 0, 0), p1),
              left - 128);
}

#include "decode/jpeg_lanes_rows.h"
ROW_FUNCTIONS(avx512)

void jpeg_kernels_avx512(struct jpeg_kernels *k)
{
    k->idct = idct_avx512;
    k->row[JPEG_GREY] = row_grey_avx512;
    k->row[JPEG_444] = row_444_avx512;
    k->row[JPEG_422] = row_422_avx512;
    k->row[JPEG_420] = row_420_avx512;
    k->row[JPEG_440] = row_440_avx512;
    small_fill(k);
}

#endif
