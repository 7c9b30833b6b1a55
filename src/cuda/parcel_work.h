/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parcel_work.h -- what the threads of the device do to a parcel.
 *
 *     parcel_chunk_*   blocks of coefficients, from the streams of a chunk
 *     parcel_idct      a block, from coefficients to samples
 *     parcel_colour    two pixels, from samples to RGB
 *     parcel_across    a pixel after a pass across, of four rows
 *     parcel_down      a pixel after a pass down
 *
 * nvcc compiles this for the device. A C compiler compiles the same text for tests, which compare it with the decoder
 * and the transform: the C of decode/dct_block.c, decode/jpeg_kernel_c.c and transform/kernel_c.c defines the result.
 *
 * Samples of a parcel: component by component, as rows of samples. Pixels: words with red in the lowest byte.
 */
#ifndef PARCEL_WORK_H
#define PARCEL_WORK_H

#include "cuda/parcel.h"

#ifdef __CUDACC__
#define ON_DEVICE        static __device__ __forceinline__
#define UNROLL           _Pragma("unroll")
#define ONES(v)          __popcll(v)
#define LOWEST(v)        (__ffsll((long long)(v)) - 1)
#define SWAPPED_BYTES(v) __byte_perm(v, 0, 0x0123)
#else
#define ON_DEVICE static inline
#define UNROLL
#define ONES(v)          __builtin_popcountll(v)
#define LOWEST(v)        __builtin_ctzll(v)
#define SWAPPED_BYTES(v) __builtin_bswap32(v)
#endif

/* Four coefficients, or eight samples, at a time. */
typedef uint64_t parcel_eight __attribute__((may_alias));

/* Four neighbouring pixels. */
struct parcel_quad {
    uint32_t v[4];
} __attribute__((aligned(16)));

enum {
    PARCEL_LANES = 96,      /* blocks that the threads of a block expand at a time: of whole chunks */
    PARCEL_PITCH = 68,      /* from block to block near the threads: keeps their accesses apart */
    PARCEL_ROWS = 4,        /* that a thread takes in a pass across */
    PARCEL_STRIP_ROWS = 12, /* at most; a multiple of PARCEL_ROWS, so that no thread has less to do */
    PARCEL_TILE = 1024      /* things that the threads of a block do, if they share nothing */
};

/* ------------------------------------------------------------------ sizes */

/* Blocks of a component, across and down. */
ON_DEVICE uint32_t parcel_columns(const struct parcel *p, int c)
{
    return (uint32_t)(p->across * (c == 0 && p->halves_columns ? 2 : 1));
}
ON_DEVICE uint32_t parcel_rows(const struct parcel *p, int c)
{
    return (uint32_t)(p->down * (c == 0 && p->halves_rows ? 2 : 1));
}

/* The first block of a component; c = components: the count of blocks. */
ON_DEVICE uint32_t parcel_first(const struct parcel *p, int c)
{
    const uint32_t luma = parcel_columns(p, 0) * parcel_rows(p, 0);
    return c == 0 ? 0 : luma + (uint32_t)(c - 1) * parcel_columns(p, 1) * parcel_rows(p, 1);
}

ON_DEVICE uint32_t parcel_chunks_x(const struct parcel *p)
{
    return (uint32_t)(p->across + PARCEL_CHUNK - 1) / PARCEL_CHUNK;
}

ON_DEVICE uint32_t parcel_chunks(const struct parcel *p)
{
    return parcel_chunks_x(p) * (uint32_t)p->down;
}

ON_DEVICE uint32_t parcel_mcu_blocks(const struct parcel *p)
{
    return (uint32_t)((p->halves_columns ? 2 : 1) * (p->halves_rows ? 2 : 1) + p->components - 1);
}

ON_DEVICE uint32_t parcel_chunk_tiles(const struct parcel *p)
{
    const uint32_t n = PARCEL_LANES / (PARCEL_CHUNK * parcel_mcu_blocks(p));
    return (parcel_chunks(p) + n - 1) / n;
}

ON_DEVICE int parcel_has_both(const struct parcel *p)
{
    return p->x.taps && p->y.taps;
}

/* Whether the pass across comes right after colour. */
ON_DEVICE int parcel_begins_across(const struct parcel *p)
{
    return p->x.taps && (!p->y.taps || p->across_first);
}

ON_DEVICE int parcel_begins_down(const struct parcel *p)
{
    return parcel_has_both(p) && !p->across_first;
}

/* Rows of the crop that become pixels together. */
ON_DEVICE uint32_t parcel_strip_rows(const struct parcel *p)
{
    const uint32_t fit = PARCEL_STRIP / (uint32_t)p->crop_w;
    return fit < PARCEL_STRIP_ROWS ? fit : PARCEL_STRIP_ROWS;
}

/* Columns of its words. */
ON_DEVICE uint32_t parcel_width(const struct parcel *p)
{
    return (uint32_t)(parcel_begins_across(p) ? p->out_w : p->crop_w);
}

ON_DEVICE int32_t parcel_clip(int32_t v, int32_t low, int32_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* ------------------------------------------------------------------ coefficients: decode/dct_block.c, decode_one */

ON_DEVICE uint32_t parcel_le16(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}
ON_DEVICE uint32_t parcel_le32(const uint8_t *p)
{
    return parcel_le16(p) | parcel_le16(p + 2) << 16;
}

/* The streams of a chunk. What is read beyond `end` is 0: a damaged chunk gives wrong coefficients, and no more. */
struct parcel_chunk {
    const uint8_t *dc, *rows, *columns, *small, *bytes, *words, *end;
    uint32_t blocks;
    int32_t x, y; /* of its first MCU */
};

/* What its threads find out together about each block. In what follows, the block has lane i, and it is number b of its
 * chunk. */
struct parcel_shares {
    uint64_t mask[PARCEL_LANES];    /* which coefficients it has, without DC */
    uint32_t columns[PARCEL_LANES]; /* bytes of this stream */
    uint32_t small[PARCEL_LANES];
    uint32_t wide[PARCEL_LANES]; /* bytes, and words << 16 */
};

ON_DEVICE uint32_t parcel_byte(const uint8_t *p, const uint8_t *end)
{
    return p < end ? *p : 0;
}

/* What the blocks before it have. */
ON_DEVICE uint32_t parcel_before(const uint32_t *n, uint32_t i, uint32_t b)
{
    uint32_t sum = 0;
    for (uint32_t k = i - b; k < i; k++)
        sum += n[k];
    return sum;
}

ON_DEVICE void parcel_chunk_open(struct parcel_chunk *s, const struct parcel *p, const uint8_t *region, uint32_t chunk)
{
    const uint8_t *index = region + p->components * 128 + 4 * chunk, *at = region + parcel_le32(index);
    s->y = (int32_t)(chunk / parcel_chunks_x(p));
    s->x = (int32_t)(chunk % parcel_chunks_x(p)) * PARCEL_CHUNK;
    const int32_t left = p->across - s->x;
    s->blocks = (uint32_t)(left < PARCEL_CHUNK ? left : PARCEL_CHUNK) * parcel_mcu_blocks(p);
    s->dc = at + 8;
    s->rows = s->dc + 2 * s->blocks;
    s->columns = s->rows + s->blocks;
    s->small = s->columns + parcel_le16(at);
    s->bytes = s->small + parcel_le16(at + 2);
    s->words = s->bytes + parcel_le16(at + 4);
    s->end = region + parcel_le32(index + 4);
}

ON_DEVICE void parcel_chunk_rows(const struct parcel_chunk *s, struct parcel_shares *all, uint32_t i, uint32_t b)
{
    all->columns[i] = (uint32_t)ONES(parcel_byte(s->rows + b, s->end));
}

ON_DEVICE void parcel_chunk_columns(const struct parcel_chunk *s, struct parcel_shares *all, uint32_t i, uint32_t b)
{
    const uint8_t *columns = s->columns + parcel_before(all->columns, i, b);
    uint64_t mask = 0;
    for (uint32_t rows = parcel_byte(s->rows + b, s->end); rows; rows &= rows - 1)
        mask |= (uint64_t)parcel_byte(columns++, s->end) << 8 * LOWEST(rows);
    all->mask[i] = mask;
    all->small[i] = ((uint32_t)ONES(mask) + 1) / 2;
}

/* The next eight codes. */
ON_DEVICE uint32_t parcel_codes_at(const struct parcel_chunk *s, const uint8_t *small)
{
    uint32_t codes = 0;
    UNROLL for (int i = 0; i < 4; i++) codes |= parcel_byte(small + i, s->end) << 8 * i;
    return codes;
}

/* How many of the lowest n codes are 0. */
ON_DEVICE uint32_t parcel_zeros(uint32_t codes, uint32_t n)
{
    const uint32_t some = codes | codes >> 1, any = (some | some >> 2) & 0x11111111;
    return n - (uint32_t)ONES(any & (n < 8 ? (1u << 4 * n) - 1 : ~0u));
}

ON_DEVICE void parcel_chunk_codes(const struct parcel_chunk *s, struct parcel_shares *all, uint32_t i, uint32_t b)
{
    const uint8_t *small = s->small + parcel_before(all->small, i, b);
    const uint32_t n = (uint32_t)ONES(all->mask[i]);
    uint32_t wide = 0;
    for (uint32_t k = 0; k < n; k += 8, small += 4) {
        const uint32_t codes = parcel_codes_at(s, small), left = n - k < 8 ? n - k : 8;
        wide += parcel_zeros(codes ^ 0x88888888, left) + (parcel_zeros(codes, left) << 16);
    }
    all->wide[i] = wide;
}

ON_DEVICE void parcel_clear(int16_t *coef)
{
    parcel_eight *zero = (parcel_eight *)(void *)coef;
    UNROLL for (int i = 0; i < 16; i++) zero[i] = 0;
}

/* Returns whether the block has coefficients below its first row. */
ON_DEVICE int parcel_chunk_block(const struct parcel_chunk *s, const struct parcel_shares *all, const uint16_t *q,
                                 uint32_t i, uint32_t b, int16_t *coef)
{
    const uint8_t *small = s->small + parcel_before(all->small, i, b);
    const uint32_t wide = parcel_before(all->wide, i, b);
    const uint8_t *bytes = s->bytes + (wide & 0xffff), *words = s->words + 2 * (wide >> 16);
    uint32_t n = 0, codes = 0;
    int below = 0;
    parcel_clear(coef);
    for (uint64_t mask = all->mask[i]; mask; mask &= mask - 1, n++, codes >>= 4) {
        if (n % 8 == 0)
            codes = parcel_codes_at(s, small + n / 2);
        const uint32_t code = codes & 15;
        int32_t v = (int32_t)(code ^ 8) - 8;
        if (code == 8)
            v = (int8_t)parcel_byte(bytes++, s->end);
        if (code == 0) {
            v = (int16_t)(parcel_byte(words, s->end) | parcel_byte(words + 1, s->end) << 8);
            words += 2;
        }
        const int at = LOWEST(mask);
        coef[at] = (int16_t)(uint16_t)((int16_t)q[at] * v);
        below |= at >= 8 && v;
    }
    const int32_t dc = (int16_t)(parcel_byte(s->dc + 2 * b, s->end) | parcel_byte(s->dc + 2 * b + 1, s->end) << 8);
    coef[0] = (int16_t)(uint16_t)((int16_t)q[0] * dc);
    return below;
}

/* ------------------------------------------------------------------ samples: decode/jpeg_kernel_c.c, jpeg_idct_c */

ON_DEVICE int32_t parcel_wrap(int32_t v)
{
    return (int16_t)(uint16_t)v;
}

ON_DEVICE uint32_t parcel_products(int32_t a, int32_t ka, int32_t b, int32_t kb)
{
    return (uint32_t)(a * ka) + (uint32_t)(b * kb);
}

ON_DEVICE int32_t parcel_descale(uint32_t v, int bits)
{
    return parcel_clip((int32_t)(v + (1u << (bits - 1))) >> bits, -32768, 32767);
}

/* Transforms eight numbers of 16 bits in place, `step` apart. */
ON_DEVICE void parcel_line(int32_t *v, int step, int bits)
{
    const int32_t i1 = v[step], i2 = v[2 * step], i3 = v[3 * step], i5 = v[5 * step], i6 = v[6 * step],
                  i7 = v[7 * step];
    const uint32_t sum = (uint32_t)(parcel_wrap(v[0] + v[4 * step]) * (1 << 13));
    const uint32_t difference = (uint32_t)(parcel_wrap(v[0] - v[4 * step]) * (1 << 13));
    const uint32_t e2 = parcel_products(i2, 4433, i6, 4433 - 15137), e3 = parcel_products(i2, 4433 + 6270, i6, 4433);
    const uint32_t even[4] = {sum + e3, difference + e2, difference - e2, sum - e3};
    const int32_t z3 = parcel_wrap(i7 + i3), z4 = parcel_wrap(i5 + i1);
    const uint32_t o3 = parcel_products(z3, 9633 - 16069, z4, 9633), o4 = parcel_products(z3, 9633, z4, 9633 - 3196);
    const uint32_t odd[4] = {
        parcel_products(i7, -7373, i1, 12299 - 7373) + o4,
        parcel_products(i5, -20995, i3, 25172 - 20995) + o3,
        parcel_products(i5, 16819 - 20995, i3, -20995) + o4,
        parcel_products(i7, 2446 - 7373, i1, -7373) + o3,
    };
    UNROLL for (int i = 0; i < 4; i++)
    {
        v[i * step] = parcel_descale(even[i] + odd[i], bits);
        v[(7 - i) * step] = parcel_descale(even[i] - odd[i], bits);
    }
}

/* Eight samples of a line. */
ON_DEVICE uint64_t parcel_eight_samples(int32_t *v)
{
    uint64_t line = 0;
    parcel_line(v, 1, 18);
    UNROLL for (int x = 0; x < 8; x++) line |= (uint64_t)(parcel_clip(v[x], -128, 127) + 128) << 8 * x;
    return line;
}

/* coef: products of coefficients and quantisers, aligned to 8. below: there are coefficients below the first row. to:
 * rows of 8 samples, `stride` apart. */
ON_DEVICE void parcel_idct(const int16_t *coef, int below, uint8_t *to, uint32_t stride)
{
    const parcel_eight *in = (const parcel_eight *)(const void *)coef;
    int32_t v[64];
    if (!below) {
        UNROLL for (int i = 0; i < 8; i++) v[i] = parcel_wrap((int16_t)(uint16_t)(in[i / 4] >> 16 * (i % 4)) * 4);
        const uint64_t line = parcel_eight_samples(v);
        UNROLL for (uint32_t y = 0; y < 8; y++) * (parcel_eight *)(void *)(to + (uint64_t)stride * y) = line;
        return;
    }
    UNROLL for (int i = 0; i < 64; i++) v[i] = (int16_t)(uint16_t)(in[i / 4] >> 16 * (i % 4));
    UNROLL for (int x = 0; x < 8; x++) parcel_line(v + x, 8, 11);
    UNROLL for (uint32_t y = 0; y < 8; y++) * (parcel_eight *)(void *)(to + (uint64_t)stride * y) =
        parcel_eight_samples(v + 8 * y);
}

/* The component of block k of an MCU. */
ON_DEVICE int parcel_component(const struct parcel *p, uint32_t k)
{
    const uint32_t luma = parcel_mcu_blocks(p) - (uint32_t)p->components + 1;
    return k < luma ? 0 : (int)(k - luma) + 1;
}

/* Makes the samples of block k of the MCU at column x and row y. */
ON_DEVICE void parcel_samples(const struct parcel *p, const int16_t *coef, int below, uint8_t *samples, int32_t x,
                              int32_t y, uint32_t k)
{
    const uint32_t wide = p->halves_columns ? 2 : 1, high = p->halves_rows ? 2 : 1;
    const int c = parcel_component(p, k);
    const uint32_t row = c ? (uint32_t)y : (uint32_t)y * high + k / wide,
                   column = c ? (uint32_t)x : (uint32_t)x * wide + k % wide, columns = parcel_columns(p, c);
    uint8_t *to = samples + 64 * ((uint64_t)parcel_first(p, c) + (uint64_t)row * columns) + 8 * column;
    parcel_idct(coef, below, to, 8 * columns);
}

/* ------------------------------------------------------------------ pixels: decode/jpeg_kernel_c.c, row_*_c */

/* Chroma of the pixels 2 * pair and 2 * pair + 1 in row y of the image. */
ON_DEVICE void parcel_chroma(const struct parcel *p, const uint8_t *plane, int32_t pair, int32_t y, int32_t *out)
{
    const int32_t stride = 8 * p->across, left = p->left >> (p->halves_columns != 0),
                  top = p->top >> (p->halves_rows != 0);
    const int32_t cy = p->halves_rows ? y >> 1 : y;
    const int32_t ny = p->halves_rows ? parcel_clip(y & 1 ? cy + 1 : cy - 1, 0, ((p->h + 1) >> 1) - 1) : cy;
    const uint8_t *own = plane + (cy - top) * stride - left, *other = plane + (ny - top) * stride - left;
    if (!p->halves_columns) {
        UNROLL for (int k = 0; k < 2; k++)
        {
            const int32_t x = 2 * pair + k;
            out[k] = p->halves_rows ? (3 * own[x] + other[x] + (y & 1 ? 2 : 1)) >> 2 : own[x];
        }
        return;
    }
    const int32_t last = ((p->w + 1) >> 1) - 1, end = left + stride - 1;
    const int32_t before = parcel_clip(pair - 1, left, last),
                  after = parcel_clip(pair + 1, left, last < end ? last : end);
    if (p->halves_rows) {
        const int32_t v = 3 * (3 * own[pair] + other[pair]);
        out[0] = (v + 3 * own[before] + other[before] + 8) >> 4;
        out[1] = (v + 3 * own[after] + other[after] + 7) >> 4;
    } else {
        out[0] = (3 * own[pair] + own[before] + 1) >> 2;
        out[1] = (3 * own[pair] + own[after] + 2) >> 2;
    }
}

ON_DEVICE uint32_t parcel_word(int32_t red, int32_t green, int32_t blue)
{
    return (uint32_t)parcel_clip(red, 0, 255) | (uint32_t)parcel_clip(green, 0, 255) << 8 |
           (uint32_t)parcel_clip(blue, 0, 255) << 16;
}

/* The pixels 2 * pair and 2 * pair + 1 in row y of the image, if they are in the crop: to[0] is its first one. */
ON_DEVICE void parcel_colour(const struct parcel *p, const uint8_t *samples, int32_t pair, int32_t y, uint32_t *to)
{
    const uint8_t *luma = samples + (uint64_t)(uint32_t)(y - p->top) * 8 * parcel_columns(p, 0) - p->left;
    const int32_t half = 1 << 15;
    int32_t cb[2] = {128, 128}, cr[2] = {128, 128};
    if (p->components == 3) {
        parcel_chroma(p, samples + 64 * (uint64_t)parcel_first(p, 1), pair, y, cb);
        parcel_chroma(p, samples + 64 * (uint64_t)parcel_first(p, 2), pair, y, cr);
    }
    UNROLL for (int k = 0; k < 2; k++)
    {
        const int32_t x = 2 * pair + k, b = cb[k] - 128, r = cr[k] - 128, v = luma[x];
        if (x >= p->crop_x && x < p->crop_x + p->crop_w)
            to[x - p->crop_x] = parcel_word(v + ((91881 * r + half) >> 16), v + ((-22554 * b - 46802 * r + half) >> 16),
                                            v + ((116130 * b + half) >> 16));
    }
}

/* ------------------------------------------------------------------ resize: transform/kernel_c.c, across3, down */

/* What is added up for a pixel, from one half on. */
struct parcel_sum {
    int32_t red, green, blue;
};
#define PARCEL_SUM                                                                                                     \
    {                                                                                                                  \
        1 << 21, 1 << 21, 1 << 21                                                                                      \
    }

ON_DEVICE void parcel_add(struct parcel_sum *s, uint32_t pixel, int32_t weight)
{
    s->red += (int32_t)(pixel & 255) * weight;
    s->green += (int32_t)(pixel >> 8 & 255) * weight;
    s->blue += (int32_t)(pixel >> 16 & 255) * weight;
}

ON_DEVICE uint32_t parcel_total(const struct parcel_sum *s)
{
    return parcel_word(s->red >> 22, s->green >> 22, s->blue >> 22);
}

/* The inputs of output i of a pass over n inputs. Weights beyond them are 0. */
struct parcel_inputs {
    const int32_t *weights;
    int32_t first, n;
};

ON_DEVICE struct parcel_inputs parcel_inputs(const struct parcel_pass *t, const uint8_t *body, int32_t n, uint32_t i)
{
    struct parcel_inputs in;
    in.first = ((const int32_t *)(const void *)(body + t->first))[i];
    in.weights = (const int32_t *)(const void *)(body + t->weights) + (uint64_t)i * (uint32_t)t->taps;
    in.n = t->taps < n - in.first ? t->taps : n - in.first;
    return in;
}

/* Column x after the pass across, of at most PARCEL_ROWS rows. */
ON_DEVICE void parcel_across(const struct parcel *p, const uint8_t *body, const uint32_t *from, uint32_t x,
                             int32_t rows, uint32_t *to)
{
    const struct parcel_inputs in = parcel_inputs(&p->x, body, p->crop_w, x);
    struct parcel_sum sums[PARCEL_ROWS] = {PARCEL_SUM, PARCEL_SUM, PARCEL_SUM, PARCEL_SUM};
    for (int32_t k = 0; k < in.n; k++) {
        const uint32_t *at = from + in.first + k;
        UNROLL for (int r = 0; r < PARCEL_ROWS; r++)
            parcel_add(&sums[r], at[r < rows ? r * p->crop_w : 0], in.weights[k]);
    }
    UNROLL for (int r = 0; r < PARCEL_ROWS; r++) if (r < rows) to[r * p->out_w + (int32_t)x] = parcel_total(&sums[r]);
}

/* Column x after the pass across, of one row. */
ON_DEVICE uint32_t parcel_across_one(const struct parcel *p, const uint8_t *body, const uint32_t *from, uint32_t x)
{
    const struct parcel_inputs in = parcel_inputs(&p->x, body, p->crop_w, x);
    struct parcel_sum sum = PARCEL_SUM;
    for (int32_t k = 0; k < in.n; k++)
        parcel_add(&sum, from[in.first + k], in.weights[k]);
    return parcel_total(&sum);
}

/* Four columns at a time: quad `from` of each row, whose rows have w quads. */
ON_DEVICE struct parcel_quad parcel_down_quad(const struct parcel *p, const uint8_t *body,
                                              const struct parcel_quad *from, uint32_t w, uint32_t y)
{
    const struct parcel_inputs in = parcel_inputs(&p->y, body, p->crop_h, y);
    struct parcel_sum sums[4] = {PARCEL_SUM, PARCEL_SUM, PARCEL_SUM, PARCEL_SUM};
    struct parcel_quad out;
    for (int32_t k = 0; k < in.n; k++) {
        const struct parcel_quad px = from[(uint64_t)(uint32_t)(in.first + k) * w];
        UNROLL for (int i = 0; i < 4; i++) parcel_add(&sums[i], px.v[i], in.weights[k]);
    }
    UNROLL for (int i = 0; i < 4; i++) out.v[i] = parcel_total(&sums[i]);
    return out;
}

/* Column x and row y after the pass down, of an image w pixels wide. */
ON_DEVICE uint32_t parcel_down(const struct parcel *p, const uint8_t *body, const uint32_t *from, uint32_t w,
                               uint32_t x, uint32_t y)
{
    const struct parcel_inputs in = parcel_inputs(&p->y, body, p->crop_h, y);
    struct parcel_sum sum = PARCEL_SUM;
    for (int32_t k = 0; k < in.n; k++)
        parcel_add(&sum, from[(uint64_t)(uint32_t)(in.first + k) * w + x], in.weights[k]);
    return parcel_total(&sum);
}

#endif
