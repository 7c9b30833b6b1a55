/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_mix.c -- several chains of steps from one image, whose results are added with weights.
 *
 *     fork -> step -> step -> add -> step -> add -> ... -> add (the last)
 *
 * A fork remembers the image that it gets. Every add but the last gives that image back, for the next chain. Sums are
 * in single precision, in the order of the chains.
 */
#include <string.h>

#include "base/size.h"
#include "transform/stage.h"

/* Shared by a fork and its adds. */
struct stage_mix {
    struct image from;
    float *sum; /* of the whole image, dense */
};

struct rect mix_step_needs(const struct step *s)
{
    return (struct rect){0, 0, s->in_w, s->in_h};
}

void fork_step_lay(struct room *r, struct stage *st)
{
    const struct step *s = st->s;
    struct stage_mix *m = room_take(r, sizeof *m);
    float *sum = room_take(r, size_mul(size_mul((size_t)s->in_w, (size_t)s->in_h), (size_t)s->in * sizeof *sum));
    if (m)
        m->sum = sum;
    r->mix = st->memory = m;
}

void add_step_lay(struct room *r, struct stage *st)
{
    st->memory = r->mix;
}

static void add_image(const struct kernels *k, const struct stage *st, bool first)
{
    const struct stage_mix *m = st->memory;
    const size_t n = (size_t)st->in.w * (size_t)st->in.channels;
    for (int32_t y = 0; y < st->in.h; y++)
        k->weigh(m->sum + (size_t)y * n, image_line(&st->in, y), n, st->s->mix.weight, first);
}

void fork_step_begin(const struct kernels *k, struct stage *st)
{
    struct stage_mix *m = st->memory;
    m->from = st->in;
    add_image(k, st, true);
}

void add_step_begin(const struct kernels *k, struct stage *st)
{
    add_image(k, st, false);
}

static const uint8_t *kept_line(const struct stage *st, int32_t y)
{
    const struct step *s = st->s;
    const struct stage_mix *m = st->memory;
    return image_line(&m->from, s->need.y + y) + (size_t)s->need.x * (size_t)s->channels;
}

void fork_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const size_t bytes = (size_t)st->s->need.w * (size_t)st->s->channels;
    (void)k;
    for (int32_t i = 0; i < n; i++)
        memcpy(dst + (size_t)i * stride, kept_line(st, y + i), bytes);
}

/* The mixture, or Pillow's blend of the image with it. */
static void mixed_line(const struct kernels *k, const struct step *s, uint8_t *dst, const float *sum,
                       const uint8_t *kept, size_t n)
{
    k->settle(dst, sum, n);
    for (size_t i = 0; i < n && s->mix.blended; i++) {
        const float v = (float)kept[i] + s->mix.share * (float)(dst[i] - kept[i]);
        dst[i] = (uint8_t)(int)v; /* the share is from 0 to 1 */
    }
}

void add_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride)
{
    const struct step *s = st->s;
    const struct stage_mix *m = st->memory;
    const size_t ch = (size_t)s->channels;
    if (!s->mix.last) {
        fork_step_lines(k, st, y, n, dst, stride);
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        const float *sum = m->sum + ((size_t)(s->need.y + y + i) * (size_t)s->in_w + (size_t)s->need.x) * ch;
        mixed_line(k, s, dst + (size_t)i * stride, sum, kept_line(st, y + i), (size_t)s->need.w * ch);
    }
}
