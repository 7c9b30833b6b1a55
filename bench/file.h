/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h -- reads a file into memory, and measures the time of work on it.
 */
#ifndef BENCH_FILE_H
#define BENCH_FILE_H

#include <stdio.h>
#include <time.h>

#include "base/buf.h"

/* Of this thread. */
static inline double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* 0, or -1 if it cannot be read. */
static inline int read_file(const char *path, struct buf *b)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return -1;
    size_t n = 0;
    b->len = 0;
    do {
        b->len += n;
        if (buf_reserve(b, b->len + 65536))
            break;
    } while ((n = fread(b->data + b->len, 1, 65536, f)) > 0);
    fclose(f);
    return b->len > 0 ? 0 : -1;
}

#endif
