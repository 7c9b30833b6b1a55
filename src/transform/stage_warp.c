/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_warp.c -- the steps that take pixels from elsewhere: maps, blurs and elastic distortions; and noise.
 */
#include "base/size.h"
#include "transform/grid.h"
#include "transform/stage.h"

/* ------------------------------------------------------------------ maps */

struct rect warp_step_needs(const struct step *s)
{
    return s->warp.tensor ? (struct rect){0, 0, s->in_w, s->in_h} : warp_needs(&s->warp, s->need);
}

void warp_step_lay(struct room *r, struct stage *st)
{
    const struct warp *w = &st->s->warp;
    st->memory = room_take(r, w->tensor ? size_mul(2 * sizeof(float), (size_t)w->w) : warp_table(w));
}

/* Prefetches an image that fits the L2 cache: lines of a map cross its lines, which the CPU does not foresee. */
static void prefetch(const struct image *im)
{
    enum { MOST = 512 << 10, LINE = 64 };
    const size_t bytes = (size_t)im->w * (size_t)im->channels;
    for (int32_t y = 0; y < im->h && bytes * (size_t)im->h <= MOST; y++)
        for (size_t i = 0; i < bytes; i += LINE)
            __builtin_prefetch(image_line(im, y) + i);
}

void warp_step_begin(const struct kernels *k, struct stage *st)
{
    (void)k;
    prefetch(&st->in);
    if (!st->s->warp.tensor)
        warp_begin(&st->s->warp, st->memory);
}

static void grid_lines(struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const struct step *s = st->s;
    float *x_of = st->memory, *y_of = x_of + s->w;
    for (int32_t i = 0; i < n; i++) {
        grid_line(&s->warp, s->need.y + y + i, x_of, y_of);
        grid_pixels(&s->warp, &st->in, x_of + s->need.x, y_of + s->need.x, s->need.w, dst + (size_t)i * stride);
    }
}

void warp_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const struct step *s = st->s;
    const struct warp_source from = {.warp = &s->warp, .table = st->memory, .in = st->in, .from = s->from};
    if (s->warp.tensor) {
        grid_lines(st, y, n, dst, stride);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        warp_line(k, &from, s->need.x, s->need.y + y + i, s->need.w, dst + (size_t)i * stride);
}

/* ------------------------------------------------------------------ blurs */

struct blur_memory {
    struct blur blur;
    void *room;
};

struct rect blur_step_needs(const struct step *s)
{
    return blur_needs(s->need, s->blur.size[0], s->blur.size[1], s->in_w, s->in_h);
}

void blur_step_lay(struct room *r, struct stage *st)
{
    const struct step *s = st->s;
    struct blur_memory *m = st->memory = room_take(r, sizeof *m);
    void *room = room_take(r, blur_room(s->blur.size[0], s->from.w, s->channels));
    if (m)
        m->room = room;
}

void blur_step_begin(const struct kernels *k, struct stage *st)
{
    struct blur_memory *m = st->memory;
    (void)k;
    blur_axis_init(&m->blur.x, st->s->blur.size[0], st->s->blur.sigma);
    blur_axis_init(&m->blur.y, st->s->blur.size[1], st->s->blur.sigma);
}

void blur_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const struct step *s = st->s;
    struct blur_memory *m = st->memory;
    const struct blur_source from = {
        .in = st->in, .from = s->from, .w = s->in_w, .h = s->in_h, .x = s->need.x, .n = s->need.w};
    for (int32_t i = 0; i < n; i++)
        blur_line(k, &m->blur, &from, s->need.y + y + i, m->room, dst + (size_t)i * stride);
}

/* ------------------------------------------------------------------ elastic distortions */

struct rect elastic_step_needs(const struct step *s)
{
    return elastic_needs(&s->elastic, s->need);
}

void elastic_step_lay(struct room *r, struct stage *st)
{
    st->memory = room_take(r, elastic_room(&st->s->elastic, st->s->need));
}

void elastic_step_begin(const struct kernels *k, struct stage *st)
{
    (void)k;
    elastic_begin(&st->s->elastic, st->s->need, st->memory);
}

void elastic_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const struct step *s = st->s;
    for (int32_t i = 0; i < n; i++)
        elastic_line(k, &s->elastic, &st->in, s->from, s->need.y + y + i, st->memory, dst + (size_t)i * stride);
}

/* ------------------------------------------------------------------ JPEG */

/* Blocks start at the corner, and chroma is smoothed across them. */
struct rect jpeg_step_needs(const struct step *s)
{
    return (struct rect){0, 0, s->in_w, s->in_h};
}

void jpeg_step_lay(struct room *r, struct stage *st)
{
    const size_t room = trip_room(st->s->in_w, st->s->in_h, st->s->channels);
    st->memory = room_take(r, size_add(sizeof(struct trip), room));
}

void jpeg_step_begin(const struct kernels *k, struct stage *st)
{
    struct trip *t = st->memory;
    trip_begin(k, t, &st->in, st->s->quality, t + 1);
}

void jpeg_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const struct rect need = st->s->need;
    for (int32_t i = 0; i < n; i++)
        trip_line(k, st->memory, need.y + y + i, need.x, need.w, dst + (size_t)i * stride);
}

/* ------------------------------------------------------------------ noise */

void noise_step_lay(struct room *r, struct stage *st)
{
    st->memory = room_take(r, size_mul(sizeof(float) * (size_t)st->s->channels, (size_t)st->s->need.w));
}

void noise_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const struct step *s = st->s;
    const size_t channels = (size_t)s->channels, values = (size_t)s->need.w * channels;
    float *noise = st->memory;
    for (int32_t i = 0; i < n; i++, dst += stride) {
        const uint8_t *src = image_line(&st->in, y + i);
        const uint64_t pixel = (uint64_t)(s->need.y + y + i) * (uint64_t)s->w + (uint64_t)s->need.x;
        noise_field(noise, s->noise.seed, pixel * channels, values, k->noise.normal);
        k->noise.add(dst, src, noise, s->noise.mean, s->noise.sigma, values, s->noise.wrap);
    }
}
