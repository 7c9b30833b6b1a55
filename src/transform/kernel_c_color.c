/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_c_color.c -- kernels of point steps in plain C, with Pillow's arithmetic.
 */
#include <math.h>

#include "transform/kernel.h"

static void table1_u8_c(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t t[256])
{
    for (size_t i = 0; i < n; i++)
        dst[i] = t[src[i]];
}

static void invert_u8_c(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)(255 - src[i]);
}

static void table3_u8_c(uint8_t *dst, const uint8_t *src, int32_t w, const uint8_t t[3][256])
{
    for (int32_t x = 0; x < w; x++, src += 3, dst += 3) {
        dst[0] = t[0][src[0]];
        dst[1] = t[1][src[1]];
        dst[2] = t[2][src[2]];
    }
}

static uint8_t grey_of(const uint8_t *px)
{
    return (uint8_t)((px[0] * 19595u + px[1] * 38470u + px[2] * 7471u + 0x8000u) >> 16);
}

static void grey3_u8_c(uint8_t *dst, const uint8_t *src, int32_t w)
{
    for (int32_t x = 0; x < w; x++, src += 3, dst += 3)
        dst[0] = dst[1] = dst[2] = grey_of(src);
}

static uint8_t blend(int from, int to, float alpha)
{
    const float v = (float)from + alpha * (float)(to - from);
    return (uint8_t)(v <= 0.0f ? 0.0f : v >= 255.0f ? 255.0f : v);
}

static void mix_u8_c(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t w, int32_t rows,
                     float factor)
{
    for (; rows > 0; rows--, dst += dst_stride, src += src_stride)
        for (size_t i = 0; i < 3 * (size_t)w; i += 3) {
            const uint8_t grey = grey_of(src + i);
            for (size_t ch = 0; ch < 3; ch++)
                dst[i + ch] = blend(grey, src[i + ch], factor);
        }
}

static void permute_u8_c(uint8_t *dst, const uint8_t *src, int32_t w, const uint8_t order[3])
{
    for (int32_t x = 0; x < w; x++, src += 3, dst += 3) {
        const uint8_t px[3] = {src[0], src[1], src[2]};
        for (int ch = 0; ch < 3; ch++)
            dst[ch] = px[order[ch]];
    }
}

/* ------------------------------------------------------------------ hue */

struct hsv {
    uint8_t h, s, v;
};

/* Pillow's conversion, with its mixture of float and double. */
static struct hsv to_hsv(const uint8_t *px)
{
    const uint8_t r = px[0], g = px[1], b = px[2];
    const uint8_t most = r > g ? (r > b ? r : b) : (g > b ? g : b);
    const uint8_t least = r < g ? (r < b ? r : b) : (g < b ? g : b);
    if (most == least)
        return (struct hsv){0, 0, most};
    const float range = (float)(most - least), s = range / (float)most;
    const float rc = (float)(most - r) / range, gc = (float)(most - g) / range, bc = (float)(most - b) / range;
    float h;
    if (r == most)
        h = bc - gc;
    else if (g == most)
        h = (float)(2.0 + (double)rc - (double)bc);
    else
        h = (float)(4.0 + (double)gc - (double)rc);
    h = (float)fmod((double)h / 6.0 + 1.0, 1.0);
    return (struct hsv){(uint8_t)((double)h * 255.0), (uint8_t)((double)s * 255.0), most};
}

static void from_hsv(struct hsv in, uint8_t *px)
{
    const double turn = (double)(float)in.h * 6.0 / 255.0;
    const int i = (int)turn; /* 0 to 6 */
    const float f = (float)(turn - (double)(float)i), fs = (float)((double)(float)in.s / 255.0);
    const double v = (double)(float)in.v;
    const uint8_t p = (uint8_t)round(v * (1.0 - (double)fs));
    const uint8_t q = (uint8_t)round(v * (1.0 - (double)(fs * f)));
    const uint8_t t = (uint8_t)round(v * (1.0 - (double)fs * (1.0 - (double)f)));
    const uint8_t rgb[6][3] = {{in.v, t, p}, {q, in.v, p}, {p, in.v, t}, {p, q, in.v}, {t, p, in.v}, {in.v, p, q}};
    for (int ch = 0; ch < 3; ch++)
        px[ch] = in.s == 0 ? in.v : rgb[i % 6][ch];
}

static void hue_u8_c(uint8_t *dst, const uint8_t *src, int32_t w, uint8_t shift)
{
    for (int32_t x = 0; x < w; x++, src += 3, dst += 3) {
        struct hsv c = to_hsv(src);
        c.h = (uint8_t)(c.h + shift);
        from_hsv(c, dst);
    }
}

/* The weights are 5/13 for the byte and 1/13 for each of its eight neighbours. Pillow's floats round like these
 * integers, because a sum is never nearer than 1/26 to a half. */
static void sharpen_u8_c(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, size_t step, size_t n,
                         int32_t rows, float factor)
{
    for (; rows > 0; rows--, dst += dst_stride, src += src_stride)
        for (size_t i = 0; i < n; i++) {
            const uint8_t *up = src + i - src_stride, *at = src + i, *down = src + i + src_stride;
            const int sum = up[0] + up[step] + *(up - step) + at[step] + *(at - step) + down[0] + down[step] +
                            *(down - step) + 5 * at[0];
            dst[i] = blend((2 * sum + 13) / 26, at[0], factor);
        }
}

static void weigh_u8_c(float *sum, const uint8_t *src, size_t n, float weight, bool first)
{
    for (size_t i = 0; i < n; i++)
        sum[i] = first ? weight * (float)src[i] : sum[i] + weight * (float)src[i];
}

static void settle_u8_c(uint8_t *dst, const float *sum, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)(sum[i] <= 0.0f ? 0.0f : sum[i] >= 255.0f ? 255.0f : sum[i]);
}

/* ------------------------------------------------------------------ about the pixels */

static uint64_t sum_u8_c(const uint8_t *src, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += src[i];
    return sum;
}

static void range_u8_c(struct kernel_range *r, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t *low = &r->low[i % RANGE_RUN], *high = &r->high[i % RANGE_RUN];
        *low = src[i] < *low ? src[i] : *low;
        *high = src[i] > *high ? src[i] : *high;
    }
}

void kernels_c_color(struct kernels *k)
{
    k->table1 = table1_u8_c;
    k->invert = invert_u8_c;
    k->table3 = table3_u8_c;
    k->grey3 = grey3_u8_c;
    k->mix = mix_u8_c;
    k->hue = hue_u8_c;
    k->permute = permute_u8_c;
    k->sharpen = sharpen_u8_c;
    k->weigh = weigh_u8_c;
    k->settle = settle_u8_c;
    k->sum = sum_u8_c;
    k->range = range_u8_c;
}
