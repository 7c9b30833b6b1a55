/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_checksum.c -- stoker checksum: one hash of every output bit.
 *
 * The hash of a sample covers its label and the bytes of its row. The hash of an epoch chains the hashes
 * of its samples in order. So it does not depend on batches, threads or a stop in the middle.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/json.h"
#include "out.h"
#include "progress.h"
#include "resume.h"
#include "stop.h"

enum { FIELDS_MOST = 64 };

struct checksum {
    const struct args *a;
    stk_loader *loader;
    struct resume r;
    struct json json;
    struct progress progress;
    int64_t step; /* positions per batch, over all ranks */
    int64_t batches;
    int64_t rows; /* of this rank, in all epochs of this run */
    /* Copies of the fields that a GPU has. */
    char *host[FIELDS_MOST];
    size_t host_bytes[FIELDS_MOST];
};

/* ------------------------------------------------------------------ hashing */

static size_t row_bytes(const stk_array *x)
{
    static const size_t sizes[] = {4, 4, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 8, 1};
    size_t n = (size_t)x->dtype < sizeof sizes / sizeof sizes[0] ? sizes[x->dtype] : 1;
    for (int i = 1; i < x->ndim; i++)
        n *= (size_t)x->shape[i];
    return n;
}

/* Hashes in little-endian order, so that labels hash the same on every machine. */
static uint64_t hash_number(uint64_t v, uint64_t seed)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    return stk_hash(bytes, sizeof bytes, seed);
}

/* ------------------------------------------------------------------ batches of a GPU */

static int copy_field(struct checksum *c, const stk_batch *b, int i, const stk_array *x, stk_error *e)
{
    const size_t n = x->shape[0] > 0 ? (size_t)x->shape[0] * row_bytes(x) : 0;
    if (n > c->host_bytes[i]) {
        free(c->host[i]);
        c->host[i] = malloc(n);
        c->host_bytes[i] = c->host[i] ? n : 0;
    }
    if (n > c->host_bytes[i]) {
        snprintf(e->text, sizeof e->text, "no memory for %s of a batch", out_bytes((int64_t)n).s);
        return STK_ENOMEM;
    }
    stk_memory *m = stk_batch_retain_field(b, x->name);
    const int rc = stk_memory_read(m, c->host[i], n, e);
    stk_memory_release(m);
    return rc;
}

static int copy_fields(struct checksum *c, const stk_batch *b, stk_error *e)
{
    const stk_array *x;
    int rc = STK_OK;
    for (int i = 0; i < FIELDS_MOST && (x = stk_field_at(b, i)) && rc == STK_OK; i++)
        if (x->device != 1)
            rc = copy_field(c, b, i, x, e);
    return rc;
}

/* Where the host can read a field. */
static const char *data_of(const struct checksum *c, const stk_batch *b, const stk_array *x)
{
    int i = 0;
    if (x->device == 1)
        return x->data;
    while (stk_field_at(b, i) != x)
        i++;
    return c->host[i];
}

/* ------------------------------------------------------------------ rows */

/* How many entries each row has in a field whose first dimension has `all` of them: several if there are views. */
static int64_t entries(const stk_batch *b, int64_t all)
{
    return stk_samples(b) > 0 ? all / stk_samples(b) : 1;
}

/* The start of a row of a field, and its size in bytes. A ragged field has its offsets in another field. */
static const char *row_of(const struct checksum *c, const stk_batch *b, const stk_array *x, int64_t row, size_t *n)
{
    char beside[128];
    *n = row_bytes(x);
    snprintf(beside, sizeof beside, "%s.offsets", x->name);
    const stk_array *offsets = stk_field(b, beside);
    if (!offsets)
        return data_of(c, b, x) + (size_t)row * *n;
    const int64_t *at = (const void *)data_of(c, b, offsets);
    const int64_t each = entries(b, offsets->shape[0] - 1), first = at[row * each];
    const char *p = data_of(c, b, x) + (size_t)first * *n;
    *n *= (size_t)(at[(row + 1) * each] - first);
    return p;
}

/* Adds the lengths or shapes that belong to a field. */
static uint64_t hash_beside(const struct checksum *c, const stk_batch *b, const stk_array *x, int64_t row, uint64_t h)
{
    static const char *const suffixes[] = {"lengths", "shapes"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char beside[128];
        snprintf(beside, sizeof beside, "%s.%s", x->name, suffixes[i]);
        const stk_array *y = stk_field(b, beside);
        const size_t n = y ? row_bytes(y) * (size_t)entries(b, y->shape[0]) : 0;
        if (y)
            h = stk_hash(data_of(c, b, y) + (size_t)row * n, n, h);
    }
    return h;
}

/* Hashes all fields of the batch, except those that number the samples. */
static uint64_t hash_row(const struct checksum *c, const stk_batch *b, int64_t row)
{
    uint64_t h = 0;
    for (int i = 0; i < stk_batch_n_fields(b); i++) {
        const stk_array *x = stk_field_at(b, i);
        size_t n;
        const char *p = row_of(c, b, x, row, &n);
        int64_t label;
        if (strcmp(x->name, "label") == 0 && x->dtype == STK_INT64 && x->ndim == 1) {
            memcpy(&label, p, sizeof label);
            h = hash_number((uint64_t)label, h);
        } else {
            h = hash_beside(c, b, x, row, stk_hash(p, n, h));
        }
    }
    return h;
}

/* The value of a field that numbers the rows. */
static int64_t number_of(const stk_batch *b, const char *name, int64_t row)
{
    const stk_array *x = stk_field(b, name);
    return x ? ((const int64_t *)x->data)[row] : -1;
}

static int is_valid(const stk_batch *b, int64_t row)
{
    const stk_array *x = stk_field(b, "valid");
    return !x || ((const uint8_t *)x->data)[row] != 0;
}

/* ------------------------------------------------------------------ printing */

static void report_sample(struct checksum *c, int64_t epoch, int64_t position, int64_t sample, uint64_t hash)
{
    if (!c->a->each_sample)
        return;
    if (!c->a->json) {
        printf("%" PRId64 " %" PRId64 " %" PRId64 " %016" PRIx64 "\n", epoch, position, sample, hash);
        return;
    }
    json_open(&c->json, NULL, '{');
    json_int(&c->json, "epoch", epoch);
    json_int(&c->json, "position", position);
    json_int(&c->json, "sample", sample);
    json_hex(&c->json, "hash", hash);
    json_close(&c->json, '}');
}

static void report_epoch(struct checksum *c, int64_t epoch)
{
    if (c->a->each_sample)
        return;
    if (!c->a->json) {
        progress_clear(&c->progress);
        printf("epoch %" PRId64 "  %016" PRIx64 "\n", epoch, c->r.hash);
        fflush(stdout);
        return;
    }
    json_open(&c->json, NULL, '{');
    json_int(&c->json, "epoch", epoch);
    json_int(&c->json, "samples", c->r.samples);
    json_hex(&c->json, "hash", c->r.hash);
    json_close(&c->json, '}');
}

static void json_head(struct checksum *c)
{
    const stk_options *o = &c->a->o;
    c->json.f = stdout;
    json_open(&c->json, NULL, '{');
    json_text(&c->json, "source", c->a->operand);
    json_int(&c->json, "total", stk_loader_count(c->loader));
    json_hex(&c->json, "fingerprint", stk_loader_fingerprint(c->loader));
    json_text(&c->json, "ops", o->ops);
    json_int(&c->json, "rank", o->rank);
    json_int(&c->json, "world_size", o->world_size > 0 ? o->world_size : 1);
    json_open(&c->json, c->a->each_sample ? "samples" : "epochs", '[');
}

/* After a failure, too, the document is complete, with what was found before it. */
static void json_tail(struct checksum *c, int complete)
{
    json_close(&c->json, ']');
    json_bool(&c->json, "complete", complete);
    out_json_error(&c->json);
    json_close(&c->json, '}');
}

/* ------------------------------------------------------------------ running */

/* Asks the loader: it also counts batches that it left out because all of their samples are bad. */
static int64_t position_now(struct checksum *c)
{
    int64_t position = 0;
    stk_state_get(c->loader, c->r.loader, sizeof c->r.loader);
    json_get_int(json_find(json_document(c->r.loader, strlen(c->r.loader)), "position"), &position);
    return position;
}

static void take_batch(struct checksum *c, const stk_batch *b)
{
    const int64_t rows = stk_samples(b), epoch = stk_batch_epoch(b);
    for (int64_t row = 0; row < rows; row++) {
        if (!is_valid(b, row))
            continue;
        const uint64_t h = hash_row(c, b, row);
        c->r.hash = hash_number(h, c->r.hash);
        c->r.samples++;
        report_sample(c, epoch, number_of(b, "position", row), number_of(b, "index", row), h);
    }
    c->r.position = position_now(c);
    c->batches++;
}

static void end_epoch(struct checksum *c, int64_t epoch)
{
    report_epoch(c, epoch);
    c->r.position = 0;
    c->r.samples = 0;
    c->r.hash = 0;
}

/* Does not stop right before the end of an epoch, so that its line is still printed in this run. */
static int may_stop(const struct checksum *c)
{
    const int64_t left = stk_loader_count(c->loader) - c->r.position;
    return left > 0 && !(c->a->o.drop_last && left < c->step);
}

/* Rows that this rank has still to deliver. */
static int64_t rows_due(const struct checksum *c)
{
    const int64_t world = c->a->o.world_size > 0 ? c->a->o.world_size : 1;
    const int64_t epochs = c->r.first + c->r.epochs - stk_loader_epoch(c->loader);
    return epochs > 0 ? (epochs * stk_loader_count(c->loader) - c->r.position) / world : 0;
}

static int go(struct checksum *c, stk_error *e)
{
    int64_t epoch = stk_loader_epoch(c->loader);
    const int64_t end = c->r.first + c->r.epochs;
    while (epoch < end) {
        stk_batch *b;
        if (c->a->stop_after && c->batches >= c->a->stop_after && may_stop(c))
            return STK_OK;
        int rc = stop_next(c->loader, &b, e);
        if (rc == STK_OK && (rc = copy_fields(c, b, e)) != STK_OK)
            stk_release(b);
        if (rc == STK_END) {
            end_epoch(c, epoch++);
            if (c->a->stop_after && c->batches >= c->a->stop_after)
                return STK_OK;
        } else if (rc == STK_OK) {
            take_batch(c, b);
            stk_release(b);
            progress_at(&c->progress, c->rows - rows_due(c));
        } else {
            return rc;
        }
    }
    return STK_OK;
}

static int run_open(struct checksum *c)
{
    stk_error e = {.sample = -1};
    const stk_options *o = &c->a->o;
    c->step = (o->batch_size > 0 ? o->batch_size : 1) * (o->world_size > 0 ? o->world_size : 1);
    if (!c->r.found)
        c->r.first = stk_loader_epoch(c->loader);
    else if (rows_due(c) == 0)
        out_say("checksum", "the run in %s is complete; --epochs %" PRId64 " continues it", c->a->state,
                c->r.epochs + 1);
    c->rows = rows_due(c);
    progress_begin(&c->progress, "checksum", c->rows);
    if (c->a->json)
        json_head(c);
    const int rc = go(c, &e);
    progress_end(&c->progress);
    int end;
    if (rc != STK_OK && rc != STK_STOPPED)
        end = out_fail("checksum", rc, &e);
    else
        end = resume_save(&c->r, c->a, c->loader);
    if (end == END_GOOD && rc == STK_STOPPED) {
        end = END_INTERRUPTED;
        out_say("checksum", "stopped in epoch %" PRId64 ", which has no hash yet", stk_loader_epoch(c->loader));
    }
    if (c->a->json)
        json_tail(c, end == END_GOOD);
    return end;
}

static int run(struct args *a)
{
    struct checksum c = {.a = a};
    struct out_log log;
    stk_error e = {.sample = -1};
    a->o.log = out_log_init(&log, "checksum");
    int end = resume_load(&c.r, a);
    if (end == END_GOOD) {
        const int rc = stk_open(&c.loader, &a->o, &e);
        if (rc != STK_OK)
            end = out_fail("checksum", rc, &e);
    }
    if (end == END_GOOD)
        end = resume_apply(&c.r, a, c.loader);
    if (end == END_GOOD)
        end = run_open(&c);
    stk_close(c.loader);
    for (int i = 0; i < FIELDS_MOST; i++)
        free(c.host[i]);
    resume_done(&c.r);
    return end;
}

static void defaults(struct args *a)
{
    a->epochs = 1;
    a->o.batch_size = 1;
}

static const char *const examples[] = {
    "stoker checksum train/ --ops \"Resize(256) | CenterCrop(224)\"",
    "print one line `epoch N  HASH`; two machines that print the same line have the same bits",
    "stoker checksum train/ --ops \"RandomResizedCrop(224)\" --shuffle --seed 7 --epochs 2 --threads 16",
    "print the same lines for any number of threads and any batch size",
    "stoker checksum train/ --ops \"CenterCrop(224)\" --state s.json --stop-after 300",
    "stop in the middle; `stoker checksum train/ --state s.json` continues from there and prints the remaining lines",
    "for r in 0 1; do stoker checksum train/ --ops \"CenterCrop(224)\" --batch-size 32 --rank $r --world-size 2 "
    "--each-sample; done | sort -n -k1,1 -k2,2",
    "the lines of both ranks, sorted by epoch and position, are those of one rank with --batch-size 64",
    NULL,
};

const struct command cmd_checksum = {
    .name = "checksum",
    .operand = "SRC",
    .summary = "print one hash per epoch, over every bit and label in order",
    .about =
        "Prints a line `epoch N  HASH` per epoch. The hash covers every bit of every image and every label, in "
        "the order of delivery. It does not depend on threads or batch size, or on stopping and resuming. With "
        "--each-sample, prints a line `epoch position sample HASH` for every sample instead; positions are counted "
        "over all ranks.",
    .ends_1 = "for bad samples",
    .groups = FOR_SOURCE | FOR_PIXELS | FOR_FORM | FOR_LOADER | FOR_ERRORS | FOR_STATE | FOR_EACH | FOR_JSON,
    .examples = examples,
    .defaults = defaults,
    .run = run,
};
