/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.c -- the table of step kinds; crops, flips and sharpening.
 */
#include "transform/stage.h"

#include <limits.h>
#include <string.h>

#include "base/size.h"

void *room_take(struct room *r, size_t bytes)
{
    const size_t cost = arena_cost(bytes);
    r->failed |= cost > SIZE_MAX - r->total;
    if (r->failed)
        return NULL;
    r->total += cost;
    if (!r->arena)
        return NULL;
    void *p = arena_alloc(r->arena, bytes);
    r->failed |= !p;
    return p;
}

struct image room_image(struct room *r, int32_t w, int32_t h, int32_t channels)
{
    const size_t line = size_mul((size_t)w, (size_t)channels), stride = (line + 63) / 64 * 64;
    return (struct image){
        .px = room_take(r, size_mul(stride, (size_t)h)), .stride = stride, .w = w, .h = h, .channels = channels};
}

/* ------------------------------------------------------------------ crop */

int32_t stage_pad_index(int32_t i, int32_t n, enum pad_mode mode)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == PAD_CONSTANT)
        return -1;
    if (mode == PAD_EDGE)
        return i < 0 ? 0 : n - 1;
    const int32_t skip = mode == PAD_REFLECT, period = 2 * (n - skip); /* there and back */
    const int32_t at = (i % period + period) % period;
    return at < n ? at : period - 1 + skip - at;
}

/* The inputs of n outputs from lo on, which may be outside: at least one. */
static struct reach crop_reach(int32_t lo, int32_t n, int32_t in, enum pad_mode mode)
{
    int32_t first = INT32_MAX, last = -1;
    if (lo >= 0 && n <= in - lo)
        return (struct reach){lo, n};
    for (int32_t i = lo; i < lo + n; i++) {
        const int32_t at = stage_pad_index(i, in, mode);
        if (at >= 0) {
            first = at < first ? at : first;
            last = at > last ? at : last;
        }
    }
    return last < 0 ? (struct reach){0, 1} : (struct reach){first, last - first + 1};
}

static struct rect crop_needs(const struct step *s)
{
    const struct reach x = crop_reach(s->x + s->need.x, s->need.w, s->in_w, (enum pad_mode)s->pad_mode);
    const struct reach y = crop_reach(s->y + s->need.y, s->need.h, s->in_h, (enum pad_mode)s->pad_mode);
    return (struct rect){x.lo, y.lo, x.n, y.n};
}

static void fill_pixels(uint8_t *dst, int32_t n, const struct step *s)
{
    for (int32_t i = 0; i < n; i++)
        for (int ch = 0; ch < s->channels; ch++)
            *dst++ = s->fill[ch];
}

/* Writes pixels lo to end, in coordinates of the input, all of which are outside. */
static uint8_t *pad_pixels(uint8_t *dst, const uint8_t *src, int32_t lo, int32_t end, const struct step *s)
{
    const size_t bytes = (size_t)s->channels;
    for (int32_t i = lo; i < end; i++, dst += bytes) {
        const int32_t at = stage_pad_index(i, s->in_w, (enum pad_mode)s->pad_mode);
        if (at < 0)
            fill_pixels(dst, 1, s);
        else
            memcpy(dst, src + (size_t)(at - s->from.x) * bytes, bytes);
    }
    return dst;
}

static void crop_line(const struct stage *st, int32_t y, uint8_t *dst)
{
    const struct step *s = st->s;
    const int32_t at = stage_pad_index(s->y + s->need.y + y, s->in_h, (enum pad_mode)s->pad_mode);
    if (at < 0) {
        fill_pixels(dst, s->need.w, s);
        return;
    }
    const int32_t lo = s->x + s->need.x, end = lo + s->need.w; /* in three parts: before, inside, after */
    const int32_t a = lo > 0 ? lo : 0, b = end < s->in_w ? end : s->in_w;
    const uint8_t *src = image_line(&st->in, at - s->from.y);
    dst = pad_pixels(dst, src, lo, end < 0 ? end : lo < 0 ? 0 : lo, s);
    if (b > a) {
        const size_t bytes = (size_t)(b - a) * (size_t)s->channels;
        memcpy(dst, src + (size_t)(a - s->from.x) * (size_t)s->channels, bytes);
        dst += bytes;
    }
    pad_pixels(dst, src, lo > s->in_w ? lo : end > s->in_w ? s->in_w : end, end, s);
}

static void crop_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    (void)k;
    for (int32_t i = 0; i < n; i++)
        crop_line(st, y + i, dst + (size_t)i * stride);
}

/* ------------------------------------------------------------------ flips */

static struct rect flip_x_needs(const struct step *s)
{
    return (struct rect){s->w - s->need.x - s->need.w, s->need.y, s->need.w, s->need.h};
}

static struct rect flip_y_needs(const struct step *s)
{
    return (struct rect){s->need.x, s->h - s->need.y - s->need.h, s->need.w, s->need.h};
}

static void flip_x_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    for (int32_t i = 0; i < n; i++)
        kernels_mirror(k, dst + (size_t)i * stride, image_line(&st->in, y + i), st->in.w, st->in.channels);
}

static void flip_y_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    (void)k;
    for (int32_t i = 0; i < n; i++)
        memcpy(dst + (size_t)i * stride, image_line(&st->in, st->in.h - 1 - (y + i)),
               (size_t)st->in.w * (size_t)st->in.channels);
}

/* ------------------------------------------------------------------ sharpen */

/* One pixel more on every side, within the image. */
static struct rect sharpen_needs(const struct step *s)
{
    const struct rect n = s->need;
    const int32_t left = n.x > 0, top = n.y > 0, right = n.x + n.w < s->in_w, bottom = n.y + n.h < s->in_h;
    return (struct rect){n.x - left, n.y - top, n.w + left + right, n.h + top + bottom};
}

/* Pixels at the border of the image stay. */
static void sharpen_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const struct step *s = st->s;
    const size_t step = (size_t)s->channels, bytes = (size_t)s->need.w * step;
    const int32_t end = s->need.x + s->need.w, last = s->in_w - 1, top = s->need.y + y;
    const size_t left = s->need.x == 0 ? step : 0, right = end > last ? step : 0;
    const uint8_t *src = image_line(&st->in, top - s->from.y) + (size_t)(s->need.x - s->from.x) * step;
    const int32_t first = top == 0, rows = n - first - (top + n == s->in_h);
    for (int32_t i = 0; i < n; i++) {
        const bool whole = i < first || i >= first + rows || bytes <= left + right;
        memcpy(dst + (size_t)i * stride, src + (size_t)i * st->in.stride, whole ? bytes : left);
        if (!whole)
            memcpy(dst + (size_t)i * stride + bytes - right, src + (size_t)i * st->in.stride + bytes - right, right);
    }
    if (rows > 0 && bytes > left + right)
        k->sharpen(dst + (size_t)first * stride + left, stride, src + (size_t)first * st->in.stride + left,
                   st->in.stride, step, bytes - left - right, rows, (float)s->amount);
}

/* ------------------------------------------------------------------ the table */

/* A table that depends on the whole image needs all of it. */
static struct rect table_needs(const struct step *s)
{
    return step_gathers(s) ? (struct rect){0, 0, s->in_w, s->in_h} : s->need;
}

struct rect step_needs(const struct step *s)
{
    return step_functions[s->kind].needs ? step_functions[s->kind].needs(s) : s->need;
}

const struct step_functions step_functions[STEP_KINDS] = {
    [STEP_CROP] = {crop_needs, NULL, NULL, crop_lines, false},
    [STEP_RESIZE] = {resize_needs, resize_lay, resize_begin, resize_lines, false},
    [STEP_FLIP_X] = {flip_x_needs, NULL, NULL, flip_x_lines, false},
    [STEP_FLIP_Y] = {flip_y_needs, NULL, NULL, flip_y_lines, false},
    [STEP_SHARPEN] = {sharpen_needs, NULL, NULL, sharpen_lines, true},
    [STEP_WARP] = {warp_step_needs, warp_step_lay, warp_step_begin, warp_step_lines, false},
    [STEP_BLUR] = {blur_step_needs, blur_step_lay, blur_step_begin, blur_step_lines, true},
    [STEP_BOX] = {box_step_needs, box_step_lay, box_step_begin, box_step_lines, true},
    [STEP_FORK] = {mix_step_needs, fork_step_lay, fork_step_begin, fork_step_lines, false},
    [STEP_ADD] = {mix_step_needs, add_step_lay, add_step_begin, add_step_lines, false},
    [STEP_ELASTIC] = {elastic_step_needs, elastic_step_lay, elastic_step_begin, elastic_step_lines, false},
    [STEP_JPEG] = {jpeg_step_needs, jpeg_step_lay, jpeg_step_begin, jpeg_step_lines, false},
    [STEP_NOISE] = {NULL, noise_step_lay, NULL, noise_step_lines, false},
    [STEP_GREY] = {.symmetric = true},
    [STEP_TABLE] = {table_needs, .symmetric = true},
    [STEP_MIX] = {.symmetric = true},
    [STEP_HUE] = {.symmetric = true},
    [STEP_PERMUTE] = {.symmetric = true},
};
