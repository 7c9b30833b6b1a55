/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_trip.c -- pixels to planes, blocks there and back, planes to pixels.
 *
 * Where the image ends within a block, libjpeg repeats its last column and line; the chroma of lines below the image is
 * that of the last line of chroma.
 */
#include "transform/jpeg_trip.h"

#include <string.h>

#include "base/size.h"
#include "transform/jpeg_trip_loops.h"
#include "transform/kernel.h"

/* Annex K of the standard, line by line. */
static const uint8_t standard[2][64] = {
    {16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
     69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
     81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99},
    {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
     99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}};

/* jpeg_quality_scaling, and the reciprocals of jcdctmgr.c, which give the same as a division. */
static void table_init(struct trip_table *t, const uint8_t from[64], int quality)
{
    const int32_t scale = quality < 50 ? 5000 / quality : 200 - 2 * quality;
    for (int i = 0; i < 64; i++) {
        const int32_t scaled = (from[i] * scale + 50) / 100, v = scaled < 1 ? 1 : scaled > 255 ? 255 : scaled;
        const uint32_t divisor = (uint32_t)v * 8;
        uint32_t bits = 0;
        while (divisor >> (bits + 1))
            bits++;
        const uint32_t shift = 16 + bits, rest = (1u << shift) % divisor;
        t->value[i] = v;
        t->shift[i] = shift;
        t->factor[i] = (1u << shift) / divisor + (rest > divisor / 2);
        t->round[i] = divisor / 2 + (rest > 0 && rest <= divisor / 2);
    }
}

static int32_t blocks(int32_t n)
{
    return (n + 7) / 8 * 8;
}

/* The planes, if `room` is not NULL; the size of the room in bytes. */
static size_t lay(struct trip *t, int32_t w, int32_t h, int channels, uint8_t *room)
{
    const int32_t half_w = (w + 1) / 2, half_h = (h + 1) / 2;
    size_t total = 0;
    for (int i = 0; i < (channels == 3 ? 3 : 1); i++) {
        struct trip_plane p = {.real_w = i ? half_w : w, .real_h = i ? half_h : h};
        p.w = blocks(p.real_w);
        p.h = blocks(p.real_h);
        p.stride = (size_t)p.w;
        if (room) {
            p.px = room + total;
            t->plane[i] = p;
        }
        total = size_add(total, size_mul(p.stride, (size_t)p.h));
    }
    const size_t line = 2 * (size_t)blocks(half_w);
    for (int i = 0; i < 4 && room; i++)
        t->lines[i] = room + total + (size_t)i * line;
    return size_add(total, 4 * line);
}

size_t trip_room(int32_t w, int32_t h, int channels)
{
    return lay(NULL, w, h, channels, NULL);
}

/* ------------------------------------------------------------------ to planes */

/* Repeats the last pixel to the right, up to `end`. */
static void fill_right(uint8_t *line, int32_t w, int32_t end)
{
    memset(line + w, line[w - 1], (size_t)(end - w));
}

static void fill_below(const struct trip_plane *p)
{
    const uint8_t *last = p->px + (size_t)(p->real_h - 1) * p->stride;
    for (int32_t y = p->real_h; y < p->h; y++)
        memcpy(p->px + (size_t)y * p->stride, last, p->stride);
}

/* The chroma of two lines is kept at full width until both are there. */
static void split_colors(const struct kernels *k, const struct trip *t, const struct image *in)
{
    const struct trip_plane *l = &t->plane[0];
    for (int32_t y = 0; y < in->h; y++) {
        uint8_t *to = l->px + (size_t)y * l->stride, *cb = t->lines[y % 2], *cr = t->lines[2 + y % 2];
        const int32_t wide = 2 * t->plane[1].w;
        k->trip.split(to, cb, cr, in->px + (size_t)y * in->stride, in->w);
        fill_right(to, in->w, l->w);
        fill_right(cb, in->w, wide);
        fill_right(cr, in->w, wide);
        if (y % 2 == 0 && y + 1 < in->h)
            continue;
        for (int i = 0; i < 2; i++) {
            const struct trip_plane *p = &t->plane[i + 1];
            k->trip.halve(p->px + (size_t)(y / 2) * p->stride, t->lines[2 * i], t->lines[2 * i + y % 2], p->w);
        }
    }
}

void trip_begin(const struct kernels *k, struct trip *t, const struct image *in, int quality, void *room)
{
    lay(t, in->w, in->h, in->channels, room);
    t->channels = in->channels;
    table_init(&t->table[0], standard[0], quality);
    table_init(&t->table[1], standard[1], quality);
    if (in->channels == 3)
        split_colors(k, t, in);
    for (int32_t y = 0; y < in->h && in->channels == 1; y++) {
        uint8_t *to = t->plane[0].px + (size_t)y * t->plane[0].stride;
        memcpy(to, in->px + (size_t)y * in->stride, (size_t)in->w);
        fill_right(to, in->w, t->plane[0].w);
    }
    for (int i = 0; i < (in->channels == 3 ? 3 : 1); i++) {
        const struct trip_plane *p = &t->plane[i];
        fill_below(p);
        for (int32_t y = 0; y < p->h; y += 8)
            k->trip.blocks(p->px + (size_t)y * p->stride, p->stride, p->w / 8, &t->table[i > 0]);
    }
}

/* ------------------------------------------------------------------ to pixels */

void trip_line(const struct kernels *k, const struct trip *t, int32_t y, int32_t x, int32_t n, uint8_t *dst)
{
    const uint8_t *line = t->plane[0].px + (size_t)y * t->plane[0].stride + x;
    if (t->channels == 1) {
        memcpy(dst, line, (size_t)n);
        return;
    }
    const int32_t near = y / 2, beside = y % 2 ? near + 1 : near - 1, last = t->plane[1].real_h - 1;
    const int32_t far = beside < 0 ? 0 : beside > last ? last : beside;
    for (int i = 0; i < 2; i++) {
        const struct trip_plane *p = &t->plane[i + 1];
        k->trip.widen(t->lines[i], p->px + (size_t)near * p->stride, p->px + (size_t)far * p->stride, p->real_w);
    }
    k->trip.join(dst, line, t->lines[0] + x, t->lines[1] + x, n);
}

/* ------------------------------------------------------------------ the kernels in C */

static void gather_c(int32_t d[64], const uint8_t *px, size_t stride)
{
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            d[8 * x + y] = px[(size_t)y * stride + (size_t)x] - 128;
}

static void transpose_c(int32_t d[64])
{
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++) {
            const int32_t swap = d[8 * i + k];
            d[8 * i + k] = d[8 * k + i];
            d[8 * k + i] = swap;
        }
}

static uint8_t clip(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void put_c(uint8_t *px, size_t stride, const int32_t d[64])
{
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            px[(size_t)y * stride + (size_t)x] = clip(d[8 * x + y] + 128);
}

static void blocks_c(uint8_t *px, size_t stride, int32_t n, const struct trip_table *t)
{
    trip_blocks(px, stride, n, t, (struct trip_moves){gather_c, transpose_c, put_c});
}

static void split_c(uint8_t *luma, uint8_t *cb, uint8_t *cr, const uint8_t *p, int32_t w)
{
    trip_split(luma, cb, cr, p, w);
}

static void halve_c(uint8_t *dst, const uint8_t *a, const uint8_t *b, int32_t n)
{
    trip_halve(dst, a, b, n);
}

static void widen_c(uint8_t *dst, const uint8_t *near, const uint8_t *far, int32_t n)
{
    trip_widen(dst, near, far, n);
}

static void join_c(uint8_t *dst, const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, int32_t n)
{
    trip_join(dst, luma, cb, cr, n);
}

void kernels_c_trip(struct kernels *k)
{
    k->trip = (struct trip_kernels){blocks_c, split_c, halve_c, widen_c, join_c};
}
