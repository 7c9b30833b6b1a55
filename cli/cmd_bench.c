/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_bench.c -- stoker bench: reads epochs as training would, and reports what limits it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "args.h"
#include "base/json.h"
#include "out.h"
#include "progress.h"
#include "resume.h"
#include "stop.h"
#include "table.h"

#define DEFAULT_OPS "RandomResizedCrop(224) | RandomHorizontalFlip"

struct epoch {
    int64_t epoch, images, bad;
    double seconds, waited_s;
};

struct bench {
    struct args *a;
    stk_loader *loader;
    struct resume r;
    struct progress progress;
    struct epoch *epochs;
    int64_t n_epochs, images, batches;
    double began, seconds, open_s, cpu_s;
    int complete;
    stk_stats stats;
    const char *what; /* "images", or "samples" if there are no images */
};

/* ------------------------------------------------------------------ running */

static int has_images(const struct args *a)
{
    char fields[2048] = "";
    stk_source *s;
    if (args_open_source(a, &s, NULL) != STK_OK)
        return 1;
    stk_source_fields(s, fields, sizeof fields);
    stk_source_close(s);
    return strstr(fields, ":image") != NULL;
}

static int open_loader(struct bench *b, stk_error *e)
{
    stk_options *o = &b->a->o;
    b->began = out_clock();
    int rc = stk_open(&b->loader, o, e);
    if (rc == STK_EUSAGE && !args_given(b->a, "ops") && !has_images(b->a)) {
        o->ops = NULL;
        rc = stk_open(&b->loader, o, e);
    }
    if (rc == STK_OK && stk_length(b->loader) == 0 && o->drop_last) { /* smaller than a batch: measure it anyway */
        out_say("bench", "%s cannot fill a batch of %s%s; the short batch is kept",
                out_some(stk_loader_count(b->loader), "sample", "samples").s, out_count(o->batch_size).s,
                o->world_size > 1 ? " on every rank" : "");
        stk_close(b->loader);
        o->drop_last = 0;
        b->began = out_clock();
        rc = stk_open(&b->loader, o, e);
    }
    b->open_s = out_clock() - b->began;
    char fields[2048] = "";
    if (rc == STK_OK)
        stk_source_fields(stk_loader_source(b->loader), fields, sizeof fields);
    b->what = strstr(fields, ":image") ? "images" : "samples";
    return rc;
}

static int enough(const struct bench *b)
{
    return b->a->stop_after && b->batches >= b->a->stop_after;
}

/* Reads to the end of the epoch, or to where it should stop. */
static int run_epoch(struct bench *b, struct epoch *to, stk_error *e)
{
    stk_stats before = b->stats;
    /* The threads start working when the loader is opened, so the first epoch starts there. */
    const double began = b->n_epochs == 1 ? b->began : out_clock();
    const int64_t step = b->a->o.batch_size * (b->a->o.world_size > 0 ? b->a->o.world_size : 1);
    to->epoch = stk_loader_epoch(b->loader);
    int rc = STK_OK;
    while (!enough(b)) {
        stk_batch *batch;
        rc = stop_next(b->loader, &batch, e);
        if (rc != STK_OK)
            break;
        to->images += stk_samples(batch);
        stk_release(batch);
        b->batches++;
        b->r.position += step;
        progress_at(&b->progress, b->images + to->images);
    }
    to->seconds = out_clock() - began;
    stk_stats_get(b->loader, &b->stats);
    to->waited_s = b->stats.waited_s - before.waited_s;
    to->bad = b->stats.bad - before.bad;
    b->images += to->images;
    b->seconds += to->seconds;
    return rc;
}

static int run_epochs(struct bench *b, stk_error *e)
{
    const int64_t first = stk_loader_epoch(b->loader), n = b->r.first + b->r.epochs - first;
    const int64_t world = b->a->o.world_size > 0 ? b->a->o.world_size : 1;
    if (n <= 0)
        out_say("bench", "the run in %s is complete; --epochs %" PRId64 " continues it", b->a->state, b->r.epochs + 1);
    b->epochs = calloc((size_t)(n > 0 ? n : 1), sizeof *b->epochs);
    if (!b->epochs) {
        snprintf(e->text, sizeof e->text, "no memory for %s epochs", out_count(n).s);
        return STK_ENOMEM;
    }
    progress_begin(&b->progress, "bench", n > 0 ? n * stk_loader_count(b->loader) / world : 0);
    int rc = STK_END;
    while (rc == STK_END && b->n_epochs < n && !enough(b)) {
        rc = run_epoch(b, &b->epochs[b->n_epochs++], e);
        if (rc == STK_END)
            b->r.position = 0;
    }
    progress_end(&b->progress);
    return rc == STK_END ? STK_OK : rc;
}

/* ------------------------------------------------------------------ words */

static double cpu_seconds(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u))
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static int64_t peak_rss(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (int64_t)u.ru_maxrss * 1024 : 0;
}

static double work_s(const stk_stats *s)
{
    return s->read_s + s->decode_s + s->transform_s + s->op_s;
}

static void print_epochs(const struct bench *b)
{
    struct table t = {0};
    char count[16], rate[16];
    snprintf(count, sizeof count, ">%s", b->what);
    snprintf(rate, sizeof rate, ">%s/s", b->what);
    table_head(&t, ">epoch", count, ">seconds", rate, ">bad", NULL);
    for (int64_t i = 0; i < b->n_epochs; i++) {
        const struct epoch *x = &b->epochs[i];
        table_row(&t, out_count(x->epoch).s, out_count(x->images).s, out_real(x->seconds, 2).s,
                  out_real(x->seconds > 0 ? (double)x->images / x->seconds : 0, 1).s, out_count(x->bad).s, NULL);
    }
    putchar('\n');
    table_print(&t, stdout);
}

static void add_stage(struct table *t, const struct bench *b, const char *name, double seconds, const char *note)
{
    const double all = work_s(&b->stats) + b->stats.idle_s;
    const double each = b->images > 0 ? seconds / (double)b->images * 1e6 : 0;
    table_row(t, name, out_real(seconds, 2).s, out_share(seconds, all).s, out_real(each, 0).s, note, NULL);
}

static void print_stages(const struct bench *b)
{
    const stk_stats *s = &b->stats;
    char note[128];
    snprintf(note, sizeof note, "%s, %s/s per thread", out_bytes(s->read_bytes).s,
             out_bytes(s->read_s > 0 ? (int64_t)((double)s->read_bytes / s->read_s) : 0).s);
    struct table t = {0};
    table_head(&t, "<stage", ">seconds", ">share", ">µs/image", "<", NULL);
    add_stage(&t, b, "read", s->read_s, note);
    add_stage(&t, b, "decode", s->decode_s, "");
    add_stage(&t, b, "transform", s->transform_s, "");
    if (s->op_s > 0)
        add_stage(&t, b, "op", s->op_s, "");
    add_stage(&t, b, "idle", s->idle_s, "threads with nothing to do");
    putchar('\n');
    table_print(&t, stdout);
}

static void print_advice(const struct bench *b)
{
    const stk_stats *s = &b->stats;
    stk_info i;
    stk_info_get(&i);
    if (work_s(s) <= 0) {
        puts("Rows are copied and nothing is decoded, so there are no stages to report.");
        return;
    }
    if (s->limit == STK_LIMIT_CONSUMER) {
        puts("The threads mostly waited, and the caller hardly waited: loading is not the bottleneck.");
        return;
    }
    const struct {
        const char *name;
        double seconds;
    } stages[] = {[STK_LIMIT_READ] = {"reading", s->read_s},
                  [STK_LIMIT_DECODE] = {"decoding", s->decode_s},
                  [STK_LIMIT_TRANSFORM] = {"transforming", s->transform_s},
                  [STK_LIMIT_OP] = {"the op", s->op_s}};
    printf("Limited by %s, %s of the work: ", stages[s->limit].name, out_share(stages[s->limit].seconds, work_s(s)).s);
    if (s->threads < i.threads)
        printf("only %d of %d CPUs are used; try --threads %d first.\n", s->threads, i.threads, i.threads);
    else if (s->limit == STK_LIMIT_READ)
        puts("a faster disk helps, or enough memory to keep the files between epochs.");
    else if (s->limit == STK_LIMIT_DECODE)
        puts("all CPUs are busy; smaller images help most (`stoker pack --resize` shrinks them once).");
    else
        puts("all CPUs are busy; smaller outputs or --dtype uint8 help most.");
}

/* Threads that compute but get little CPU time share their CPUs with other programs. */
static int is_crowded(const struct bench *b)
{
    const double computing = b->stats.decode_s + b->stats.transform_s + b->stats.op_s;
    stk_info i;
    stk_info_get(&i);
    return b->stats.threads <= i.threads && computing > 0.1 && b->cpu_s < 0.7 * computing;
}

static void print_doubts(const struct bench *b)
{
    if (!b->complete)
        puts("Stopped in the middle: the figures cover the run up to that point.");
    if (is_crowded(b))
        printf("Other programs use these CPUs: the threads got %s of CPU time in %s of work. Alone, this would be "
               "faster.\n",
               out_seconds(b->cpu_s).s, out_seconds(b->stats.decode_s + b->stats.transform_s + b->stats.op_s).s);
}

static void print_device(const struct bench *b)
{
    const stk_stats *s = &b->stats;
    printf("  device   %s: %s copied in %s (%s/s), %s in kernels; %s of its memory\n", b->a->o.device,
           out_bytes(s->copied_bytes).s, out_seconds(s->copy_s).s,
           out_bytes(s->copy_s > 0 ? (int64_t)((double)s->copied_bytes / s->copy_s) : 0).s, out_seconds(s->kernel_s).s,
           out_bytes(s->device_bytes).s);
    if (s->device_samples > 0)
        printf("           it finished %s images, and decoded the Huffman codes of %s\n",
               out_count(s->device_samples).s, out_count(s->device_decoded).s);
}

static void print_text(const struct bench *b)
{
    const stk_options *o = &b->a->o;
    out_paint(stdout, PAINT_BOLD);
    out_name(stdout, b->a->operand);
    out_paint(stdout, PAINT_PLAIN);
    printf(": %s, batches of %s, %s, opened in %s\n", out_some(stk_loader_count(b->loader), "sample", "samples").s,
           out_count(o->batch_size).s, out_some(b->stats.threads, "thread", "threads").s, out_seconds(b->open_s).s);
    printf("  %s\n", o->ops && o->ops[0] ? o->ops : "no ops");
    print_epochs(b);
    if (work_s(&b->stats) > 0)
        print_stages(b);
    else if (b->stats.read_bytes > 0)
        printf("\n  read     %s", out_bytes(b->stats.read_bytes).s);
    printf("\n  memory   %s reserved, limit %s; the process used %s at its peak\n", out_bytes(b->stats.memory_bytes).s,
           out_bytes(b->stats.memory_limit).s, out_bytes(peak_rss()).s);
    if (b->stats.cache_entries)
        printf("  cache    %s in %s, %s\n", out_some(b->stats.cache_entries, "sample", "samples").s,
               out_bytes(b->stats.cache_disk_bytes ? b->stats.cache_disk_bytes : b->stats.cache_bytes).s,
               out_some(b->stats.cache_hits, "hit", "hits").s);
    if (b->a->o.device)
        print_device(b);
    stk_mix_stats m;
    for (int i = 0; stk_loader_mix(b->loader, i, &m) == STK_OK; i++)
        printf("  %-8s source %d: %s, %s of the positions\n", i ? "" : "mix", i,
               out_some(m.delivered, "sample", "samples").s, out_share(m.share, 1).s);
    if (b->stats.warnings)
        printf("  warnings the codec warned about %s\n", out_some(b->stats.warnings, "image", "images").s);
    out_paint(stdout, PAINT_BOLD);
    printf("\n%s %s/s", out_real(b->seconds > 0 ? (double)b->images / b->seconds : 0, 0).s, b->what);
    out_paint(stdout, PAINT_PLAIN);
    fputs(". ", stdout);
    print_advice(b);
    print_doubts(b);
}

/* ------------------------------------------------------------------ JSON */

static void json_epochs(struct json *j, const struct bench *b)
{
    json_open(j, "epochs", '[');
    for (int64_t i = 0; i < b->n_epochs; i++) {
        const struct epoch *x = &b->epochs[i];
        json_open(j, NULL, '{');
        json_int(j, "epoch", x->epoch);
        json_int(j, "images", x->images);
        json_real(j, "seconds", x->seconds);
        json_real(j, "images_per_s", x->seconds > 0 ? (double)x->images / x->seconds : 0);
        json_int(j, "bad", x->bad);
        json_real(j, "waited_s", x->waited_s);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void json_stage(struct json *j, const char *name, double seconds, int64_t bytes)
{
    json_open(j, name, '{');
    json_real(j, "s", seconds);
    if (bytes >= 0)
        json_int(j, "bytes", bytes);
    json_close(j, '}');
}

static void json_mixed(struct json *j, stk_loader *l)
{
    stk_mix_stats m;
    json_open(j, "mix", '[');
    for (int i = 0; stk_loader_mix(l, i, &m) == STK_OK; i++) {
        json_open(j, NULL, '{');
        json_real(j, "share", m.share);
        json_int(j, "samples", m.delivered);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void print_json(const struct bench *b)
{
    static const char *const limits[] = {"unknown", "read", "decode", "transform", "op", "consumer"};
    const stk_stats *s = &b->stats;
    struct json j = {.f = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "source", b->a->operand);
    json_int(&j, "samples", stk_loader_count(b->loader));
    json_int(&j, "threads", s->threads);
    json_text(&j, "ops", b->a->o.ops ? b->a->o.ops : "");
    json_int(&j, "batch_size", b->a->o.batch_size);
    json_epochs(&j, b);
    json_open(&j, "stages", '{');
    json_stage(&j, "read", s->read_s, s->read_bytes);
    json_stage(&j, "decode", s->decode_s, -1);
    json_stage(&j, "transform", s->transform_s, -1);
    json_stage(&j, "op", s->op_s, -1);
    json_stage(&j, "wait", s->idle_s, -1);
    json_close(&j, '}');
    json_int(&j, "memory_bytes", s->memory_bytes);
    json_int(&j, "memory_limit", s->memory_limit);
    json_open(&j, "cache", '{');
    json_int(&j, "entries", s->cache_entries);
    json_int(&j, "memory_bytes", s->cache_bytes);
    json_int(&j, "disk_bytes", s->cache_disk_bytes);
    json_int(&j, "hits", s->cache_hits);
    json_int(&j, "misses", s->cache_misses);
    json_close(&j, '}');
    json_open(&j, "device", '{');
    json_text(&j, "name", b->a->o.device);
    json_int(&j, "memory_bytes", s->device_bytes);
    json_int(&j, "copied_bytes", s->copied_bytes);
    json_real(&j, "copy_s", s->copy_s);
    json_real(&j, "kernel_s", s->kernel_s);
    json_int(&j, "samples", s->device_samples);
    json_int(&j, "decoded", s->device_decoded);
    json_close(&j, '}');
    json_mixed(&j, b->loader);
    json_int(&j, "peak_rss_bytes", peak_rss());
    json_real(&j, "images_per_s", b->seconds > 0 ? (double)b->images / b->seconds : 0);
    json_real(&j, "open_s", b->open_s);
    json_real(&j, "cpu_s", b->cpu_s);
    json_bool(&j, "complete", b->complete);
    json_int(&j, "warnings", s->warnings);
    json_text(&j, "limit", limits[s->limit]);
    json_text(&j, "version", stk_version());
    out_json_error(&j);
    json_close(&j, '}');
}

/* ------------------------------------------------------------------ the command */

static int run_open(struct bench *b)
{
    stk_error e = {.sample = -1};
    if (!b->r.found)
        b->r.first = stk_loader_epoch(b->loader);
    const int rc = run_epochs(b, &e);
    if (rc != STK_OK && rc != STK_STOPPED)
        return out_fail("bench", rc, &e);
    b->complete = rc == STK_OK;
    b->cpu_s = cpu_seconds();
    const int end = resume_save(&b->r, b->a, b->loader);
    if (b->a->json)
        print_json(b);
    else
        print_text(b);
    return end == END_GOOD && rc == STK_STOPPED ? END_INTERRUPTED : end;
}

static int run(struct args *a)
{
    struct bench b = {.a = a};
    struct out_log log;
    stk_error e = {.sample = -1};
    a->o.log = out_log_init(&log, "bench");
    if (a->o.dtype == STK_UINT8 && !args_given(a, "ops"))
        a->o.ops = DEFAULT_OPS; /* bytes are not normalized */
    int end = resume_load(&b.r, a);
    if (end == END_GOOD) {
        const int rc = open_loader(&b, &e);
        if (rc != STK_OK)
            end = out_fail("bench", rc, &e);
    }
    if (end == END_GOOD)
        end = resume_apply(&b.r, a, b.loader);
    if (end == END_GOOD)
        end = run_open(&b);
    stk_close(b.loader);
    free(b.epochs);
    resume_done(&b.r);
    return end;
}

static void defaults(struct args *a)
{
    a->epochs = 3;
    a->o.batch_size = 64;
    a->o.shuffle = 1;
    a->o.drop_last = 1;
    a->o.ops = DEFAULT_OPS " | Normalize";
}

static const char *const examples[] = {
    "stoker bench train/",
    "read three epochs as ImageNet training would; print images/s, the time of every stage, and what limits the speed",
    "stoker bench val/ --ops \"Resize(256) | CenterCrop(224) | Normalize\" --no-shuffle --epochs 1",
    "read one epoch as validation would",
    "stoker bench train/ --threads 1 --cpu c",
    "use one thread and no vector instructions, for comparison",
    "stoker bench train/ --take 5000 --memory 256M --json > bench.json",
    "read the first 5,000 samples within a memory limit; print JSON for programs",
    NULL,
};

const struct command cmd_bench = {
    .name = "bench",
    .operand = "SRC",
    .summary = "read epochs as training would; print images/s and the time of every stage",
    .about = "Reads epochs as training would, and discards the batches. This measures how fast batches can be loaded. "
             "The time of a stage is the sum over all threads. The first epoch includes opening the source.",
    .ends_1 = "for bad samples",
    .groups = FOR_SOURCE | FOR_PIXELS | FOR_FORM | FOR_LOADER | FOR_ERRORS | FOR_STATE | FOR_JSON,
    .examples = examples,
    .defaults = defaults,
    .run = run,
};
