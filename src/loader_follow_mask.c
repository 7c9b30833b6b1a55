/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_follow_mask.c -- masks: encoded images or numbers, of the size of the image, through the steps of its ops.
 */
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "loader.h"
#include "source/field.h"
#include "transform/follow.h"

static const char stage[] = "transform";

static int check_mask_size(const struct making_row *m, int64_t wide, int64_t high, stk_error *e)
{
    const struct following *f = &m->w->follow;
    if (wide == f->w && high == f->h)
        return STK_OK;
    const bool turned = wide == f->h && high == f->w && !m->l->options.no_exif;
    return error_set(e, STK_EDATA, stage, "%s has %lld x %lld pixels, but the image has %d x %d%s", m->of->name,
                     (long long)wide, (long long)high, (int)f->w, (int)f->h,
                     turned ? "; a mask belongs to the upright image, unless exif is off" : "");
}

/* Bytes of arena that the steps of every copy fit in; SIZE_MAX: overflow. */
static int steps_scratch(struct making_row *m, size_t element, size_t *out, stk_error *e)
{
    const struct following *f = &m->w->follow;
    int rc = STK_OK;
    *out = 0;
    for (int k = 0; k < m->l->copies && rc == STK_OK; k++) {
        rc = following_go(m, k, e);
        if (rc != STK_OK)
            return rc;
        const size_t one = follow_masks_scratch(m->v->plan, m->job, f->w, f->h, element);
        *out = one == 0 ? SIZE_MAX : one > *out ? one : *out;
    }
    return rc;
}

/* Says that the mask is damaged, not the image. */
static int damaged(const struct making_row *m, int rc, stk_error *e)
{
    char reason[sizeof e->reason];
    if (rc != STK_EDATA || !e)
        return rc;
    memcpy(reason, e->reason, sizeof reason);
    return error_set(e, rc, "decode", "%.100s: %s", m->of->name, reason);
}

/* Decodes a mask into the arena, with room for its steps. */
static int decode_mask(struct making_row *m, const struct cell *c, struct mask *out, stk_error *e)
{
    struct desk *d = &m->w->desk;
    struct decode_limits limits = options_limits(&m->l->options);
    struct desk_image im = {.bytes = c->bytes, .n = c->n, .apart = true};
    limits.no_exif = true;
    int rc = decode_head(c->bytes, c->n, &limits, &im.head, e);
    if (rc != STK_OK)
        return damaged(m, rc, e);
    if (im.head.format != STK_PNG || im.head.channels != 1)
        return error_set(e, STK_EDATA, stage,
                         "%s is a %s image with %d channels; a mask is a PNG with one channel: grey or a palette",
                         m->of->name, format_name(im.head.format), im.head.channels);
    rc = check_mask_size(m, im.head.w, im.head.h, e);
    if (rc != STK_OK)
        return rc;
    const bool deep = im.head.bits > 8;
    const size_t pixels = size_mul((size_t)im.head.w, (size_t)im.head.h);
    size_t steps;
    rc = steps_scratch(m, deep ? 4 : 1, &steps, e);
    if (rc != STK_OK)
        return rc;
    const size_t more = size_add(steps, deep ? arena_cost(size_mul(pixels, 4)) : 0);
    struct want want = desk_whole(&im.head);
    want.indices = true;
    rc = desk_decode(d, &im, &want, more, e);
    if (rc != STK_OK)
        return damaged(m, rc, e);
    *out = (struct mask){
        .px = im.pixels.px, .stride = im.pixels.stride, .w = im.head.w, .h = im.head.h, .element = deep ? 4 : 1};
    if (!deep)
        return STK_OK;
    int32_t *wide = arena_alloc(&d->arena, size_mul(pixels, 4));
    if (!wide)
        return error_set(e, STK_EBUG, stage, "the arena has no room for a mask; please report this");
    for (int32_t y = 0; y < out->h; y++)
        for (int32_t x = 0; x < out->w; x++) {
            uint16_t v;
            memcpy(&v, im.pixels.px + (size_t)y * im.pixels.stride + 2 * (size_t)x, sizeof v);
            wide[(size_t)y * (size_t)out->w + (size_t)x] = v;
        }
    out->px = wide;
    out->stride = (size_t)out->w * 4;
    return STK_OK;
}

/* Numbers as masks: `raw`, or the cell itself. n: how many, if the field has three dimensions. */
static int mask_of_numbers(struct making_row *m, const struct cell *c, int ndim, struct mask *out, int64_t *n,
                           stk_error *e)
{
    struct following *f = &m->w->follow;
    struct field as = *m->of;
    const bool small = ndim == 3 || c->dtype == STK_UINT8 || c->dtype == STK_BOOL;
    const int64_t *shape = c->shape;
    int rc = STK_OK;
    as.dtype = small ? STK_UINT8 : STK_INT32;
    *out = (struct mask){.px = c->bytes, .element = small ? 1 : 4};
    if (!c->bytes || c->dtype != STK_UINT8 || c->ndim != ndim || shape[0] < 0) {
        rc = field_ragged_row(&as, c, &f->raw, e);
        out->px = f->raw.data;
        shape = f->raw.shape;
    }
    if (rc != STK_OK)
        return rc;
    *n = ndim == 3 ? shape[0] : 1;
    out->h = (int32_t)shape[ndim - 2];
    out->w = (int32_t)shape[ndim - 1];
    out->stride = (size_t)out->w * out->element;
    if (out->px == c->bytes && size_mul(size_mul((size_t)*n, (size_t)out->h), (size_t)out->w) != c->n)
        return error_set(e, STK_EDATA, stage, "%s has %zu bytes, which do not fit its shape", m->of->name, c->n);
    rc = *n > 0 ? check_mask_size(m, shape[ndim - 1], shape[ndim - 2], e) : STK_OK;
    size_t steps = 0;
    if (rc == STK_OK)
        rc = steps_scratch(m, out->element, &steps, e);
    if (rc == STK_OK)
        rc = desk_reserve(&m->w->desk, steps, following_held(f), e);
    return rc;
}

/* The steps of this copy, in the arena. */
static int begin_steps(const struct making_row *m, size_t element, struct follow_masks **out, stk_error *e)
{
    const struct following *f = &m->w->follow;
    *out = follow_masks_begin(m->v->plan, m->job, f->w, f->h, element, &m->w->desk.arena);
    return *out ? STK_OK
                : error_set(e, STK_EBUG, stage, "the arena has no room for the steps of a mask; please report this");
}

/* Writes the mask of this copy to its place in the batch. */
static int put_mask(const struct making_row *m, const struct mask *in, stk_error *e)
{
    const struct field *to = &m->b->depot->fields[m->to];
    const int64_t shape[2] = {m->job->h, m->job->w};
    const size_t bytes = size_mul(size_mul((size_t)shape[0], (size_t)shape[1]), dtype_bytes(to->dtype));
    struct ragged_row *own = to->frame ? batch_open_ragged(m->b, m->to, m->at) : NULL;
    struct follow_masks *steps;
    uint8_t *row = NULL;
    int32_t value = 0;
    if (to->frame && !own)
        return STK_OK; /* the whole batch will be refused */
    int rc = begin_steps(m, in->element, &steps, e);
    if (rc == STK_OK && own)
        rc = ragged_row_reserve(own, bytes) ? error_nomem(e, stage, bytes) : STK_OK;
    else if (rc == STK_OK && to->kind == FIELD_OPEN)
        rc = batch_open_row(m->b, m->to, shape, bytes, &row, e);
    else if (rc == STK_OK)
        row = batch_row(m->b, m->to, m->row) + (size_t)m->copy * bytes;
    if (rc == STK_OK && !follow_mask(steps, in, to->dtype, own ? own->data : row, &value))
        rc = error_set(e, STK_EDATA, stage, "%s has the value %d, which uint8 cannot hold; use %s:mask(int32)",
                       m->of->name, (int)value, m->of->name);
    if (own) {
        own->n = rc == STK_OK ? bytes : 0;
        memset(own->shape, 0, sizeof own->shape);
        memcpy(own->shape, shape, sizeof shape);
        batch_close_ragged(m->b, own);
    }
    return rc;
}

int following_mask(struct making_row *m, stk_error *e)
{
    struct arena *a = &m->w->desk.arena;
    const struct cell *c = following_cell(m);
    struct mask in;
    int64_t one;
    if (!c->bytes)
        return error_set(e, STK_EDATA, stage, "the sample has no %s", m->of->name);
    int rc = m->of->what == STK_BYTES ? decode_mask(m, c, &in, e) : mask_of_numbers(m, c, 2, &in, &one, e);
    const size_t used = a->used;
    for (int k = 0; k < m->l->copies && rc == STK_OK; k++) {
        a->used = used;
        rc = following_go(m, k, e);
        if (rc == STK_OK)
            rc = put_mask(m, &in, e);
    }
    return rc;
}

/* Writes the masks of the boxes that this copy keeps. */
static int put_masks(const struct making_row *m, struct mask in, int64_t n, struct ragged_row *to, stk_error *e)
{
    const bool all = m->l->follow.boxes < 0;
    const size_t plane = size_mul((size_t)m->job->w, (size_t)m->job->h);
    struct follow_masks *steps;
    int64_t kept = 0;
    int32_t value = 0;
    for (int64_t i = 0; i < n; i++)
        kept += all || m->keep[i];
    const size_t bytes = size_mul(plane, (size_t)kept);
    int rc = begin_steps(m, 1, &steps, e);
    if (rc == STK_OK && (bytes == SIZE_MAX || ragged_row_reserve(to, bytes)))
        rc = error_nomem(e, stage, bytes);
    if (rc != STK_OK)
        return rc;
    uint8_t *at = to->data;
    for (int64_t i = 0; i < n; i++, in.px = (const uint8_t *)in.px + (size_t)in.h * in.stride) {
        if (!all && !m->keep[i])
            continue;
        follow_mask(steps, &in, STK_UINT8, at, &value);
        at += plane;
    }
    to->n = bytes;
    to->shape[0] = kept;
    to->shape[1] = m->job->h;
    to->shape[2] = m->job->w;
    return STK_OK;
}

int following_masks(struct making_row *m, stk_error *e)
{
    struct arena *a = &m->w->desk.arena;
    struct mask in;
    int64_t n = 0;
    int rc = mask_of_numbers(m, following_cell(m), 3, &in, &n, e);
    if (rc == STK_OK)
        rc = following_check_count(m, n, e);
    const size_t used = a->used;
    for (int k = 0; k < m->l->copies && rc == STK_OK; k++) {
        a->used = used;
        rc = following_go(m, k, e);
        struct ragged_row *to = rc == STK_OK ? batch_open_ragged(m->b, m->to, m->at) : NULL;
        if (!to)
            continue; /* the whole batch will be refused */
        to->n = 0;
        memset(to->shape, 0, sizeof to->shape);
        rc = put_masks(m, in, n, to, e);
        batch_close_ragged(m->b, to);
    }
    return rc;
}
