/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.c -- maps with the arithmetic of torch's grid_sample, in the order of its operations.
 *
 * A grid goes from -1 to 1 over the image. Pixels outside count as 0. If there is a fill, torchvision also samples a
 * plane of ones, and blends the image with the fill by it. So at the border, the zeros outside darken the image first,
 * and then the fill is blended in.
 */
#include "transform/grid.h"

#include <math.h>

#include "transform/stage.h"

void grid_line(const struct warp *w, int32_t y, float *x_of, float *y_of)
{
    const bool far = w->perspective;
    const double half[2] = {0.5 * w->in_w, 0.5 * w->in_h};
    float t[2][3];
    for (int k = 0; k < 2; k++) {
        const double *a = w->a + 3 * k;
        const double last = far ? a[2] : a[0] * (0.5 * w->w) + a[1] * (0.5 * w->h) + a[2] - half[k];
        t[k][0] = (float)a[0] / (float)half[k];
        t[k][1] = (float)a[1] / (float)half[k];
        t[k][2] = (float)last / (float)half[k];
    }
    const float down = far ? (float)y + 0.5f : (float)(y + (1.0 - w->h) * 0.5);
    for (int32_t x = 0; x < w->w; x++) {
        const float across = far ? (float)x + 0.5f : (float)(x + (1.0 - w->w) * 0.5);
        float at[2];
        for (int k = 0; k < 2; k++)
            at[k] = across * t[k][0] + down * t[k][1] + t[k][2];
        if (far) {
            const float d = across * (float)w->a[6] + down * (float)w->a[7] + 1.0f;
            at[0] = at[0] / d - 1.0f;
            at[1] = at[1] / d - 1.0f;
        }
        x_of[x] = (at[0] + 1.0f) * ((float)w->in_w / 2.0f) - 0.5f;
        y_of[x] = (at[1] + 1.0f) * ((float)w->in_h / 2.0f) - 0.5f;
    }
}

/* nearbyintf from 0 to 2^22, and down to -1, without a call: halves are rounded to even. */
static float rounded(float v)
{
    const float whole = 12582912.0f; /* 1.5 * 2^23: floats from 2^23 to 2^24 are whole numbers */
    return (v + whole) - whole;
}

int32_t grid_nearest(float at, int32_t n)
{
    if (!(at > -1.0f && at < (float)n))
        return -1;
    const float pixel = n < 1 << 22 ? rounded(at) : nearbyintf(at);
    return pixel >= 0.0f && pixel < (float)n ? (int32_t)pixel : -1;
}

static void nearest(const struct warp *w, const struct image *in, float x, float y, uint8_t *dst)
{
    const int32_t px = grid_nearest(x, in->w), py = grid_nearest(y, in->h);
    const bool inside = px >= 0 && py >= 0;
    const uint8_t *from = inside ? image_line(in, py) + (size_t)px * (size_t)in->channels : w->fill;
    for (int ch = 0; ch < in->channels; ch++)
        dst[ch] = from[ch];
}

/* Writes the sum of the taps, with the fill where they are outside; ones: the sum of the weights. */
static void put(const struct warp *w, const float *sum, float ones, int channels, uint8_t *dst)
{
    for (int ch = 0; ch < channels; ch++) {
        const float fill = (float)w->fill[ch], v = w->filled ? (sum[ch] - fill) * ones + fill : sum[ch];
        dst[ch] = (uint8_t)rounded(v <= 0.0f ? 0.0f : v >= 255.0f ? 255.0f : v);
    }
}

/* The same as bilinear, where all four taps are inside. */
static void bilinear_inside(const struct warp *w, const struct image *in, float x, float y, uint8_t *dst)
{
    const int32_t px = (int32_t)x, py = (int32_t)y, channels = in->channels;
    const float right = x - (float)px, low = y - (float)py;
    const float weight[4] = {(1.0f - low) * (1.0f - right), (1.0f - low) * right, low * (1.0f - right), low * right};
    const uint8_t *up = image_line(in, py) + (size_t)px * (size_t)channels;
    const uint8_t *down = image_line(in, py + 1) + (size_t)px * (size_t)channels;
    float sum[3] = {0};
    for (int ch = 0; ch < channels; ch++)
        sum[ch] = (float)up[ch] * weight[0] + (float)up[ch + channels] * weight[1] + (float)down[ch] * weight[2] +
                  (float)down[ch + channels] * weight[3];
    put(w, sum, weight[0] + weight[1] + weight[2] + weight[3], channels, dst);
}

static void bilinear(const struct warp *w, const struct image *in, float x, float y, uint8_t *dst)
{
    if (x >= 0.0f && y >= 0.0f && x < (float)(in->w - 1) && y < (float)(in->h - 1)) {
        bilinear_inside(w, in, x, y, dst);
        return;
    }
    const float left = floorf(x), top = floorf(y), right = x - left, low = y - top;
    const float weight[4] = {(1.0f - low) * (1.0f - right), (1.0f - low) * right, low * (1.0f - right), low * right};
    float sum[3] = {0}, ones = 0.0f;
    for (int k = 0; k < 4; k++) {
        const float px = left + (float)(k % 2), py = top + (float)(k / 2);
        if (!(px >= 0.0f && px < (float)in->w && py >= 0.0f && py < (float)in->h))
            continue;
        const uint8_t *from = image_line(in, (int32_t)py) + (size_t)px * (size_t)in->channels;
        for (int ch = 0; ch < in->channels; ch++)
            sum[ch] += (float)from[ch] * weight[k];
        ones += weight[k];
    }
    put(w, sum, ones, in->channels, dst);
}

void grid_pixels(const struct warp *w, const struct image *in, const float *x_of, const float *y_of, int32_t n,
                 uint8_t *dst)
{
    for (int32_t i = 0; i < n; i++, dst += in->channels)
        if (w->filter == FILTER_NEAREST)
            nearest(w, in, x_of[i], y_of[i], dst);
        else
            bilinear(w, in, x_of[i], y_of[i], dst);
}
