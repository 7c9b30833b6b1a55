/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_color.h -- kernels of point steps as loops that compilers vectorise, for kernel_avx2_color.c and
 * kernel_vbmi_color.c. These define split() and join(), which convert between pixels and planes.
 *
 * Loops have no branches and no conditional operation on floats. The conversions between RGB and HSV use shorter
 * formulas than Pillow's, which give the same for all colours: tests/kernel/ tries them.
 */
#ifndef KERNEL_COLOR_H
#define KERNEL_COLOR_H

#include <string.h>

#include "transform/kernel.h"

#define INLINE static inline __attribute__((always_inline))

enum { RUN = 64 };

struct planes {
    uint8_t at[3][RUN];
};

INLINE void split(struct planes *p, const uint8_t *src);
INLINE void join(uint8_t *dst, const struct planes *p);

/* Calls body for runs of pixels; the last run goes through a buffer. dst may be src. */
#define RUNS(dst, src, w, body)                                                                                        \
    do {                                                                                                               \
        struct planes p;                                                                                               \
        uint8_t rest[3 * RUN];                                                                                         \
        for (; w >= RUN; w -= RUN, src += 3 * RUN, dst += 3 * RUN) {                                                   \
            split(&p, src);                                                                                            \
            body;                                                                                                      \
            join(dst, &p);                                                                                             \
        }                                                                                                              \
        if (w > 0) {                                                                                                   \
            memset(rest, 0, sizeof rest);                                                                              \
            memcpy(rest, src, 3 * (size_t)w);                                                                          \
            split(&p, rest);                                                                                           \
            body;                                                                                                      \
            join(rest, &p);                                                                                            \
            memcpy(dst, rest, 3 * (size_t)w);                                                                          \
        }                                                                                                              \
    } while (0)

/* The same as kernel_c_color.c's blend for every byte of a run. */
INLINE void blend_run(uint8_t *dst, const uint8_t *from, const uint8_t *to, float alpha);

INLINE void grey_run(uint8_t *restrict grey, const struct planes *p)
{
    for (int i = 0; i < RUN; i++)
        grey[i] = (uint8_t)((p->at[0][i] * 19595 + p->at[1][i] * 38470 + p->at[2][i] * 7471 + 0x8000) >> 16);
}

INLINE void grey3_run(struct planes *p)
{
    uint8_t grey[RUN];
    grey_run(grey, p);
    for (int ch = 0; ch < 3; ch++)
        memcpy(p->at[ch], grey, RUN);
}

INLINE void mix_run(struct planes *p, float alpha)
{
    uint8_t grey[RUN];
    grey_run(grey, p);
    for (int ch = 0; ch < 3; ch++)
        blend_run(p->at[ch], grey, p->at[ch], alpha);
}

INLINE int least(int a, int b)
{
    return a < b ? a : b;
}

INLINE int most(int a, int b)
{
    return a > b ? a : b;
}

struct rgb {
    int32_t r, g, b;
};

/*
 * With the share t of the middle channel, the hue in sixths of a turn is a + t or a - t. In the sector of the new hue,
 * one channel is v, one is `low`, and one between them.
 */
INLINE struct rgb turn(int32_t r, int32_t g, int32_t b, int32_t shift)
{
    const int32_t v = most(r, most(g, b)), bottom = least(r, least(g, b)), range = v - bottom;
    const int32_t in_red = r == v, in_green = (g == v) & ~in_red, in_blue = 1 - in_red - in_green;
    const int32_t up = (in_red & (g == bottom)) | (in_green & (b == bottom)) | (in_blue & (r == bottom));
    /* red: 1 - t, or -1 + t; green: 3 - t, or 1 + t; blue: 5 - t, or 3 + t */
    const float base = (float)(1 + 2 * in_green + 4 * in_blue - 2 * up);
    const float t = (float)(2 * v + bottom - r - g - b) / (float)most(range, 1);
    const float x = base + (float)(2 * up - 1) * t;
    const int32_t below = (int32_t)(x + 1.0f) < 1; /* x is negative: then it is at least -1, and t is not 1 */
    const int32_t hue = (int32_t)((x / 6.0f + (float)below) * 255.0f) & -(range != 0);
    const int32_t s = (int32_t)((float)range / (float)most(v, 1) * 255.0f);
    const int32_t six = ((hue + shift) & 255) * 6, sector = (six * 257 + 257) >> 16, part = six - 255 * sector;
    const int32_t odd = sector & 1, share = 255 * (1 - odd) + (2 * odd - 1) * part;
    const int32_t between = (int32_t)((float)(v * (65025 - s * share)) * (1.0f / 65025.0f) + 0.5f);
    const int32_t plain = v * (255 - s) + 128, low = (plain + (plain >> 8)) >> 8;
    /* Bit i of a constant: whether the channel is v, or low, in sector i. */
    return (struct rgb){
        between + ((v - between) & -(0x61 >> sector & 1)) + ((low - between) & -(0x0c >> sector & 1)),
        between + ((v - between) & -(0x06 >> sector & 1)) + ((low - between) & -(0x30 >> sector & 1)),
        between + ((v - between) & -(0x18 >> sector & 1)) + ((low - between) & -(0x43 >> sector & 1)),
    };
}

INLINE void turn_bytes(struct planes *p, int32_t shift)
{
    for (int i = 0; i < RUN; i++) {
        const struct rgb c = turn(p->at[0][i], p->at[1][i], p->at[2][i], shift);
        p->at[0][i] = (uint8_t)c.r;
        p->at[1][i] = (uint8_t)c.g;
        p->at[2][i] = (uint8_t)c.b;
    }
}

/* For compilers that do not vectorise loops with both bytes and floats. */
INLINE void turn_words(struct planes *p, int32_t shift)
{
    int32_t at[3][RUN];
    for (int ch = 0; ch < 3; ch++)
        for (int i = 0; i < RUN; i++)
            at[ch][i] = p->at[ch][i];
    for (int i = 0; i < RUN; i++) {
        const struct rgb c = turn(at[0][i], at[1][i], at[2][i], shift);
        at[0][i] = c.r;
        at[1][i] = c.g;
        at[2][i] = c.b;
    }
    for (int ch = 0; ch < 3; ch++)
        for (int i = 0; i < RUN; i++)
            p->at[ch][i] = (uint8_t)at[ch][i];
}

INLINE void permute_run(struct planes *p, const uint8_t order[3])
{
    const struct planes from = *p;
    for (int ch = 0; ch < 3; ch++)
        memcpy(p->at[ch], from.at[order[ch]], RUN);
}

/* (2 * sum + 13) / 26 by a product, for sums up to 13 * 255. */
INLINE void smooth_run(uint8_t *restrict dst, const uint8_t *restrict up, const uint8_t *restrict at,
                       const uint8_t *restrict down, size_t step)
{
    for (size_t i = 0; i < RUN; i++) {
        const uint16_t sum = (uint16_t)(up[i] + up[i + step] + up[i - step] + at[i + step] + at[i - step] + down[i] +
                                        down[i + step] + down[i - step] + 5 * at[i]);
        dst[i] = (uint8_t)((uint16_t)((uint32_t)(uint16_t)(2 * sum + 13) * 40330u >> 16) >> 4);
    }
}

/* The bytes of the last run go through a buffer. */
INLINE void sharpen_bytes(uint8_t *dst, const uint8_t *src, size_t stride, size_t step, size_t n, float factor)
{
    uint8_t smooth[RUN], rest[RUN] = {0}, out[RUN];
    for (; n >= RUN; n -= RUN, src += RUN, dst += RUN) {
        smooth_run(smooth, src - stride, src, src + stride, step);
        blend_run(dst, smooth, src, factor);
    }
    memset(smooth, 0, sizeof smooth);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *up = src + i - stride, *at = src + i, *down = src + i + stride;
        const int sum = up[0] + up[step] + *(up - step) + at[step] + *(at - step) + down[0] + down[step] +
                        *(down - step) + 5 * at[0];
        smooth[i] = (uint8_t)((2 * sum + 13) / 26);
    }
    memcpy(rest, src, n);
    blend_run(out, smooth, rest, factor);
    memcpy(dst, out, n);
}

INLINE uint64_t sum_bytes(const uint8_t *src, size_t n)
{
    uint64_t all = 0;
    while (n > 0) {
        const size_t some = n < 4096 ? n : 4096;
        uint32_t sum = 0;
        for (size_t i = 0; i < some; i++)
            sum += src[i];
        all += sum;
        src += some;
        n -= some;
    }
    return all;
}

INLINE void weigh_bytes(float *restrict sum, const uint8_t *restrict src, size_t n, float weight, bool first)
{
    if (first)
        for (size_t i = 0; i < n; i++)
            sum[i] = weight * (float)(int32_t)src[i];
    else
        for (size_t i = 0; i < n; i++)
            sum[i] += weight * (float)(int32_t)src[i];
}

INLINE void settle_bytes(uint8_t *restrict dst, const float *restrict sum, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int32_t v = (int32_t)sum[i];
        dst[i] = (uint8_t)least(most(v, 0), 255);
    }
}

/* Functions of the table of kernels, with the name of the instruction set. */
#define COLOR_KERNELS(set, turn)                                                                                       \
    static void grey3_u8_##set(uint8_t *dst, const uint8_t *src, int32_t w)                                            \
    {                                                                                                                  \
        RUNS(dst, src, w, grey3_run(&p));                                                                              \
    }                                                                                                                  \
    static void mix_u8_##set(uint8_t *dst, const uint8_t *src, int32_t w, float factor)                                \
    {                                                                                                                  \
        RUNS(dst, src, w, mix_run(&p, factor));                                                                        \
    }                                                                                                                  \
    static void hue_u8_##set(uint8_t *dst, const uint8_t *src, int32_t w, uint8_t shift)                               \
    {                                                                                                                  \
        RUNS(dst, src, w, turn(&p, shift));                                                                            \
    }                                                                                                                  \
    static void permute_u8_##set(uint8_t *dst, const uint8_t *src, int32_t w, const uint8_t order[3])                  \
    {                                                                                                                  \
        RUNS(dst, src, w, permute_run(&p, order));                                                                     \
    }                                                                                                                  \
    static void sharpen_u8_##set(uint8_t *dst, const uint8_t *src, size_t stride, size_t step, size_t n, float factor) \
    {                                                                                                                  \
        sharpen_bytes(dst, src, stride, step, n, factor);                                                              \
    }                                                                                                                  \
    static void weigh_u8_##set(float *sum, const uint8_t *src, size_t n, float weight, bool first)                     \
    {                                                                                                                  \
        weigh_bytes(sum, src, n, weight, first);                                                                       \
    }                                                                                                                  \
    static void settle_u8_##set(uint8_t *dst, const float *sum, size_t n)                                              \
    {                                                                                                                  \
        settle_bytes(dst, sum, n);                                                                                     \
    }                                                                                                                  \
    static uint64_t sum_u8_##set(const uint8_t *src, size_t n)                                                         \
    {                                                                                                                  \
        return sum_bytes(src, n);                                                                                      \
    }                                                                                                                  \
    static void kernels_##set##_points(struct kernels *k)                                                              \
    {                                                                                                                  \
        k->grey3 = grey3_u8_##set;                                                                                     \
        k->mix = mix_u8_##set;                                                                                         \
        k->hue = hue_u8_##set;                                                                                         \
        k->permute = permute_u8_##set;                                                                                 \
        k->sharpen = sharpen_u8_##set;                                                                                 \
        k->weigh = weigh_u8_##set;                                                                                     \
        k->settle = settle_u8_##set;                                                                                   \
        k->sum = sum_u8_##set;                                                                                         \
    }

#endif
