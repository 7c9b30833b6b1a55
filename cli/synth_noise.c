/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth_noise.c -- random numbers and fractal noise.
 *
 * Noise is made from coarse to fine. Each step doubles the size by subdividing a quadratic spline
 * (weights 3/4 and 1/4, which leave no visible lattice), and adds finer and weaker noise. The cost is
 * 4/3 of the last doubling, for any number of octaves.
 */
#include "synth.h"

#include <string.h>

enum { MAX_LEVELS = 16, COARSEST = 6 };

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct synth_rng synth_rng_init(uint64_t seed, uint64_t stream)
{
    return (struct synth_rng){mix(mix(seed + 0x9e3779b97f4a7c15u) + stream * 0xd1342543de82ef95u)};
}

uint64_t synth_next(struct synth_rng *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    return mix(r->state);
}

float synth_uniform(struct synth_rng *r, float lo, float hi)
{
    return lo + (hi - lo) * ((float)(synth_next(r) >> 40) * (1.0f / 16777216.0f));
}

int synth_pick(struct synth_rng *r, int n)
{
    return (int)(((synth_next(r) >> 32) * (uint64_t)n) >> 32);
}

int synth_chance(struct synth_rng *r, int percent)
{
    return synth_pick(r, 100) < percent;
}

struct synth_colour synth_jitter(struct synth_rng *r, struct synth_colour c, float by)
{
    const float grey = synth_uniform(r, -by, by);
    c.r = synth_clamp(c.r + grey + synth_uniform(r, -by, by) * 0.5f, 0, 1);
    c.g = synth_clamp(c.g + grey + synth_uniform(r, -by, by) * 0.5f, 0, 1);
    c.b = synth_clamp(c.b + grey + synth_uniform(r, -by, by) * 0.5f, 0, 1);
    return c;
}

/* Four values of -1..1 from one random number. */
static void add_white(struct synth_rng *r, float *row, int n, float amount)
{
    const float scale = amount * (1.0f / 32768.0f);
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        const uint64_t z = synth_next(r);
        row[i] += (float)(int16_t)(z & 0xffff) * scale;
        row[i + 1] += (float)(int16_t)((z >> 16) & 0xffff) * scale;
        row[i + 2] += (float)(int16_t)((z >> 32) & 0xffff) * scale;
        row[i + 3] += (float)(int16_t)((z >> 48) & 0xffff) * scale;
    }
    for (; i < n; i++)
        row[i] += (float)(int16_t)(synth_next(r) & 0xffff) * scale;
}

/* One row of the doubled field: between two rows of the coarse one, then along it. */
static void double_row(float *dst, int w, const float *a, const float *b, int odd)
{
    const float near = odd ? 0.25f : 0.75f, far = 1 - near;
    float left = a[0] * near + b[0] * far;
    for (int i = 0; 2 * i < w; i++) {
        const float right = a[i + 1] * near + b[i + 1] * far;
        dst[2 * i] = 0.75f * left + 0.25f * right;
        if (2 * i + 1 < w)
            dst[2 * i + 1] = 0.25f * left + 0.75f * right;
        left = right;
    }
}

static void double_field(float *dst, int w, int h, const float *src, int src_w)
{
    for (int y = 0; y < h; y++) {
        const float *a = src + (size_t)(y / 2) * (size_t)src_w;
        double_row(dst + (size_t)y * (size_t)w, w, a, a + src_w, y & 1);
    }
}

void synth_fractal(struct synth_rng *r, float *dst, float *tmp, int w, int h, float rough, int smooth)
{
    int ws[MAX_LEVELS] = {w}, hs[MAX_LEVELS] = {h}, top = 0;
    while (top + 1 < MAX_LEVELS && (ws[top] > COARSEST || hs[top] > COARSEST)) {
        ws[top + 1] = ws[top] / 2 + 2;
        hs[top + 1] = hs[top] / 2 + 2;
        top++;
    }
    /* The two buffers take turns, so that level 0 ends in dst. */
    float *field = top % 2 ? tmp : dst, *next = top % 2 ? dst : tmp;
    const size_t n_top = (size_t)ws[top] * (size_t)hs[top];
    memset(field, 0, n_top * sizeof *field);
    add_white(r, field, (int)n_top, 1);
    float amount = 1, sum = 1;
    for (int k = top - 1; k >= 0; k--) {
        double_field(next, ws[k], hs[k], field, ws[k + 1]);
        amount *= rough;
        if (k >= smooth) {
            sum += amount * 0.6f;
            for (int y = 0; y < hs[k]; y++)
                add_white(r, next + (size_t)y * (size_t)ws[k], ws[k], amount);
        }
        float *swap = field;
        field = next;
        next = swap;
    }
    const float scale = 1.6f / sum;
    const size_t n = (size_t)w * (size_t)h;
    for (size_t i = 0; i < n; i++)
        dst[i] *= scale;
}
