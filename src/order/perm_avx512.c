/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perm_avx512.c -- the rounds of the shuffle for AVX-512: sixteen numbers at a time, whose multiplications overlap.
 */
#include "base/hash.h"
#include "order/perm.h"

#include <immintrin.h>

enum { LANES = 8, VECTORS = PERM_RUN / LANES };

static inline __m512i mul(__m512i v, uint64_t by)
{
    return _mm512_mullo_epi64(v, _mm512_set1_epi64((int64_t)by));
}

static inline __m512i finish(__m512i v)
{
    v = mul(_mm512_xor_si512(v, _mm512_srli_epi64(v, 30)), HASH_K1);
    v = mul(_mm512_xor_si512(v, _mm512_srli_epi64(v, 27)), HASH_K2);
    return _mm512_xor_si512(v, _mm512_srli_epi64(v, 31));
}

/* hash_mix of hash.h. */
static inline __m512i mix(__m512i a, uint64_t b)
{
    const __m512i v = finish(_mm512_add_epi64(a, _mm512_set1_epi64((int64_t)HASH_K0)));
    return finish(_mm512_xor_si512(_mm512_rol_epi64(v, 32), _mm512_set1_epi64((int64_t)(b * HASH_K2 + HASH_K1))));
}

/* to ^= mix(from, key) within the mask, for all vectors. */
static inline void half_round(__m512i *to, const __m512i *from, uint64_t key, __m512i mask)
{
    enum { XOR_OF_AND = 0x78 }; /* a ^ (b & c) */
    for (int k = 0; k < VECTORS; k++)
        to[k] = _mm512_ternarylogic_epi64(to[k], mix(from[k], key), mask, XOR_OF_AND);
}

void perm_scramble_avx512(const struct perm *p, uint64_t *v, int n)
{
    (void)n; /* values from n on are computed and ignored */
    const __m512i low_mask = _mm512_set1_epi64((int64_t)(((uint64_t)1 << p->low_bits) - 1)),
                  high_mask = _mm512_set1_epi64((int64_t)(((uint64_t)1 << p->high_bits) - 1));
    const __m128i low_bits = _mm_cvtsi32_si128(p->low_bits);
    __m512i low[VECTORS], high[VECTORS];
    for (int k = 0; k < VECTORS; k++) {
        const __m512i all = _mm512_loadu_si512(v + LANES * k);
        low[k] = _mm512_and_si512(all, low_mask);
        high[k] = _mm512_srl_epi64(all, low_bits);
    }
    for (int i = 0; i < PERM_ROUNDS; i += 2) {
        half_round(high, low, p->keys[i], high_mask);
        half_round(low, high, p->keys[i + 1], low_mask);
    }
    for (int k = 0; k < VECTORS; k++)
        _mm512_storeu_si512(v + LANES * k, _mm512_or_si512(_mm512_sll_epi64(high[k], low_bits), low[k]));
}
