/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hue.c -- torchvision's adjust_hue on tensors of bytes, operation by operation.
 */
#include "transform/hue.h"

#include <math.h>

static float unit(float v)
{
    return v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
}

/* The hue, in turns from 0 to 1. */
static float hue_of(const float *rgb, float most, float range)
{
    const float rc = (most - rgb[0]) / range, gc = (most - rgb[1]) / range, bc = (most - rgb[2]) / range;
    float h;
    if (rgb[0] == most)
        h = bc - gc;
    else if (rgb[1] == most)
        h = rc + 2.0f - bc;
    else
        h = gc + 4.0f - rc;
    return fmodf(h * (1.0f / 6.0f) + 1.0f, 1.0f);
}

static void turn_pixel(uint8_t *dst, const uint8_t *src, float turn)
{
    /* Which of value, p, q and t is red, green and blue, by the sixth of the circle. */
    static const uint8_t chosen[6][3] = {{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
    const float rgb[3] = {(float)src[0] / 255.0f, (float)src[1] / 255.0f, (float)src[2] / 255.0f};
    const float most = fmaxf(rgb[0], fmaxf(rgb[1], rgb[2])), least = fminf(rgb[0], fminf(rgb[1], rgb[2]));
    const float range = most - least, s = range > 0.0f ? range / most : 0.0f;
    float h = fmodf((range > 0.0f ? hue_of(rgb, most, range) : 0.0f) + turn, 1.0f);
    h = h < 0.0f ? h + 1.0f : h;
    const float six = h * 6.0f, whole = floorf(six), sf = s * (six - whole), rest = 1.0f - s;
    const float vpqt[4] = {most, unit(rest * most), unit((1.0f - sf) * most), unit((sf + rest) * most)};
    for (int ch = 0; ch < 3; ch++)
        dst[ch] = (uint8_t)(vpqt[chosen[(int)whole % 6][ch]] * (256.0f - 1e-3f));
}

void hue_line(uint8_t *dst, const uint8_t *src, int32_t n, float turn)
{
    for (int32_t i = 0; i < n; i++)
        turn_pixel(dst + 3 * i, src + 3 * i, turn);
}
