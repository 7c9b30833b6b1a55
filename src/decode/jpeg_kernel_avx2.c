/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_kernel_avx2.c -- the JPEG kernels for AVX2.
 */
#include "decode/jpeg_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define OP(name) _mm256_##name
#define LANES    2
typedef __m256i vec;

static inline vec zeros(void)
{
    return _mm256_setzero_si256();
}

static inline vec madd_add(vec sum, vec a, vec b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

static inline vec shifted(vec v, int bits)
{
    return _mm256_srai_epi32(v, bits);
}

static inline bool any_bits(vec v, vec bits)
{
    return !_mm256_testz_si256(v, bits);
}

static inline __m128i load16(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

static inline vec two(__m128i a, __m128i b)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

static inline vec row_of_q(const uint16_t *q, int row)
{
    return _mm256_broadcastsi128_si256(load16(q + 8 * row));
}

static inline void load_full(vec v[8], const uint16_t *q, const int16_t *const block[LANES])
{
    for (int r = 0; r < 8; r++)
        v[r] = _mm256_mullo_epi16(two(load16(block[0] + 8 * r), load16(block[1] + 8 * r)), row_of_q(q, r));
}

static inline void load_corner(vec v[4], const uint16_t *q, const int16_t *const block[2 * LANES])
{
    for (int r = 0; r < 4; r++) {
        const vec left = two(load16(block[0] + 8 * r), load16(block[1] + 8 * r));
        const vec right = two(load16(block[2] + 8 * r), load16(block[3] + 8 * r));
        const vec k = row_of_q(q, r);
        v[r] = _mm256_mullo_epi16(_mm256_unpacklo_epi64(left, right), _mm256_unpacklo_epi64(k, k));
    }
}

static inline void put16(uint8_t *dst, __m128i v)
{
    _mm_storeu_si128((__m128i *)(void *)dst, v);
}

static inline void put_rows(uint8_t *dst, size_t stride, __m128i v)
{
    _mm_storel_epi64((__m128i *)(void *)dst, v);
    _mm_storeh_pi((__m64 *)(void *)(dst + stride), _mm_castsi128_ps(v));
}

static inline void store(uint8_t *dst, size_t stride, const uint8_t at[LANES], const vec v[4])
{
    uint8_t *a = dst + 8 * (size_t)at[0], *b = dst + 8 * (size_t)at[1];
    const bool side_by_side = at[1] == at[0] + 1;
    for (int k = 0; k < 4; k++, a += 2 * stride, b += 2 * stride) {
        if (side_by_side) {
            const vec rows = _mm256_permute4x64_epi64(v[k], 0xd8);
            put16(a, _mm256_castsi256_si128(rows));
            put16(a + stride, _mm256_extracti128_si256(rows, 1));
        } else {
            put_rows(a, stride, _mm256_castsi256_si128(v[k]));
            put_rows(b, stride, _mm256_extracti128_si256(v[k], 1));
        }
    }
}

#include "decode/jpeg_lanes_idct.h"
#include "decode/jpeg_small.h"

static void idct_avx2(uint8_t *dst, size_t stride, const int16_t *coef, const uint8_t *last, size_t n,
                      const uint16_t *q)
{
    idct_lanes(dst, stride, coef, last, n, q);
}

static inline vec load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline vec low_bytes(vec v)
{
    return _mm256_and_si256(v, _mm256_set1_epi16(255));
}

static inline vec spread(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(load16(p));
}

/*
 * Interleaves three times 16 bytes to 48: byte p of third k is pixel (16 k + p) / 3 of channel (k + p) % 3. As 3 has an
 * inverse modulo 16, one shuffle per channel moves its bytes to their places, whichever third they go to.
 */
static inline vec third(vec a, vec b, vec c)
{
    const vec from_b = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0));
    const vec from_c = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0));
    return _mm256_blendv_epi8(_mm256_blendv_epi8(a, b, from_b), c, from_c);
}

static inline void put(uint8_t *rgb, vec r, vec g, vec b, size_t n)
{
    const __m128i turns[3] = {_mm_setr_epi8(0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15, 5, 10),
                              _mm_setr_epi8(10, 0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15, 5),
                              _mm_setr_epi8(5, 10, 0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15)};
    const vec red = _mm256_shuffle_epi8(r, _mm256_broadcastsi128_si256(turns[0]));
    const vec green = _mm256_shuffle_epi8(g, _mm256_broadcastsi128_si256(turns[1]));
    const vec blue = _mm256_shuffle_epi8(b, _mm256_broadcastsi128_si256(turns[2]));
    const vec p0 = third(red, green, blue), p1 = third(green, blue, red), p2 = third(blue, red, green);
    uint8_t rest[96], *const to = n < 32 ? rest : rgb;
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute2x128_si256(p0, p1, 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(to + 32), _mm256_blend_epi32(p2, p0, 0xf0));
    _mm256_storeu_si256((__m256i *)(void *)(to + 64), _mm256_permute2x128_si256(p1, p2, 0x31));
    if (n < 32)
        memcpy(rgb, rest, 3 * n);
}

#include "decode/jpeg_lanes_rows.h"
ROW_FUNCTIONS(avx2)

void jpeg_kernels_avx2(struct jpeg_kernels *k)
{
    k->idct = idct_avx2;
    k->dct_decode = dct_decode_avx2;
    k->row[JPEG_GREY] = row_grey_avx2;
    k->row[JPEG_444] = row_444_avx2;
    k->row[JPEG_422] = row_422_avx2;
    k->row[JPEG_420] = row_420_avx2;
    k->row[JPEG_440] = row_440_avx2;
    small_fill(k);
}

#endif
