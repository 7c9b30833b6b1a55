/* SPDX-License-Identifier: Apache-2.0 */
/*
 * get.c -- rows outside of the order: single samples and whole batches as in an epoch, and their random draws.
 *
 * The last worker does this in the caller's thread. It has no thread and no share of the budget, is protected by
 * `getting`, and keeps nothing.
 */
#include "base/error.h"
#include "base/json.h"
#include "base/rng.h"
#include "loader.h"

struct worker *loader_get_begin(struct stk_loader *l)
{
    pthread_mutex_lock(&l->getting);
    return &l->workers[l->options.threads];
}

void loader_get_end(struct stk_loader *l, struct worker *w)
{
    arena_done(&w->desk.arena);
    buf_trim(&w->desk.reading.file, 0);
    pthread_mutex_unlock(&l->getting);
}

/* ------------------------------------------------------------------ which sample, which repeat */

static int check_position(const struct stk_loader *l, int64_t position, stk_error *e)
{
    if (position >= 0 && (l->order.sampled || position < l->order.n))
        return STK_OK;
    return error_set(e, STK_EUSAGE, "get", "there is no position %lld; an epoch has %lld positions, counted from 0",
                     (long long)position, (long long)l->order.n);
}

/* sample is NULL: the sample that our own order has at the position. position is NULL: the first occurrence. */
static int find(struct stk_loader *l, struct worker *w, int64_t epoch, const int64_t *sample, const int64_t *position,
                struct pick *out, stk_error *e)
{
    int rc = sample ? loader_check_sample(l->source, "get", *sample, e) : STK_OK;
    if (rc == STK_OK && position)
        rc = check_position(l, *position, e);
    if (rc != STK_OK)
        return rc;
    if (!sample && (!position || l->order.sampled))
        return error_set(e, STK_EUSAGE, "get", "give the samples to get: %s",
                         position ? "a position alone is not enough if the caller gives the order"
                                  : "neither samples nor positions are given");
    *out = (struct pick){.repeat = position && l->order.sampled ? order_repeat(&l->order, *position) : 0};
    if (position && !l->order.sampled)
        *out = order_at(&l->order, &w->walk, epoch, *position);
    if (sample)
        out->index = *sample;
    return STK_OK;
}

/* ------------------------------------------------------------------ rows */

static int get_rows(struct stk_loader *l, struct worker *w, struct stk_batch *b, const int64_t *samples,
                    const int64_t *positions, int64_t n, stk_error *e)
{
    for (int64_t row = 0; row < n; row++) {
        struct pick p;
        int rc = find(l, w, b->epoch, samples ? &samples[row] : NULL, positions ? &positions[row] : NULL, &p, e);
        if (rc != STK_OK)
            return rc;
        rc = loader_make_row(l, w, b, row, positions ? positions[row] : row, p, e);
        if (rc == STK_OK)
            continue;
        loader_blame(l->source, p.index, e);
        return rc;
    }
    batch_set_rows(b, n);
    return batch_join(b, e);
}

static int check_request(const struct stk_loader *l, int64_t n, int64_t epoch, stk_error *e)
{
    if (n < 0 || epoch < 0)
        return error_set(e, STK_EUSAGE, "get", "cannot get %lld samples of epoch %lld; neither may be negative",
                         (long long)n, (long long)epoch);
    if (n > 1 && l->plan && plan_is_open(l->plan) && l->options.sizes == STK_SIZES_SAME)
        return error_set(e, STK_EUSAGE, "get",
                         "the ops make images of different sizes: get one sample at a time, or end the ops with "
                         "CenterCrop(224)");
    return STK_OK;
}

/* A batch with room for n rows. One that is larger than the loader's own batches comes from a depot that is closed at
 * once, so that its memory is freed when the caller releases it. */
static struct stk_batch *take_batch(struct stk_loader *l, int64_t n, stk_error *e)
{
    struct depot *d = l->depot;
    const bool large = n > l->options.batch_size;
    const size_t bytes = depot_batch_bytes(d->fields, d->n_fields, large ? n : l->options.batch_size);
    if (large && (bytes == 0 || depot_open(&d, d->fields, d->n_fields, d->n_plain, n, 0, &d->allocator, NULL)))
        d = NULL;
    if (large && d)
        loader_device_follow(l, d);
    struct stk_batch *b = d ? depot_take(d) : NULL;
    if (large)
        depot_close(d);
    if (!b)
        error_nomem(e, "get", bytes);
    return b;
}

/* Delivers a batch once the device is done with it: no later batch may come that would report damage. */
static int deliver(struct stk_loader *l, struct stk_batch *b, int rc, stk_batch **out, stk_error *e)
{
    if (rc == STK_OK && l->device.cuda)
        rc = loader_device_settle(l, e);
    if (rc == STK_OK)
        *out = l->device.cuda ? loader_device_take(b) : b;
    else
        stk_release(b);
    return rc;
}

int stk_loader_get(stk_loader *l, const int64_t *samples, const int64_t *positions, int64_t n, int64_t epoch,
                   stk_batch **out, stk_error *e)
{
    *out = NULL;
    int rc = loader_check(l, e);
    if (rc == STK_OK)
        rc = check_request(l, n, epoch, e);
    if (rc != STK_OK)
        return rc;
    struct stk_batch *b = take_batch(l, n, e);
    if (!b)
        return STK_ENOMEM;
    b->epoch = epoch;
    b->first = 0;
    struct worker *w = loader_get_begin(l);
    rc = get_rows(l, w, b, samples, positions, n, e);
    loader_get_end(l, w);
    if (rc == STK_OK && l->device.cuda)
        rc = loader_device_send(l, b, e);
    return deliver(l, b, rc, out, e);
}

/* ------------------------------------------------------------------ whole batches */

static int check_make(const struct stk_loader *l, int64_t epoch, int64_t first, const int64_t *samples, int64_t n,
                      stk_error *e)
{
    int rc = check_request(l, n, epoch, e);
    if (rc == STK_OK && (first < 0 || n > l->options.batch_size || (!samples && l->order.sampled)))
        rc =
            error_set(e, STK_EUSAGE, "get", "cannot make %lld rows from position %lld on%s", (long long)n,
                      (long long)first, n > l->options.batch_size ? "; batch_size is smaller" : "; give their samples");
    for (int64_t i = 0; samples && i < n && rc == STK_OK; i++)
        if (samples[i] < 0 || samples[i] >= l->order.samples)
            rc = error_set(e, STK_EUSAGE, "get", "there is no sample %lld; there are %lld samples, counted from 0",
                           (long long)samples[i], (long long)l->order.samples);
    return rc;
}

int stk_loader_make(stk_loader *l, int64_t epoch, int64_t first, const int64_t *samples, int64_t n, int64_t *row,
                    stk_batch **out, stk_error *e)
{
    *out = NULL;
    int rc = loader_check(l, e);
    if (rc == STK_OK)
        rc = check_make(l, epoch, first, samples, n, e);
    if (rc != STK_OK)
        return rc;
    struct ticket t = {
        .to = take_batch(l, n, e), .epoch = epoch, .first = first, .rows = n, .all_rows = n, .samples = samples};
    if (!t.to)
        return STK_ENOMEM;
    t.to->epoch = epoch;
    t.to->first = first;
    struct worker *w = loader_get_begin(l);
    loader_make_rows(l, w, &t, row);
    loader_get_end(l, w);
    if (t.bads && t.bads->machine) { /* the batch may be made again, and its bad samples count then */
        bads_free(t.bads->next);
        t.bads->next = NULL;
    }
    rc = loader_finish(l, t.to, n, t.bads, e);
    if (t.no_memory && rc == STK_OK)
        rc = error_nomem(e, "get", sizeof *t.bads);
    return deliver(l, t.to, rc, out, e);
}

static int no_order(int64_t epoch, stk_error *e)
{
    return error_set(e, STK_EUSAGE, "order", "epoch %lld has no order; give one with stk_loader_set_order",
                     (long long)epoch);
}

int stk_loader_span(stk_loader *l, int64_t ahead, int64_t *epoch, int64_t *first, int64_t *n, stk_error *e)
{
    struct span s = {0};
    int rc = loader_check(l, e);
    if (rc == STK_OK)
        rc = ring_span(&l->ring, ahead, &s);
    *epoch = s.epoch;
    *first = s.first;
    *n = s.rows;
    return rc == STK_EUSAGE ? no_order(stk_loader_epoch(l), e) : rc;
}

int stk_loader_pass(stk_loader *l, stk_error *e)
{
    const int rc = loader_check(l, e);
    const int passed = rc == STK_OK ? ring_pass(&l->ring) : rc;
    return passed == STK_EUSAGE ? no_order(stk_loader_epoch(l), e) : passed;
}

/* ------------------------------------------------------------------ what was drawn */

static int finish_text(const struct text_out *text, stk_error *e)
{
    if (text->used < text->n)
        return STK_OK;
    return error_set(e, STK_EUSAGE, "get",
                     "the buffer of %zu bytes is too small for the random draws; %d bytes are enough", text->n,
                     STK_DRAWN_BYTES);
}

/* The size of an image before the ops; 0 x 0 without one. Takes its boxes, by which an op may draw. */
static int image_size(struct stk_loader *l, struct worker *w, int64_t sample, int32_t *wide, int32_t *high,
                      stk_error *e)
{
    *wide = *high = 0;
    if (l->image < 0)
        return STK_OK;
    const struct decode_limits limits = options_limits(&l->options);
    int rc = STK_OK;
    if (source_field_at(l->source, sample, l->image)->kind == FIELD_ENCODED || l->follow.n > 0)
        rc = desk_read(&w->desk, l->source, sample, e);
    struct desk_image im = desk_image(&w->desk, l->source, sample, l->image);
    if (rc == STK_OK)
        rc = desk_head(&im, &limits, e);
    if (rc == STK_OK) {
        *wide = head_width(&im.head);
        *high = head_height(&im.head);
    }
    if (rc == STK_OK && l->follow.n > 0)
        rc = loader_follow_begin(l, w, sample, *wide, *high, e);
    desk_clear(&w->desk);
    return rc;
}

static int describe(struct stk_loader *l, struct worker *w, const struct draw *d, struct json *j, stk_error *e)
{
    int32_t wide, high;
    int rc = image_size(l, w, (int64_t)d->sample, &wide, &high, e);
    if (rc != STK_OK)
        return rc;
    json_open(j, NULL, '{');
    json_uint(j, "sample", d->sample);
    json_open(j, "size", '[');
    json_int(j, NULL, high);
    json_int(j, NULL, wide);
    json_close(j, ']');
    if (l->plan)
        rc = loader_views_drawn(l, d, wide, high, j, e);
    else
        json_raw(j, "ops", "[]");
    if (source_fills_rows(l->source))
        json_uint(j, "fill", rng_of_hook(d, "fill"));
    if (l->op.run)
        json_uint(j, "op", rng_of_hook(d, "op"));
    json_close(j, '}');
    return rc;
}

int stk_loader_drawn(stk_loader *l, const int64_t *sample, const int64_t *position, int64_t epoch, char *buf, size_t n,
                     stk_error *e)
{
    int rc = loader_check(l, e);
    if (rc != STK_OK)
        return rc;
    if (epoch < 0)
        return error_set(e, STK_EUSAGE, "get", "epoch is %lld; epochs count from 0", (long long)epoch);
    struct worker *w = loader_get_begin(l);
    struct pick p;
    rc = find(l, w, epoch, sample, position, &p, e);
    if (rc == STK_OK) {
        struct draw d = loader_draw(l, epoch, p);
        d.boxes = l->follow.n > 0 && l->follow.boxes >= 0 ? &w->follow.boxes : NULL;
        struct text_out text = {.buf = buf, .n = n};
        struct json j = {.text = &text, .layout = JSON_ONE_LINE};
        rc = describe(l, w, &d, &j, e);
        if (rc == STK_OK)
            rc = finish_text(&text, e);
        if (rc != STK_OK)
            loader_blame(l->source, p.index, e);
    }
    loader_get_end(l, w);
    return rc;
}

int stk_loader_blended(stk_loader *l, int64_t first, int64_t rows, int64_t row, int64_t epoch, char *buf, size_t n,
                       stk_error *e)
{
    const int rc = loader_check(l, e);
    if (rc != STK_OK)
        return rc;
    if (first < 0 || row < 0 || row >= rows || epoch < 0)
        return error_set(e, STK_EUSAGE, "get", "there is no row %lld of %lld rows from position %lld of epoch %lld",
                         (long long)row, (long long)rows, (long long)first, (long long)epoch);
    struct text_out text = {.buf = buf, .n = n};
    struct json j = {.text = &text, .layout = JSON_ONE_LINE};
    json_open(&j, NULL, '{');
    if (l->soft >= 0) {
        const struct draw d = loader_blend_draw(l, epoch, first);
        plan_blend_drawn(l->plan, &d, row, rows, &j);
    }
    json_close(&j, '}');
    return finish_text(&text, e);
}
