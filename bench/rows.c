/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c -- samples per second from a source that needs no decoding, shuffled.
 *
 *     rows SOURCE [--batch-size N] [--threads N] [--epochs N] [--fields TEXT] [--in-order] [--cache]
 *     rows arrays:ROWSxBYTES         arrays in memory, made here
 *
 * Prints how long it took to open the source, and a line per epoch: samples, bytes of all fields, seconds, and seconds
 * of CPU time, which include the caller's thread. "A core" refers to CPU time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "stoker.h"

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static int64_t bytes_of(const stk_array *a, const size_t *item)
{
    int64_t n = (int64_t)item[a->dtype];
    for (int d = 0; d < a->ndim; d++)
        n *= a->shape[d];
    return n;
}

static int64_t batch_bytes(const stk_batch *b)
{
    static const size_t item[] = {
        [STK_FLOAT32] = 4, [STK_FLOAT16] = 2, [STK_BFLOAT16] = 2, [STK_UINT8] = 1,  [STK_INT8] = 1,
        [STK_INT16] = 2,   [STK_UINT16] = 2,  [STK_INT32] = 4,    [STK_UINT32] = 4, [STK_INT64] = 8,
        [STK_UINT64] = 8,  [STK_FLOAT64] = 8, [STK_BOOL] = 1};
    int64_t n = 0;
    for (int f = 0; f < stk_batch_n_fields(b); f++)
        n += bytes_of(stk_field_at(b, f), item);
    return n;
}

static int epoch(stk_loader *l)
{
    stk_error e;
    stk_batch *b;
    int64_t samples = 0, bytes = 0;
    int rc;
    const double began = wall(), busy = cpu();
    while ((rc = stk_next(l, &b, &e)) == STK_OK) {
        samples += stk_samples(b);
        bytes += batch_bytes(b);
        stk_release(b);
    }
    if (rc != STK_END)
        return fprintf(stderr, "rows: %s\n", e.text), 3;
    printf("%" PRId64 " %" PRId64 " %.6f %.6f\n", samples, bytes, wall() - began, cpu() - busy);
    return 0;
}

/* "arrays:400000x1024" */
static int made_array(const char *text, stk_array *a, int64_t shape[2])
{
    char x;
    if (sscanf(text, "arrays:%" SCNd64 "%c%" SCNd64, &shape[0], &x, &shape[1]) != 3 || shape[0] < 1 || shape[1] < 1)
        return 0;
    a->data = calloc((size_t)shape[0], (size_t)shape[1]);
    if (a->data) /* so that every page is allocated */
        memset(a->data, 1, (size_t)shape[0] * (size_t)shape[1]);
    return a->data != NULL;
}

int main(int argc, char **argv)
{
    stk_options o = {.batch_size = 256, .shuffle = 1, .threads = 1, .cache_dir = "off"};
    int64_t shape[2];
    stk_array array = {.name = "data", .dtype = STK_UINT8, .ndim = 2, .device = 1, .shape = shape};
    long epochs = 3;
    for (int i = 1; i < argc; i++) {
        const int more = i + 1 < argc;
        if (more && strcmp(argv[i], "--batch-size") == 0)
            o.batch_size = strtol(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--threads") == 0)
            o.threads = (int)strtol(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--epochs") == 0)
            epochs = strtol(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--fields") == 0)
            o.fields = argv[++i];
        else if (strcmp(argv[i], "--cache") == 0)
            o.cache = STK_CACHE_BYTES;
        else if (strcmp(argv[i], "--in-order") == 0)
            o.shuffle = 0;
        else
            o.source = argv[i];
    }
    if (!o.source)
        return fprintf(stderr, "usage: rows SOURCE|arrays:ROWSxBYTES [options]\n"), 2;
    if (made_array(o.source, &array, shape)) {
        o.source = NULL;
        o.arrays = &array;
        o.n_arrays = 1;
    }
    stk_error e;
    stk_loader *l;
    const double began = wall(), busy = cpu();
    if (stk_open(&l, &o, &e) != STK_OK)
        return fprintf(stderr, "rows: %s\n", e.text), 3;
    printf("opened %.6f %.6f\n", wall() - began, cpu() - busy);
    int rc = 0;
    for (long i = 0; i < epochs && rc == 0; i++)
        rc = epoch(l);
    stk_close(l);
    free(array.data);
    return rc;
}
