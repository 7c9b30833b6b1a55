/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cold.c -- reads from cold storage: nothing is decoded, and batches are not filled.
 *
 *     bench-cold files SOURCE [pread|uring|auto] [depth]    one shuffled epoch of a folder or of shards, as the loader
 *                                                           reads it; depth: the most reads at a time, by default
 *                                                           as many as increase the speed
 *     bench-cold ranges FILE BYTES [depth]                  random records of a large file
 *
 * Prints `files/s  bytes/s  CPU µs per file`. Files on a disk are dropped from the page cache first. Caches below it
 * (of a host, or in the disk) cannot be dropped. bench/cold.py compares the results with fio.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cpu.h"
#include "base/pool.h"
#include "batch/ring.h"
#include "read/ahead.h"
#include "read/fifo.h"
#include "source/source.h"

enum { MEMORY = 32 << 20, ROWS = 64 };

static int fail(const char *what, const stk_error *e)
{
    fprintf(stderr, "%s: %s\n", what, e ? e->text : "failed");
    exit(1);
}

struct clocks {
    uint64_t ns;
    double cpu;
};

static struct clocks start(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (struct clocks){.ns = now_ns(), .cpu = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec};
}

static void report(struct clocks begun, int64_t files, int64_t bytes)
{
    const struct clocks now = start();
    const double s = (double)(now.ns - begun.ns) * 1e-9;
    printf("%.0f %.0f %.2f\n", (double)files / s, (double)bytes / s, (now.cpu - begun.cpu) * 1e6 / (double)files);
}

/* ------------------------------------------------------------------ files */

struct bench {
    struct source *source;
    struct order order;
    struct ring ring;
    struct depot *depot;
    struct ahead *ahead;
    struct pool reader;
    _Atomic int64_t bytes;
};

static void claim_rows(struct bench *b, struct foresight *f)
{
    struct foreseen seen[AHEAD_MOST];
    struct ahead_row rows[AHEAD_MOST];
    const int most = ahead_wanted(b->ahead);
    if (most < 0)
        return;
    const int n = ring_foresee(&b->ring, f, seen, most);
    for (int i = 0; i < n; i++)
        rows[i] = (struct ahead_row){seen[i].serial, {.sample = (uint64_t)seen[i].pick.index}};
    const int claimed = ahead_claim(b->ahead, rows, n, f->born, f->serial);
    for (int i = 0; i < claimed; i++) {
        const int64_t sample = (int64_t)rows[i].draw.sample;
        const bool direct = ahead_is_direct(b->ahead, sample);
        struct extent x;
        char path[PATH_MAX];
        int dir;
        if (source_file(b->source, sample, &dir, path, sizeof path))
            ahead_file(b->ahead, &rows[i], dir, path, direct);
        else
            ahead_extent(b->ahead, &rows[i], source_extent(b->source, sample, direct, &x) ? &x : NULL);
    }
}

static void read_ahead(void *user, int i)
{
    (void)i;
    struct bench *b = user;
    struct foresight f = {.walk.pass = -1};
    struct ahead_open open;
    if (!ahead_begin(b->ahead))
        return;
    do {
        while (ahead_opened(b->ahead, &open))
            ahead_read(b->ahead, &open, &(struct ranges){0});
        claim_rows(b, &f);
    } while (ahead_wait(b->ahead));
    ahead_end(b->ahead);
}

static void read_row(struct bench *b, struct reading *r, int64_t serial, int64_t sample)
{
    struct ahead_file f;
    stk_error e;
    const bool lent = ahead_take(b->ahead, serial, sample, &f);
    r->probe = ahead_probes(b->ahead);
    if ((lent ? source_read_from(b->source, r, sample, f.bytes, f.n, &e) : source_read(b->source, r, sample, &e)) !=
        STK_OK)
        fail("read", &e);
    if (!lent)
        ahead_report(b->ahead, r->cold, r->n_bytes);
    ahead_done(b->ahead, serial);
    b->bytes += (int64_t)r->n_bytes;
}

static void work(void *user, int i)
{
    struct bench *b = user;
    struct reading r = {.thread = i};
    struct walk w = {.pass = -1};
    struct ticket t;
    stk_error e;
    while (ring_take(&b->ring, i, 1, &t)) {
        if (ahead_starts(b->ahead) && pool_open(&b->reader, 1, read_ahead, NULL, b, &e) != STK_OK)
            fail("thread", &e);
        read_row(b, &r, t.serial, order_at(&b->order, &w, t.epoch, t.first + t.row).index);
        ring_give(&b->ring, &t);
    }
    reading_done(&r);
}

static void stop(void *user)
{
    ring_stop(&((struct bench *)user)->ring);
}

static void drop_fd(int fd)
{
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static void drop_files(const struct source *s)
{
    for (int64_t i = 0; i < source_count(s); i++) {
        int dir, fd = -1;
        char path[PATH_MAX];
        struct extent x;
        if (source_file(s, i, &dir, path, sizeof path))
            fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
        else if (source_extent(s, i, false, &x))
            fd = open(x.path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            drop_fd(fd);
    }
}

/* One shuffled epoch; no later epoch is prefetched. */
static void give_order(struct order *o)
{
    struct perm p;
    struct given g = {.n = o->samples, .samples = malloc((size_t)o->samples * sizeof *g.samples)};
    if (!g.samples)
        fail("order", NULL);
    perm_init(&p, (uint64_t)g.n, now_ns(), 0);
    for (int64_t i = 0; i < g.n; i++)
        g.samples[i] = (int64_t)perm_at(&p, (uint64_t)i);
    order_give(o, &g);
}

static void open_bench(struct bench *b, const char *name, stk_reader reader, int threads, int depth)
{
    stk_error e;
    const struct source_options s = {.path = name, .cache_dir = "off", .threads = 1};
    if (source_open(&b->source, &s, &e) != STK_OK)
        fail(name, &e);
    drop_files(b->source); /* searching for samples may have read parts of the shards */
    const int64_t n = source_count(b->source);
    b->order = (struct order){.samples = n, .batch_size = ROWS, .world = 1, .sampled = true, .resumed_epoch = -1};
    give_order(&b->order);
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    if (depot_open(&b->depot, &f, 1, 1, ROWS, 9, NULL, &e) != STK_OK ||
        ring_init(&b->ring, threads, 8, 8, b->depot, &b->order, &e) != STK_OK)
        fail("ring", &e);
    struct machine m;
    machine_look(&m);
    const struct ahead_options o = {
        .reader = reader,
        .threads = threads,
        .memory = MEMORY,
        .most = depth,
        .max_bytes = 1 << 30,
        .samples = n,
        .cache_bytes = m.memory_available,
    };
    if (reader != STK_READER_PREAD && ahead_open(&b->ahead, &o, &e) != STK_OK)
        fail("ahead", &e);
}

static int files(const char *name, const char *how, int threads, int depth)
{
    static struct bench b;
    const stk_reader reader = strcmp(how, "pread") == 0   ? STK_READER_PREAD
                              : strcmp(how, "uring") == 0 ? STK_READER_URING
                                                          : STK_READER_DEFAULT;
    stk_error e;
    open_bench(&b, name, reader, threads, depth);
    struct pool pool;
    const struct clocks begun = start();
    if (pool_open(&pool, threads, work, stop, &b, &e) != STK_OK)
        fail("threads", &e);
    struct stk_batch *batch;
    int64_t rows;
    struct bad *bads;
    while (ring_deliver(&b.ring, -1, &batch, &rows, &bads) == STK_OK)
        stk_release(batch);
    report(begun, b.order.samples, b.bytes);
    struct buf words = {0};
    if (b.ahead)
        ahead_explain(b.ahead, &words);
    fprintf(stderr, "%.*s", (int)words.len, words.data ? (const char *)words.data : "");
    buf_done(&words);
    ring_stop(&b.ring);
    pool_close(&pool);
    ahead_stop(b.ahead);
    pool_close(&b.reader);
    ahead_close(b.ahead);
    ring_done(&b.ring);
    depot_close(b.depot);
    source_close(b.source);
    order_done(&b.order);
    return 0;
}

/* ------------------------------------------------------------------ ranges */

struct ranges_run {
    struct fifo fifo;
    int64_t slots[1 << 10];
    int64_t good, bytes;
};

static void wait_for(struct fetch *f, struct ranges_run *r)
{
    struct fetch_event v;
    fetch_wait(f);
    while (fetch_next(f, &v)) {
        int64_t *slot = &r->slots[v.token];
        if (v.kind == FETCH_OPENED) {
            *slot = fifo_take(&r->fifo, v.n);
            fetch_read(f, &v, *slot < 0 ? NULL : fifo_at(&r->fifo, *slot), NULL);
            continue;
        }
        fifo_give(&r->fifo, *slot);
        r->good += v.bytes != NULL;
        r->bytes += v.bytes ? (int64_t)v.size : 0;
    }
}

static int ranges(const char *path, size_t bytes, int depth)
{
    enum { RECORDS = 40000 };
    static struct ranges_run r;
    struct stat st;
    struct fetch *f;
    stk_error e;
    const int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size < (off_t)bytes)
        fail(path, NULL);
    drop_fd(open(path, O_RDONLY | O_CLOEXEC));
    fifo_init(&r.fifo, MEMORY, 1 << 10);
    fifo_limit(&r.fifo, 4 * (size_t)depth * bytes); /* as read/ahead_reader.c does */
    if (fetch_open(&f, depth, r.fifo.memory, r.fifo.bytes, &e) != STK_OK)
        fail("io_uring", &e);
    uint64_t random = now_ns() | 1;
    const struct clocks begun = start();
    for (int i = 0; i < RECORDS; i++) {
        while (fetch_under_way(f) == depth || fifo_room(&r.fifo) < bytes + 3 * FIFO_ALIGN)
            wait_for(f, &r);
        random = random * 6364136223846793005u + 1442695040888963407u;
        const int64_t at = (int64_t)((random >> 11) % (uint64_t)(st.st_size - (off_t)bytes + 1));
        fetch_extent(f, i % (1 << 10), &(struct extent){.fd = fd, .at = at, .bytes = bytes, .direct = true});
    }
    while (fetch_under_way(f) > 0)
        wait_for(f, &r);
    report(begun, RECORDS, r.bytes);
    if (r.good != RECORDS)
        fail("some ranges", NULL);
    fetch_close(f);
    fifo_done(&r.fifo);
    close(fd);
    return 0;
}

int main(int argc, char **argv)
{
    struct machine m;
    machine_look(&m);
    const int last = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 0;
    if (argc > 2 && strcmp(argv[1], "files") == 0)
        return files(argv[2], argc > 3 ? argv[3] : "auto", machine_threads(&m), last);
    if (argc > 3 && strcmp(argv[1], "ranges") == 0)
        return ranges(argv[2], (size_t)strtoull(argv[3], NULL, 10), last > 0 && last < 1 << 10 ? last : 32);
    fprintf(stderr, "usage: bench-cold files SOURCE [pread|uring|auto] [depth]\n"
                    "       bench-cold ranges FILE BYTES [depth]\n");
    return 2;
}
