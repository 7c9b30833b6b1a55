/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c -- joins the stages: one worker takes one sample from its bytes to its row.
 *
 *     ticket -> read -> head -> draw -> decode -> transform -> row
 *
 * make_picture below is that path, and keep.c the short cuts that later epochs take; all else here gives it its
 * tickets, its memory and its policy on errors. Nothing is shared between workers but the ring, the source and the
 * plan, which are read-only, and the budget.
 */
#include "loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"

/* ------------------------------------------------------------------ one sample */

static uint64_t lap(_Atomic uint64_t *sum, uint64_t since)
{
    const uint64_t now = now_ns();
    atomic_fetch_add_explicit(sum, now - since, memory_order_relaxed);
    return now;
}

static void count_read(struct worker *w, size_t bytes)
{
    atomic_fetch_add_explicit(&w->count.read_bytes, bytes, memory_order_relaxed);
}

/* Room for decoding and transforming, known before either begins. */
static int reserve(struct stk_loader *l, struct worker *w, const struct head *h, const struct job *j, stk_error *e)
{
    const size_t decode = decode_scratch(h, &j->want), transform = plan_scratch(l->plan, j);
    if (decode == 0 || transform == 0 || decode > SIZE_MAX - transform)
        return error_set(e, STK_EDATA, "decode", "%d x %d pixels are too many", h->w, h->h);
    return desk_reserve(&w->desk, decode + transform, decode_foreign(h, &j->want), e);
}

int loader_row(struct stk_loader *l, struct worker *w, const struct job *j, uint8_t **row, stk_error *e)
{
    int64_t shape[3];
    if (*row)
        return STK_OK;
    const size_t bytes = plan_job_shape(l->plan, j, shape);
    return batch_open_row(w->to, l->picture, shape, bytes, row, e);
}

/* The path of a sample. */
static int make_picture(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row, stk_error *e)
{
    const struct decode_limits limits = options_limits(&l->options);
    const struct reading *r = &w->desk.reading;
    struct head head;
    struct job job;
    struct image image;
    int warnings = 0;

    if (keep_row(l, w, d, row))
        return STK_OK;
    uint64_t clock = now_ns();
    int rc = STK_OK;
    if (!keep_read(l, w, (int64_t)d->sample)) {
        rc = desk_read(&w->desk, l->source, (int64_t)d->sample, e);
        if (rc == STK_OK)
            count_read(w, w->desk.read);
    }
    clock = lap(&w->count.read_ns, clock);
    if (rc != STK_OK)
        return rc;

    rc = decode_head(r->bytes, r->n_bytes, &limits, &head, e);
    if (rc == STK_OK && keep_fill(l, w, d, &head, row))
        return STK_OK;
    if (rc == STK_OK)
        rc = plan_draw(l->plan, d, head_width(&head), head_height(&head), &job, e);
    if (rc == STK_OK) {
        plan_draft(l->plan, &job, head_width(&head), head_height(&head), decode_shrink(&head));
        job.want.parts = desk_parts(&w->desk);
        keep_lend(l, w, (int64_t)d->sample, &head); /* what it takes is charged with the rest */
        rc = reserve(l, w, &head, &job, e);
        if (rc != STK_OK)
            decoder_drop_notes(w->desk.decoder);
    }
    if (rc == STK_OK)
        rc = decode_pixels(w->desk.decoder, r->bytes, r->n_bytes, &head, &job.want, &w->desk.arena, &image, &warnings,
                           e);
    clock = lap(&w->count.decode_ns, clock);
    if (warnings)
        atomic_fetch_add_explicit(&w->count.warnings, 1, memory_order_relaxed);
    if (rc != STK_OK)
        return rc;
    if (!warnings) {
        keep_bytes(l, w, (int64_t)d->sample);
        keep_notes(l, w, (int64_t)d->sample);
    }

    rc = loader_row(l, w, &job, &row, e);
    if (rc == STK_OK)
        rc = plan_run(l->plan, &job, &image, &w->desk.arena, row, e);
    lap(&w->count.transform_ns, clock);
    return rc;
}

/* Where parts of its file were read ahead and will not do, that is no verdict: all of it is read. */
static int make_encoded(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row, stk_error *e)
{
    int rc = make_picture(l, w, d, row, e);
    if (rc != STK_OK && desk_had_parts(&w->desk))
        rc = make_picture(l, w, d, row, e);
    return rc;
}

/* Pixels in memory take the same path from the draw on. */
static int make_pixels(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row, stk_error *e)
{
    const struct field *f = source_field_at(l->source, (int64_t)d->sample, l->picture);
    const int32_t h = (int32_t)f->shape[0], wide = (int32_t)f->shape[1], channels = (int32_t)f->shape[2];
    const size_t n = (size_t)h * (size_t)wide;
    struct job job;

    uint64_t clock = now_ns();
    int rc = plan_draw(l->plan, d, wide, h, &job, e);
    if (rc != STK_OK)
        return rc;
    const size_t copy = arena_cost(n * 3), transform = plan_scratch(l->plan, &job);
    if (transform == 0 || copy > SIZE_MAX - transform)
        return error_set(e, STK_EDATA, "transform", "%d x %d pixels are too many", wide, h);
    rc = desk_reserve(&w->desk, copy + transform, 0, e);
    if (rc != STK_OK)
        return rc;
    uint8_t *px = arena_alloc(&w->desk.arena, n * 3);
    if (!keep_take_pixels(l, (int64_t)d->sample, px)) {
        rc = source_copy(l->source, &w->desk.reading, (int64_t)d->sample, l->picture, px, e);
        if (rc != STK_OK)
            return rc;
        count_read(w, f->bytes);
        keep_put_pixels(l, (int64_t)d->sample, px);
    }
    if (channels == 1)
        for (size_t i = n; i-- > 0;)
            px[3 * i] = px[3 * i + 1] = px[3 * i + 2] = px[i];
    clock = lap(&w->count.read_ns, clock);

    const struct rect c = job.want.crop;
    const size_t stride = (size_t)wide * 3;
    const struct image image = {
        .px = px + (size_t)c.y * stride + (size_t)c.x * 3, .stride = stride, .w = c.w, .h = c.h, .channels = 3};
    rc = loader_row(l, w, &job, &row, e);
    if (rc == STK_OK)
        rc = plan_run(l->plan, &job, &image, &w->desk.arena, row, e);
    lap(&w->count.transform_ns, clock);
    return rc;
}

/* What a hook is told about a row; its random number belongs to the kind of hook. */
static stk_row row_of(const struct worker *w, const struct draw *d, int64_t position, int64_t label, const char *hook)
{
    return (stk_row){
        .thread = w->desk.reading.thread,
        .epoch = (int64_t)d->epoch,
        .position = position,
        .sample = (int64_t)d->sample,
        .label = label,
        .random = rng_of_hook(d, hook),
    };
}

/* The op's picture: the row itself, or what was made for it apart when the op makes another shape. */
static int op_on_row(struct stk_loader *l, struct worker *w, const struct draw *d, struct stk_batch *b, int64_t row,
                     int64_t position, stk_error *e)
{
    const int f = l->picture < 0 ? 0 : l->picture;
    stk_array image = b->arrays[f];
    image.data = batch_row(b, f, row);
    image.ndim--;
    image.shape++;
    stk_row about = row_of(w, d, position, w->desk.reading.label, "op");
    about.to = image.data;
    if (w->made) {
        image = l->made;
        image.data = w->made;
    }
    about.image = &image;
    const uint64_t clock = now_ns();
    error_clear(e);
    const int rc = l->op.run(l->op.user, &about, e);
    lap(&w->count.op_ns, clock);
    return rc == STK_OK ? rc : error_of_hook(e, rc, "op", "the op");
}

static void put_i64(const struct stk_batch *b, int field, int64_t row, int64_t value)
{
    memcpy(batch_row(b, field, row), &value, sizeof value);
}

/* The caller's own function writes all fields of the row. */
static int fill_row(struct stk_loader *l, struct worker *w, const struct draw *d, struct stk_batch *b, int64_t row,
                    int64_t position, stk_error *e)
{
    void *to[FIELD_MAX];
    for (int f = 0; f < source_n_fields(l->source); f++)
        to[f] = batch_row(b, f, row);
    const stk_row about = row_of(w, d, position, -1, "fill");
    const uint64_t clock = now_ns();
    const int rc = source_fill_row(l->source, &about, to, e);
    lap(&w->count.read_ns, clock);
    return rc;
}

/* A field that the source writes where it belongs. */
static int copy_field(struct stk_loader *l, struct worker *w, int64_t sample, int f, uint8_t *to, stk_error *e)
{
    const int rc = source_copy(l->source, &w->desk.reading, sample, f, to, e);
    if (rc == STK_OK)
        count_read(w, source_field(l->source, f)->bytes);
    return rc;
}

/* What the fields besides the picture are made of, where it came from a cache, or there is none. */
static int read_rest(struct stk_loader *l, struct worker *w, int64_t sample, stk_error *e)
{
    if (!l->reads || w->desk.all_read || !source_reads_fields_at(l->source, sample))
        return STK_OK;
    const int rc = desk_read_rest(&w->desk, l->source, sample, e);
    if (rc == STK_OK)
        count_read(w, w->desk.read);
    return rc;
}

/* A field besides the picture. */
static int make_field(struct stk_loader *l, struct worker *w, int64_t sample, struct stk_batch *b, int f, int64_t row,
                      stk_error *e)
{
    const struct field *field = source_field_at(l->source, sample, f);
    struct reading *r = &w->desk.reading;
    if (field->kind == FIELD_RAGGED)
        return batch_put(b, f, row, &r->cells[f], e);
    if (field->column >= 0)
        return field_store(field, &r->cells[f], batch_row(b, f, row), e);
    if (!field->label)
        return copy_field(l, w, sample, f, batch_row(b, f, row), e);
    if (field->dtype == STK_INT64) {
        put_i64(b, f, row, r->label);
        return STK_OK;
    }
    const struct cell label = {.bytes = (const uint8_t *)&r->label, .n = sizeof r->label, .dtype = STK_INT64};
    return field_store(field, &label, batch_row(b, f, row), e);
}

static int make_fields(struct stk_loader *l, struct worker *w, const struct draw *d, struct stk_batch *b, int64_t row,
                       stk_error *e)
{
    struct desk *desk = &w->desk;
    int rc = STK_OK;
    if (l->keep.cache && keep_take_fields(l, w, (int64_t)d->sample, b, row))
        return rc;
    desk->reading.label = source_label(l->source, (int64_t)d->sample);
    if (l->picture >= 0) {
        w->to = b;
        uint8_t *to = w->made ? w->made : plan_is_open(l->plan) ? NULL : batch_row(b, l->picture, row);
        const bool encoded = source_field_at(l->source, (int64_t)d->sample, l->picture)->kind == FIELD_ENCODED;
        rc = encoded ? make_encoded(l, w, d, to, e) : make_pixels(l, w, d, to, e);
    }
    if (rc == STK_OK)
        rc = read_rest(l, w, (int64_t)d->sample, e);
    for (int f = 0; f < source_n_fields(l->source) && rc == STK_OK; f++)
        if (f != l->picture)
            rc = make_field(l, w, (int64_t)d->sample, b, f, row, e);
    if (rc == STK_OK && l->keep.cache)
        keep_put_fields(l, w, (int64_t)d->sample, b, row);
    return rc;
}

struct draw loader_draw(const struct stk_loader *l, int64_t epoch, struct pick p)
{
    return (struct draw){
        .seed = l->options.seed, .epoch = (uint64_t)epoch, .sample = (uint64_t)p.index, .repeat = (uint64_t)p.repeat};
}

int loader_make_row(struct stk_loader *l, struct worker *w, struct stk_batch *b, int64_t row, int64_t position,
                    struct pick p, stk_error *e)
{
    const struct draw d = loader_draw(l, b->epoch, p);
    int rc = source_fills_rows(l->source) ? fill_row(l, w, &d, b, row, position, e) : make_fields(l, w, &d, b, row, e);
    if (rc == STK_OK && l->op.run)
        rc = op_on_row(l, w, &d, b, row, position, e);
    desk_clear(&w->desk);
    put_i64(b, l->index, row, p.index);
    put_i64(b, l->position, row, position);
    *batch_row(b, l->valid, row) = rc == STK_OK;
    return rc;
}

/* ------------------------------------------------------------------ one run of rows */

static void note_bad(struct ticket *t, int64_t row, int64_t sample, const stk_error *e)
{
    struct bad *b = calloc(1, sizeof *b);
    if (!b) {
        t->no_memory = true;
        return;
    }
    b->row = row;
    b->sample = sample;
    b->machine = error_is_machine(e);
    b->code = e->code;
    b->os_error = e->os_error;
    memcpy(b->stage, e->stage, sizeof b->stage);
    snprintf(b->reason, sizeof b->reason, "%s", e->reason);
    b->next = t->bads;
    t->bads = b;
}

struct pick loader_pick(const struct stk_loader *l, struct walk *w, int64_t epoch, int64_t position)
{
    struct pick p = order_at(&l->order, w, epoch, position);
    if (l->subset)
        p.index = l->subset[p.index];
    return p;
}

/* The next good sample of the order takes the row. A set that is rotten is not searched to its end. */
static bool replace(struct stk_loader *l, struct worker *w, struct stk_batch *b, int64_t row, int64_t position)
{
    stk_error e;
    const int64_t n = order_length(&l->order, b->epoch), most = 1 + loader_bad_limit(l);
    for (int64_t step = 1; step < n && step <= most && !ring_wants_back(&l->ring); step++) {
        const struct pick p = loader_pick(l, &w->walk, b->epoch, position + step);
        if (loader_make_row(l, w, b, row, position, p, &e) == STK_OK)
            return true;
        if (error_is_machine(&e))
            return false;
    }
    return false;
}

/* The samples of a run are known some rows before they are made, so that the source can have them brought nearer. */
static struct pick next_pick(const struct stk_loader *l, struct worker *w, const struct ticket *t, int64_t row)
{
    enum { MASK = PICKS - 1, AHEAD = PICKS / 2 };
    const int64_t end = t->row + t->rows;
    if (w->picked <= row + AHEAD) /* several at a time: the CPU overlaps their making */
        for (const int64_t to = row + PICKS < end ? row + PICKS : end; w->picked < to; w->picked++)
            w->picks[w->picked & MASK] = loader_pick(l, &w->walk, t->epoch, t->first + w->picked);
    const int64_t near = row + AHEAD < end ? w->picks[(row + AHEAD) & MASK].index : -1;
    if (near >= 0 && !(l->keep.cache && keep_near(l, near)))
        source_prefetch(l->source, near);
    return w->picks[row & MASK];
}

static void do_row(struct stk_loader *l, struct worker *w, struct ticket *t, int64_t row)
{
    stk_error e;
    const int64_t position = t->first + row;
    const struct pick p = next_pick(l, w, t, row);
    w->desk.serial = t->serial + row - t->row;
    if (loader_make_row(l, w, t->to, row, position, p, &e) != STK_OK) {
        note_bad(t, row, p.index, &e);
        if (l->options.on_error == STK_REPLACE && t->bads && !t->bads->machine)
            t->bads->replaced = replace(l, w, t->to, row, position);
    }
    if (position >= order_length(&l->order, t->epoch)) /* padding */
        *batch_row(t->to, l->valid, row) = 0;
}

/* Runs of tiny samples are made long enough to be worth their ticket. */
static int64_t run_for(int64_t rows, uint64_t ns)
{
    const uint64_t worth = 50000, each = ns / (uint64_t)rows + 1;
    const int64_t run = (int64_t)(worth / each);
    return run < 1 ? 1 : run > 4096 ? 4096 : run;
}

void loader_work(void *user, int i)
{
    struct stk_loader *l = user;
    struct worker *w = &l->workers[i];
    struct ticket t;
    uint64_t clock = now_ns();
    while (ring_take(&l->ring, i, w->run, &t)) {
        clock = lap(&w->count.idle_ns, clock);
        w->picked = t.row;
        /* What is left of a run is dropped when the ring is: nobody will see it. */
        for (int64_t row = t.row; row < t.row + t.rows && !ring_wants_back(&l->ring); row++)
            do_row(l, w, &t, row);
        const uint64_t began = clock;
        clock = now_ns();
        w->run = run_for(t.rows, clock - began);
        atomic_store_explicit(&w->count.held_bytes, desk_held(&w->desk), memory_order_relaxed);
        ring_give(&l->ring, &t);
    }
}
