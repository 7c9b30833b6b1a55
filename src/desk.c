/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk.c -- the memory and tools of one thread, within its share of the budget.
 *
 * Between samples a desk holds at most its share. Buffers keep their size, because the next sample probably needs as
 * much, but together they may not exceed the share. A large image waits for its turn to use more than a share; that
 * memory is freed before the turn ends.
 */
#include "desk.h"

#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "source/field.h"

static int charge(struct desk *d, size_t need, stk_error *e)
{
    const int rc = d->budget ? budget_enter(d->budget, need, &d->in_turn, e) : STK_OK;
    d->refused |= rc != STK_OK;
    return rc;
}

/* For sources that learn the size of a sample only while they read it. */
static int allow(void *user, size_t bytes, stk_error *e)
{
    return charge(user, bytes, e);
}

int desk_init(struct desk *d, int thread, struct budget *b, bool codecs, stk_cpu cpu, stk_error *e)
{
    *d = (struct desk){.budget = b, .serial = -1, .reading = {.thread = thread, .allow = allow, .user = d}};
    return codecs ? decoder_new(&d->decoder, cpu, e) : STK_OK;
}

static void drop(struct desk *d)
{
    reading_done(&d->reading);
    buf_done(&d->spare);
    buf_done(&d->held);
    arena_done(&d->arena);
}

void desk_done(struct desk *d)
{
    drop(d);
    decoder_free(d->decoder);
    d->decoder = NULL;
}

size_t desk_held(const struct desk *d)
{
    const struct reading *r = &d->reading;
    const size_t reading = r->file.cap + r->derived.cap + r->masks.cap + r->spare[0].cap + r->spare[1].cap;
    return reading + d->spare.cap + d->held.cap + d->arena.cap;
}

static uint8_t *blank(struct desk *d, struct buf *f, size_t n)
{
    enum { SLACK = IMAGE_SLACK };
    if (d->budget && desk_held(d) > d->budget->share)
        drop(d);
    if (n > SIZE_MAX / 2 || charge(d, n + SLACK, NULL) != STK_OK || buf_reserve(f, n + SLACK))
        return NULL;
    f->len = n;
    memset(f->data + n, 0, SLACK);
    return f->data;
}

uint8_t *desk_blank(struct desk *d, size_t n)
{
    return blank(d, &d->reading.file, n);
}

uint8_t *desk_hold(struct desk *d, size_t n)
{
    return blank(d, &d->held, n);
}

/* Charges the bytes of the file and of data derived from it, whether the desk or the thread that reads ahead read the
 * file. */
static size_t file_bytes(const struct desk *d)
{
    const struct reading *r = &d->reading;
    return size_add(d->lent && r->file.len == 0 ? r->n_bytes : r->file.len, size_add(r->derived.len, d->held.len));
}

struct buf *desk_spare(struct desk *d, size_t most, size_t foreign)
{
    if (charge(d, size_add(size_add(most, foreign), file_bytes(d)), NULL) != STK_OK)
        return NULL;
    if (d->spare.cap > most)
        buf_done(&d->spare);
    d->spare.len = 0;
    d->spare.max = most;
    return &d->spare;
}

static int read_now(struct desk *d, const struct source *s, int64_t i, stk_error *e)
{
    struct reading *const r = &d->reading;
    r->probe = ahead_probes(d->ahead);
    const int rc = source_read(s, r, i, e);
    /* Bytes of the image; without one, of the record or line that contains the fields. */
    d->read = r->n_bytes > 0 ? r->n_bytes : r->file.len > 0 ? r->file.len : r->derived.len;
    if (rc == STK_OK)
        ahead_report(d->ahead, r->cold, r->file.len);
    return rc;
}

/* Uses bytes that were read ahead. */
static int borrow(struct desk *d, const struct source *s, int64_t i, const struct ahead_file *f, stk_error *e)
{
    d->ranges = f->ranges;
    d->read = f->read;
    return source_read_from(s, &d->reading, i, f->bytes, f->n, e);
}

int desk_read(struct desk *d, const struct source *s, int64_t i, stk_error *e)
{
    struct ahead_file f;
    if (d->budget && d->held.len == 0 && desk_held(d) > d->budget->share)
        drop(d);
    d->reading.derived.len = 0; /* if sources are joined, bytes may belong to another source */
    d->lent = ahead_take(d->ahead, d->serial, i, &f);
    int rc = charge(d, size_add(source_read_bytes(s, i), d->held.len), e);
    if (rc == STK_OK)
        rc = d->lent ? borrow(d, s, i, &f, e) : read_now(d, s, i, e);
    d->all_read = rc == STK_OK;
    d->rest_only = false;
    return rc;
}

int desk_read_rest(struct desk *d, const struct source *s, int64_t i, stk_error *e)
{
    d->reading.rest = true;
    const int rc = desk_read(d, s, i, e);
    d->reading.rest = false;
    d->rest_only = rc == STK_OK;
    return rc;
}

int desk_label(const struct desk *d, const struct source *s, int64_t i, int64_t *label, stk_error *e)
{
    int rc = STK_OK;
    *label = d->reading.label;
    for (int f = 0; f < source_n_fields(s) && rc == STK_OK; f++) {
        const struct field *of = source_field_at(s, i, f);
        const struct cell *c = &d->reading.cells[f];
        if (of->column < 0 || !source_is_label(of))
            continue;
        *label = -1;
        if (c->bytes || of->has_fill)
            rc = field_store(of, c, label, e);
    }
    return rc;
}

bool desk_had_ranges(struct desk *d)
{
    const bool had = d->ranges.n > 0;
    if (had)
        desk_clear(d);
    return had;
}

int desk_reserve(struct desk *d, size_t scratch, size_t foreign, stk_error *e)
{
    const size_t need = size_add(size_add(scratch, foreign), size_add(file_bytes(d), d->spare.len));
    const int rc = charge(d, need, e);
    if (rc != STK_OK)
        return rc;
    if (d->budget && scratch < d->arena.cap && size_add(desk_held(d), foreign) > d->budget->share)
        arena_done(&d->arena);
    return arena_reserve(&d->arena, scratch) == 0 ? STK_OK : error_nomem(e, "decode", scratch);
}

/* ------------------------------------------------------------------ the path of an image */

static struct desk_image encoded_image(const struct desk *d)
{
    return (struct desk_image){.bytes = d->reading.bytes, .n = d->reading.n_bytes};
}

struct desk_image desk_image(const struct desk *d, const struct source *s, int64_t i, int f)
{
    const struct field *of = source_field_at(s, i, f);
    if (of->kind == FIELD_PIXELS)
        return (struct desk_image){.form = DESK_PIXELS, .n = of->bytes, .source = s, .sample = i, .field = f};
    return encoded_image(d);
}

int desk_head(struct desk_image *im, const struct decode_limits *limits, stk_error *e)
{
    switch (im->form) {
    case DESK_FILE:
        return decode_head(im->bytes, im->n, limits, &im->head, e);
    case DESK_DCT:
        return decode_dct_head(im->bytes, im->n, limits, &im->head, e);
    case DESK_PIXELS: {
        const int64_t *shape = source_field_at(im->source, im->sample, im->field)->shape;
        im->head = (struct head){
            .w = (int32_t)shape[1], .h = (int32_t)shape[0], .channels = (int)shape[2], .bits = 8, .orientation = 1};
        return STK_OK;
    }
    case DESK_READY:
        break;
    }
    return STK_OK;
}

int desk_read_head(struct desk *d, const struct source *s, int64_t i, bool whole, const struct decode_limits *limits,
                   struct desk_image *im, stk_error *e)
{
    enum { HEAD_BYTES = 64 << 10 };
    int rc = STK_OK;
    *im = (struct desk_image){0};
    if (!whole) {
        rc = source_peek(s, &d->reading, i, HEAD_BYTES, e);
        if (rc != STK_OK)
            return rc;
        *im = encoded_image(d);
        if (desk_head(im, limits, NULL) == STK_OK)
            return STK_OK;
    }
    rc = desk_read(d, s, i, e);
    if (rc != STK_OK)
        return rc;
    *im = encoded_image(d);
    return desk_head(im, limits, e);
}

int desk_draw(const struct desk_image *im, const struct plan *p, const struct draw *d, struct job *out, stk_error *e)
{
    const int32_t w = head_width(&im->head), h = head_height(&im->head);
    const int rc = plan_draw(p, d, w, h, out, e);
    if (rc == STK_OK)
        plan_draft(p, out, w, h, decode_shrink(&im->head));
    return rc;
}

struct want desk_whole(const struct head *h)
{
    return (struct want){.crop = {.w = head_width(h), .h = head_height(h)}, .whole = true};
}

struct image image_crop(const struct image *im, struct rect c)
{
    struct image crop = *im;
    crop.px += (size_t)c.y * im->stride + (size_t)c.x * (size_t)im->channels;
    crop.w = c.w;
    crop.h = c.h;
    return crop;
}

/* Reserves memory for an image. scratch is 0 if it cannot be computed. */
static int reserve_for(struct desk *d, const struct head *h, size_t scratch, size_t more, size_t foreign, stk_error *e)
{
    const size_t all = size_add(scratch, more);
    return scratch > 0 && all < SIZE_MAX
               ? desk_reserve(d, all, foreign, e)
               : error_set(e, STK_EDATA, "decode", "the image has %d x %d pixels, too many to decode", h->w, h->h);
}

static int decode_bytes(struct desk *d, struct desk_image *im, const struct want *want, size_t more, stk_error *e)
{
    const struct head *h = &im->head;
    const bool dct = im->form == DESK_DCT;
    struct want some = *want;
    some.ranges = !dct && !im->apart && d->ranges.n > 0 ? &d->ranges : NULL;
    const int rc = reserve_for(d, h, decode_scratch(h, want), more, dct ? 0 : decode_foreign(h, want), e);
    if (rc != STK_OK) {
        decoder_drop_checkpoints(d->decoder);
        return rc;
    }
    if (dct)
        return decode_dct_pixels(d->decoder, im->bytes, im->n, h, &some, &d->arena, &im->pixels, e);
    return decode_pixels(d->decoder, im->bytes, im->n, h, &some, &d->arena, &im->pixels, &im->warnings, e);
}

/* Copies the source's pixels, unless im->bytes has them already. The image has three channels, also if it is grey. */
static int copy_pixels(struct desk *d, struct desk_image *im, const struct want *want, size_t more, stk_error *e)
{
    const struct head *h = &im->head;
    const size_t count = size_mul((size_t)h->w, (size_t)h->h), n = size_mul(count, 3);
    const bool grey = h->channels == 1;
    int rc = reserve_for(d, h, size_add(arena_cost(n), grey ? arena_cost(im->n) : 0), more, 0, e);
    if (rc != STK_OK)
        return rc;
    uint8_t *px = arena_alloc(&d->arena, n), *stored = grey ? arena_alloc(&d->arena, im->n) : px;
    if (!im->bytes) {
        rc = source_copy(im->source, &d->reading, im->sample, im->field, stored, e);
        im->bytes = stored;
    }
    if (rc != STK_OK)
        return rc;
    if (!grey && im->bytes != px)
        memcpy(px, im->bytes, im->n);
    for (size_t i = 0; grey && i < count; i++)
        px[3 * i] = px[3 * i + 1] = px[3 * i + 2] = im->bytes[i];
    const struct image whole = {.px = px, .stride = (size_t)h->w * 3, .w = h->w, .h = h->h, .channels = 3};
    im->pixels = image_crop(&whole, want->crop);
    return STK_OK;
}

int desk_decode(struct desk *d, struct desk_image *im, const struct want *want, size_t more, stk_error *e)
{
    if (im->form == DESK_PIXELS)
        return copy_pixels(d, im, want, more, e);
    if (im->form != DESK_READY)
        return decode_bytes(d, im, want, more, e);
    im->pixels = image_crop(&im->pixels, want->crop);
    return desk_reserve(d, more, 0, e);
}

/* ------------------------------------------------------------------ the end of a sample */

void desk_clear(struct desk *d)
{
    ahead_done(d->ahead, d->serial);
    d->serial = -1;
    d->lent = d->all_read = d->rest_only = d->refused = false;
    d->ranges.n = 0;
    d->spare.len = d->held.len = 0;
    if (!d->in_turn)
        return;
    drop(d);
    budget_leave(d->budget, &d->in_turn);
}
