/* SPDX-License-Identifier: Apache-2.0 */
/*
 * erase.c -- RandomErasing: overwrites rectangles of the finished row, in its type and layout.
 */
#include <string.h>

#include "transform/levels.h"
#include "transform/noise.h"
#include "transform/plan_inner.h"

/* A value as the row has it. Before Normalize, it is normalised, in torchvision's order of operations. */
static float finished(const struct plan *p, const struct erase *e, int ch, float v)
{
    float mean, std;
    if (e->raw || !p->ops.normalize)
        return v;
    levels_constants(&p->ops, ch, &mean, &std);
    return (v - mean) / std;
}

static void put(const struct plan *p, uint8_t *to, float v)
{
    uint16_t half;
    if (p->dtype == STK_FLOAT32) {
        memcpy(to, &v, sizeof v);
    } else if (p->dtype == STK_UINT8) {
        *to = (uint8_t)v;
    } else {
        half = p->dtype == STK_FLOAT16 ? levels_f16(v) : levels_bf16(v);
        memcpy(to, &half, sizeof half);
    }
}

/* One line of a rectangle in one channel; elements are `step` bytes apart. */
static void erase_line(const struct plan *p, const struct erase *e, int ch, int32_t y, uint8_t *to, size_t step)
{
    enum { SOME = 512 };
    float values[SOME];
    uint64_t at = ((uint64_t)ch * (uint64_t)e->at.h + (uint64_t)y) * (uint64_t)e->at.w;
    const float one = finished(p, e, ch, e->value[ch]);
    for (int32_t x = 0; x < e->at.w; x += SOME) {
        const int32_t n = e->at.w - x < SOME ? e->at.w - x : SOME;
        if (e->noise)
            noise_normal(values, e->seed, at, (size_t)n);
        at += (uint64_t)n;
        for (int32_t i = 0; i < n; i++, to += step)
            put(p, to, e->noise ? finished(p, e, ch, values[i]) : one);
    }
}

void plan_erase(const struct plan *p, const struct job *j, const struct erase *e, uint8_t *row)
{
    const bool last = p->layout == STK_NHWC;
    const size_t channels = (size_t)p->ops.channels, pixel = p->element * (last ? channels : 1);
    const size_t line = (size_t)j->w * pixel, plane = (size_t)j->w * (size_t)j->h * p->element;
    for (size_t ch = 0; ch < channels; ch++)
        for (int32_t y = 0; y < e->at.h; y++) {
            uint8_t *to = row + (size_t)(e->at.y + y) * line + (size_t)e->at.x * pixel;
            erase_line(p, e, (int)ch, y, to + ch * (last ? p->element : plane), pixel);
        }
}
