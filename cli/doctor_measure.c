/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_measure.c -- chooses the sample of a dataset, opens loaders on it, and lets them take turns.
 *
 * A turn starts when the loader's ring of batches is empty, and ends when the whole sample was read. Both ends are
 * alike, so batches that were made in advance do not count. Before the next loader's turn, the threads of this one
 * fill the ring again and then sleep.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "doctor.h"
#include "out.h"
#include "stop.h"

enum {
    BLOCK = 16,     /* consecutive samples; a block is in few shards */
    PROBED = 48,    /* samples of the first look */
    LEAST = 8,      /* samples, */
    MOST = 1024,    /* unless they are too large: */
    MOST_MIB = 192, /* of the sample as it is stored; decoded, it takes an eighth of a loader's memory */
    BATCH = 8
};
static const double pass_s = 0.2, turn_s = 0.12, probe_s = 0.8, turn_most_s = 1.0, rest_s = 0.2;

double doctor_left(const struct doctor *d)
{
    return stop_asked() ? 0 : d->deadline - out_clock();
}

void doctor_say(const char *doing)
{
    if (out_is_terminal(stderr))
        fprintf(stderr, doing[0] ? "\rdoctor: %s ...\033[K" : "\r%s\033[K", doing);
}

void doctor_fail(struct doctor_run *r, enum doctor_status status, const char *why)
{
    r->status = status;
    out_typed(r->reason, sizeof r->reason, why);
}

/* ------------------------------------------------------------------ the sample */

static int choose(struct doctor *d, int64_t n)
{
    const int64_t blocks = (n + BLOCK - 1) / BLOCK;
    free(d->subset);
    d->subset = calloc((size_t)n + BLOCK, sizeof *d->subset);
    d->n = 0;
    for (int64_t b = 0; d->subset && b < blocks; b++) {
        const int64_t from = n == d->count ? b * BLOCK : b * d->count / blocks;
        for (int64_t i = from; i < from + BLOCK && i < d->count && d->n < n; i++)
            if (d->n == 0 || i > d->subset[d->n - 1])
                d->subset[d->n++] = i;
    }
    return d->subset ? STK_OK : STK_ENOMEM;
}

static int look(void *user, const stk_finding *f)
{
    struct doctor *d = user;
    d->bytes += f->bytes > 0 ? f->bytes * f->run : 0;
    if (f->code == STK_OK && f->width > 0) {
        const double w = f->width, h = f->height;
        d->pixels += w * h;
        d->short_side += w < h ? w : h;
        d->aspect += w < h ? h / w : w / h;
        d->n_sized++;
        d->n_encoded += f->format != STK_FORMAT_UNKNOWN;
    }
    return stop_asked();
}

/* Reads the headers of the sample; the averages replace the sums. */
static int look_at_all(struct doctor *d, stk_error *e)
{
    const stk_scan_options scan = {
        .subset = d->subset, .n_subset = d->n, .runs = 1, .threads = d->a->o.threads, .each = look, .user = d};
    d->bytes = d->n_sized = d->n_encoded = 0;
    d->pixels = d->short_side = d->aspect = 0;
    const int rc = stk_scan(d->source, &scan, e);
    if (d->n_sized > 0) {
        d->pixels /= (double)d->n_sized;
        d->short_side /= (double)d->n_sized;
        d->aspect /= (double)d->n_sized;
    }
    return rc;
}

/* The longest side of the images that the ops make. */
static void measure_shape(struct doctor *d, const stk_batch *b)
{
    for (int i = 0; i < stk_batch_n_fields(b); i++) {
        const stk_array *x = stk_field_at(b, i);
        const int first = d->a->o.layout == STK_NHWC ? 1 : 2;
        for (int k = first; x->kind == STK_IMAGE && x->ndim == 4 && k < first + 2; k++)
            d->out_side = x->shape[k] > d->out_side ? (int)x->shape[k] : d->out_side;
    }
}

/* The size in the first Resize(N) of the ops; 0: none. */
static int resize_in(const char *ops)
{
    for (const char *p = ops; p && (p = strstr(p, "Resize(")); p++)
        if (p == ops || !strchr("abcdefghijklmnopqrstuvwxyz", p[-1]))
            return (int)strtol(p + strlen("Resize("), NULL, 10);
    return 0;
}

/* How many samples take about pass_s, judged by the work of the first few. */
static int64_t sample_size(const struct doctor *d, const stk_stats *s)
{
    const double work = s->decode_s + s->transform_s + s->op_s, made = (double)(s->samples > 0 ? s->samples : 1);
    double n = work > 0 ? pass_s * s->threads / (work / made) : MOST;
    const double encoded = (double)d->bytes / (double)d->n, decoded = 3 * d->pixels;
    const double most = MOST_MIB * 1048576.0, eighth = (double)d->info.memory / 8;
    n = n < LEAST ? LEAST : n > MOST ? MOST : n;
    n = encoded > 0 && n * encoded > most ? most / encoded : n;
    n = decoded > 0 && n * decoded > eighth ? eighth / decoded : n;
    n = n < 1 ? 1 : n;
    return (double)d->count < n ? d->count : (int64_t)n;
}

static int probe(struct doctor *d, stk_stats *s, stk_error *e)
{
    struct doctor_run r = {.o = d->runs[0].o};
    stk_batch *b;
    r.o.subset = d->subset;
    r.o.n_subset = d->n;
    r.o.batch_size = 4;
    int rc = stk_open(&r.loader, &r.o, e);
    const double began = out_clock();
    while (rc == STK_OK && out_clock() - began < probe_s && (rc = stop_next(r.loader, &b, e)) == STK_OK) {
        measure_shape(d, b);
        stk_release(b);
    }
    if (r.loader)
        stk_stats_get(r.loader, s);
    stk_close(r.loader);
    return rc == STK_END ? STK_OK : rc;
}

static int begin_source(struct doctor *d, stk_error *e)
{
    char fields[2048] = "";
    const double began = out_clock();
    const int rc = args_open_source(d->a, &d->source, e);
    d->open_s = out_clock() - began;
    if (rc != STK_OK)
        return rc;
    stk_source_fields(d->source, fields, sizeof fields);
    d->is_image = strstr(fields, ":image") != NULL;
    snprintf(d->what, sizeof d->what, "%s", d->is_image ? "images" : "samples");
    d->ops = d->is_image || args_given(d->a, "ops") ? d->a->o.ops : NULL;
    d->count = stk_source_count(d->source);
    if (d->a->o.take > 0 && d->a->o.take < d->count)
        d->count = d->a->o.take;
    if (d->count > 0)
        return STK_OK;
    snprintf(e->text, sizeof e->text, "%s has no samples", d->a->operand);
    return STK_EUSAGE;
}

int doctor_begin(struct doctor *d, stk_error *e)
{
    stk_stats s = {0};
    stk_error no;
    stk_info_get(&d->info);
    if (scratch_open(&d->scratch, &no) != STK_OK)
        out_say("doctor", "%s; packs are not tried", no.text);
    int rc = begin_source(d, e);
    struct doctor_run *now = rc == STK_OK ? doctor_add(d, "as it is", DOCTOR_BASELINE) : NULL;
    if (rc == STK_OK)
        rc = choose(d, d->count < PROBED ? d->count : PROBED);
    if (rc == STK_OK)
        rc = look_at_all(d, e);
    if (rc == STK_OK)
        rc = probe(d, &s, e);
    if (rc == STK_OK)
        rc = choose(d, sample_size(d, &s));
    if (rc == STK_OK)
        rc = look_at_all(d, e);
    if (rc != STK_OK)
        return rc;
    if (d->bytes == 0) { /* rows of arrays have no size of their own */
        stk_overview all;
        stk_source_overview(d->source, &all);
        d->bytes = (int64_t)((double)all.bytes / (double)d->count * (double)d->n);
    }
    const int resize = resize_in(d->ops); /* a random crop of 224 pixels is usually taken from images of 256 */
    d->need_side = resize > 0 ? resize : (d->out_side * 8 + 6) / 7;
    d->batch_size = d->n / 4 < 1 ? 1 : d->n / 4 < BATCH ? d->n / 4 : BATCH;
    now->o.subset = d->subset;
    now->o.n_subset = d->n;
    now->o.batch_size = d->batch_size;
    return rc;
}

void doctor_end(struct doctor *d)
{
    for (int i = 0; i < d->n_runs; i++) {
        stk_close(d->runs[i].loader);
        stk_source_close(d->runs[i].opened);
    }
    stk_source_close(d->source);
    free(d->subset);
    scratch_close(&d->scratch);
}

/* ------------------------------------------------------------------ runs */

struct doctor_run *doctor_add(struct doctor *d, const char *name, enum doctor_kind kind)
{
    struct doctor_run *r = &d->runs[d->n_runs++];
    const stk_options *a = &d->a->o;
    *r = (struct doctor_run){.name = name, .kind = kind, .same = 1, .remedy = kind == DOCTOR_WHAT_IF, .fits = 1};
    r->o = (stk_options){.opened = d->source,
                         .subset = d->subset,
                         .n_subset = d->n,
                         .ops = d->ops,
                         .dtype = a->dtype,
                         .layout = a->layout,
                         .fidelity = a->fidelity,
                         .no_exif = a->no_exif,
                         .max_pixels = a->max_pixels,
                         .seed = a->seed,
                         .batch_size = d->batch_size,
                         .on_error = STK_SKIP,
                         .max_bad = 1,
                         .threads = a->threads,
                         .memory = a->memory ? a->memory : d->info.memory / 4,
                         .reader = a->reader,
                         .cpu = a->cpu,
                         .cache = a->cache,
                         .cache_dir = "off"};
    return r;
}

static double work_s(const stk_stats *s)
{
    return s->read_s + s->decode_s + s->transform_s + s->op_s;
}

/* Waits until the threads have filled the ring, so that they do not disturb the next loader. */
static void rest(struct doctor_run *r)
{
    const double began = out_clock();
    stk_stats was = {0}, now = {0};
    stk_stats_get(r->loader, &now);
    do {
        was = now;
        nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
        stk_stats_get(r->loader, &now);
    } while (work_s(&now) > work_s(&was) && out_clock() - began < rest_s);
}

/* Reads until `want` samples were delivered, or for turn_most_s. Returns how many. */
static int64_t read_some(struct doctor_run *r, int64_t want, int wait_ms)
{
    const double began = out_clock();
    int64_t got = 0;
    int rc = STK_OK, ends = 0;
    while (got < want && ends < 3 && out_clock() - began < turn_most_s && !stop_asked()) {
        stk_batch *b;
        stk_error e;
        rc = stk_next_wait(r->loader, &b, wait_ms, &e);
        if (rc == STK_OK) {
            got += stk_samples(b);
            stk_release(b);
        } else if (rc == STK_AGAIN && wait_ms == 0) {
            break;
        } else if (rc != STK_AGAIN && rc != STK_END) {
            doctor_fail(r, DOCTOR_FAILED, e.reason);
            break;
        }
        ends = rc == STK_END ? ends + 1 : rc == STK_OK ? 0 : ends;
    }
    return got;
}

static void copy_bads(struct doctor *d, struct doctor_run *r)
{
    stk_error e;
    for (d->n_bad = 0; stk_loader_bad_sample(r->loader, d->n_bad, &e) == STK_OK; d->n_bad++)
        if (d->n_bad < DOCTOR_BADS)
            snprintf(d->bads[d->n_bad], sizeof d->bads[0], "%.690s", e.text);
}

void doctor_open(struct doctor *d, struct doctor_run *r)
{
    stk_error e;
    if (r->status != DOCTOR_OK)
        return;
    if (doctor_left(d) <= 0) {
        doctor_fail(r, DOCTOR_SKIPPED, DOCTOR_NO_TIME);
        return;
    }
    doctor_say(r->name);
    if (stk_open(&r->loader, &r->o, &e) != STK_OK) {
        doctor_fail(r, DOCTOR_FAILED, e.reason);
        return;
    }
    read_some(r, d->n, 100);
    if (r == &d->runs[0])
        copy_bads(d, r);
    rest(r);
    stk_stats_get(r->loader, &r->stats);
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void take_turn(struct doctor *d, struct doctor_run *r)
{
    read_some(r, d->n, 0);
    const double began = out_clock(), cpu = cpu_seconds();
    int64_t got = 0;
    while (r->status == DOCTOR_OK && out_clock() - began < turn_s && !stop_asked()) {
        const int64_t pass = read_some(r, d->n, 100);
        got += pass;
        if (pass == 0 && r->status == DOCTOR_OK && !stop_asked())
            doctor_fail(r, DOCTOR_FAILED, "no sample of it can be loaded");
    }
    const double took = out_clock() - began;
    r->seconds += took;
    r->cpu_s += cpu_seconds() - cpu;
    if (r->status == DOCTOR_OK && !stop_asked() && r->n_rates < DOCTOR_TURNS)
        r->rates[r->n_rates++] = (double)got / took;
    rest(r);
}

static int by_double(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *of, int n)
{
    double v[DOCTOR_TURNS];
    memcpy(v, of, (size_t)n * sizeof *v);
    qsort(v, (size_t)n, sizeof *v, by_double);
    return n == 0 ? 0 : n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void sum_up(struct doctor *d)
{
    for (int i = 0; i < d->n_runs; i++) {
        struct doctor_run *r = &d->runs[i];
        double ratios[DOCTOR_TURNS];
        int n = 0;
        for (; n < r->n_rates && n < d->runs[0].n_rates; n++)
            ratios[n] = r->rates[n] / d->runs[0].rates[n];
        /* A rate is compared with that of the first run in the same turn, so a disturbed turn hardly changes the
         * median. */
        r->gain = median(ratios, n);
        r->rate = i == 0 ? median(r->rates, r->n_rates) : r->gain * d->runs[0].rate;
        if (!r->loader)
            continue;
        const stk_stats before = r->stats;
        stk_stats_get(r->loader, &r->stats);
        r->stats.read_s -= before.read_s;
        r->stats.decode_s -= before.decode_s;
        r->stats.transform_s -= before.transform_s;
        r->stats.op_s -= before.op_s;
        r->stats.read_bytes -= before.read_bytes;
        r->stats.samples -= before.samples;
    }
}

/* Whether more turns would hardly change any gain. */
static int is_steady(const struct doctor *d)
{
    enum { ENOUGH = 4 };
    for (int i = 0; i < d->n_runs; i++) {
        const struct doctor_run *r = &d->runs[i];
        double low = 1e9, high = 0;
        for (int k = 0; k < r->n_rates && k < d->runs[0].n_rates; k++) {
            const double ratio = r->rates[k] / d->runs[0].rates[k];
            low = ratio < low ? ratio : low;
            high = ratio > high ? ratio : high;
        }
        if (r->loader && r->status == DOCTOR_OK && (r->n_rates < ENOUGH || high > 1.1 * low))
            return 0;
    }
    return 1;
}

void doctor_turns(struct doctor *d)
{
    doctor_say("all of them take turns");
    for (int turn = 0; turn < DOCTOR_TURNS && !is_steady(d); turn++)
        for (int i = 0; i < d->n_runs && doctor_left(d) > 0; i++)
            if (d->runs[i].loader && d->runs[i].status == DOCTOR_OK)
                take_turn(d, &d->runs[i]);
    sum_up(d);
}
