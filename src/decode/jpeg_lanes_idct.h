/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_lanes_idct.h -- the IDCT on vectors of 128-bit lanes, one block per lane.
 *
 * The file of an instruction set defines these before it includes this file:
 *
 *     vec, OP(name), LANES       the vector, its intrinsic of that name, its lanes
 *     zeros()                    a vector of zeros
 *     madd_add(sum, a, b)        sum + OP(madd_epi16)(a, b)
 *     shifted(v, bits)           32 bits each, shifted right with their sign
 *     any_bits(v, bits)          whether any 16 bits of v have one of `bits`
 *     load_full(v, q, block)     row r of block[l], times that of q, in lane l of v[r]
 *     load_corner(v, q, block)   the first four of row r of block[l] and of block[LANES + l] in lane l of v[r], r < 4
 *     store(dst, stride, at, v)  rows 2k and 2k + 1 of a block in lane l of v[k], to dst + 8 * at[l]
 *
 * There are three kinds of blocks: those with DC alone; those with all coefficients in the 4 x 4 corner of low
 * frequencies, where sums of four products are sums of two, and two blocks share a lane in the first pass; and all
 * others. Blocks of a kind are collected and transformed together, so that they fill the lanes.
 *
 * Overflow is as in jpeg_kernel_c.c, except for blocks with a first row alone: those that would overflow are left to
 * C.
 */
#ifndef JPEG_LANES_IDCT_H
#define JPEG_LANES_IDCT_H

#define INLINE static inline __attribute__((always_inline))

enum {
    CHUNK = 128, /* blocks that are sorted at a time */
    COLUMN_BITS = 11,
    ROW_BITS = 18,
};

/* 32 bits for each of the lower and the upper 16-bit values of a lane. */
struct wide {
    vec lo, hi;
};

INLINE vec pair(int a, int b)
{
    return OP(set1_epi32)((int)((uint32_t)b << 16 | (uint16_t)a));
}

INLINE struct wide mix(vec a, vec b)
{
    return (struct wide){OP(unpacklo_epi16)(a, b), OP(unpackhi_epi16)(a, b)};
}

/* a * ka + b * kb, for mixed a and b. */
INLINE struct wide products(struct wide v, int ka, int kb)
{
    const vec k = pair(ka, kb);
    return (struct wide){OP(madd_epi16)(v.lo, k), OP(madd_epi16)(v.hi, k)};
}

INLINE struct wide products_add(struct wide sum, struct wide v, int ka, int kb)
{
    const vec k = pair(ka, kb);
    return (struct wide){madd_add(sum.lo, v.lo, k), madd_add(sum.hi, v.hi, k)};
}

/* v * 2^13, plus half of what is shifted out at the end. */
INLINE struct wide scaled(vec v, int bits)
{
    const vec half = OP(set1_epi32)(1 << (bits - 1));
    const struct wide w = mix(zeros(), v);
    return (struct wide){OP(add_epi32)(shifted(w.lo, 3), half), OP(add_epi32)(shifted(w.hi, 3), half)};
}

INLINE struct wide add(struct wide a, struct wide b)
{
    return (struct wide){OP(add_epi32)(a.lo, b.lo), OP(add_epi32)(a.hi, b.hi)};
}

INLINE struct wide sub(struct wide a, struct wide b)
{
    return (struct wide){OP(sub_epi32)(a.lo, b.lo), OP(sub_epi32)(a.hi, b.hi)};
}

INLINE vec narrow(struct wide v, int bits)
{
    return OP(packs_epi32)(shifted(v.lo, bits), shifted(v.hi, bits));
}

INLINE void join(vec out[8], const struct wide even[4], const struct wide odd[4], int bits)
{
    for (int i = 0; i < 4; i++) {
        out[i] = narrow(add(even[i], odd[i]), bits);
        out[7 - i] = narrow(sub(even[i], odd[i]), bits);
    }
}

/* Transforms eight numbers in every column of the vectors. */
INLINE void line8(vec v[8], int bits)
{
    const struct wide v26 = mix(v[2], v[6]), v71 = mix(v[7], v[1]), v53 = mix(v[5], v[3]);
    const struct wide z = mix(OP(add_epi16)(v[7], v[3]), OP(add_epi16)(v[5], v[1]));
    const struct wide sum = scaled(OP(add_epi16)(v[0], v[4]), bits);
    const struct wide difference = scaled(OP(sub_epi16)(v[0], v[4]), bits);
    const struct wide e2 = products(v26, 4433, 4433 - 15137), e3 = products(v26, 4433 + 6270, 4433);
    const struct wide even[4] = {add(sum, e3), add(difference, e2), sub(difference, e2), sub(sum, e3)};
    const struct wide o3 = products(z, 9633 - 16069, 9633), o4 = products(z, 9633, 9633 - 3196);
    const struct wide odd[4] = {
        products_add(o4, v71, -7373, 12299 - 7373),
        products_add(o3, v53, -20995, 25172 - 20995),
        products_add(o4, v53, 16819 - 20995, -20995),
        products_add(o3, v71, 2446 - 7373, -7373),
    };
    join(v, even, odd, bits);
}

/* The same if the last four are 0. */
INLINE void line4(vec out[8], const vec v[4], int bits)
{
    const struct wide first = scaled(v[0], bits), v2 = mix(v[2], zeros()), v13 = mix(v[1], v[3]);
    const struct wide e2 = products(v2, 4433, 0), e3 = products(v2, 4433 + 6270, 0);
    const struct wide even[4] = {add(first, e3), add(first, e2), sub(first, e2), sub(first, e3)};
    const struct wide odd[4] = {
        products(v13, 12299 - 7373 + 9633 - 3196, 9633),
        products(v13, 9633, 25172 - 20995 + 9633 - 16069),
        products(v13, 9633 - 3196, 9633 - 20995),
        products(v13, 9633 - 7373, 9633 - 16069),
    };
    join(out, even, odd, bits);
}

/* Transposes every lane. */
INLINE void turn(vec v[8])
{
    vec a[8], b[8];
    for (int i = 0; i < 4; i++) {
        a[2 * i] = OP(unpacklo_epi16)(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = OP(unpackhi_epi16)(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            b[4 * i + 2 * k] = OP(unpacklo_epi32)(a[4 * i + k], a[4 * i + 2 + k]);
            b[4 * i + 2 * k + 1] = OP(unpackhi_epi32)(a[4 * i + k], a[4 * i + 2 + k]);
        }
    for (int i = 0; i < 4; i++) {
        v[2 * i] = OP(unpacklo_epi64)(b[i], b[4 + i]);
        v[2 * i + 1] = OP(unpackhi_epi64)(b[i], b[4 + i]);
    }
}

/* Turns columns of 16 bits into rows of 8; two rows share a lane. */
INLINE void to_samples(vec out[4], const vec v[8])
{
    const vec middle = OP(set1_epi8)(-128);
    const vec c02 = OP(packs_epi16)(v[0], v[2]), c13 = OP(packs_epi16)(v[1], v[3]);
    const vec c46 = OP(packs_epi16)(v[4], v[6]), c57 = OP(packs_epi16)(v[5], v[7]);
    const vec c01 = OP(unpacklo_epi8)(c02, c13), c23 = OP(unpackhi_epi8)(c02, c13);
    const vec c45 = OP(unpacklo_epi8)(c46, c57), c67 = OP(unpackhi_epi8)(c46, c57);
    const vec left[2] = {OP(unpacklo_epi16)(c01, c23), OP(unpackhi_epi16)(c01, c23)};
    const vec right[2] = {OP(unpacklo_epi16)(c45, c67), OP(unpackhi_epi16)(c45, c67)};
    for (int i = 0; i < 2; i++) {
        out[2 * i] = OP(add_epi8)(OP(unpacklo_epi32)(left[i], right[i]), middle);
        out[2 * i + 1] = OP(add_epi8)(OP(unpackhi_epi32)(left[i], right[i]), middle);
    }
}

/* ------------------------------------------------------------------ */

struct blocks {
    uint8_t *dst;
    size_t stride;
    const int16_t *coef;
    const uint16_t *q;
};

INLINE void find(const int16_t *block[], const struct blocks *b, const uint8_t *at, int n)
{
    for (int i = 0; i < n; i++)
        block[i] = b->coef + JPEG_BLOCK * (size_t)at[i];
}

/* Whether a value is outside of -8192 to 8191, so that four times the value overflows 16 bits. */
INLINE bool wild(vec first_row)
{
    return any_bits(OP(add_epi16)(first_row, OP(set1_epi16)(8192)), OP(set1_epi16)((short)0xc000));
}

static __attribute__((noinline)) void leave_to_c(const struct blocks *b, const uint8_t *at, int n)
{
    for (int i = 0; i < n; i++)
        jpeg_idct_c(b->dst + 8 * (size_t)at[i], b->stride, b->coef + JPEG_BLOCK * (size_t)at[i], b->q);
}

/* Transforms LANES blocks of any kind. */
INLINE void full(const struct blocks *b, const uint8_t *at)
{
    const int16_t *block[LANES];
    vec v[8], rows[4];
    find(block, b, at, LANES);
    load_full(v, b->q, block);
    if (wild(v[0])) {
        leave_to_c(b, at, LANES);
        return;
    }
    line8(v, COLUMN_BITS);
    turn(v);
    line8(v, ROW_BITS);
    to_samples(rows, v);
    store(b->dst, b->stride, at, rows);
}

/* Transforms 2 * LANES blocks that are in the corner. */
INLINE void corner(const struct blocks *b, const uint8_t *at)
{
    const int16_t *block[2 * LANES];
    vec in[4], v[8];
    find(block, b, at, 2 * LANES);
    load_corner(in, b->q, block);
    if (wild(in[0])) {
        leave_to_c(b, at, 2 * LANES);
        return;
    }
    line4(v, in, COLUMN_BITS);
    turn(v);
    for (int i = 0; i < 2; i++) {
        vec out[8], rows[4];
        line4(out, v + 4 * i, ROW_BITS);
        to_samples(rows, out);
        store(b->dst, b->stride, at + LANES * i, rows);
    }
}

INLINE void flat(const struct blocks *b, size_t at)
{
    const int16_t dc = (int16_t)(4 * (int16_t)(b->coef[JPEG_BLOCK * at] * (int16_t)b->q[0]));
    const int v = (dc + 16) >> 5;
    const uint64_t level = (uint64_t)(uint8_t)((v < -128 ? -128 : v > 127 ? 127 : v) + 128) * 0x0101010101010101u;
    uint8_t *dst = b->dst + 8 * at;
    for (int y = 0; y < 8; y++, dst += b->stride)
        memcpy(dst, &level, sizeof level);
}

/* Pads n to a multiple of `to` by repeating the last. */
INLINE int fill_up(uint8_t *at, int n, int to)
{
    for (; n % to; n++)
        at[n] = at[n - 1];
    return n;
}

INLINE void sorted(const struct blocks *b, const uint8_t *last, size_t n)
{
    uint8_t flats[CHUNK], corners[CHUNK + 2 * LANES], fulls[CHUNK + LANES];
    int n_flat = 0, n_corner = 0, n_full = 0;
    for (size_t i = 0; i < n; i++) {
        flats[n_flat] = corners[n_corner] = fulls[n_full] = (uint8_t)i;
        n_flat += last[i] == 0;
        n_corner += last[i] != 0 && last[i] <= JPEG_CORNER;
        n_full += last[i] > JPEG_CORNER;
    }
    for (int i = 0; i < n_flat; i++)
        flat(b, flats[i]);
    n_corner = fill_up(corners, n_corner, 2 * LANES);
    for (int i = 0; i < n_corner; i += 2 * LANES)
        corner(b, corners + i);
    n_full = fill_up(fulls, n_full, LANES);
    for (int i = 0; i < n_full; i += LANES)
        full(b, fulls + i);
}

INLINE void idct_lanes(uint8_t *dst, size_t stride, const int16_t *coef, const uint8_t *last, size_t n,
                       const uint16_t *q)
{
    for (; n > 0;) {
        const size_t k = n < CHUNK ? n : CHUNK;
        sorted(&(struct blocks){dst, stride, coef, q}, last, k);
        dst += 8 * k;
        coef += JPEG_BLOCK * k;
        last += k;
        n -= k;
    }
}

#endif
