/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c -- TFRecord files of small examples: how fast they are indexed, and read in a random order.
 *
 *     bench-records FOLDER [RECORDS [BYTES]]     200,000 records of 1 kB; the file is left there, for others to read
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/crc32c.h"
#include "source/source.h"
#include "stoker.h"

/* Nanoseconds of CPU time: what others do on this machine does not count. */
static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static size_t put_varint(uint8_t *to, uint64_t v)
{
    size_t n = 0;
    for (; v > 127; v >>= 7)
        to[n++] = (uint8_t)(v | 128);
    to[n++] = (uint8_t)v;
    return n;
}

static size_t put_bytes(uint8_t *to, unsigned number, const void *p, size_t bytes)
{
    size_t n = put_varint(to, number << 3 | 2);
    n += put_varint(to + n, bytes);
    memcpy(to + n, p, bytes);
    return n + bytes;
}

/* {name: a list of that kind} as an entry of a map. */
static size_t put_entry(uint8_t *to, const char *name, unsigned kind, const void *list, size_t bytes)
{
    static uint8_t a[1 << 20], b[1 << 20];
    size_t n = put_bytes(a, 1, list, bytes);
    n = put_bytes(b, kind, a, n);
    size_t m = put_bytes(a, 1, name, strlen(name));
    m += put_bytes(a + m, 2, b, n);
    return put_bytes(to, 1, a, m);
}

static void put_number(FILE *f, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 8)
        fputc((int)(v & 255), f);
}

static void put_record(FILE *f, const uint8_t *p, size_t n)
{
    const struct crc32c *crc = crc32c_choose(STK_CPU_DEFAULT);
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)n >> 8 * i);
    fwrite(length, 1, 8, f);
    put_number(f, crc32c_masked(crc, length, 8), 4);
    fwrite(p, 1, n, f);
    put_number(f, crc32c_masked(crc, p, n), 4);
}

/* x: floats, y: an integer. */
static int make(const char *path, long records, size_t bytes)
{
    static uint8_t map[1 << 20], example[1 << 20], y[10];
    static float x[1 << 18];
    FILE *f = fopen(path, "wb");
    if (!f)
        return -1;
    for (long i = 0; i < records; i++) {
        for (size_t k = 0; k < bytes / 4; k++)
            x[k] = (float)(i * 7 + (long)k);
        size_t n = put_entry(map, "x", 2, x, bytes / 4 * 4);
        n += put_entry(map + n, "y", 3, y, put_varint(y, (uint64_t)i));
        put_record(f, example, put_bytes(example, 1, map, n));
    }
    return fclose(f);
}

static int index_it(const char *path, int64_t file_bytes)
{
    stk_error e;
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        struct source *s;
        const struct source_options o = {.path = path, .cache_dir = "off", .threads = 1, .max_bytes = 1 << 30};
        const uint64_t began = cpu_ns();
        if (source_open(&s, &o, &e) != STK_OK)
            return fprintf(stderr, "%s\n", e.text), 1;
        const double took = (double)(cpu_ns() - began) * 1e-9;
        best = took < best ? took : best;
        source_close(s);
    }
    printf("index: %.2f GB a second of CPU time\n", (double)file_bytes / best * 1e-9);
    return 0;
}

static int read_it(const char *path, long records)
{
    const stk_options o = {.source = path, .batch_size = 256, .shuffle = 1, .threads = 1, .cache_dir = "off"};
    stk_error e;
    stk_loader *l;
    if (stk_open(&l, &o, &e) != STK_OK)
        return fprintf(stderr, "%s\n", e.text), 1;
    for (int epoch = 0; epoch < 5; epoch++) {
        stk_batch *b;
        const uint64_t began = cpu_ns();
        while (stk_next(l, &b, &e) == STK_OK)
            stk_release(b);
        printf("epoch %d: %.0f records a second of CPU time\n", epoch,
               (double)records / ((double)(cpu_ns() - began) * 1e-9));
    }
    stk_close(l);
    return 0;
}

int main(int argc, char **argv)
{
    char path[PATH_MAX];
    struct stat st;
    const long records = argc > 2 ? strtol(argv[2], NULL, 10) : 200000;
    const long bytes = argc > 3 ? strtol(argv[3], NULL, 10) : 1000;
    if (argc < 2 || records < 1 || bytes < 4 || bytes > 500000)
        return fprintf(stderr, "usage: bench-records FOLDER [RECORDS [BYTES]]\n"), 2;
    snprintf(path, sizeof path, "%s/records.tfrecord", argv[1]);
    if (make(path, records, (size_t)bytes) || stat(path, &st))
        return perror(path), 1;
    return index_it(path, (int64_t)st.st_size) || read_it(path, records);
}
