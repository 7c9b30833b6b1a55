/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep_pixels.c -- pictures kept as they are after the last op that does not depend on a draw.
 *
 * 8-bit, with a head of four numbers. Rows that are wholly settled are kept so, too, and not as floats: a quarter of
 * the room, and making floats of them costs no more than copying floats would.
 */
#include <string.h>

#include "base/size.h"
#include "loader.h"

/* In front of kept pixels, in this machine's byte order. */
struct shape {
    uint32_t w, h, channels, none;
};

/* Kept pixels as an image; what is not of the form that is put here is none. */
static bool as_image(const struct stk_loader *l, const uint8_t *bytes, size_t n, struct image *out)
{
    struct shape s;
    if (n < sizeof s)
        return false;
    memcpy(&s, bytes, sizeof s);
    if (s.w < 1 || s.h < 1 || s.w > INT32_MAX / 4 || s.h > INT32_MAX ||
        (int)s.channels != plan_head_channels(l->plan) || size_mul(size_mul(s.w, s.channels), s.h) != n - sizeof s)
        return false;
    *out = (struct image){.px = (uint8_t *)(uintptr_t)bytes + sizeof s, /* an image is never written to */
                          .stride = (size_t)s.w * s.channels,
                          .w = (int32_t)s.w,
                          .h = (int32_t)s.h,
                          .channels = (int32_t)s.channels};
    return true;
}

static struct image part_of(const struct image *im, struct rect c)
{
    struct image part = *im;
    part.px += (size_t)c.y * im->stride + (size_t)c.x * (size_t)im->channels;
    part.w = c.w;
    part.h = c.h;
    return part;
}

bool keep_row_pixels(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row)
{
    const uint8_t *bytes;
    size_t n;
    struct image im;
    struct job job;
    uint64_t clock = now_ns();
    const bool found = keep_fetch(l, w, (int64_t)d->sample, &bytes, &n) && as_image(l, bytes, n, &im);
    keep_lap(&w->count.read_ns, &clock);
    if (!found || plan_draw_rest(l->plan, d, im.w, im.h, &job, NULL) != STK_OK)
        return false;
    const size_t scratch = plan_scratch(l->plan, &job);
    if (scratch == 0 || desk_reserve(&w->desk, scratch, 0, NULL) != STK_OK)
        return false;
    const struct image part = part_of(&im, job.want.crop);
    const bool done = loader_row(l, w, &job, &row, NULL) == STK_OK &&
                      plan_run(l->plan, &job, &part, &w->desk.arena, row, NULL) == STK_OK;
    keep_lap(&w->count.transform_ns, &clock);
    return done;
}

/* Both halves of the ops, drawn before anything is decoded, and what they take. */
struct halves {
    struct job head, rest;
    size_t bytes; /* of what is kept */
};

static bool draw_halves(struct stk_loader *l, struct worker *w, const struct draw *d, const struct head *h,
                        struct halves *v)
{
    if (plan_draw_head(l->plan, head_width(h), head_height(h), &v->head, NULL) != STK_OK ||
        plan_draw_rest(l->plan, d, v->head.w, v->head.h, &v->rest, NULL) != STK_OK)
        return false;
    plan_draft(l->plan, &v->head, head_width(h), head_height(h), decode_shrink(h));
    v->bytes = size_add(size_mul(size_mul((size_t)v->head.w, (size_t)v->head.h), (size_t)v->head.channels),
                        sizeof(struct shape));
    if (!cache_has_room(l->keep.cache, (int64_t)d->sample, v->bytes))
        return false;
    const size_t decode = decode_scratch(h, &v->head.want), head = plan_scratch(l->plan, &v->head),
                 rest = plan_scratch(l->plan, &v->rest);
    if (decode == 0 || head == 0 || rest == 0)
        return false;
    const size_t all = size_add(size_add(decode, head), size_add(rest, arena_cost(v->bytes)));
    return all != SIZE_MAX && desk_reserve(&w->desk, all, decode_foreign(h, &v->head.want), NULL) == STK_OK;
}

bool keep_fill_pixels(struct stk_loader *l, struct worker *w, const struct draw *d, const struct head *h, uint8_t *row)
{
    const struct reading *r = &w->desk.reading;
    struct arena *a = &w->desk.arena;
    struct halves v;
    struct image image, kept;
    int warnings = 0;
    if (!draw_halves(l, w, d, h, &v))
        return false;
    uint64_t clock = now_ns();
    if (decode_pixels(w->desk.decoder, r->bytes, r->n_bytes, h, &v.head.want, a, &image, &warnings, NULL) != STK_OK ||
        warnings > 0)
        return false;
    keep_lap(&w->count.decode_ns, &clock);
    uint8_t *bytes = arena_alloc(a, v.bytes);
    if (!bytes)
        return false;
    const struct shape shape = {(uint32_t)v.head.w, (uint32_t)v.head.h, (uint32_t)v.head.channels, 0};
    memcpy(bytes, &shape, sizeof shape);
    if (plan_run(l->plan, &v.head, &image, a, bytes + sizeof shape, NULL) != STK_OK ||
        !as_image(l, bytes, v.bytes, &kept))
        return false;
    cache_put(l->keep.cache, (int64_t)d->sample, keep_read_identity(l, w, (int64_t)d->sample), bytes, v.bytes);
    const struct image part = part_of(&kept, v.rest.want.crop);
    const bool done =
        loader_row(l, w, &v.rest, &row, NULL) == STK_OK && plan_run(l->plan, &v.rest, &part, a, row, NULL) == STK_OK;
    keep_lap(&w->count.transform_ns, &clock);
    return done;
}
