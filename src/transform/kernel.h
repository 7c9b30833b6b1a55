/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h -- the inner loops, as a table of functions.
 *
 * kernels_fill sets every entry to plain C; better instruction sets then replace the entries that they do faster. C
 * defines the result; all give the same bits.
 *
 * All may read up to IMAGE_SLACK bytes past the last pixel that they are given. None writes past its result.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "stoker.h"
#include "transform/blur.h"
#include "transform/elastic.h"
#include "transform/jpeg_trip.h"
#include "transform/noise.h"
#include "transform/resample.h"
#include "transform/warp.h"

enum store_dtype { STORE_U8, STORE_F16, STORE_BF16, STORE_F32, STORE_DTYPES };

enum { STREAM_ALIGN = 64 };

enum store_shape {
    STORE_SINGLE,      /* one channel */
    STORE_PLANAR,      /* three channels to three planes */
    STORE_INTERLEAVED, /* three channels to pixels of three */
    STORE_SHAPES
};

/*
 * What a byte becomes, per channel. The tables define it. The numbers give the same by arithmetic,
 *     x = v * unit + v * unit_rest - mean,   result = x * factor + x * factor_rest
 * where a sum of two products is one fused step. unit + unit_rest is 1/255 to twice the precision; factor + factor_rest
 * is 1/std. When a plan is made, all 256 values are tried, to see whether both are equal to the last bit.
 */
struct levels {
    uint32_t f32[3][256];
    uint16_t half[3][256]; /* float16 or bfloat16 */
    float unit, unit_rest, mean[3], factor[3], factor_rest[3];
};

/* Writes one row of w pixels; planes are `plane` elements apart. */
typedef void store_fn(void *dst, size_t plane, const uint8_t *src, int32_t w, const struct levels *v);
/* Resamples the width of `rows` rows, to t->n pixels each. */
typedef void across_fn(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t rows,
                       const struct taps *t);

typedef void blend_fn(void *dst, const void *src, size_t n, float keep, float rest);

/* The lowest and highest bytes so far, at every place of runs of RANGE_RUN bytes, which is a multiple of three. */
enum { RANGE_RUN = 96 };
struct kernel_range {
    uint8_t low[RANGE_RUN], high[RANGE_RUN];
};

typedef void warp_fn(const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst);

struct kernels {
    /* Puts the weights of groups of four taps into the order in which across and down read them. */
    void (*arrange_weights)(int32_t *c, size_t groups);
    across_fn *across1, *across3;
    /* Resamples the height: n bytes of output row i of t, from rows `stride` apart. */
    void (*down)(uint8_t *dst, const uint8_t *src, size_t stride, size_t n, const struct taps *t, int32_t i);
    /* Three channels to one, as Pillow's convert("L"). */
    void (*grey)(uint8_t *dst, const uint8_t *src, int32_t w);
    /* The same pixels from right to left. */
    void (*mirror1)(uint8_t *dst, const uint8_t *src, int32_t w);
    void (*mirror3)(uint8_t *dst, const uint8_t *src, int32_t w);
    /* Point steps; dst may be src. Three channels, unless it says otherwise. */
    void (*table1)(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t t[256]); /* the same for every byte */
    void (*invert)(uint8_t *dst, const uint8_t *src, size_t n); /* a table that is faster without one */
    void (*table3)(uint8_t *dst, const uint8_t *src, int32_t w, const uint8_t t[3][256]);
    void (*grey3)(uint8_t *dst, const uint8_t *src, int32_t w); /* three equal channels */
    /* Between the grey of a pixel (0) and its colour (1), and beyond, as Pillow's ImageEnhance.Color. */
    void (*mix)(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, int32_t w, int32_t rows,
                float factor);
    /* Adds to the hue, modulo 256, through Pillow's HSV. */
    void (*hue)(uint8_t *dst, const uint8_t *src, int32_t w, uint8_t shift);
    void (*permute)(uint8_t *dst, const uint8_t *src, int32_t w, const uint8_t order[3]);
    /* n bytes of every row between the mean of their neighbourhood (0) and themselves (1), and beyond, as Pillow's
     * ImageEnhance.Sharpness. The neighbours left and right are `step` bytes away. dst is not src. */
    void (*sharpen)(uint8_t *dst, size_t dst_stride, const uint8_t *src, size_t src_stride, size_t step, size_t n,
                    int32_t rows, float factor);
    /* Mixtures: sum = weight * src, or sum += weight * src; what is below a whole number is cut off in the end. */
    void (*weigh)(float *sum, const uint8_t *src, size_t n, float weight, bool first);
    void (*settle)(uint8_t *dst, const float *sum, size_t n); /* clipped to 0 and 255 */
    /* About bytes: their sum, their range. */
    uint64_t (*sum)(const uint8_t *src, size_t n);
    void (*range)(struct kernel_range *r, const uint8_t *src, size_t n);

    /* n pixels of three channels through a map, from output pixel (x, y) on. */
    warp_fn *warp_linear3, *warp_cubic3;
    /* n pixels of three channels from places in fixed point, of 16 bits: x and y of the first, then what is added. All
     * are inside the image. Reads a byte behind each pixel. */
    void (*nearest3)(uint8_t *dst, const uint8_t *px, size_t stride, const int32_t at[2], const int32_t step[2],
                     int32_t n);
    /* The passes of a blur: n values from 2 * half + 1 rows; n bytes from values, neighbours `step` apart. */
    void (*blur_down)(int16_t *dst, const uint8_t *const *rows, size_t n, const struct blur_axis *a);
    void (*blur_across)(uint8_t *dst, const int16_t *src, size_t n, size_t step, const struct blur_axis *a);
    /* A line of a field: the sum of 2 * half + 1 rows with symmetric weights, the first of which is in the middle. */
    void (*gauss)(float *dst, const float *const *rows, size_t n, const float *weight, int32_t half, float scale);
    /* n pixels of three channels, bilinear, from places whose four neighbours are all inside. Their offsets from px fit
     * into 31 bits. */
    void (*linear3)(uint8_t *dst, const uint8_t *px, size_t stride, const float *x, const float *y, int32_t n);
    struct trip_kernels trip;
    struct noise_kernels noise;
    /* dst * keep + src * rest, for MixUp; floats only. */
    blend_fn *blend[STORE_DTYPES];
    store_fn *store[STORE_SHAPES][STORE_DTYPES];
    /* The same, bypassing the CPU's caches, for rows that are not read soon. The first byte of every row of every
     * plane must be aligned to STREAM_ALIGN. Call fence before another thread reads. */
    store_fn *stream[STORE_SHAPES][STORE_DTYPES];
    void (*fence)(void);
};

void kernels_fill(struct kernels *k, stk_cpu cpu);

static inline void kernels_mirror(const struct kernels *k, uint8_t *dst, const uint8_t *src, int32_t w, int channels)
{
    (channels == 3 ? k->mirror3 : k->mirror1)(dst, src, w);
}

/* One per instruction set; for kernels_fill only. */
void kernels_c(struct kernels *k);
void kernels_c_color(struct kernels *k);
void kernels_c_blend(struct kernels *k);
void kernels_c_trip(struct kernels *k);
void kernels_c_noise(struct kernels *k);
void kernels_avx2(struct kernels *k);
void kernels_avx2_color(struct kernels *k);
void kernels_avx2_store(struct kernels *k);
void kernels_avx2_warp(struct kernels *k);
void kernels_avx2_nearest(struct kernels *k);
void kernels_avx2_blur(struct kernels *k);
void kernels_avx2_elastic(struct kernels *k);
void kernels_avx2_trip(struct kernels *k);
void kernels_avx2_noise(struct kernels *k);
void kernels_avx512(struct kernels *k);
void kernels_avx512_store(struct kernels *k);
void kernels_vbmi_color(struct kernels *k);
void kernels_vbmi_hue(struct kernels *k);

#endif
