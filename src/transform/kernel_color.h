/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_color.h -- kernels of point steps as loops that compilers vectorise, for kernel_avx2_color.c and
 * kernel_vbmi_color.c. These define split() and join(), which convert between pixels and planes.
 *
 * Loops have no branches and no conditional operation on floats.
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
        const uint16_t sum = (uint16_t)(up[i] + up[i + step] + (up - step)[i] + at[i + step] + (at - step)[i] +
                                        down[i] + down[i + step] + (down - step)[i] + 5 * at[i]);
        dst[i] = (uint8_t)((uint16_t)((uint32_t)(uint16_t)(2 * sum + 13) * 40330u >> 16) >> 4);
    }
}

INLINE void sharpen_run(uint8_t *dst, const uint8_t *src, size_t stride, size_t step, float factor)
{
    uint8_t smooth[RUN];
    smooth_run(smooth, src - stride, src, src + stride, step);
    blend_run(dst, smooth, src, factor);
}

/* Less than a run. */
INLINE void sharpen_few(uint8_t *dst, const uint8_t *src, size_t stride, size_t step, size_t n, float factor)
{
    uint8_t smooth[RUN] = {0}, rest[RUN] = {0}, out[RUN];
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

/* The last run overlaps the one before. */
INLINE void sharpen_line(uint8_t *dst, const uint8_t *src, size_t stride, size_t step, size_t n, float factor)
{
    if (n < RUN) {
        sharpen_few(dst, src, stride, step, n, factor);
        return;
    }
    for (size_t i = 0; i < n - RUN; i += RUN)
        sharpen_run(dst + i, src + i, stride, step, factor);
    sharpen_run(dst + n - RUN, src + n - RUN, stride, step, factor);
}

/* Through a buffer, because dst may be src. */
INLINE void invert_bytes(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (; n >= RUN; n -= RUN, src += RUN, dst += RUN) {
        uint8_t v[RUN];
        memcpy(v, src, RUN);
        for (int i = 0; i < RUN; i++)
            v[i] = (uint8_t)~v[i];
        memcpy(dst, v, RUN);
    }
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)~src[i];
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
#define COLOR_KERNELS(set)                                                                                             \
    static void mix_u8_##set(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t w,        \
                             int32_t rows, float factor)                                                               \
    {                                                                                                                  \
        for (; rows > 0; rows--, dst += dst_stride, src += src_stride) {                                               \
            const uint8_t *from = src;                                                                                 \
            uint8_t *to = dst;                                                                                         \
            int32_t n = w;                                                                                             \
            RUNS(to, from, n, mix_run(&p, factor));                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    static void invert_u8_##set(uint8_t *dst, const uint8_t *src, size_t n)                                            \
    {                                                                                                                  \
        invert_bytes(dst, src, n);                                                                                     \
    }                                                                                                                  \
    static void permute_u8_##set(uint8_t *dst, const uint8_t *src, int32_t w, const uint8_t order[3])                  \
    {                                                                                                                  \
        RUNS(dst, src, w, permute_run(&p, order));                                                                     \
    }                                                                                                                  \
    static void sharpen_u8_##set(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, size_t step,  \
                                 size_t n, int32_t rows, float factor)                                                 \
    {                                                                                                                  \
        for (; rows > 0; rows--, dst += dst_stride, src += src_stride)                                                 \
            sharpen_line(dst, src, src_stride, step, n, factor);                                                       \
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
        k->mix = mix_u8_##set;                                                                                         \
        k->invert = invert_u8_##set;                                                                                   \
        k->permute = permute_u8_##set;                                                                                 \
        k->sharpen = sharpen_u8_##set;                                                                                 \
        k->weigh = weigh_u8_##set;                                                                                     \
        k->settle = settle_u8_##set;                                                                                   \
        k->sum = sum_u8_##set;                                                                                         \
    }

#endif
