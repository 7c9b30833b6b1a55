/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c -- joins the stages: one worker takes one sample from its bytes to its row.
 *
 *     ticket -> read -> head -> draw -> decode -> transform -> row
 *
 * make_picture below is that path; all else here gives it its tickets, its memory and its policy on
 * errors. Nothing is shared between workers but the ring, the source and the plan, which are
 * read-only, and the budget.
 */
#include "loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"

/* ------------------------------------------------------------------ one sample */

static uint64_t lap(_Atomic uint64_t *sum, uint64_t since)
{
    const uint64_t now = now_ns();
    atomic_fetch_add_explicit(sum, now - since, memory_order_relaxed);
    return now;
}

int budget_fit(struct budget *b, size_t need, bool *in_turn, stk_error *e)
{
    if (budget_enter(b, need, in_turn))
        return STK_OK;
    return error_set(e, STK_EDATA, "decode",
                     "needs %zu MiB of scratch, and memory leaves %zu MiB for one picture; raise memory by %zu MiB",
                     (need >> 20) + 1, (b->share + b->reserve) >> 20, ((need - b->share - b->reserve) >> 19) + 1);
}

static size_t add(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

/* Room for decoding and transforming, known before either begins. */
static int reserve(struct stk_loader *l, struct worker *w, const struct head *h, const struct job *j, bool *in_turn,
                   stk_error *e)
{
    const size_t decode = decode_scratch(h, &j->want), transform = plan_scratch(l->plan, j);
    if (decode == 0 || transform == 0)
        return error_set(e, STK_EDATA, "decode", "%d x %d pixels are too many", h->w, h->h);
    const size_t scratch = add(decode, transform);
    const size_t need = add(add(scratch, decode_foreign(h, &j->want)), w->reading.file.cap);
    const int rc = budget_fit(&l->budget, need, in_turn, e);
    if (rc != STK_OK)
        return rc;
    return arena_reserve(&w->arena, scratch) == 0 ? STK_OK : error_nomem(e, "decode", scratch);
}

/* The path of a sample. */
static int make_picture(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row, bool *in_turn,
                        stk_error *e)
{
    const struct decode_limits limits = options_limits(&l->options);
    const int64_t sample = (int64_t)d->sample;
    struct reading *r = &w->reading;
    struct head head;
    struct job job;
    struct image image;
    int warnings = 0;

    uint64_t clock = now_ns();
    int rc = budget_fit(&l->budget, source_read_bytes(l->source, sample), in_turn, e);
    if (rc == STK_OK)
        rc = source_read(l->source, r, sample, e);
    clock = lap(&w->count.read_ns, clock);
    if (rc != STK_OK)
        return rc;
    atomic_fetch_add_explicit(&w->count.read_bytes, r->n_bytes, memory_order_relaxed);

    rc = decode_head(r->bytes, r->n_bytes, &limits, &head, e);
    if (rc == STK_OK)
        rc = plan_draw(l->plan, d, head_width(&head), head_height(&head), &job, e);
    if (rc == STK_OK)
        rc = reserve(l, w, &head, &job, in_turn, e);
    if (rc == STK_OK)
        rc = decode_pixels(w->decoder, r->bytes, r->n_bytes, &head, &job.want, &w->arena, &image, &warnings, e);
    clock = lap(&w->count.decode_ns, clock);
    if (warnings)
        atomic_fetch_add_explicit(&w->count.warnings, 1, memory_order_relaxed);
    if (rc != STK_OK)
        return rc;

    rc = plan_run(l->plan, &job, &image, &w->arena, row, e);
    lap(&w->count.transform_ns, clock);
    return rc;
}

/* Pixels in memory take the same path from the draw on. */
static int make_pixels(struct stk_loader *l, struct worker *w, const struct draw *d, uint8_t *row, bool *in_turn,
                       stk_error *e)
{
    const struct field *f = source_field(l->source, l->picture);
    const int32_t h = (int32_t)f->shape[0], wide = (int32_t)f->shape[1], channels = (int32_t)f->shape[2];
    const size_t n = (size_t)h * (size_t)wide;
    struct job job;

    uint64_t clock = now_ns();
    int rc = plan_draw(l->plan, d, wide, h, &job, e);
    if (rc != STK_OK)
        return rc;
    const size_t scratch = add(arena_cost(n * 3), plan_scratch(l->plan, &job));
    rc = budget_fit(&l->budget, scratch, in_turn, e);
    if (rc != STK_OK)
        return rc;
    if (arena_reserve(&w->arena, scratch))
        return error_nomem(e, "transform", scratch);
    uint8_t *px = arena_alloc(&w->arena, n * 3);
    source_copy(l->source, (int64_t)d->sample, l->picture, px);
    if (channels == 1)
        for (size_t i = n; i-- > 0;)
            px[3 * i] = px[3 * i + 1] = px[3 * i + 2] = px[i];
    clock = lap(&w->count.read_ns, clock);

    const struct rect c = job.want.crop;
    const size_t stride = (size_t)wide * 3;
    const struct image image = {
        .px = px + (size_t)c.y * stride + (size_t)c.x * 3, .stride = stride, .w = c.w, .h = c.h, .channels = 3};
    rc = plan_run(l->plan, &job, &image, &w->arena, row, e);
    lap(&w->count.transform_ns, clock);
    return rc;
}

/* What a hook is told about a row; its random number belongs to the kind of hook. */
static stk_row row_of(const struct worker *w, const struct draw *d, int64_t position, int64_t label, const char *hook)
{
    struct rng r;
    rng_init(&r, d, hook, 0);
    return (stk_row){
        .thread = w->reading.thread,
        .epoch = (int64_t)d->epoch,
        .position = position,
        .sample = (int64_t)d->sample,
        .label = label,
        .random = rng_u64(&r),
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
    stk_row about = row_of(w, d, position, w->reading.label, "op");
    about.to = image.data;
    if (w->made) {
        image = l->made;
        image.data = w->made;
    }
    about.image = &image;
    const uint64_t clock = now_ns();
    const int rc = l->op.run(l->op.user, &about, e);
    lap(&w->count.op_ns, clock);
    return rc;
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
    const int rc = source_fill(l->source, &about, to, e);
    lap(&w->count.read_ns, clock);
    return rc;
}

static int make_fields(struct stk_loader *l, struct worker *w, const struct draw *d, struct stk_batch *b, int64_t row,
                       bool *in_turn, stk_error *e)
{
    const int64_t sample = (int64_t)d->sample;
    int rc = STK_OK;
    w->reading.label = source_label(l->source, sample);
    for (int f = 0; f < source_n_fields(l->source) && rc == STK_OK; f++) {
        const enum field_kind kind = source_field(l->source, f)->kind;
        uint8_t *to = f == l->picture && w->made ? w->made : batch_row(b, f, row);
        if (kind == FIELD_ENCODED)
            rc = make_picture(l, w, d, to, in_turn, e);
        else if (kind == FIELD_PIXELS)
            rc = make_pixels(l, w, d, to, in_turn, e);
        else if (f == l->label)
            put_i64(b, f, row, w->reading.label);
        else
            source_copy(l->source, sample, f, to);
    }
    return rc;
}

int loader_make_row(struct stk_loader *l, struct worker *w, struct stk_batch *b, int64_t row, int64_t position,
                    struct pick p, stk_error *e)
{
    const struct draw d = {.seed = l->options.seed,
                           .epoch = (uint64_t)b->epoch,
                           .sample = (uint64_t)p.index,
                           .repeat = (uint64_t)p.repeat};
    bool in_turn = false;
    int rc =
        source_fills(l->source) ? fill_row(l, w, &d, b, row, position, e) : make_fields(l, w, &d, b, row, &in_turn, e);
    if (rc == STK_OK && l->op.run)
        rc = op_on_row(l, w, &d, b, row, position, e);
    if (in_turn) { /* what a large picture took goes back before the next one's turn */
        buf_trim(&w->reading.file, l->budget.share / 2);
        arena_done(&w->arena);
        budget_leave(&l->budget, &in_turn);
    }
    put_i64(b, l->index, row, p.index);
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
    b->code = e->code;
    b->os_error = e->os_error;
    memcpy(b->stage, e->stage, sizeof b->stage);
    snprintf(b->reason, sizeof b->reason, "%s", e->reason);
    b->next = t->bads;
    t->bads = b;
}

static struct pick pick_at(struct stk_loader *l, struct worker *w, int64_t epoch, int64_t position)
{
    struct pick p = order_at(&l->order, &w->walk, epoch, position);
    if (l->subset)
        p.index = l->subset[p.index];
    return p;
}

/* The next good sample of the order takes the row. */
static bool replace(struct stk_loader *l, struct worker *w, struct stk_batch *b, int64_t row, int64_t position)
{
    stk_error ignored;
    const int64_t n = order_length(&l->order, b->epoch);
    for (int64_t step = 1; step < n; step++) {
        const struct pick p = pick_at(l, w, b->epoch, position + step);
        if (loader_make_row(l, w, b, row, position, p, &ignored) == STK_OK)
            return true;
    }
    return false;
}

static void do_row(struct stk_loader *l, struct worker *w, struct ticket *t, int64_t row)
{
    stk_error e;
    const int64_t position = t->first + row;
    const struct pick p = pick_at(l, w, t->epoch, position);
    if (loader_make_row(l, w, t->to, row, position, p, &e) != STK_OK) {
        note_bad(t, row, p.index, &e);
        if (l->options.on_error == STK_REPLACE && t->bads)
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

static void work(void *user, int i)
{
    struct stk_loader *l = user;
    struct worker *w = &l->workers[i];
    struct ticket t;
    uint64_t clock = now_ns();
    while (ring_take(&l->ring, w->run, &t)) {
        clock = lap(&w->count.idle_ns, clock);
        for (int64_t row = t.row; row < t.row + t.rows; row++)
            do_row(l, w, &t, row);
        const uint64_t began = clock;
        clock = now_ns();
        w->run = run_for(t.rows, clock - began);
        atomic_store_explicit(&w->count.held_bytes, w->reading.file.cap + w->arena.cap, memory_order_relaxed);
        ring_give(&l->ring, &t);
    }
}

/* ------------------------------------------------------------------ open and close */

int loader_check(const struct stk_loader *l, stk_error *e)
{
    if (l->pid == getpid())
        return STK_OK;
    return error_set(e, STK_EFORK, "next", "this loader was opened before fork(); open one in this process");
}

static int64_t plan_batches(void *user, int64_t epoch)
{
    return order_batches(&((struct stk_loader *)user)->order, epoch);
}

static void plan_span(void *user, struct place at, int64_t *first, int64_t *rows)
{
    const struct span s = order_span(&((struct stk_loader *)user)->order, at.epoch, at.batch);
    *first = s.first;
    *rows = s.rows;
}

static struct field small_field(const char *name, stk_dtype type)
{
    struct field f = {.kind = FIELD_TENSOR, .dtype = type, .bytes = dtype_bytes(type)};
    snprintf(f.name, sizeof f.name, "%s", name);
    return f;
}

static void picture_field(const struct plan *p, const stk_options *o, struct field *f)
{
    f->dtype = o->dtype;
    f->ndim = 3;
    plan_shape(p, f->shape);
    f->bytes = plan_row_bytes(p);
}

/* An op that makes another shape or type: its result is the field, and the picture is made apart. */
static int result_field(struct stk_loader *l, struct field *f, stk_error *e)
{
    if (!l->op.run || !l->op.result)
        return STK_OK;
    l->made = (stk_array){.name = "image", .dtype = f->dtype, .ndim = f->ndim, .device = 1, .shape = l->made_shape};
    memcpy(l->made_shape, f->shape, sizeof l->made_shape);
    l->made_bytes = f->bytes;
    return field_of(f, l->op.result, e);
}

/* The fields of a batch: the source's, then index and valid. */
static int lay_out(struct stk_loader *l, struct field *fields, int *n, stk_error *e)
{
    const stk_options *o = &l->options;
    *n = source_n_fields(l->source);
    if (*n + 2 > FIELD_MAX)
        return error_set(e, STK_EUSAGE, "open", "%d fields, over the limit of %d", *n, FIELD_MAX - 2);
    l->picture = l->label = -1;
    for (int i = 0; i < *n; i++) {
        fields[i] = *source_field(l->source, i);
        if (fields[i].kind != FIELD_TENSOR)
            l->picture = i;
        else if (strcmp(fields[i].name, "label") == 0 && fields[i].ndim == 0 && fields[i].dtype == STK_INT64)
            l->label = i;
    }
    if (l->picture >= 0) {
        const struct plan_options p = {
            .ops = o->ops, .dtype = o->dtype, .layout = o->layout, .fidelity = o->fidelity, .cpu = o->cpu};
        int rc = plan_new(&l->plan, &p, e);
        if (rc != STK_OK)
            return rc;
        picture_field(l->plan, o, &fields[l->picture]);
        rc = result_field(l, &fields[l->picture], e);
        if (rc != STK_OK)
            return rc;
    } else if (l->op.result) {
        return error_set(e, STK_EUSAGE, "open", "an op with a result works on pictures, and this source has none");
    } else if (o->ops && o->ops[0]) {
        return error_set(e, STK_EUSAGE, "open", "ops work on pictures, and this source has none");
    }
    l->index = *n;
    l->valid = *n + 1;
    fields[(*n)++] = small_field("index", STK_INT64);
    fields[(*n)++] = small_field("valid", STK_BOOL);
    return STK_OK;
}

enum { SCRATCH_MIN = 4 << 20 }; /* per thread: a photo of an everyday size */

/* How many batches the ring holds: enough to look ahead, and no more than half of the memory. */
static int ring_depth(const struct stk_loader *l, int64_t *depth, stk_error *e)
{
    const stk_options *o = &l->options;
    const int64_t scratch = l->picture >= 0 ? (int64_t)o->threads * SCRATCH_MIN : 0;
    const uint64_t least = (uint64_t)l->batch_bytes + (uint64_t)scratch;
    if (l->batch_bytes == 0 || (uint64_t)o->memory < least)
        return error_set(
            e, STK_EUSAGE, "open",
            "memory of %lld MiB is less than the %llu MiB that one batch of %lld rows and %d threads need; "
            "raise memory, or take a smaller batch_size",
            (long long)(o->memory >> 20), (unsigned long long)((least + (1 << 20) - 1) >> 20), (long long)o->batch_size,
            o->threads);
    const int64_t ahead = (8 * (int64_t)o->threads + o->batch_size - 1) / o->batch_size + 1;
    const int64_t wanted = ahead < 4 ? 4 : ahead;
    const int64_t room = o->memory / 2 / (int64_t)l->batch_bytes - 1; /* one is with the caller */
    *depth = room < 1 ? 1 : room < wanted ? room : wanted;
    return STK_OK;
}

static int open_batches(struct stk_loader *l, stk_error *e)
{
    struct field fields[FIELD_MAX];
    int n = 0;
    int rc = lay_out(l, fields, &n, e);
    if (rc != STK_OK)
        return rc;
    l->batch_bytes = depot_batch_bytes(fields, n, l->options.batch_size);
    int64_t depth = 0;
    rc = ring_depth(l, &depth, e);
    if (rc != STK_OK)
        return rc;
    rc = depot_new(&l->depot, fields, n, n - 2, l->options.batch_size, (int)depth + 1, l->options.allocator, e);
    if (rc == STK_OK)
        rc = depot_fill(l->depot, e);
    if (rc != STK_OK)
        return rc;
    const int64_t left = l->options.memory - (depth + 1) * (int64_t)l->batch_bytes;
    budget_init(&l->budget, left > 0 ? (size_t)left : (size_t)l->options.threads * SCRATCH_MIN, l->options.threads);
    const struct ring_plan plan = {.user = l, .batches = plan_batches, .span = plan_span};
    return ring_init(&l->ring, depth, l->depot, plan, e);
}

static int open_workers(struct stk_loader *l, stk_error *e)
{
    const int n = l->options.threads + 1; /* one without a thread, for stk_get */
    l->workers = calloc((size_t)n, sizeof *l->workers);
    if (!l->workers)
        return error_nomem(e, "open", (size_t)n * sizeof *l->workers);
    for (int i = 0; i < n; i++) {
        struct worker *w = &l->workers[i];
        w->reading.thread = i;
        w->walk.pass = -1;
        w->run = 1;
        const int rc = l->picture >= 0 ? decoder_new(&w->decoder, e) : STK_OK;
        if (rc != STK_OK)
            return rc;
        w->made = l->made_bytes ? pages_new(l->made_bytes) : NULL;
        if (l->made_bytes && !w->made)
            return error_nomem(e, "open", l->made_bytes);
    }
    return STK_OK;
}

static void stop(void *user)
{
    ring_stop(&((struct stk_loader *)user)->ring);
}

static int take_subset(struct stk_loader *l, stk_error *e)
{
    const stk_options *o = &l->options;
    l->order.samples = source_count(l->source);
    const int rc = options_check_subset(o, l->order.samples, e);
    if (rc != STK_OK)
        return rc;
    if (o->subset) {
        const size_t bytes = (size_t)o->n_subset * sizeof *l->subset;
        l->subset = malloc(bytes);
        if (!l->subset)
            return error_nomem(e, "open", bytes);
        memcpy(l->subset, o->subset, bytes);
        l->order.samples = o->n_subset;
        l->subset_hash = hash_bytes(l->subset, bytes, 0);
    }
    if (o->take > 0 && o->take < l->order.samples) {
        l->order.samples = o->take;
        l->subset_hash = hash_mix(l->subset_hash, (uint64_t)o->take);
    }
    if (l->order.samples < 1)
        return error_set(e, STK_EUSAGE, "open", "there are no samples in it");
    return STK_OK;
}

/* What is given by the caller is not split again: to the order, such a loader is one of one. */
static int open_order(struct stk_loader *l, stk_error *e)
{
    const stk_options *o = &l->options;
    const int64_t samples = l->order.samples, step = o->world_size * o->batch_size;
    const bool sampled = o->sampled != 0;
    if (o->steps_per_epoch > INT64_MAX / 2 / step)
        return error_set(e, STK_EUSAGE, "open", "steps_per_epoch is %lld; that is more samples than can be counted",
                         (long long)o->steps_per_epoch);
    l->order = (struct order){
        .n = o->steps_per_epoch > 0 ? o->steps_per_epoch * step : samples,
        .samples = samples,
        .batch_size = o->batch_size,
        .rank = sampled ? 0 : o->rank,
        .world = sampled ? 1 : o->world_size,
        .seed = o->seed,
        .shuffle = o->shuffle != 0,
        .drop_last = o->drop_last != 0,
        .pad_last = o->pad_last != 0,
        .passes = o->steps_per_epoch > 0,
        .sampled = sampled,
        .resumed_epoch = -1,
    };
    if (!o->weights)
        return STK_OK;
    if (o->n_weights != samples)
        return error_set(e, STK_EUSAGE, "open", "%lld weights for %lld samples; one for each is needed",
                         (long long)o->n_weights, (long long)samples);
    return alias_init(&l->order.alias, o->weights, samples, e);
}

uint64_t loader_fingerprint(const struct stk_loader *l)
{
    const uint64_t all = source_fingerprint(l->source);
    return l->subset_hash ? hash_mix(all, l->subset_hash) : all;
}

int loader_open(struct stk_loader *l, stk_error *e)
{
    const stk_options *o = &l->options;
    l->pid = getpid();
    l->opened_ns = now_ns();
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->getting, NULL);
    l->op = o->op ? *o->op : (stk_op_hook){0};
    l->log = o->log ? *o->log : (stk_log_hook){0};
    int rc = options_source(o, &l->source, e);
    if (rc == STK_OK)
        rc = take_subset(l, e);
    if (rc != STK_OK)
        return rc;
    rc = open_order(l, e);
    if (rc == STK_OK)
        rc = open_batches(l, e);
    if (rc == STK_OK)
        rc = open_workers(l, e);
    if (rc == STK_OK)
        rc = pool_open(&l->pool, o->threads, work, stop, l, e);
    return rc;
}

void loader_close(struct stk_loader *l)
{
    if (l->ring.slots)
        ring_stop(&l->ring);
    pool_close(&l->pool);
    ring_done(&l->ring);
    depot_close(l->depot);
    for (int i = 0; l->workers && i <= l->options.threads; i++) {
        pages_free(l->workers[i].made, l->made_bytes);
        decoder_free(l->workers[i].decoder);
        arena_done(&l->workers[i].arena);
        buf_done(&l->workers[i].reading.file);
    }
    if (l->budget.share)
        budget_done(&l->budget);
    free(l->workers);
    plan_free(l->plan);
    source_close(l->source);
    order_forget(&l->order);
    alias_done(&l->order.alias);
    free(l->subset);
    free(l->bads);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->getting);
    free(l);
}

struct start {
    struct order *order;
    int64_t epoch, position;
};

static void set_start(void *user)
{
    const struct start *s = user;
    s->order->resumed_epoch = s->epoch;
    s->order->resumed_at = s->position;
    order_forget(s->order); /* no ticket is out that could still look at them */
}

void loader_restart(struct stk_loader *l, int64_t epoch, int64_t position)
{
    struct start s = {.order = &l->order, .epoch = epoch, .position = position};
    pthread_mutex_lock(&l->lock);
    ring_restart(&l->ring, (struct place){.epoch = epoch}, set_start, &s);
    l->rotten = false;
    l->bad_in_epoch = 0;
    pthread_mutex_unlock(&l->lock);
}
