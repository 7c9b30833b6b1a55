/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_c.c -- the kernels in plain C, which define the result, and the table of kernels for a CPU.
 */
#include <string.h>

#include "base/cpu.h"
#include "transform/kernel.h"

static void arrange_weights_c(int32_t *c, size_t groups)
{
    (void)c;
    (void)groups;
}

static uint8_t clip(int32_t sum)
{
    const int32_t v = sum >> RESAMPLE_BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void across1_u8_c(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t rows,
                         const struct taps *t)
{
    for (; rows > 0; rows--, dst += dst_stride, src += src_stride) {
        const int32_t *c = t->c;
        for (int32_t i = 0; i < t->n; i++) {
            const uint8_t *p = src + t->first[i];
            int32_t sum = 1 << (RESAMPLE_BITS - 1);
            for (int32_t group = 0; group < t->groups; group++, p += 4, c += 4)
                sum += p[0] * c[0] + p[1] * c[1] + p[2] * c[2] + p[3] * c[3];
            dst[i] = clip(sum);
        }
    }
}

static void across3_u8_c(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t rows,
                         const struct taps *t)
{
    for (; rows > 0; rows--, dst += dst_stride, src += src_stride) {
        const int32_t *c = t->c;
        uint8_t *out = dst;
        for (int32_t i = 0; i < t->n; i++, out += 3) {
            const uint8_t *p = src + 3 * (size_t)t->first[i];
            int32_t r = 1 << (RESAMPLE_BITS - 1), g = r, b = r;
            for (int32_t group = 0; group < t->groups; group++, p += 12, c += 4) {
                r += p[0] * c[0] + p[3] * c[1] + p[6] * c[2] + p[9] * c[3];
                g += p[1] * c[0] + p[4] * c[1] + p[7] * c[2] + p[10] * c[3];
                b += p[2] * c[0] + p[5] * c[1] + p[8] * c[2] + p[11] * c[3];
            }
            out[0] = clip(r);
            out[1] = clip(g);
            out[2] = clip(b);
        }
    }
}

/* In runs of columns, so that the sums stay in registers and rows are read in order. */
static void down_u8_c(uint8_t *dst, const uint8_t *src, size_t stride, size_t n, const struct taps *t, int32_t i)
{
    enum { RUN = 32 };
    const int32_t n_taps = 4 * t->groups < t->rows ? 4 * t->groups : t->rows;
    const int32_t *c = t->c + (size_t)i * 4 * (size_t)t->groups;
    src += (size_t)t->first[i] * stride;
    for (size_t x = 0; x < n; x += RUN) {
        const size_t run = n - x < RUN ? n - x : RUN;
        int32_t sum[RUN];
        for (size_t j = 0; j < run; j++)
            sum[j] = 1 << (RESAMPLE_BITS - 1);
        for (int32_t k = 0; k < n_taps; k++) {
            const uint8_t *row = src + (size_t)k * stride + x;
            for (size_t j = 0; j < run; j++)
                sum[j] += row[j] * c[k];
        }
        for (size_t j = 0; j < run; j++)
            dst[x + j] = clip(sum[j]);
    }
}

static void grey_u8_c(uint8_t *dst, const uint8_t *src, int32_t w)
{
    for (int32_t x = 0; x < w; x++, src += 3)
        dst[x] = (uint8_t)((src[0] * 19595u + src[1] * 38470u + src[2] * 7471u + 0x8000u) >> 16);
}

static void mirror1_u8_c(uint8_t *dst, const uint8_t *src, int32_t w)
{
    for (int32_t x = 0; x < w; x++)
        dst[x] = src[w - 1 - x];
}

static void mirror3_u8_c(uint8_t *dst, const uint8_t *src, int32_t w)
{
    src += 3 * (size_t)w;
    for (int32_t x = 0; x < w; x++, dst += 3) {
        src -= 3;
        dst[0] = src[0];
        dst[1] = src[1];
        dst[2] = src[2];
    }
}

static void single_u8_c(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)
{
    (void)plane;
    (void)v;
    memcpy(dst, src, (size_t)w);
}

static void planar_u8_c(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)
{
    uint8_t *r = dst, *g = r + plane, *b = g + plane;
    (void)v;
    for (int32_t x = 0; x < w; x++, src += 3) {
        r[x] = src[0];
        g[x] = src[1];
        b[x] = src[2];
    }
}

static void interleaved_u8_c(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)
{
    (void)plane;
    (void)v;
    memcpy(dst, src, 3 * (size_t)w);
}

static void single_half_c(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)
{
    uint16_t *out = dst;
    (void)plane;
    for (int32_t x = 0; x < w; x++)
        out[x] = v->half[0][src[x]];
}

static void planar_half_c(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)
{
    uint16_t *r = dst, *g = r + plane, *b = g + plane;
    for (int32_t x = 0; x < w; x++, src += 3) {
        r[x] = v->half[0][src[0]];
        g[x] = v->half[1][src[1]];
        b[x] = v->half[2][src[2]];
    }
}

static void interleaved_half_c(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)
{
    uint16_t *out = dst;
    (void)plane;
    for (int32_t x = 0; x < w; x++, src += 3, out += 3) {
        out[0] = v->half[0][src[0]];
        out[1] = v->half[1][src[1]];
        out[2] = v->half[2][src[2]];
    }
}

static void single_f32_c(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)
{
    uint32_t *out = dst;
    (void)plane;
    for (int32_t x = 0; x < w; x++)
        out[x] = v->f32[0][src[x]];
}

static void planar_f32_c(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)
{
    uint32_t *r = dst, *g = r + plane, *b = g + plane;
    for (int32_t x = 0; x < w; x++, src += 3) {
        r[x] = v->f32[0][src[0]];
        g[x] = v->f32[1][src[1]];
        b[x] = v->f32[2][src[2]];
    }
}

static void interleaved_f32_c(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v)
{
    uint32_t *out = dst;
    (void)plane;
    for (int32_t x = 0; x < w; x++, src += 3, out += 3) {
        out[0] = v->f32[0][src[0]];
        out[1] = v->f32[1][src[1]];
        out[2] = v->f32[2][src[2]];
    }
}

static void fence_c(void)
{
}

void kernels_c(struct kernels *k)
{
    *k = (struct kernels){
        .arrange_weights = arrange_weights_c,
        .across1 = across1_u8_c,
        .across3 = across3_u8_c,
        .down = down_u8_c,
        .grey = grey_u8_c,
        .mirror1 = mirror1_u8_c,
        .mirror3 = mirror3_u8_c,
        .warp_linear3 = warp_pixels_c,
        .nearest3 = warp_nearest3_c,
        .warp_cubic3 = warp_pixels_c,
        .blur_down = blur_down_c,
        .blur_across = blur_across_c,
        .gauss = elastic_gauss_c,
        .linear3 = elastic_linear3_c,
        .store =
            {
                [STORE_SINGLE] = {single_u8_c, single_half_c, single_half_c, single_f32_c},
                [STORE_PLANAR] = {planar_u8_c, planar_half_c, planar_half_c, planar_f32_c},
                [STORE_INTERLEAVED] = {interleaved_u8_c, interleaved_half_c, interleaved_half_c, interleaved_f32_c},
            },
        .fence = fence_c,
    };
    memcpy(k->stream, k->store, sizeof k->stream);
    kernels_c_color(k);
    kernels_c_blend(k);
    kernels_c_trip(k);
    kernels_c_noise(k);
}

/* A new instruction set is a file kernel_<set>.c with a function kernels_<set>, which replaces the entries where it is
 * faster, and a case here. A set that replaces arrange_weights must also replace across1, across3 and down, which read
 * what it writes. */
void kernels_fill(struct kernels *k, stk_cpu cpu)
{
    kernels_c(k);
#if defined(__x86_64__)
    if (cpu == STK_CPU_AVX2 || cpu == STK_CPU_AVX512) {
        kernels_avx2(k);
        kernels_avx2_store(k);
        kernels_avx2_color(k);
        kernels_avx2_warp(k);
        kernels_avx2_nearest(k);
        kernels_avx2_blur(k);
        kernels_avx2_elastic(k);
        kernels_avx2_trip(k);
        kernels_avx2_noise(k);
    }
    if (cpu == STK_CPU_AVX512) {
        kernels_avx512(k);
        kernels_avx512_store(k);
        if (cpu_has_vbmi()) {
            kernels_vbmi_color(k);
            kernels_vbmi_hue(k);
        }
    }
#else
    (void)cpu;
#endif
}
