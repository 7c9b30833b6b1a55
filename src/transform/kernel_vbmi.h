/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_vbmi.h -- 64 pixels at a time, and tables of 256 bytes, for AVX-512 with VBMI, which looks up 64 bytes in 128.
 */
#ifndef KERNEL_VBMI_H
#define KERNEL_VBMI_H

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

#ifndef INLINE
#define INLINE static inline __attribute__((always_inline))
#endif

enum { PIXELS = 64 };

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
        t.at[i] =
            w >= PIXELS ? _mm512_loadu_si512(src + 64 * i) : _mm512_maskz_loadu_epi8(some_bytes(w, i), src + 64 * i);
    return t;
}

INLINE void store_three(uint8_t *dst, int32_t w, struct three t)
{
    for (int i = 0; i < 3; i++)
        if (w >= PIXELS)
            _mm512_storeu_si512(dst + 64 * i, t.at[i]);
        else
            _mm512_mask_storeu_epi8(dst + 64 * i, some_bytes(w, i), t.at[i]);
}

/* Does body(t) for 64 pixels at a time, of w. */
#define THREES(dst, src, w, body)                                                                                      \
    do {                                                                                                               \
        int32_t x = 0;                                                                                                 \
        for (; x + PIXELS <= w; x += PIXELS) {                                                                         \
            const struct three t = load_three(src + 3 * (size_t)x, PIXELS);                                            \
            store_three(dst + 3 * (size_t)x, PIXELS, body);                                                            \
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

/* 64 bytes as numbers of 16 bits, in the order of unpacking. */
struct wide {
    __m512i low, high;
};

INLINE struct wide widened(__m512i v)
{
    return (struct wide){_mm512_unpacklo_epi8(v, _mm512_setzero_si512()),
                         _mm512_unpackhi_epi8(v, _mm512_setzero_si512())};
}

#endif
#endif
