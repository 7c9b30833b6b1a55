/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.c -- how long each stage takes alone, and the whole path, in microseconds per image.
 *
 *     stages photos/ [--take N] [--rounds N] [--ops TEXT] [--threads N]
 *
 * Next to each figure is that of the plain path (whole images by libjpeg-turbo, kernels in plain C) in the same run.
 * The stages alternate in every round; the figures are medians of the rounds. Stages after reading use one thread, and
 * files in memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "plain.h"
#include "stoker.h"

enum { MAX_ROUNDS = 99, MAX_STAGES = 24 };

struct file {
    uint8_t *bytes;
    size_t n;
    struct head head;
    struct buf checkpoints; /* checkpoints of the whole file */
};

/* How an image is decoded. */
enum decoding { CROP, WHOLE, CROP_LIBRARY, CROP_CHECKPOINTS };

struct bench {
    const char *folder, *ops;
    long take, rounds, threads;
    struct plain plain;
    struct plan *plans[STK_CPU_AVX512 + 1]; /* one for every set of kernels this CPU has */
    struct file *files;
    int64_t n_files;
    void *row;
    uint64_t round;
};

struct stage {
    char name[40];
    double (*run)(struct bench *b, int argument); /* microseconds per image */
    int argument;
    int twin; /* the stage of the plain path that it is compared with; -1: none */
    double us[MAX_ROUNDS];
    double median;
};

static void fail(const char *what, const stk_error *e)
{
    fprintf(stderr, "stages: %s: %s\n", what, e->text);
    exit(3);
}

static struct draw draw_of(const struct bench *b, int64_t i)
{
    return (struct draw){.epoch = b->round, .sample = (uint64_t)i};
}

/* ------------------------------------------------------------------ stages */

static double per_image(const struct bench *b, uint64_t ns)
{
    return 1e-3 * (double)ns / (double)b->n_files;
}

static double run_read(struct bench *b, int unused)
{
    (void)unused;
    const uint64_t begun = now_ns();
    for (int64_t i = 0; i < b->n_files; i++)
        source_read(b->plain.source, &b->plain.reading, i, NULL);
    return per_image(b, now_ns() - begun);
}

static double run_head(struct bench *b, int unused)
{
    (void)unused;
    const struct decode_limits limits = {.max_pixels = 256000000};
    const uint64_t begun = now_ns();
    for (int64_t i = 0; i < b->n_files; i++)
        decode_head(b->files[i].bytes, b->files[i].n, &limits, &b->files[i].head, NULL);
    return per_image(b, now_ns() - begun);
}

static double run_draw(struct bench *b, int unused)
{
    (void)unused;
    const uint64_t begun = now_ns();
    for (int64_t i = 0; i < b->n_files; i++) {
        const struct draw d = draw_of(b, i);
        const struct head *h = &b->files[i].head;
        struct job job;
        plan_draw(b->plain.plan, &d, head_width(h), head_height(h), &job, NULL);
    }
    return per_image(b, now_ns() - begun);
}

/* Decodes the part that the job of a file wants, or all of it. Returns 0 on success. */
static int decode_file(struct bench *b, int64_t i, enum decoding how, struct job *job, struct image *image)
{
    const struct file *f = &b->files[i];
    const struct draw d = draw_of(b, i);
    if (plan_draw(b->plain.plan, &d, head_width(&f->head), head_height(&f->head), job, NULL) != STK_OK)
        return -1;
    const struct want all = {.crop = {0, 0, head_width(&f->head), head_height(&f->head)}, .whole = true};
    struct want crop = job->want;
    crop.reference = how == CROP_LIBRARY;
    const struct want *want = how == WHOLE ? &all : &crop;
    int warnings;
    if (how == CROP_CHECKPOINTS)
        decoder_lend_checkpoints(b->plain.decoder, f->checkpoints.data, f->checkpoints.len, false);
    if (arena_reserve(&b->plain.arena, decode_scratch(&f->head, want) + plan_scratch(b->plain.plan, job)) != 0)
        return -1;
    return decode_pixels(b->plain.decoder, f->bytes, f->n, &f->head, want, &b->plain.arena, image, &warnings, NULL);
}

static double run_decode(struct bench *b, int how)
{
    const uint64_t begun = now_ns();
    for (int64_t i = 0; i < b->n_files; i++) {
        struct job job;
        struct image image;
        decode_file(b, i, (enum decoding)how, &job, &image);
    }
    return per_image(b, now_ns() - begun);
}

/* Times only the plan's run, on pixels that were just decoded, as in a worker. */
static double run_transform(struct bench *b, int cpu)
{
    uint64_t ns = 0;
    for (int64_t i = 0; i < b->n_files; i++) {
        struct job job;
        struct image image;
        if (decode_file(b, i, CROP, &job, &image) != STK_OK)
            continue;
        const uint64_t begun = now_ns();
        plan_run(b->plans[cpu], &job, &image, &b->plain.arena, b->row, NULL);
        ns += now_ns() - begun;
    }
    return per_image(b, ns);
}

/* The plain path; the argument selects the stage. */
static double run_plain(struct bench *b, int part)
{
    static double us[PLAIN_STAGES];
    if (part == PLAIN_STAGES) {
        memset(b->plain.ns, 0, sizeof b->plain.ns);
        for (int64_t i = 0; i < b->n_files; i++)
            plain_row(&b->plain, i, b->round, b->row, NULL);
        for (int s = 0; s < PLAIN_STAGES; s++)
            us[s] = per_image(b, b->plain.ns[s]);
        return us[PLAIN_READ] + us[PLAIN_DECODE] + us[PLAIN_TRANSFORM];
    }
    return us[part];
}

/* Runs the loader as a program would: one epoch after a first one that is not timed. */
static double run_loader(struct bench *b, int threads)
{
    const stk_options o = {.source = b->folder,
                           .ops = b->ops,
                           .batch_size = 64,
                           .shuffle = 1,
                           .on_error = STK_SKIP,
                           .max_bad = 1,
                           .take = b->n_files,
                           .cache_dir = "off",
                           .threads = threads};
    stk_error e;
    stk_loader *l;
    if (stk_open(&l, &o, &e) != STK_OK)
        fail("open", &e);
    uint64_t begun = 0;
    for (int epoch = 0; epoch < 2; epoch++) {
        begun = now_ns();
        stk_batch *batch;
        int rc;
        while ((rc = stk_next(l, &batch, &e)) == STK_OK)
            stk_release(batch);
        if (rc != STK_END)
            fail("next", &e);
    }
    const double us = per_image(b, now_ns() - begun);
    stk_close(l);
    return us;
}

/* ------------------------------------------------------------------ set-up */

static void load_files(struct bench *b)
{
    const struct decode_limits limits = {.max_pixels = 256000000};
    const int64_t n = source_count(b->plain.source);
    b->n_files = b->take && b->take < n ? b->take : n;
    b->files = calloc((size_t)b->n_files, sizeof *b->files);
    for (int64_t i = 0; b->files && i < b->n_files; i++) {
        struct file *f = &b->files[i];
        stk_error e;
        if (source_read(b->plain.source, &b->plain.reading, i, &e) != STK_OK ||
            decode_head(b->plain.reading.bytes, b->plain.reading.n_bytes, &limits, &f->head, &e) != STK_OK)
            fail("a benchmark wants a set without bad samples", &e);
        f->n = b->plain.reading.n_bytes;
        f->bytes = malloc(f->n);
        if (f->bytes)
            memcpy(f->bytes, b->plain.reading.bytes, f->n);
    }
}

/* Makes the checkpoints of every file by decoding all of it. */
static void make_checkpoints(struct bench *b)
{
    for (int64_t i = 0; b->files && i < b->n_files; i++) {
        struct job job;
        struct image image;
        decoder_lend_checkpoints(b->plain.decoder, NULL, 0, false);
        decode_file(b, i, WHOLE, &job, &image);
        size_t n;
        const void *checkpoints = decoder_new_checkpoints(b->plain.decoder, &n);
        if (checkpoints)
            buf_add(&b->files[i].checkpoints, checkpoints, n);
    }
}

static void set_up(struct bench *b)
{
    stk_error e = {.text = "not enough memory"};
    if (plain_open(&b->plain, b->folder, b->ops, STK_NCHW, &e) != STK_OK)
        fail(b->folder, &e);
    for (stk_cpu c = STK_CPU_C; c <= STK_CPU_AVX512; c++) {
        stk_cpu chosen;
        const struct plan_options o = {
            .ops = b->ops, .dtype = STK_FLOAT32, .layout = STK_NCHW, .fidelity = STK_EXACT, .cpu = c};
        if (cpu_choose(c, &chosen, NULL) == STK_OK && plan_new(&b->plans[c], &o, &e) != STK_OK)
            fail("ops", &e);
    }
    b->row = malloc(plan_row_bytes(b->plain.plan));
    load_files(b);
    make_checkpoints(b);
    if (!b->row || !b->files)
        fail("set-up", &e);
}

static void tear_down(struct bench *b)
{
    for (int64_t i = 0; i < b->n_files; i++) {
        free(b->files[i].bytes);
        buf_done(&b->files[i].checkpoints);
    }
    for (int c = 0; c <= STK_CPU_AVX512; c++)
        plan_free(b->plans[c]);
    free(b->files);
    free(b->row);
    plain_close(&b->plain);
}

static int list_stages(const struct bench *b, struct stage *s)
{
    int n = 0;
    s[n++] = (struct stage){.name = "plain path, 1 thread", .run = run_plain, .argument = PLAIN_STAGES, .twin = 0};
    s[n++] = (struct stage){.name = "  its read", .run = run_plain, .argument = PLAIN_READ, .twin = -1};
    s[n++] = (struct stage){.name = "  its decode, whole", .run = run_plain, .argument = PLAIN_DECODE, .twin = -1};
    s[n++] = (struct stage){.name = "  its transform", .run = run_plain, .argument = PLAIN_TRANSFORM, .twin = -1};
    s[n++] = (struct stage){.name = "read", .run = run_read, .twin = 1};
    s[n++] = (struct stage){.name = "head", .run = run_head, .twin = -1};
    s[n++] = (struct stage){.name = "draw", .run = run_draw, .twin = -1};
    s[n++] = (struct stage){.name = "decode, whole", .run = run_decode, .argument = WHOLE, .twin = 2};
    s[n++] = (struct stage){.name = "decode, crop", .run = run_decode, .argument = CROP, .twin = 2};
    s[n++] = (struct stage){.name = "  with checkpoints", .run = run_decode, .argument = CROP_CHECKPOINTS, .twin = 2};
    s[n++] = (struct stage){.name = "  by the library alone", .run = run_decode, .argument = CROP_LIBRARY, .twin = 2};
    for (int c = STK_CPU_C; c <= STK_CPU_AVX512; c++)
        if (b->plans[c]) {
            s[n] = (struct stage){.run = run_transform, .argument = c, .twin = 3};
            snprintf(s[n++].name, sizeof s->name, "resize and store, %s", cpu_name((stk_cpu)c));
        }
    s[n++] = (struct stage){.name = "whole path, 1 thread", .run = run_loader, .argument = 1, .twin = 0};
    if (b->threads > 1) {
        s[n] = (struct stage){.run = run_loader, .argument = (int)b->threads, .twin = 0};
        snprintf(s[n++].name, sizeof s->name, "whole path, %ld threads", b->threads);
    }
    return n;
}

/* ------------------------------------------------------------------ rounds */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_rounds(struct bench *b, struct stage *stages, int n)
{
    for (long r = 0; r < b->rounds; r++, b->round++) {
        for (int i = 0; i < n; i++)
            stages[i].us[r] = stages[i].run(b, stages[i].argument);
        fprintf(stderr, "round %ld of %ld\r", r + 1, b->rounds);
    }
    for (int i = 0; i < n; i++) {
        qsort(stages[i].us, (size_t)b->rounds, sizeof stages[i].us[0], by_size);
        stages[i].median = stages[i].us[b->rounds / 2];
    }
}

static void print_table(const struct bench *b, const struct stage *stages, int n)
{
    printf("%s: %" PRId64 " images, %s, float32, NCHW; medians of %ld rounds\n\n", b->folder, b->n_files, b->ops,
           b->rounds);
    printf("%-28s %10s %10s %8s\n", "stage", "us/image", "images/s", "x plain");
    for (int i = 0; i < n; i++) {
        const struct stage *s = &stages[i];
        printf("%-28s %10.1f %10.0f", s->name, s->median, 1e6 / s->median);
        if (s->twin >= 0)
            printf(" %8.2f", stages[s->twin].median / s->median);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    struct machine m;
    machine_look(&m);
    struct bench b = {.ops = "RandomResizedCrop(224) | RandomHorizontalFlip | Normalize",
                      .rounds = 7,
                      .threads = machine_threads(&m)};
    for (int i = 1; i < argc; i++) {
        long *number = !strcmp(argv[i], "--take")      ? &b.take
                       : !strcmp(argv[i], "--rounds")  ? &b.rounds
                       : !strcmp(argv[i], "--threads") ? &b.threads
                                                       : NULL;
        if (number && argv[i + 1])
            *number = strtol(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--ops") && argv[i + 1])
            b.ops = argv[++i];
        else
            b.folder = argv[i];
    }
    if (!b.folder || b.rounds < 1 || b.rounds > MAX_ROUNDS || b.take < 0) {
        fprintf(stderr, "usage: stages FOLDER [--take N] [--rounds 1..%d] [--ops TEXT] [--threads N]\n", MAX_ROUNDS);
        return 2;
    }
    static struct stage stages[MAX_STAGES];
    set_up(&b);
    const int n = list_stages(&b, stages);
    run_rounds(&b, stages, n);
    print_table(&b, stages, n);
    tear_down(&b);
    return 0;
}
