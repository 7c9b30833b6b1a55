/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parcel_work.h -- what one thread of the device does to a parcel.
 *
 *     parcel_expand    a chunk of coefficients, from its streams to blocks
 *     parcel_idct      a block, from coefficients to samples
 *     parcel_colour    a pixel of the crop, from samples to RGB
 *     parcel_between   a pixel after the first of two passes of a resize
 *     parcel_finish    a pixel of the row
 *
 * nvcc compiles this for the device. A C compiler compiles the same text for tests, which compare it with the decoder
 * and the transform: the C of decode/dct_block.c, decode/jpeg_kernel_c.c and transform/kernel_c.c defines the result.
 *
 * Memory of a parcel: blocks of 64 coefficients, component by component, each as rows of blocks; then samples in the
 * same order as rows of samples; then pixels of 3 bytes.
 */
#ifndef PARCEL_WORK_H
#define PARCEL_WORK_H

#include "cuda/parcel.h"

#ifdef __CUDACC__
#define ON_DEVICE    static __device__ __forceinline__
#define UNROLL       _Pragma("unroll")
#define PARCEL_TABLE static __device__ const
#else
#define ON_DEVICE static inline
#define UNROLL
#define PARCEL_TABLE static const
#endif

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

/* The first block of a component; of the one after the last: how many blocks there are. */
ON_DEVICE uint32_t parcel_first(const struct parcel *p, int c)
{
    const uint32_t luma = parcel_columns(p, 0) * parcel_rows(p, 0);
    return c == 0 ? 0 : luma + (uint32_t)(c - 1) * parcel_columns(p, 1) * parcel_rows(p, 1);
}

ON_DEVICE uint32_t parcel_chunks(const struct parcel *p)
{
    return (uint32_t)((p->across + PARCEL_CHUNK - 1) / PARCEL_CHUNK * p->down);
}

ON_DEVICE int parcel_has_both(const struct parcel *p)
{
    return p->x.taps && p->y.taps;
}

/* Pixels between the passes. */
ON_DEVICE uint32_t parcel_between_pixels(const struct parcel *p)
{
    if (!parcel_has_both(p))
        return 0;
    return (uint32_t)(p->across_first ? p->out_w * p->crop_h : p->crop_w * p->out_h);
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
struct parcel_streams {
    const uint8_t *dc, *rows, *columns, *small, *bytes, *words, *end;
};

ON_DEVICE uint32_t parcel_byte(const uint8_t *p, const uint8_t *end)
{
    return p < end ? *p : 0;
}

ON_DEVICE int16_t parcel_value(struct parcel_streams *s, uint32_t code)
{
    int32_t v = (int32_t)(code ^ 8) - 8;
    if (code == 8)
        v = (int8_t)parcel_byte(s->bytes++, s->end);
    if (code == 0) {
        v = (int16_t)(parcel_byte(s->words, s->end) | parcel_byte(s->words + 1, s->end) << 8);
        s->words += 2;
    }
    return (int16_t)v;
}

ON_DEVICE void parcel_block(struct parcel_streams *s, int16_t *coef)
{
    uint64_t *zero = (uint64_t *)(void *)coef;
    UNROLL for (int i = 0; i < 16; i++) zero[i] = 0;
    uint32_t n = 0, codes = 0;
    const uint32_t rows = parcel_byte(s->rows++, s->end);
    for (int y = 0; y < 8; y++) {
        if (!(rows >> y & 1))
            continue;
        const uint32_t columns = parcel_byte(s->columns++, s->end);
        for (int x = 0; x < 8; x++) {
            if (!(columns >> x & 1))
                continue;
            if (n % 2 == 0)
                codes = parcel_byte(s->small++, s->end);
            coef[8 * y + x] = parcel_value(s, codes & 15);
            codes >>= 4;
            n++;
        }
    }
    coef[0] = (int16_t)(parcel_byte(s->dc, s->end) | parcel_byte(s->dc + 1, s->end) << 8);
    s->dc += 2;
}

ON_DEVICE void parcel_expand(const struct parcel *p, const uint8_t *body, int16_t *coef, uint32_t chunk)
{
    const uint8_t *index = body + p->components * 128 + 4 * chunk;
    const uint8_t *at = body + parcel_le32(index);
    const uint32_t chunks_x = (uint32_t)(p->across + PARCEL_CHUNK - 1) / PARCEL_CHUNK;
    const int32_t y = (int32_t)(chunk / chunks_x), x = (int32_t)(chunk % chunks_x) * PARCEL_CHUNK;
    const int32_t left = p->across - x, mcus = left < PARCEL_CHUNK ? left : PARCEL_CHUNK;
    const int32_t wide = p->halves_columns ? 2 : 1, high = p->halves_rows ? 2 : 1;
    const uint32_t blocks = (uint32_t)(mcus * (wide * high + p->components - 1));
    struct parcel_streams s;
    s.dc = at + 8;
    s.rows = s.dc + 2 * blocks;
    s.columns = s.rows + blocks;
    s.small = s.columns + parcel_le16(at);
    s.bytes = s.small + parcel_le16(at + 2);
    s.words = s.bytes + parcel_le16(at + 4);
    s.end = body + parcel_le32(index + 4);
    for (int32_t m = x; m < x + mcus; m++)
        for (int c = 0; c < p->components; c++) {
            const int32_t h = c ? 1 : wide, v = c ? 1 : high;
            for (int32_t i = 0; i < v * h; i++) {
                const int32_t row = y * v + i / h, column = m * h + i % h;
                const uint32_t block = parcel_first(p, c) + (uint32_t)row * parcel_columns(p, c) + (uint32_t)column;
                parcel_block(&s, coef + (uint64_t)block * 64);
            }
        }
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

/* Which component a block belongs to; *block becomes its index there. */
ON_DEVICE int parcel_component(const struct parcel *p, uint32_t *block)
{
    int c = 0;
    for (int next = 1; next < p->components; next++)
        c = *block >= parcel_first(p, next) ? next : c;
    *block -= parcel_first(p, c);
    return c;
}

ON_DEVICE void parcel_idct(const struct parcel *p, const uint8_t *body, const int16_t *coef, uint8_t *samples,
                           uint32_t block)
{
    const uint64_t *in = (const uint64_t *)(const void *)(coef + (uint64_t)block * 64);
    const int c = parcel_component(p, &block);
    const uint16_t *q = (const uint16_t *)(const void *)(body + 128 * c);
    int32_t v[64];
    uint64_t rest = 0;
    UNROLL for (int i = 0; i < 16; i++)
    {
        const uint64_t four = in[i];
        rest |= i >= 2 ? four : 0;
        UNROLL for (int k = 0; k < 4; k++) v[4 * i + k] =
            parcel_wrap((int16_t)q[4 * i + k] * (int16_t)(uint16_t)(four >> 16 * k));
    }
    if (rest == 0) {
        UNROLL for (int i = 63; i >= 0; i--) v[i] = parcel_wrap(v[i % 8] * 4);
    } else {
        UNROLL for (int x = 0; x < 8; x++) parcel_line(v + x, 8, 11);
    }
    const uint32_t columns = parcel_columns(p, c), row = block / columns, column = block % columns;
    uint8_t *to = samples + 64 * (uint64_t)parcel_first(p, c) + 64 * (uint64_t)row * columns + 8 * column;
    UNROLL for (int y = 0; y < 8; y++)
    {
        uint64_t line = 0;
        parcel_line(v + 8 * y, 1, 18);
        UNROLL for (int x = 0; x < 8; x++) line |= (uint64_t)(parcel_clip(v[8 * y + x], -128, 127) + 128) << 8 * x;
        *(uint64_t *)(void *)(to + 8 * (uint64_t)columns * (uint32_t)y) = line;
    }
}

/* ------------------------------------------------------------------ pixels: decode/jpeg_kernel_c.c, row_*_c */

/* Chroma at column x and row y of the image. */
ON_DEVICE int32_t parcel_chroma(const struct parcel *p, const uint8_t *plane, int32_t x, int32_t y)
{
    const int32_t stride = 8 * p->across, left = p->left >> (p->halves_columns != 0),
                  top = p->top >> (p->halves_rows != 0);
    const int32_t cx = p->halves_columns ? x >> 1 : x, cy = p->halves_rows ? y >> 1 : y;
    const int32_t last_x = ((p->w + 1) >> 1) - 1, last_y = ((p->h + 1) >> 1) - 1;
    const int32_t nx = parcel_clip(x & 1 ? cx + 1 : cx - 1, 0, last_x),
                  ny = parcel_clip(y & 1 ? cy + 1 : cy - 1, 0, last_y);
    const uint8_t *own = plane + (cy - top) * stride - left, *other = plane + (ny - top) * stride - left;
    if (p->halves_columns && p->halves_rows)
        return (3 * (3 * own[cx] + other[cx]) + 3 * own[nx] + other[nx] + (x & 1 ? 7 : 8)) >> 4;
    if (p->halves_columns)
        return (3 * own[cx] + own[nx] + (x & 1 ? 2 : 1)) >> 2;
    if (p->halves_rows)
        return (3 * own[cx] + other[cx] + (y & 1 ? 2 : 1)) >> 2;
    return own[cx];
}

ON_DEVICE void parcel_colour(const struct parcel *p, const uint8_t *samples, uint8_t *rgb, uint32_t pixel)
{
    const int32_t x = p->crop_x + (int32_t)(pixel % (uint32_t)p->crop_w),
                  y = p->crop_y + (int32_t)(pixel / (uint32_t)p->crop_w);
    const uint8_t *to_luma = samples + (uint64_t)(y - p->top) * 8 * parcel_columns(p, 0);
    const int32_t luma = to_luma[x - p->left], half = 1 << 15;
    int32_t cb = 0, cr = 0;
    if (p->components == 3) {
        cb = parcel_chroma(p, samples + 64 * (uint64_t)parcel_first(p, 1), x, y) - 128;
        cr = parcel_chroma(p, samples + 64 * (uint64_t)parcel_first(p, 2), x, y) - 128;
    }
    rgb += 3 * (uint64_t)pixel;
    rgb[0] = (uint8_t)parcel_clip(luma + ((91881 * cr + half) >> 16), 0, 255);
    rgb[1] = (uint8_t)parcel_clip(luma + ((-22554 * cb - 46802 * cr + half) >> 16), 0, 255);
    rgb[2] = (uint8_t)parcel_clip(luma + ((116130 * cb + half) >> 16), 0, 255);
}

/* ------------------------------------------------------------------ resize: transform/kernel_c.c, across3, down */

/* Output i of a pass, over `n` inputs that are `step` bytes apart. */
ON_DEVICE void parcel_taps(const struct parcel_pass *t, const uint8_t *body, const uint8_t *in, uint64_t step,
                           int32_t n, int32_t i, uint8_t *out)
{
    const int32_t *first = (const int32_t *)(const void *)(body + t->first),
                  *weights = (const int32_t *)(const void *)(body + t->weights) + (uint64_t)i * (uint32_t)t->taps;
    const int32_t taps = t->taps < n ? t->taps : n;
    int32_t r = 1 << 21, g = r, b = r;
    in += (uint32_t)first[i] * step;
    for (int32_t k = 0; k < taps; k++, in += step) {
        r += in[0] * weights[k];
        g += in[1] * weights[k];
        b += in[2] * weights[k];
    }
    out[0] = (uint8_t)parcel_clip(r >> 22, 0, 255);
    out[1] = (uint8_t)parcel_clip(g >> 22, 0, 255);
    out[2] = (uint8_t)parcel_clip(b >> 22, 0, 255);
}

ON_DEVICE void parcel_across(const struct parcel *p, const uint8_t *body, const uint8_t *line, int32_t x, uint8_t *out)
{
    parcel_taps(&p->x, body, line, 3, p->crop_w, x, out);
}

/* Column x of an image w pixels wide. */
ON_DEVICE void parcel_down(const struct parcel *p, const uint8_t *body, const uint8_t *image, int32_t w, int32_t x,
                           int32_t y, uint8_t *out)
{
    parcel_taps(&p->y, body, image + 3 * x, 3 * (uint64_t)(uint32_t)w, p->crop_h, y, out);
}

ON_DEVICE void parcel_between(const struct parcel *p, const uint8_t *body, const uint8_t *rgb, uint8_t *between,
                              uint32_t pixel)
{
    const uint32_t w = (uint32_t)(p->across_first ? p->out_w : p->crop_w);
    const int32_t x = (int32_t)(pixel % w), y = (int32_t)(pixel / w);
    uint8_t *out = between + 3 * (uint64_t)pixel;
    if (p->across_first)
        parcel_across(p, body, rgb + 3 * (uint64_t)(uint32_t)y * (uint32_t)p->crop_w, x, out);
    else
        parcel_down(p, body, rgb, p->crop_w, x, y, out);
}

/* The last pass, or the only one, or none. A row that is finished is copied. */
ON_DEVICE void parcel_finish(const struct parcel *p, const uint8_t *body, const uint8_t *rgb, const uint8_t *between,
                             uint8_t *row, uint32_t pixel)
{
    if (p->kind == PARCEL_PIXELS) {
        UNROLL for (uint32_t c = 0; c < 3; c++) row[3 * (uint64_t)pixel + c] = body[3 * (uint64_t)pixel + c];
        return;
    }
    const int32_t x = (int32_t)(pixel % (uint32_t)p->out_w), y = (int32_t)(pixel / (uint32_t)p->out_w);
    const uint8_t *from = parcel_has_both(p) ? between : rgb;
    const int32_t to_x = p->flip_x ? p->out_w - 1 - x : x, to_y = p->flip_y ? p->out_h - 1 - y : y;
    uint8_t *out = row + 3 * ((uint64_t)(uint32_t)to_y * (uint32_t)p->out_w + (uint32_t)to_x);
    if (p->x.taps && (!p->y.taps || !p->across_first)) {
        parcel_across(p, body, from + 3 * (uint64_t)(uint32_t)y * (uint32_t)p->crop_w, x, out);
    } else if (p->y.taps) {
        parcel_down(p, body, from, p->x.taps ? p->out_w : p->crop_w, x, y, out);
    } else {
        UNROLL for (uint32_t c = 0; c < 3; c++) out[c] = rgb[3 * (uint64_t)pixel + c];
    }
}

#endif
