/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_c_blend.c -- sums of two rows of floats, for MixUp. As in torch, both products and the sum are rounded to the
 * type of the row.
 */
#include <string.h>

#include "transform/kernel.h"
#include "transform/levels.h"

static void blend_f32_c(void *dst, const void *src, size_t n, float keep, float rest)
{
    float *to = dst;
    const float *from = src;
    for (size_t i = 0; i < n; i++)
        to[i] = to[i] * keep + from[i] * rest;
}

static float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float float_of_bf16(uint16_t h)
{
    return float_of_bits((uint32_t)h << 16);
}

/* The exponent's bias is fixed by a multiplication, which is exact and normalises subnormal numbers. */
static float float_of_f16(uint16_t h)
{
    const uint32_t bits = (uint32_t)(h & 0x7fff) << 13;
    const float magnitude =
        h >> 10 == 31 || h >> 10 == 63 ? float_of_bits(bits | 0x7f800000) : float_of_bits(bits) * 0x1p112f;
    return h & 0x8000 ? -magnitude : magnitude;
}

static void blend_bf16_c(void *dst, const void *src, size_t n, float keep, float rest)
{
    uint16_t *to = dst;
    const uint16_t *from = src;
    for (size_t i = 0; i < n; i++) {
        const uint16_t a = levels_bf16(float_of_bf16(to[i]) * keep), b = levels_bf16(float_of_bf16(from[i]) * rest);
        to[i] = levels_bf16(float_of_bf16(a) + float_of_bf16(b));
    }
}

static void blend_f16_c(void *dst, const void *src, size_t n, float keep, float rest)
{
    uint16_t *to = dst;
    const uint16_t *from = src;
    for (size_t i = 0; i < n; i++) {
        const uint16_t a = levels_f16(float_of_f16(to[i]) * keep), b = levels_f16(float_of_f16(from[i]) * rest);
        to[i] = levels_f16(float_of_f16(a) + float_of_f16(b));
    }
}

void kernels_c_blend(struct kernels *k)
{
    k->blend[STORE_F16] = blend_f16_c;
    k->blend[STORE_BF16] = blend_bf16_c;
    k->blend[STORE_F32] = blend_f32_c;
}
