/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive.c -- bench/naive.py in C, for machines without Pillow: one image after the other, on the plain path.
 *
 *     naive photos/ [--take N] [--epochs N] [--batch-size N] [--size N] [--json] [--serve]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "order/perm.h"
#include "plain.h"

struct options {
    const char *folder;
    long take, epochs, batch_size, size;
    bool json, serve;
};

struct run {
    struct plain plain;
    int64_t n; /* samples of an epoch, spread over the folder */
    int64_t stride;
    size_t row_bytes;
    uint8_t *rows;
    int64_t *labels;
};

static int run_open(struct run *r, const struct options *o, stk_error *e)
{
    char ops[128];
    snprintf(ops, sizeof ops, "RandomResizedCrop(%ld) | RandomHorizontalFlip | Normalize", o->size);
    const int rc = plain_open(&r->plain, o->folder, ops, o->serve ? STK_NHWC : STK_NCHW, e);
    if (rc != STK_OK)
        return rc;
    const int64_t all = source_count(r->plain.source);
    r->stride = o->take && o->take < all ? all / o->take : 1;
    r->n = o->take && o->take < all ? o->take : all;
    r->row_bytes = plan_row_bytes(r->plain.plan);
    r->rows = malloc(r->row_bytes * (size_t)o->batch_size);
    r->labels = malloc(sizeof *r->labels * (size_t)o->batch_size);
    return r->rows && r->labels ? STK_OK : STK_ENOMEM;
}

static void run_close(struct run *r)
{
    plain_close(&r->plain);
    free(r->rows);
    free(r->labels);
}

/* Makes the batch that begins at a position, without bad samples. Returns how many rows it has. */
static int64_t next_batch(struct run *r, const struct perm *order, uint64_t epoch, int64_t at, int64_t batch_size)
{
    int64_t rows = 0;
    for (int64_t i = at; i < at + batch_size && i < r->n; i++) {
        const int64_t sample = (int64_t)perm_at(order, (uint64_t)i) * r->stride;
        if (plain_row(&r->plain, sample, epoch, r->rows + (size_t)rows * r->row_bytes, NULL) == STK_OK)
            r->labels[rows++] = r->plain.reading.label;
    }
    return rows;
}

static bool put(const void *p, size_t n)
{
    return fwrite(p, 1, n, stdout) == n;
}

/* Answers every byte on stdin with a batch, for examples/train.c. */
static void serve(struct run *r, int64_t batch_size)
{
    const int64_t n_classes = source_n_classes(r->plain.source);
    char ask;
    put(&n_classes, sizeof n_classes);
    fflush(stdout);
    for (uint64_t epoch = 0;; epoch++) {
        struct perm order;
        perm_init(&order, (uint64_t)r->n, 0, epoch);
        for (int64_t at = 0, rows = 1; rows; at += batch_size) {
            if (read(STDIN_FILENO, &ask, 1) != 1)
                return;
            rows = next_batch(r, &order, epoch, at, batch_size);
            if (!put(&rows, sizeof rows) || !put(r->labels, sizeof *r->labels * (size_t)rows) ||
                !put(r->rows, r->row_bytes * (size_t)rows) || fflush(stdout) != 0)
                return;
        }
    }
}

static void measure(struct run *r, const struct options *o)
{
    if (o->json)
        printf("{\"source\": \"naive loop in C\", \"samples\": %" PRId64 ", \"threads\": 1, \"batch_size\": %ld, "
               "\"epochs\": [",
               r->n, o->batch_size);
    for (long epoch = 0; epoch < o->epochs; epoch++) {
        struct perm order;
        perm_init(&order, (uint64_t)r->n, 0, (uint64_t)epoch);
        const uint64_t begun = now_ns();
        int64_t images = 0;
        for (int64_t at = 0; at < r->n; at += o->batch_size)
            images += next_batch(r, &order, (uint64_t)epoch, at, o->batch_size);
        const double took = 1e-9 * (double)(now_ns() - begun);
        printf(o->json ? "%s{\"epoch\": %ld, \"images\": %" PRId64 ", \"seconds\": %.4f, \"images_per_s\": %.1f}"
                       : "%sepoch %ld: %" PRId64 " images in %.2f s, %.0f images/s\n",
               o->json && epoch ? ", " : "", epoch, images, took, (double)images / took);
    }
    const uint64_t *ns = r->plain.ns;
    if (o->json)
        printf("], \"stages\": {\"read\": {\"s\": %.4f, \"bytes\": %" PRId64
               "}, \"decode\": {\"s\": %.4f}, \"transform\": {\"s\": %.4f}}}\n",
               1e-9 * (double)ns[PLAIN_READ], r->plain.read_bytes, 1e-9 * (double)ns[PLAIN_DECODE],
               1e-9 * (double)ns[PLAIN_TRANSFORM]);
}

static int usage(void)
{
    fprintf(stderr, "usage: naive FOLDER [--take N] [--epochs N] [--batch-size N] [--size N] [--json] [--serve]\n");
    return 2;
}

static int parse(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        long *number = !strcmp(argv[i], "--take")         ? &o->take
                       : !strcmp(argv[i], "--epochs")     ? &o->epochs
                       : !strcmp(argv[i], "--batch-size") ? &o->batch_size
                       : !strcmp(argv[i], "--size")       ? &o->size
                                                          : NULL;
        if (number && (!argv[i + 1] || (*number = strtol(argv[++i], NULL, 10)) < 1))
            return -1;
        if (number)
            continue;
        if (!strcmp(argv[i], "--json"))
            o->json = true;
        else if (!strcmp(argv[i], "--serve"))
            o->serve = true;
        else if (*argv[i] == '-' || o->folder)
            return -1;
        else
            o->folder = argv[i];
    }
    return o->folder ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct options o = {.epochs = 1, .batch_size = 64, .size = 224};
    if (parse(&o, argc, argv) != 0)
        return usage();
    struct run r = {0};
    stk_error e = {.text = "not enough memory"};
    const int rc = run_open(&r, &o, &e);
    if (rc != STK_OK)
        fprintf(stderr, "naive: %s\n", e.text);
    else if (o.serve)
        serve(&r, o.batch_size);
    else
        measure(&r, &o);
    run_close(&r);
    return rc == STK_OK ? 0 : 3;
}
