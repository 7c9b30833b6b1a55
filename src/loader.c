/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c -- joins the stages: one worker takes one sample from its bytes to its row.
 *
 *     ticket -> read -> head -> draw -> decode -> transform -> row
 *
 * make_image below is that path. loader_cache_image.c has the short cuts that later epochs take. Everything else here
 * supplies tickets, memory and the policy on errors. Workers share the source and the plan, which are read-only, and
 * the ring and the budget, which have locks.
 */
#include "loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/size.h"
#include "source/field.h"

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

/* Reads the file. If the source has pixels, they are copied when memory is reserved for them. */
static int read_image(struct stk_loader *l, struct worker *w, struct making *m, stk_error *e)
{
    int rc = STK_OK;
    if (m->image.form == DESK_PIXELS)
        return rc;
    if (!w->desk.all_read || w->desk.rest_only) { /* a short cut may have read it and failed */
        rc = desk_read(&w->desk, l->source, m->sample, e);
        if (rc == STK_OK)
            count_read(w, w->desk.read);
    }
    m->image = desk_image(&w->desk, l->source, m->sample, l->image);
    return rc;
}

static int read_head(struct stk_loader *l, struct worker *w, struct making *m, stk_error *e)
{
    const struct decode_limits limits = options_limits(&l->options);
    const int rc = desk_head(&m->image, &limits, e);
    if (rc == STK_OK)
        loader_cache_to_dct(l, w, m);
    return rc;
}

/* Reads the other fields, if the image came from a cache or there is none. */
static int read_rest(struct stk_loader *l, struct worker *w, int64_t sample, stk_error *e)
{
    if (!l->reads || w->desk.all_read || !source_reads_fields_at(l->source, sample))
        return STK_OK;
    const int rc = desk_read_rest(&w->desk, l->source, sample, e);
    if (rc == STK_OK)
        count_read(w, w->desk.read);
    return rc;
}

/* Boxes must be known before the ops are drawn. */
static int begin_follow(struct stk_loader *l, struct worker *w, struct making *m, stk_error *e)
{
    const struct desk_image *im = &m->image;
    const int rc = read_rest(l, w, m->sample, e);
    if (rc != STK_OK)
        return rc;
    return loader_follow_begin(l, w, m->sample, head_width(&im->head), head_height(&im->head), e);
}

/* Makes all random choices. They determine which part of the image is needed. */
static int draw(struct stk_loader *l, struct worker *w, struct making *m, stk_error *e)
{
    const struct desk_image *im = &m->image;
    const struct head *h = &im->head;
    m->kept_bytes = 0;
    if (im->form == DESK_READY)
        return loader_views_draw(l, m->draw, im->pixels.w, im->pixels.h, true, NULL, w->jobs, &m->want, e);
    if (im->form == DESK_FILE && loader_cache_draw(l, w, m))
        return STK_OK;
    return loader_views_draw(l, m->draw, head_width(h), head_height(h), false, h, w->jobs, &m->want, e);
}

/* First reserves memory for everything that follows: for the ops, and for pixels to keep. */
static int decode(struct stk_loader *l, struct worker *w, struct making *m, stk_error *e)
{
    size_t more = loader_views_scratch(l, w->jobs);
    if (more > 0 && m->kept_bytes > 0) {
        const size_t head = plan_scratch(l->plan, &m->head);
        more = head > 0 ? size_add(more, size_add(head, arena_cost(m->kept_bytes))) : 0;
    }
    if (more == 0)
        return error_set(e, STK_EDATA, "transform",
                         "the ops make an image with too many pixels; use a smaller Resize or crop");
    const bool copies = m->image.form == DESK_PIXELS && !m->image.bytes;
    if (m->image.form == DESK_FILE && m->kept_bytes == 0)
        loader_checkpoints_lend(l, w, m); /* before memory is reserved: theirs is charged as well */
    const struct want *want = m->kept_bytes > 0 ? &m->head.want : &m->want;
    const int rc = desk_decode(&w->desk, &m->image, want, more, e);
    if (rc == STK_OK && copies)
        count_read(w, m->image.n);
    if (m->image.warnings > 0 && m->kept_bytes == 0)
        atomic_fetch_add_explicit(&w->count.warnings, 1, memory_order_relaxed);
    return rc;
}

/* The path of an image. */
static int make_image(struct stk_loader *l, struct worker *w, struct making *m, int64_t row, stk_error *e)
{
    uint64_t clock = now_ns();
    int rc = STK_OK;
    if (!loader_cache_find(l, w, m)) /* no shorter way is known */
        rc = read_image(l, w, m, e);
    clock = lap(&w->count.read_ns, clock);
    if (rc == STK_OK)
        rc = read_head(l, w, m, e);
    if (rc == STK_OK && l->follow.n > 0)
        rc = begin_follow(l, w, m, e);
    if (rc == STK_OK)
        rc = draw(l, w, m, e);
    if (rc == STK_OK && l->device.pitch && loader_parcel_make(l, w, m, row)) { /* the device does the rest */
        lap(&w->count.decode_ns, clock);
        return loader_cache_keep(l, w, m, e);
    }
    if (rc == STK_OK)
        rc = decode(l, w, m, e);
    clock = lap(m->image.form == DESK_PIXELS ? &w->count.read_ns : &w->count.decode_ns, clock);
    if (rc == STK_OK)
        rc = loader_cache_keep(l, w, m, e);
    if (rc == STK_OK)
        rc = loader_views_run(l, w, &m->image.pixels, m->want.crop, row, e);
    lap(&w->count.transform_ns, clock);
    return rc;
}

/* Only the whole file decides whether a sample is bad. If a short cut fails, or the ranges of the file that were read
 * are not enough, the image takes the usual path. */
static int try_image(struct stk_loader *l, struct worker *w, const struct draw *d, int64_t row, stk_error *e)
{
    struct making m;
    m.draw = d;
    m.sample = (int64_t)d->sample;
    m.plain = m.shortened = false;
    m.image = desk_image(&w->desk, l->source, m.sample, l->image);
    int rc = make_image(l, w, &m, row, e);
    if (rc != STK_OK && (m.shortened || desk_had_ranges(&w->desk))) {
        m.plain = true;
        rc = make_image(l, w, &m, row, e);
    }
    return rc;
}

/* Describes a row for a hook. The random number depends on the kind of hook. */
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

/* The caller's op works on the row itself, or on a separate image if its result has another shape. */
static int op_on_row(struct stk_loader *l, struct worker *w, const struct draw *d, struct stk_batch *b, int64_t row,
                     int64_t position, stk_error *e)
{
    const int f = l->image < 0 ? 0 : l->image;
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

/* The caller's function writes all fields of the row. */
static int fill_row(struct stk_loader *l, struct worker *w, const struct draw *d, struct stk_batch *b, int64_t row,
                    int64_t position, stk_error *e)
{
    void *to[FIELD_MAX];
    for (int f = 0; f < source_n_fields(l->source); f++)
        to[f] = batch_row(b, f, row);
    const stk_row about = row_of(w, d, position, -1, "fill");
    const uint64_t clock = now_ns();
    const int rc = source_fill_row(l->source, &about, to, e);
    lap(&w->count.op_ns, clock);
    return rc;
}

/* A field that the source writes to its row. */
static int copy_field(struct stk_loader *l, struct worker *w, int64_t sample, int f, uint8_t *to, stk_error *e)
{
    const int rc = source_copy(l->source, &w->desk.reading, sample, f, to, e);
    if (rc == STK_OK)
        count_read(w, source_field(l->source, f)->bytes);
    return rc;
}

static int make_ragged(struct stk_batch *b, int f, int64_t row, const struct cell *c, stk_error *e)
{
    struct ragged_row *to = batch_open_ragged(b, f, row);
    if (!to)
        return STK_OK; /* the whole batch will be refused */
    const int rc = field_ragged_row(&b->depot->fields[f], c, to, e);
    batch_close_ragged(b, to);
    return rc;
}

/* The label as a row of floats, for ops that combine rows. */
static int make_soft_label(struct stk_loader *l, struct worker *w, int64_t sample, float *to, stk_error *e)
{
    int64_t label = -1;
    int rc;
    const int64_t classes = plan_soft_classes(l->plan);
    const struct field *f = source_field_at(l->source, sample, l->soft);
    if (f->label || f->column >= 0) {
        rc = desk_label(&w->desk, l->source, sample, &label, e);
    } else {
        uint8_t raw[8] = {0};
        rc = copy_field(l, w, sample, l->soft, raw, e);
        label = dtype_integer(f->dtype, raw);
    }
    if (rc != STK_OK)
        return rc;
    if (label < 0 || label >= classes)
        return error_set(e, STK_EDATA, "transform",
                         "the label is %lld, but MixUp or CutMix has num_classes=%lld; labels count from 0",
                         (long long)label, (long long)classes);
    plan_soft_label(l->plan, label, to);
    return STK_OK;
}

/* A field other than the image. */
static int make_field(struct stk_loader *l, struct worker *w, int64_t sample, struct stk_batch *b, int f, int64_t row,
                      stk_error *e)
{
    const struct field *field = source_field_at(l->source, sample, f);
    struct reading *r = &w->desk.reading;
    if (f == l->soft)
        return make_soft_label(l, w, sample, (float *)(void *)batch_row(b, f, row), e);
    if (field->kind == FIELD_RAGGED)
        return make_ragged(b, f, row, &r->cells[f], e);
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
    if (l->cache.entries && loader_rows_take(l, w, (int64_t)d->sample, b, row))
        return rc;
    desk->reading.label = source_label(l->source, (int64_t)d->sample);
    if (l->image >= 0) {
        w->to = b;
        rc = try_image(l, w, d, row, e);
    }
    if (rc == STK_OK)
        rc = read_rest(l, w, (int64_t)d->sample, e);
    if (rc == STK_OK && l->follow.n > 0)
        rc = loader_follow_make(l, w, d, b, row, e);
    for (int f = 0; f < source_n_fields(l->source) && rc == STK_OK; f++)
        if (f != l->image && (l->follow.n == 0 || source_field(l->source, f)->follow == FOLLOW_NONE))
            rc = make_field(l, w, (int64_t)d->sample, b, f, row, e);
    if (rc == STK_OK && l->cache.entries)
        loader_rows_keep(l, w, (int64_t)d->sample, b, row);
    return rc;
}

void loader_blame(const struct source *s, int64_t sample, stk_error *e)
{
    char path[1024];
    source_path(s, sample, path, sizeof path);
    error_at(e, path, sample);
}

int loader_check_sample(const struct source *s, const char *stage, int64_t sample, stk_error *e)
{
    if (sample >= 0 && sample < source_count(s))
        return STK_OK;
    return error_set(e, STK_EUSAGE, stage, "there is no sample %lld; the source has %lld samples, counted from 0",
                     (long long)sample, (long long)source_count(s));
}

struct draw loader_draw(const struct stk_loader *l, int64_t epoch, struct pick p)
{
    return (struct draw){
        .seed = l->options.seed, .epoch = (uint64_t)epoch, .sample = (uint64_t)p.index, .repeat = (uint64_t)p.repeat};
}

int loader_make_row(struct stk_loader *l, struct worker *w, struct stk_batch *b, int64_t row, int64_t position,
                    struct pick p, stk_error *e)
{
    struct draw d = loader_draw(l, b->epoch, p);
    d.boxes = l->follow.n > 0 && l->follow.boxes >= 0 ? &w->follow.boxes : NULL;
    if (l->device.pitch)
        loader_parcel_begin(l, b, row);
    int rc = source_fills_rows(l->source) ? fill_row(l, w, &d, b, row, position, e) : make_fields(l, w, &d, b, row, e);
    if (rc == STK_OK && l->op.run)
        rc = op_on_row(l, w, &d, b, row, position, e);
    following_trim(&w->follow, w->desk.budget);
    desk_clear(&w->desk);
    put_i64(b, l->index, row, p.index);
    put_i64(b, l->position, row, position);
    *batch_row(b, l->valid, row) = rc == STK_OK;
    return rc;
}

/* ------------------------------------------------------------------ one run of rows */

static void add_bad(struct ticket *t, int64_t row, int64_t sample, const stk_error *e)
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

/* The sample at a position of the ticket's batch, or behind it. */
static struct pick pick_of(const struct stk_loader *l, struct worker *w, const struct ticket *t, int64_t position)
{
    if (!t->samples)
        return order_at(&l->order, &w->walk, t->epoch, position);
    const int64_t i = t->samples[(position - t->first) % t->rows];
    return (struct pick){.index = order_sample(&l->order, i), .repeat = order_repeat(&l->order, position)};
}

/* The next good sample of the order replaces a bad one. The search ends after more bad samples than max_bad allows. */
static bool replace(struct stk_loader *l, struct worker *w, const struct ticket *t, int64_t row)
{
    stk_error e;
    const int64_t position = t->first + row, most = 1 + loader_bad_limit(l);
    const int64_t n = t->samples ? t->rows : order_length(&l->order, t->epoch);
    for (int64_t step = 1; step < n && step <= most && !ring_wants_back(&l->ring); step++) {
        const struct pick p = pick_of(l, w, t, position + step);
        if (loader_make_row(l, w, t->to, row, position, p, &e) == STK_OK)
            return true;
        if (error_is_machine(&e))
            return false;
    }
    return false;
}

/* Finds the samples of a run some rows ahead, so that the source can prefetch them. */
static struct pick next_pick(const struct stk_loader *l, struct worker *w, const struct ticket *t, int64_t row)
{
    enum { MASK = PICKS - 1, AHEAD = PICKS / 2 };
    const int64_t end = t->row + t->rows;
    if (w->picked <= row + AHEAD) /* several at a time: the CPU overlaps the work */
        for (const int64_t to = row + PICKS < end ? row + PICKS : end; w->picked < to; w->picked++)
            w->picks[w->picked & MASK] = order_at(&l->order, &w->walk, t->epoch, t->first + w->picked);
    const int64_t near = row + AHEAD < end ? w->picks[(row + AHEAD) & MASK].index : -1;
    if (near >= 0 && !(l->cache.entries && loader_rows_near(l, near)))
        source_prefetch(l->source, near);
    return w->picks[row & MASK];
}

/* Makes a row, and applies the policy on errors to it. */
void loader_make_or_replace(struct stk_loader *l, struct worker *w, struct ticket *t, int64_t row, struct pick p)
{
    stk_error e;
    const int64_t position = t->first + row;
    if (loader_make_row(l, w, t->to, row, position, p, &e) != STK_OK) {
        add_bad(t, row, p.index, &e);
        if (l->options.on_error == STK_REPLACE && t->bads && !t->bads->machine)
            t->bads->replaced = replace(l, w, t, row);
    }
    if (!t->samples && position >= order_length(&l->order, t->epoch)) /* padding */
        *batch_row(t->to, l->valid, row) = 0;
}

/* Runs of tiny samples are long enough to be worth a ticket. */
static int64_t run_for(int64_t rows, uint64_t ns)
{
    const uint64_t worth = 50000, each = ns / (uint64_t)rows + 1;
    const int64_t run = (int64_t)(worth / each);
    return run < 1 ? 1 : run > 4096 ? 4096 : run;
}

struct draw loader_blend_draw(const struct stk_loader *l, int64_t epoch, int64_t first)
{
    return (struct draw){.seed = l->options.seed, .epoch = (uint64_t)epoch, .sample = (uint64_t)first};
}

/* Combines the rows of a batch. */
static void blend(struct stk_loader *l, struct worker *w, const struct ticket *t)
{
    const struct stk_batch *b = t->to;
    const struct draw d = loader_blend_draw(l, t->epoch, t->first);
    plan_blend(l->plan, &d, batch_row(b, l->image, 0), (float *)(void *)batch_row(b, l->soft, 0),
               batch_row(b, l->valid, 0), t->all_rows, w->spare);
}

/* Whether the batch fails, whatever its other rows are: under any policy, if too little memory or an interruption is to
 * blame. */
static bool is_lost(const struct stk_loader *l, const struct ticket *t)
{
    return t->bads && (l->options.on_error == STK_RAISE || t->bads->machine);
}

void loader_make_rows(struct stk_loader *l, struct worker *w, struct ticket *t, int64_t *at)
{
    for (int64_t row = 0; row < t->rows && !is_lost(l, t); row++) {
        if (at)
            *(volatile int64_t *)at = row;
        loader_make_or_replace(l, w, t, row, pick_of(l, w, t, t->first + row));
    }
    if (l->soft >= 0)
        blend(l, w, t);
}

/* Returns rows to the ring. After the last rows of a batch, does the work that needs all of its rows. */
static void give(struct stk_loader *l, struct worker *w, struct ticket *t)
{
    if (!ring_give(&l->ring, t))
        return;
    if (!ring_wants_back(&l->ring)) { /* else some rows were not made */
        if (l->soft >= 0)
            blend(l, w, t);
        if (l->device.cuda && t->flawless)
            loader_device_whole(l, t->to, t->all_rows);
    }
    ring_complete(&l->ring, t);
}

void loader_work(void *user, int i)
{
    struct stk_loader *l = user;
    struct worker *w = &l->workers[i];
    struct ticket t;
    uint64_t clock = now_ns();
    while (ring_take(&l->ring, i, w->run, &t)) {
        clock = lap(&w->count.idle_ns, clock);
        loader_start_ahead(l);
        w->picked = t.row;
        /* When the ring drops its batches, the rest of the run is not made. */
        for (int64_t row = t.row; row < t.row + t.rows && !ring_wants_back(&l->ring); row++) {
            const struct pick p = next_pick(l, w, &t, row);
            w->desk.serial = t.serial + row - t.row;
            loader_make_or_replace(l, w, &t, row, p);
        }
        const uint64_t began = clock;
        clock = lap(&w->count.busy_ns, began);
        w->run = run_for(t.rows, clock - began);
        atomic_store_explicit(&w->count.held_bytes, desk_held(&w->desk) + following_held(&w->follow),
                              memory_order_relaxed);
        give(l, w, &t);
    }
}
