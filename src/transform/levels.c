/* SPDX-License-Identifier: Apache-2.0 */
/*
 * levels.c -- the tables that turn bytes into floats.
 */
#include "transform/levels.h"

#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* Drops the low bits of m, rounding to nearest, ties to even. */
static uint32_t drop(uint32_t m, uint32_t bits)
{
    const uint32_t half = 1u << (bits - 1), odd = m >> bits & 1;
    return (m + half - 1 + odd) >> bits;
}

uint16_t levels_f16(float x)
{
    const uint32_t u = bits_of(x), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
    const uint32_t exponent = magnitude >> 23, fraction = (magnitude & 0x7fffff) | 0x800000;
    if (magnitude >= 0x7f800000)
        return (uint16_t)(sign | (magnitude > 0x7f800000 ? 0x7e00 : 0x7c00));
    if (exponent < 102) /* under half of the smallest value */
        return (uint16_t)sign;
    if (exponent < 113) /* subnormal */
        return (uint16_t)(sign | drop(fraction, 126 - exponent));
    const uint32_t rounded = drop(magnitude - (112u << 23), 13);
    return (uint16_t)(sign | (rounded > 0x7c00 ? 0x7c00 : rounded));
}

uint16_t levels_bf16(float x)
{
    return (uint16_t)drop(bits_of(x), 16);
}

void levels_constants(const struct ops *ops, int ch, float *mean, float *std)
{
    *mean = 0.0f;
    *std = 1.0f;
    if (!ops->normalize)
        return;
    const struct arg *m = &ops->normalize->arg[0], *d = &ops->normalize->arg[1];
    *mean = (float)m->v[m->n == 1 ? 0 : ch];
    *std = (float)d->v[d->n == 1 ? 0 : ch];
}

static float in_units(uint8_t byte, enum unit u)
{
    const float v = (float)byte;
    return u == UNIT_DIVIDE ? v / 255.0f : u == UNIT_TIMES ? v * (float)(1.0 / 255.0) : v;
}

void levels_init(struct levels *v, const struct ops *ops, enum store_dtype d)
{
    const double unit = ops->unit == UNIT_KEEP ? 1.0 : 1.0 / 255.0;
    v->unit = (float)unit;
    v->unit_rest = ops->unit == UNIT_DIVIDE ? (float)(unit - (double)v->unit) : 0.0f;
    for (int ch = 0; ch < 3; ch++) {
        float std;
        levels_constants(ops, ch, &v->mean[ch], &std);
        v->factor[ch] = (float)(1.0 / (double)std);
        v->factor_rest[ch] = (float)(1.0 / (double)std - (double)v->factor[ch]);
        for (int i = 0; i < 256; i++) {
            const float moved = in_units((uint8_t)i, ops->unit) - v->mean[ch], x = moved / std;
            v->f32[ch][i] = bits_of(x);
            v->half[ch][i] = d == STORE_BF16 ? levels_bf16(x) : levels_f16(x);
        }
    }
}

bool levels_exact(const struct levels *v, const struct kernels *k, enum store_shape s, enum store_dtype d)
{
    struct kernels c;
    uint8_t row[3 * 256 + IMAGE_SLACK] = {0};
    uint32_t tried[3 * 256] = {0}, wanted[3 * 256] = {0};
    for (int i = 0; i < 256; i++)
        if (s == STORE_SINGLE)
            row[i] = (uint8_t)i;
        else
            memset(row + 3 * i, i, 3);
    kernels_c(&c);
    k->store[s][d](tried, 256, row, 256, v);
    c.store[s][d](wanted, 256, row, 256, v);
    return memcmp(tried, wanted, sizeof tried) == 0;
}
