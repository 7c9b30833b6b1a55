/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_open.c -- how long it takes to index a source: index_open SOURCE CACHE_DIR THREADS
 *
 * Prints one JSON object with the seconds of opening the source, of reading the size of every file (which the
 * fingerprint needs), and of opening it again, with the index from CACHE_DIR.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "source/source.h"

struct times {
    double open_s, measure_s, close_s;
    int64_t count, index_bytes;
    uint64_t fingerprint;
    int cached;
};

static double seconds_since(uint64_t began)
{
    return (double)(now_ns() - began) * 1e-9;
}

static int once(const struct source_options *o, struct times *t)
{
    stk_error e;
    struct source *s;
    uint64_t clock = now_ns();
    if (source_open(&s, o, &e) != STK_OK) {
        fprintf(stderr, "index_open: %s\n", e.text);
        return 1;
    }
    t->open_s = seconds_since(clock);
    clock = now_ns();
    t->fingerprint = source_fingerprint(s);
    t->measure_s = seconds_since(clock);
    t->count = source_count(s);
    t->index_bytes = source_tally(s)->index_bytes;
    t->cached = source_tally(s)->index_cached;
    clock = now_ns();
    source_close(s);
    t->close_s = seconds_since(clock);
    return 0;
}

static void print(const char *name, const struct times *t, const char *end)
{
    printf(
        "\"%s\": {\"open_s\": %.6f, \"measure_s\": %.6f, \"close_s\": %.6f, \"cached\": %s, \"index_bytes\": %" PRId64
        ", \"fingerprint\": \"%016" PRIx64 "\"}%s",
        name, t->open_s, t->measure_s, t->close_s, t->cached ? "true" : "false", t->index_bytes, t->fingerprint, end);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: index_open SOURCE CACHE_DIR THREADS\n");
        return 2;
    }
    const struct source_options o = {
        .path = argv[1], .cache_dir = argv[2], .threads = (int)strtol(argv[3], NULL, 10), .max_bytes = 1 << 30};
    struct times first, second;
    if (once(&o, &first) || once(&o, &second))
        return 3;
    printf("{\"samples\": %" PRId64 ", ", first.count);
    print("first", &first, ", ");
    print("second", &second, "}\n");
    return 0;
}
