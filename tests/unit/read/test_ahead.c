/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ahead.c -- files and samples of shards read before their turn: every row gets its own bytes, by whatever way,
 * while the ring is restarted and stopped, files are missing or cut, memory and descriptors are short and storage
 * changes its temperature.
 */
#include "read/ahead.h"

#include <stdatomic.h>
#include <sys/resource.h>

#include "base/pool.h"
#include "batch/ring.h"
#include "source/source.h"
#include "support/tars.h"
#include "support/temp_tree.h"
#include "test.h"

enum { FILES = 200, ROWS = 8, BATCHES = FILES / ROWS, SHARDS = 20 };

static struct ring ring;
static struct depot *depot;
static struct source *source;
static struct ahead *ahead;
static struct pool pool, reader;
static struct order order;
static atomic_int lent, own, wrong, partly, bad;
static bool in_ranges;
static const char *set = "set";        /* or shards of the same samples */
static int allowed = STK_ENOTFOUND;    /* what may be wrong with a sample */
static atomic_bool all_cold, all_warm; /* what the workers say of their own reads */

static size_t size_of(int64_t i)
{
    return i % 50 == 49 ? 300000 : 1000 + (size_t)i * 97;
}

static uint8_t byte_of(int64_t i, size_t k)
{
    return (uint8_t)((size_t)i * 31 + k * 7 + k / 255);
}

static const uint8_t *bytes_of(int i)
{
    static uint8_t bytes[300000];
    for (size_t k = 0; k < size_of(i); k++)
        bytes[k] = byte_of(i, k);
    return bytes;
}

static void make_files(void)
{
    for (int i = 0; i < FILES; i++) {
        char name[50];
        snprintf(name, sizeof name, "set/%03d.jpg", i);
        temp_bytes(name, bytes_of(i), size_of(i));
    }
}

static void make_shards(void)
{
    for (int i = 0; i < FILES;) {
        struct tars t = {0};
        char name[50];
        for (const int end = i + FILES / SHARDS; i < end; i++) {
            snprintf(name, sizeof name, "%03d.jpg", i);
            tars_file(&t, name, bytes_of(i), size_of(i));
        }
        tars_end(&t);
        snprintf(name, sizeof name, "shards/%03d.tar", i);
        temp_bytes(name, t.bytes.data, t.bytes.len);
        buf_done(&t.bytes);
    }
}

/* ------------------------------------------------------------------ the ring and its workers */

/* The ranges to read of some files while in_ranges is set: the beginning, and a later range. */
static struct ranges ranges_of(const struct draw *d)
{
    const int64_t sample = (int64_t)d->sample;
    const size_t n = size_of(sample), at = n / 3 + (size_t)d->epoch * 7 % 100;
    if (in_ranges && sample % 11 == 0) /* as if the file had once been longer */
        return (struct ranges){.n = 1, .at = {{100, n + 1}}};
    if (in_ranges && sample % 3 == 0)
        return (struct ranges){.n = 2, .at = {{0, 50}, {at, sample % 7 == 0 ? n : n - n / 10}}};
    return (struct ranges){0};
}

static void claim_rows(struct foresight *f)
{
    struct foreseen seen[AHEAD_MOST];
    struct ahead_row rows[AHEAD_MOST];
    const int most = ahead_wanted(ahead);
    if (most < 0)
        return;
    const int n = ring_foresee(&ring, f, seen, most);
    for (int i = 0; i < n; i++)
        rows[i] = (struct ahead_row){seen[i].serial,
                                     {.epoch = (uint64_t)seen[i].epoch, .sample = (uint64_t)seen[i].pick.index}};
    const int claimed = ahead_claim(ahead, rows, n, f->born, f->serial);
    for (int i = 0; i < claimed; i++) {
        const int64_t sample = (int64_t)rows[i].draw.sample;
        const bool direct = ahead_is_direct(ahead, sample);
        struct extent x;
        char path[PATH_MAX];
        int dir;
        if (source_file(source, sample, &dir, path, sizeof path))
            ahead_file(ahead, &rows[i], dir, path, direct);
        else
            ahead_extent(ahead, &rows[i], source_extent(source, sample, direct, &x) ? &x : NULL);
    }
}

static void read_ahead(void *user, int i)
{
    (void)user, (void)i;
    struct foresight f = {.walk.pass = -1};
    struct ahead_open open;
    if (!ahead_begin(ahead))
        return;
    do {
        while (ahead_opened(ahead, &open)) {
            const struct ranges ranges = ranges_of(&open.row.draw);
            ahead_read(ahead, &open, &ranges);
        }
        claim_rows(&f);
    } while (ahead_wait(ahead));
    ahead_end(ahead);
}

/* While a file is truncated, a read of the same page may give zeros: the kernel clears what is cut off. */
static bool zeros;

static bool is_right(int64_t sample, const uint8_t *bytes, size_t n, const struct ranges *p)
{
    const struct ranges all = {.n = 1, .at = {{0, n}}};
    bool right = n == size_of(sample);
    p = p && p->n > 0 ? p : &all;
    for (int i = 0; i < p->n; i++)
        for (size_t k = (size_t)p->at[i].from; k < p->at[i].to && right; k += 13)
            right = bytes[k] == byte_of(sample, k) || (zeros && bytes[k] == 0);
    return right;
}

static void do_row(struct reading *r, int64_t serial, int64_t sample)
{
    struct ahead_file f;
    stk_error e;
    if (ahead_take(ahead, serial, sample, &f)) {
        lent++;
        partly += f.ranges.n > 0 && f.read < f.n;
        const int rc = source_read_from(source, r, sample, f.bytes, f.n, &e);
        wrong += rc != STK_OK || !is_right(sample, r->bytes, r->n_bytes, &f.ranges);
    } else {
        own++;
        const int rc = source_read(source, r, sample, &e);
        wrong += rc == STK_OK ? !is_right(sample, r->bytes, r->n_bytes, NULL) : rc != allowed;
        bad += rc != STK_OK;
        const bool cold = all_cold || (r->cold && !all_warm);
        if (rc == STK_OK)
            ahead_report(ahead, cold, r->n_bytes);
    }
    ahead_done(ahead, serial);
}

static void work(void *user, int i)
{
    (void)user;
    struct reading r = {.thread = i, .probe = true};
    struct walk walk = {.pass = -1};
    struct ticket t;
    while (ring_take(&ring, i, 1 + i, &t)) {
        if (ahead_starts(ahead))
            CHECK_EQ(pool_open(&reader, 1, read_ahead, NULL, NULL, NULL), STK_OK);
        for (int64_t row = t.row; row < t.row + t.rows && !ring_wants_back(&ring); row++)
            do_row(&r, t.serial + row - t.row, order_at(&order, &walk, t.epoch, t.first + row).index);
        ring_give(&ring, &t);
    }
    buf_done(&r.file);
}

static void stop(void *user)
{
    (void)user;
    ring_stop(&ring);
}

static void begin(stk_reader how, int threads, size_t memory, int64_t cache_bytes)
{
    const struct field f = {.name = "x", .dtype = STK_INT64, .bytes = 8};
    const struct source_options s = {.path = temp_path(set), .cache_dir = "off"};
    CHECK_EQ(source_open(&source, &s, NULL), STK_OK);
    CHECK_EQ(depot_open(&depot, &f, 1, 1, ROWS, 5, NULL, NULL), STK_OK);
    order = (struct order){
        .n = FILES, .samples = FILES, .batch_size = ROWS, .world = 1, .shuffle = true, .resumed_epoch = -1};
    CHECK_EQ(ring_init(&ring, threads, 4, 4, depot, &order, NULL), STK_OK);
    const struct ahead_options o = {
        .reader = how,
        .threads = threads,
        .memory = memory,
        .max_bytes = 1 << 30,
        .samples = FILES,
        .cache_bytes = cache_bytes,
    };
    lent = own = wrong = partly = bad = 0;
    CHECK_EQ(ahead_open(&ahead, &o, NULL), STK_OK);
    CHECK_EQ(pool_open(&pool, threads, work, stop, NULL, NULL), STK_OK);
}

static void end(void)
{
    ring_stop(&ring);
    pool_close(&pool);
    ahead_stop(ahead);
    pool_close(&reader);
    ahead_close(ahead);
    ring_done(&ring);
    depot_close(depot);
    source_close(source);
    CHECK_EQ(wrong, 0);
}

static void read_batches(int n)
{
    for (int i = 0; i < n;) {
        struct stk_batch *b;
        int64_t rows;
        struct bad *bads;
        const int rc = ring_deliver(&ring, -1, &b, &rows, &bads);
        if (rc == STK_OK) {
            stk_release(b);
            i++;
        } else if (rc != STK_END) {
            CHECK_EQ(rc, STK_END);
            return;
        }
    }
}

static bool explains(const char *words)
{
    struct buf b = {0};
    ahead_explain(ahead, &b);
    const bool found = b.data && strstr((const char *)b.data, words);
    buf_done(&b);
    return found;
}

/* Whether the reader reads ahead here. Its thread is given the CPU sooner or later, and then lends files or explains
 * why it cannot. */
static bool works_here(void)
{
    begin(STK_READER_URING, 1, 1 << 20, 0);
    while (lent == 0 && explains("io_uring,"))
        read_batches(BATCHES);
    const bool works = lent > 0;
    end();
    return works;
}

/* ------------------------------------------------------------------ cases */

static void every_row_has_its_bytes(void)
{
    for (int threads = 1; threads <= 16; threads *= 2) {
        begin(STK_READER_URING, threads, 4 << 20, 0);
        read_batches(5 * BATCHES);
        CHECK(lent + own >= 5 * FILES);
        end();
    }
}

static void ranges_of_files(void)
{
    if (!works_here())
        SKIP("no io_uring");
    in_ranges = true;
    begin(STK_READER_URING, 2, 4 << 20, 0);
    while (partly == 0 || partly == lent || explains(" 0 % are read in part"))
        read_batches(BATCHES);
    end();
    begin(STK_READER_DEFAULT, 2, 4 << 20,
          1 << 30); /* what goes through the page cache is read whole, for the next time */
    all_cold = true;
    while (lent == 0)
        read_batches(BATCHES);
    CHECK_EQ(partly, 0);
    end();
    in_ranges = false;
    all_cold = false;
}

/* Less than the largest file needs, and less than the threads hold at a time. */
static void with_little_memory(void)
{
    begin(STK_READER_URING, 8, 256 << 10, 0);
    read_batches(3 * BATCHES);
    end();
}

static void goes_elsewhere(void)
{
    begin(STK_READER_URING, 3, 2 << 20, 0);
    for (int64_t i = 0; i < 60; i++) {
        read_batches((int)(i % 4));
        ring_restart(&ring, i % 7, i % BATCHES * ROWS); /* what was foreseen is now wrong */
    }
    read_batches(BATCHES);
    end();
}

static void stopped_in_the_middle(void)
{
    for (int i = 0; i < 20; i++) {
        begin(i % 2 ? STK_READER_URING : STK_READER_DEFAULT, 2, 1 << 20, 0);
        read_batches(i);
        end();
    }
}

static void missing_files(void)
{
    for (int i = 0; i < FILES; i += 7) {
        char name[50];
        snprintf(name, sizeof name, "set/%03d.jpg", i);
        if (i == 0)
            begin(STK_READER_URING, 2, 2 << 20, 0); /* they are in the index */
        unlink(temp_path(name));
    }
    read_batches(3 * BATCHES);
    end();
    make_files();
}

/* Sleeps while files are warm, wakes when they are not, sleeps again. */
static void by_temperature(void)
{
    if (!works_here())
        SKIP("no io_uring");
    all_warm = true;
    begin(STK_READER_DEFAULT, 2, 2 << 20, 1 << 30);
    read_batches(2 * BATCHES);
    CHECK_EQ(lent, 0);
    CHECK(explains("pread (files are in the page cache"));
    CHECK_EQ(ahead_held(ahead), 0);
    all_warm = false;
    all_cold = true;
    while (lent == 0)
        read_batches(BATCHES);
    all_cold = false;
    all_warm = true;
    bool asleep = false; /* the files are in the page cache, really; unless the file system cannot say so */
    for (int i = 0; i < 1000 && !asleep; i++) {
        read_batches(BATCHES);
        asleep = explains("pread (files are in the page cache");
    }
    struct reading r = {.probe = true};
    CHECK_EQ(source_read(source, &r, 0, NULL), STK_OK);
    CHECK(asleep || r.cold);
    buf_done(&r.file);
    end();
    all_warm = false;
}

static bool about_half_is_direct(void)
{
    bool half = false;
    for (int percent = 30; percent <= 70 && !half; percent++) {
        char words[40];
        snprintf(words, sizeof words, " %d %% of them bypass", percent);
        half = explains(words);
    }
    return half;
}

/* If a dataset does not fit into the page cache, the same part of it goes through the page cache in every epoch. */
static void a_share_through_the_page_cache(void)
{
    if (!works_here())
        SKIP("no io_uring");
    int64_t all = 0;
    for (int i = 0; i < FILES; i++)
        all += (int64_t)size_of(i);
    all_cold = true;
    begin(STK_READER_DEFAULT, 2, 2 << 20, all / 2);
    /* A few files are no share yet. Where the file system refuses to bypass the page cache, none are. */
    while (!about_half_is_direct() && !(lent > FILES && explains(" 0 % of them bypass")))
        read_batches(BATCHES);
    end();
    all_cold = false;
}

/* The workers may have finished before the reader starts. */
static void read_until_lent(bool works)
{
    while (lent == 0 && works)
        read_batches(BATCHES);
}

static void samples_of_shards(void)
{
    const bool works = works_here();
    set = "shards/*.tar";
    for (int threads = 1; threads <= 4; threads *= 2) {
        begin(STK_READER_URING, threads, 4 << 20, 0);
        read_batches(5 * BATCHES);
        read_until_lent(works);
        CHECK_EQ(partly, 0); /* ranges are those of files */
        end();
    }
    all_cold = true;
    begin(STK_READER_DEFAULT, 2, 2 << 20, 1 << 30); /* through the page cache */
    read_until_lent(works);
    end();
    all_cold = false;
    set = "set";
}

/* Shards are not kept open, or not twice. */
static void with_few_descriptors(void)
{
    struct rlimit before;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const bool works = works_here();
    set = "shards/*.tar";
    for (rlim_t n = 4 * SHARDS - 4; n <= 4 * SHARDS + 4; n += 8) {
        const struct rlimit few = {.rlim_cur = n, .rlim_max = before.rlim_max};
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        begin(STK_READER_URING, 2, 4 << 20, 0);
        read_batches(5 * BATCHES);
        read_until_lent(works);
        end();
    }
    setrlimit(RLIMIT_NOFILE, &before);
    set = "set";
}

/* pread reports what is missing; the rest of the shard is read. */
static void a_shard_that_shrinks(void)
{
    set = "shards/*.tar";
    allowed = STK_EDATA;
    zeros = true;
    for (int64_t bytes = 40000; bytes > 0; bytes -= 4999) {
        begin(STK_READER_URING, 2, 2 << 20, 0); /* its samples are in the index */
        CHECK_EQ(truncate(temp_path("shards/050.tar"), bytes), 0);
        read_batches(3 * BATCHES);
        CHECK(bad > 0);
        end();
        make_shards();
    }
    allowed = STK_ENOTFOUND;
    zeros = false;
    set = "set";
}

static void accepts_null(void)
{
    struct ahead_file f;
    CHECK(!ahead_take(NULL, 0, 0, &f));
    ahead_report(NULL, true, 1);
    ahead_done(NULL, 0);
    CHECK(!ahead_probes(NULL));
    CHECK(!ahead_starts(NULL));
    CHECK_EQ(ahead_held(NULL), 0);
    ahead_stop(NULL);
    ahead_close(NULL);
}

int main(int argc, char **argv)
{
    temp_begin();
    make_files();
    make_shards();
    const struct test_case cases[] = {
        T(every_row_has_its_bytes), T(ranges_of_files),      T(with_little_memory),   T(goes_elsewhere),
        T(stopped_in_the_middle),   T(missing_files),        T(by_temperature),       T(a_share_through_the_page_cache),
        T(samples_of_shards),       T(with_few_descriptors), T(a_shard_that_shrinks), T(accepts_null),
    };
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    temp_end();
    return rc;
}
