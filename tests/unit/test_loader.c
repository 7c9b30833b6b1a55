/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_loader.c -- the rules on epochs, ranks, errors, memory and batches, on a source of PNG
 * pictures that are made here: picture i is all of colour (i, 2i, 3i), its label is i % 10.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pool.h"
#include "stoker.h"
#include "test.h"

enum { MANY = 100, SIDE = 8 };

static struct {
    void *bytes;
    size_t n;
} pictures[MANY];

static atomic_int closed;
static int first_bad = MANY, n_bad;

static void make_pictures(void)
{
    for (int i = 0; i < MANY; i++) {
        uint8_t px[SIDE * SIDE * 3];
        for (int k = 0; k < SIDE * SIDE; k++)
            for (int c = 0; c < 3; c++)
                px[3 * k + c] = (uint8_t)(i * (c + 1));
        const stk_encode_options png = {.format = STK_PNG};
        stk_error e;
        if (stk_encode(px, SIDE, SIDE, 3, SIDE * 3, &png, &pictures[i].bytes, &pictures[i].n, &e) != STK_OK) {
            printf("skipped: %s\n", e.text);
            exit(77);
        }
    }
}

static int64_t count(void *user)
{
    (void)user;
    return MANY;
}

static int read_picture(void *user, int thread, int64_t i, const void **bytes, size_t *n, int64_t *label, stk_error *e)
{
    (void)user, (void)thread, (void)e;
    *bytes = pictures[i].bytes;
    *n = i >= first_bad && i < first_bad + n_bad ? 20 : pictures[i].n;
    *label = i % 10;
    return STK_OK;
}

static void close_source(void *user)
{
    (void)user;
    closed++;
}

static const stk_source_hooks hooks = {.count = count, .read = read_picture, .close = close_source};

static stk_options base_options(void)
{
    return (stk_options){.hooks = &hooks, .ops = "CenterCrop(4)", .dtype = STK_UINT8, .batch_size = 8, .threads = 3};
}

static stk_loader *open_loader(const stk_options *o)
{
    stk_loader *l = NULL;
    stk_error e;
    if (stk_open(&l, o, &e) != STK_OK) {
        printf("cannot open: %s\n", e.text);
        CHECK(0);
    }
    return l;
}

static int64_t value_at(const stk_batch *b, const char *name, int64_t row)
{
    return ((const int64_t *)stk_field(b, name)->data)[row];
}

/* Reads up to n batches and writes the samples that came; returns their number. */
static int64_t read_some(stk_loader *l, int64_t n, int64_t *samples, int *rc)
{
    int64_t got = 0;
    stk_batch *b;
    *rc = STK_OK;
    while (n-- > 0 && (*rc = stk_next(l, &b, NULL)) == STK_OK) {
        for (int64_t i = 0; i < stk_samples(b); i++) {
            const int64_t sample = value_at(b, "index", i);
            CHECK_EQ(value_at(b, "label", i), sample % 10);
            CHECK_EQ(((uint8_t *)stk_field(b, "image")->data)[i * 48 + 16], (uint8_t)(2 * sample));
            samples[got++] = sample;
        }
        stk_release(b);
    }
    return got;
}

static void an_epoch_has_every_sample_once(void)
{
    stk_options o = base_options();
    o.shuffle = 1;
    stk_loader *l = open_loader(&o);
    CHECK_EQ(stk_length(l), 13);
    CHECK_EQ(stk_count(l), MANY);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int64_t samples[2 * MANY];
        int seen[MANY] = {0}, rc;
        CHECK_EQ(stk_epoch(l), epoch);
        CHECK_EQ(read_some(l, 1000, samples, &rc), MANY);
        CHECK_EQ(rc, STK_END);
        for (int i = 0; i < MANY; i++)
            seen[samples[i]]++;
        for (int i = 0; i < MANY; i++)
            CHECK_EQ(seen[i], 1);
    }
    const int before = closed;
    stk_close(l);
    CHECK_EQ(closed, before + 1);
    stk_close(NULL);
}

static void threads_change_nothing(void)
{
    int64_t one[3 * MANY], other[3 * MANY];
    for (int threads = 1; threads <= 16; threads *= 4) {
        stk_options o = base_options();
        o.shuffle = 1;
        o.seed = 5;
        o.threads = threads;
        stk_loader *l = open_loader(&o);
        int rc;
        read_some(l, 20, threads == 1 ? one : other, &rc);
        if (threads > 1)
            CHECK(memcmp(one, other, MANY * sizeof one[0]) == 0);
        stk_close(l);
    }
}

static void ranks_join_to_one(void)
{
    int64_t whole[MANY], parts[2][MANY];
    int rc;
    stk_options o = base_options();
    o.shuffle = 1;
    stk_loader *l = open_loader(&o);
    CHECK_EQ(read_some(l, 100, whole, &rc), MANY);
    stk_close(l);
    for (int rank = 0; rank < 2; rank++) {
        o.rank = rank;
        o.world_size = 2;
        o.batch_size = 4;
        l = open_loader(&o);
        CHECK_EQ(stk_length(l), 13);
        read_some(l, 100, parts[rank], &rc);
        stk_close(l);
    }
    for (int64_t i = 0; i < MANY; i++)
        CHECK_EQ(whole[i], parts[i / 4 % 2][i / 8 * 4 + i % 4]);
}

static void resumes_exactly(void)
{
    int64_t whole[3 * MANY], rest[3 * MANY];
    char state[300];
    int rc;
    stk_options o = base_options();
    o.shuffle = 1;
    stk_loader *l = open_loader(&o);
    int64_t n = read_some(l, 20, whole, &rc); /* to the end of epoch 0 */
    n += read_some(l, 3, whole + n, &rc);
    CHECK(stk_state_get(l, state, sizeof state) < 300);
    const int64_t at = n;
    n += read_some(l, 20, whole + n, &rc);
    stk_close(l);
    CHECK_EQ(n, 2 * MANY);

    o.threads = 1;
    o.batch_size = 3; /* another batch size is another layout of the same order */
    l = open_loader(&o);
    CHECK_EQ(stk_state_set(l, state, NULL), STK_OK);
    CHECK_EQ(stk_epoch(l), 1);
    CHECK_EQ(read_some(l, 1000, rest, &rc), n - at);
    CHECK(memcmp(rest, whole + at, (size_t)(n - at) * sizeof rest[0]) == 0);
    CHECK_EQ(stk_epoch(l), 2);
    stk_close(l);
}

static void a_state_of_something_else_is_refused(void)
{
    char state[300];
    stk_error e;
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    stk_state_get(l, state, sizeof state);
    stk_close(l);
    o.take = 50;
    l = open_loader(&o);
    CHECK_EQ(stk_state_set(l, state, &e), STK_ECHANGED);
    CHECK(strstr(e.text, "100 samples then, 50 now"));
    CHECK_EQ(stk_state_set(l, "{}", &e), STK_EUSAGE);
    CHECK_EQ(stk_state_set(l, "{\"stoker\": ", &e), STK_EUSAGE);
    CHECK_EQ(stk_state_set(l, NULL, &e), STK_EUSAGE);
    stk_close(l);
    o = base_options();
    o.seed = 9;
    l = open_loader(&o);
    CHECK_EQ(stk_state_set(l, state, &e), STK_ECHANGED);
    CHECK(strstr(e.text, "seed 0"));
    stk_close(l);
}

static void epochs_can_be_set(void)
{
    int64_t a[MANY], b[MANY];
    int rc;
    stk_options o = base_options();
    o.shuffle = 1;
    stk_loader *l = open_loader(&o);
    read_some(l, 2, a, &rc);
    CHECK_EQ(stk_set_epoch(l, 0, NULL), STK_OK); /* the current one: no change */
    read_some(l, 100, a, &rc);
    CHECK_EQ(rc, STK_END);
    read_some(l, 2, a, &rc);
    CHECK_EQ(stk_set_epoch(l, 7, NULL), STK_OK);
    CHECK_EQ(stk_epoch(l), 7);
    read_some(l, 100, a, &rc);
    CHECK_EQ(stk_set_epoch(l, 7, NULL), STK_OK);
    read_some(l, 100, b, &rc);
    CHECK(memcmp(a, b, sizeof a) == 0);
    CHECK_EQ(stk_set_epoch(l, -1, NULL), STK_EUSAGE);
    stk_close(l);
}

static void short_dropped_and_padded_batches(void)
{
    stk_options o = base_options();
    int64_t samples[2 * MANY];
    int rc;
    o.drop_last = 1;
    stk_loader *l = open_loader(&o);
    CHECK_EQ(stk_length(l), 12);
    CHECK_EQ(read_some(l, 100, samples, &rc), 96);
    stk_close(l);
    o.drop_last = 0;
    o.pad_last = 1;
    l = open_loader(&o);
    stk_batch *b = NULL;
    int64_t rows = 0, valid = 0;
    while (stk_next(l, &b, NULL) == STK_OK) {
        CHECK_EQ(stk_samples(b), 8);
        rows += stk_samples(b);
        for (int64_t i = 0; i < 8; i++)
            valid += ((const uint8_t *)stk_field(b, "valid")->data)[i];
        stk_release(b);
    }
    CHECK_EQ(rows, 104);
    CHECK_EQ(valid, MANY);
    stk_close(l);
    o.drop_last = 1;
    CHECK_EQ(stk_open(&l, &o, NULL), STK_EUSAGE);
}

static void a_subset_keeps_its_names(void)
{
    const int64_t subset[] = {5, 50, 7};
    int64_t samples[MANY];
    int rc;
    stk_options o = base_options();
    o.subset = subset;
    o.n_subset = 3;
    stk_loader *l = open_loader(&o);
    CHECK_EQ(read_some(l, 10, samples, &rc), 3);
    CHECK(memcmp(samples, subset, sizeof subset) == 0);
    stk_close(l);
    const int64_t wrong[] = {100};
    o.subset = wrong;
    o.n_subset = 1;
    CHECK_EQ(stk_open(&l, &o, NULL), STK_EUSAGE);
    o.n_subset = 0;
    CHECK_EQ(stk_open(&l, &o, NULL), STK_EUSAGE);
}

/* ------------------------------------------------------------------ errors */

static void raise_fails_one_batch(void)
{
    first_bad = 10;
    n_bad = 1;
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    stk_error e;
    CHECK_EQ(stk_next(l, &b, &e), STK_OK);
    stk_release(b);
    CHECK_EQ(stk_next(l, &b, &e), STK_EDATA);
    CHECK(b == NULL);
    CHECK_EQ(e.sample, 10);
    CHECK_STR(e.stage, "decode");
    CHECK_EQ(stk_next(l, &b, &e), STK_OK);
    CHECK_EQ(value_at(b, "index", 0), 16);
    stk_release(b);
    stk_stats s;
    stk_stats_get(l, &s);
    CHECK_EQ(s.bad, 1);
    CHECK_EQ(s.batches, 2);
    CHECK_EQ(stk_bad_sample(l, 0, &e), 1);
    CHECK_EQ(e.sample, 10);
    CHECK_EQ(stk_bad_sample(l, 1, &e), 0);
    stk_close(l);
    first_bad = MANY;
}

static void skip_shortens_one_batch(void)
{
    first_bad = 10;
    n_bad = 1;
    stk_options o = base_options();
    o.on_error = STK_SKIP;
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    CHECK_EQ(read_some(l, 2, samples, &rc), 15);
    CHECK_EQ(samples[9], 9);
    CHECK_EQ(samples[10], 11);
    CHECK_EQ(read_some(l, 1, samples, &rc), 8);
    CHECK_EQ(samples[0], 16);
    stk_close(l);
    o.pad_last = 1; /* the shape is to stay */
    l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    stk_release(b);
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    CHECK_EQ(stk_samples(b), 8);
    CHECK_EQ(((const uint8_t *)stk_field(b, "valid")->data)[2], 0);
    CHECK_EQ(value_at(b, "index", 2), 8);
    stk_release(b);
    stk_close(l);
    first_bad = MANY;
}

static void replace_takes_the_next_good_one(void)
{
    first_bad = 10;
    n_bad = 1;
    stk_options o = base_options();
    o.on_error = STK_REPLACE;
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    CHECK_EQ(read_some(l, 100, samples, &rc), MANY);
    CHECK_EQ(rc, STK_END);
    CHECK_EQ(samples[10], 11);
    CHECK_EQ(samples[11], 11);
    stk_close(l);
    first_bad = MANY;
}

static void a_rotten_set_ends_the_run(void)
{
    first_bad = 20;
    n_bad = 3;
    stk_options o = base_options();
    o.on_error = STK_SKIP;
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    stk_error e;
    int rc = STK_OK;
    while (rc == STK_OK) {
        rc = stk_next(l, &b, &e);
        stk_release(b);
    }
    CHECK_EQ(rc, STK_EROTTEN);
    CHECK(strstr(e.text, "max_bad"));
    CHECK_EQ(stk_next(l, &b, &e), STK_EROTTEN);
    stk_close(l);
    o.max_bad = 0.05;
    l = open_loader(&o);
    int64_t samples[MANY];
    CHECK_EQ(read_some(l, 100, samples, &rc), 97);
    CHECK_EQ(rc, STK_END);
    stk_close(l);
    first_bad = MANY;
}

static void none_may_be_bad(void)
{
    first_bad = 20;
    n_bad = 1;
    stk_options o = base_options();
    o.on_error = STK_SKIP;
    o.max_bad = -1;
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    read_some(l, 100, samples, &rc);
    CHECK_EQ(rc, STK_EROTTEN);
    stk_close(l);
    first_bad = MANY;
}

static void the_list_names_each_once(void)
{
    first_bad = 20;
    n_bad = 1;
    stk_options o = base_options();
    o.on_error = STK_REPLACE;
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    stk_error e;
    for (int epoch = 0; epoch < 3; epoch++)
        read_some(l, 100, samples, &rc);
    CHECK(stk_bad_sample(l, 0, &e) == 1 && stk_bad_sample(l, 1, &e) == 0);
    stk_close(l);
    first_bad = MANY;
}

/* Positions stay with their rows when others go. */
static void rows_know_their_position(void)
{
    first_bad = 10;
    n_bad = 1;
    stk_options o = base_options();
    o.on_error = STK_SKIP;
    o.shuffle = 1;
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    int64_t seen = 0, gaps = 0;
    while (stk_next(l, &b, NULL) == STK_OK) {
        for (int64_t i = 0; i < stk_samples(b); i++) {
            gaps += value_at(b, "position", i) - seen - gaps;
            seen++;
        }
        stk_release(b);
    }
    CHECK_EQ(seen, MANY - 1);
    CHECK(gaps <= 1);
    stk_close(l);
    first_bad = MANY;
}

static int no_descriptors(void *user, int thread, int64_t i, const void **bytes, size_t *n, int64_t *label,
                          stk_error *e)
{
    if (i == 5) {
        e->os_error = EMFILE;
        snprintf(e->reason, sizeof e->reason, "too many open files");
        return STK_EIO;
    }
    return read_picture(user, thread, i, bytes, n, label, e);
}

/* What the machine lacks is not the sample's fault: no policy passes over it. */
static void a_machine_that_runs_out(void)
{
    const stk_source_hooks h = {.count = count, .read = no_descriptors};
    for (int policy = STK_RAISE; policy <= STK_REPLACE; policy++) {
        stk_options o = base_options();
        o.hooks = &h;
        o.on_error = (stk_on_error)policy;
        stk_loader *l = open_loader(&o);
        stk_batch *b;
        stk_error e;
        stk_stats s;
        CHECK_EQ(stk_next(l, &b, &e), STK_EIO);
        CHECK_EQ(e.os_error, EMFILE);
        stk_stats_get(l, &s);
        CHECK_EQ(s.bad, 0);
        CHECK_EQ(stk_next(l, &b, &e), STK_OK);
        stk_release(b);
        stk_close(l);
    }
}

static atomic_int reads;

static int rotten_and_slow(void *user, int thread, int64_t i, const void **bytes, size_t *n, int64_t *label,
                           stk_error *e)
{
    (void)user, (void)thread, (void)i, (void)bytes, (void)n, (void)label, (void)e;
    reads++;
    usleep(1000);
    return STK_EDATA;
}

static int64_t a_million(void *user)
{
    (void)user;
    return 1000000;
}

/* Neither a search for a good sample nor a long run of rows holds up the end. */
static void closes_in_the_middle_of_a_search(void)
{
    const stk_source_hooks h = {.count = a_million, .read = rotten_and_slow};
    stk_options o = base_options();
    o.hooks = &h;
    o.on_error = STK_REPLACE;
    o.batch_size = 64;
    stk_loader *l = open_loader(&o);
    while (reads < 10)
        usleep(1000);
    const int before = reads;
    stk_close(l);
    CHECK(reads - before <= 2 * 3);
}

/* ------------------------------------------------------------------ memory */

static uint8_t *large;
static size_t large_bytes;

static int read_large(void *user, int thread, int64_t i, const void **bytes, size_t *n, int64_t *label, stk_error *e)
{
    (void)user, (void)thread, (void)i, (void)e;
    *bytes = large;
    *n = large_bytes;
    *label = 0;
    return STK_OK;
}

/* Whether a picture fits depends on memory alone, and what is held stays within it. */
static void memory_is_held(void)
{
    const stk_source_hooks h = {.count = count, .read = read_large};
    const int64_t mib = 1 << 20;
    large_bytes = (size_t)(40 * mib);
    large = calloc(1, large_bytes);
    memcpy(large, pictures[0].bytes, pictures[0].n); /* a picture, and a long tail */
    for (int64_t memory = 144; memory <= 176; memory += 32)
        for (int threads = 1; threads <= 8; threads *= 2) {
            stk_options o = base_options();
            o.hooks = &h;
            o.threads = threads;
            o.memory = memory * mib;
            stk_loader *l = open_loader(&o);
            stk_batch *b;
            stk_error e;
            stk_stats s;
            CHECK_EQ(stk_next(l, &b, &e), memory == 144 ? STK_EDATA : STK_OK);
            CHECK(b || strstr(e.text, "MiB"));
            stk_release(b);
            stk_stats_get(l, &s);
            CHECK(s.memory_bytes <= o.memory);
            stk_close(l);
        }
    free(large);
}

static atomic_int pages_out;

static void *count_alloc(void *user, size_t bytes)
{
    (void)user;
    pages_out++;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void count_free(void *user, void *p, size_t bytes)
{
    (void)user, (void)bytes;
    pages_out--;
    free(p);
}

static void an_allocator_of_ones_own(void)
{
    const stk_allocator a = {.alloc = count_alloc, .free = count_free};
    stk_options o = base_options();
    o.allocator = &a;
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    stk_close(l);
    CHECK_EQ(value_at(b, "index", 1), 1);
    CHECK(pages_out > 0);
    stk_release(b);
    CHECK_EQ(pages_out, 0);
}

static void kept_batches_are_never_overwritten(void)
{
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    stk_batch *kept[13];
    stk_error e;
    for (int i = 0; i < 13; i++)
        CHECK_EQ(stk_next(l, &kept[i], &e), STK_OK);
    stk_stats s;
    stk_stats_get(l, &s);
    CHECK(s.kept_bytes > 0);
    int64_t samples[MANY];
    int rc;
    read_some(l, 1, samples, &rc);
    read_some(l, 100, samples, &rc);
    stk_close(l); /* they outlive the loader */
    for (int64_t i = 0; i < MANY; i++) {
        CHECK_EQ(value_at(kept[i / 8], "index", i % 8), i);
        CHECK_EQ(((uint8_t *)stk_field(kept[i / 8], "image")->data)[i % 8 * 48], (uint8_t)i);
    }
    for (int i = 0; i < 13; i++)
        stk_release(kept[i]);
}

static void too_little_memory_names_the_minimum(void)
{
    stk_options o = base_options();
    stk_loader *l;
    stk_error e;
    o.memory = 1000;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "48 MiB"));
    o.memory = 48 << 20;
    CHECK_EQ(stk_open(&l, &o, &e), STK_OK);
    stk_close(l);
    o.memory = 0;
    o.batch_size = 1000000000;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "batch_size"));
}

static void absurd_options(void)
{
    stk_loader *l;
    stk_error e;
    const struct {
        stk_options o;
        const char *words;
    } cases[] = {
        {{.batch_size = 1}, "no source"},
        {{.hooks = &hooks, .source = "x"}, "more than one"},
        {{.hooks = &hooks, .batch_size = -1}, "batch_size"},
        {{.hooks = &hooks, .threads = -1}, "threads"},
        {{.hooks = &hooks, .threads = 100000}, "threads"},
        {{.hooks = &hooks, .rank = 2, .world_size = 2}, "rank 2 of 2"},
        {{.hooks = &hooks, .dtype = (stk_dtype)77}, "dtype"},
        {{.hooks = &hooks, .dtype = STK_INT64}, "dtype"},
        {{.hooks = &hooks, .layout = (stk_layout)77}, "layout"},
        {{.hooks = &hooks, .fidelity = STK_DRAFT}, "draft"},
        {{.hooks = &hooks, .reader = STK_READER_URING}, "uring"},
        {{.hooks = &hooks, .on_error = (stk_on_error)9}, "on_error"},
        {{.hooks = &hooks, .max_bad = 2}, "max_bad"},
        {{.hooks = &hooks, .memory = -5}, "memory"},
        {{.hooks = &hooks, .take = -1}, "negative"},
        {{.hooks = &hooks, .max_pixels = -1}, "max_pixels"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ(stk_open(&l, &cases[i].o, &e), STK_EUSAGE);
        CHECK(l == NULL);
        CHECK(strstr(e.text, cases[i].words) != NULL);
    }
    CHECK_EQ(stk_open(&l, NULL, &e), STK_EUSAGE);
}

/* A program built for a later header is served as long as it does not use what is unknown here. */
static void options_may_grow(void)
{
    struct {
        stk_options o;
        int more[4];
    } later = {.o = base_options()};
    stk_loader *l;
    stk_error e;
    CHECK_EQ(stk_open_sized(&l, &later.o, sizeof later, &e), STK_OK);
    stk_close(l);
    later.more[2] = 1;
    CHECK_EQ(stk_open_sized(&l, &later.o, sizeof later, &e), STK_EUSAGE);
    struct {
        stk_stats s;
        int more[4];
    } stats;
    l = open_loader(&later.o);
    CHECK_EQ(stk_stats_get_sized(l, &stats.s, sizeof stats), STK_OK);
    CHECK_EQ(stats.more[3], 0);
    stk_close(l);
}

/* The caller's close() is called once, however far the opening came. */
static void hooks_are_closed_once(void)
{
    const struct {
        const char *ops;
        int64_t batch_size;
        int n_subset;
    } cases[] = {
        {"Nonsense", 1, 0}, {"CenterCrop(4)", -1, 0}, {"CenterCrop(4)", 1, 1}, {"CenterCrop(4)", 1000000000, 0}};
    const int64_t wrong[] = {-1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_options o = base_options();
        o.ops = cases[i].ops;
        o.batch_size = cases[i].batch_size;
        o.subset = cases[i].n_subset ? wrong : NULL;
        o.n_subset = cases[i].n_subset;
        const int before = closed;
        stk_loader *l;
        CHECK(stk_open(&l, &o, NULL) != STK_OK);
        CHECK_EQ(closed, before + 1);
    }
}

static void a_state_is_read_strictly(void)
{
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    char state[300], wrong[300];
    stk_state_get(l, state, sizeof state);
    const struct {
        const char *from, *to;
    } cases[] = {{"\"epoch\":0", "\"epoch\":fish"},
                 {"\"position\":0", "\"position\":1.9e1"},
                 {"\"position\":0", "\"position\":c"},
                 {"\"epoch\":0", "\"epoch\":9223372036854775807"},
                 {"\"position\":0", "\"position\":101"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = strstr(state, cases[i].from);
        snprintf(wrong, sizeof wrong, "%.*s%s%s", (int)(at - state), state, cases[i].to, at + strlen(cases[i].from));
        CHECK_EQ(stk_state_set(l, wrong, NULL), STK_EUSAGE);
    }
    CHECK_EQ(stk_set_epoch(l, INT64_MAX, NULL), STK_EUSAGE);
    CHECK_EQ(stk_state_set(l, state, NULL), STK_OK);
    stk_close(l);
}

/* ------------------------------------------------------------------ threads and processes */

static atomic_int taken[MANY], ends;

static void take_until_end(void *user, int i)
{
    (void)i;
    stk_loader *l = user;
    stk_batch *b;
    int rc;
    while ((rc = stk_next(l, &b, NULL)) == STK_OK) {
        for (int64_t k = 0; k < stk_samples(b); k++)
            if (stk_batch_epoch(b) == 0)
                taken[value_at(b, "index", k)]++;
        stk_release(b);
    }
    ends += rc == STK_END;
    stk_stop(l); /* the one who sees the end tells the others */
}

static void several_callers(void)
{
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    struct pool callers;
    CHECK_EQ(pool_open(&callers, 4, take_until_end, NULL, l, NULL), STK_OK);
    pool_close(&callers);
    CHECK(ends >= 1);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(taken[i], 1);
    stk_close(l);
}

static void *stop_soon(void *arg)
{
    usleep(2000);
    stk_stop(arg);
    return NULL;
}

static void stop_wakes_everyone(void)
{
    for (int round = 0; round < 20; round++) {
        stk_options o = base_options();
        stk_loader *l = open_loader(&o);
        pthread_t t;
        pthread_create(&t, NULL, stop_soon, l);
        stk_batch *b;
        int rc = STK_OK;
        while (rc != STK_STOPPED) {
            rc = stk_next(l, &b, NULL);
            stk_release(b);
        }
        pthread_join(t, NULL);
        CHECK_EQ(stk_next_wait(l, &b, 10, NULL), STK_STOPPED);
        stk_close(l);
    }
}

static void closes_at_any_moment(void)
{
    for (int i = 0; i < 60; i++) {
        stk_options o = base_options();
        o.threads = 1 + i % 5;
        stk_loader *l = open_loader(&o);
        int64_t samples[2 * MANY];
        int rc;
        read_some(l, i % 7, samples, &rc);
        if (i % 3 == 0)
            usleep((unsigned)(i * 37 % 500));
        if (i % 4 == 0)
            stk_set_epoch(l, i, NULL);
        stk_close(l);
    }
}

static void a_child_can_open_its_own(void)
{
#if defined(__SANITIZE_THREAD__)
    SKIP("the thread sanitizer knows no threads after a fork");
#endif
    stk_options o = base_options();
    stk_loader *l = open_loader(&o);
    stk_batch *kept;
    CHECK_EQ(stk_next(l, &kept, NULL), STK_OK);
    const pid_t child = fork();
    if (child == 0) {
        stk_batch *b;
        stk_error e;
        stk_stats s;
        char text[400];
        int bad = stk_next(l, &b, &e) != STK_EFORK || !strstr(e.text, "fork");
        bad |= stk_set_epoch(l, 3, &e) != STK_EFORK || stk_state_set(l, "{}", &e) != STK_EFORK;
        bad |= stk_state_get(l, text, sizeof text) != 0 || stk_stats_get(l, &s) != STK_EFORK;
        stk_stop(l);
        stk_release(kept);
        stk_close(l);
        stk_loader *own;
        bad |= stk_open(&own, &o, &e) != STK_OK || stk_next(own, &b, &e) != STK_OK;
        stk_release(b);
        stk_close(own);
        _exit(bad);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
    stk_release(kept);
    int64_t samples[MANY];
    int rc;
    CHECK_EQ(read_some(l, 100, samples, &rc), MANY - 8);
    stk_close(l);
}

/* ------------------------------------------------------------------ hooks, arrays, words */

static int negate(void *user, const stk_row *row, stk_error *e)
{
    (void)e;
    atomic_fetch_add((atomic_int *)user, 1);
    CHECK_EQ(row->image->ndim, 3);
    CHECK_EQ(row->label, row->sample % 10);
    uint8_t *px = row->image->data;
    for (int i = 0; i < 48; i++)
        px[i] = (uint8_t)~px[i];
    return STK_OK;
}

static void an_op_of_ones_own(void)
{
    atomic_int calls = 0;
    const stk_op_hook op = {.user = &calls, .run = negate};
    stk_options o = base_options();
    o.op = &op;
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    CHECK_EQ(*(uint8_t *)stk_field(b, "image")->data, 255);
    stk_release(b);
    stk_close(l);
    CHECK(calls >= 8);
}

static int say_nothing(void *user, const stk_row *row, stk_error *e)
{
    (void)e;
    return row->sample == 3 ? *(int *)user : STK_OK;
}

/* A hook need not fill in the error, and its code may be any number. */
static void an_op_that_fails(void)
{
    int codes[] = {STK_EDATA, -1, 1, 77};
    for (int i = 0; i < 4; i++) {
        const stk_op_hook op = {.user = &codes[i], .run = say_nothing};
        stk_options o = base_options();
        o.op = &op;
        stk_loader *l = open_loader(&o);
        stk_batch *b;
        stk_error e;
        CHECK(stk_next(l, &b, &e) >= STK_EUSAGE);
        CHECK(b == NULL && e.sample == 3 && e.text[0] != 0);
        CHECK_STR(e.stage, "op");
        stk_close(l);
    }
}

static void arrays_in_memory(void)
{
    static float x[MANY][3];
    static int32_t y[MANY];
    for (int i = 0; i < MANY; i++) {
        y[i] = i;
        for (int k = 0; k < 3; k++)
            x[i][k] = (float)(i + k);
    }
    const int64_t x_shape[] = {MANY, 3}, y_shape[] = {MANY};
    const stk_array arrays[] = {
        {.name = "x", .data = x, .dtype = STK_FLOAT32, .ndim = 2, .device = 1, .shape = x_shape},
        {.name = "label", .data = y, .dtype = STK_INT32, .ndim = 1, .device = 1, .shape = y_shape},
    };
    const stk_options o = {.arrays = arrays, .n_arrays = 2, .batch_size = 7, .shuffle = 1, .threads = 2};
    stk_loader *l = open_loader(&o);
    int seen[MANY] = {0};
    stk_batch *b;
    while (stk_next(l, &b, NULL) == STK_OK) {
        const float *values = stk_field(b, "x")->data;
        for (int64_t i = 0; i < stk_samples(b); i++) {
            const int64_t label = value_at(b, "label", i);
            CHECK_EQ(values[3 * i + 2], label + 2);
            seen[label]++;
        }
        stk_release(b);
    }
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(seen[i], 1);
    stk_close(l);
}

/* A label that is no integer is a tensor like any other. */
static void float_labels(void)
{
    static float y[MANY];
    for (int i = 0; i < MANY; i++)
        y[i] = (float)i;
    const int64_t shape[] = {MANY};
    const stk_array label = {.name = "label", .data = y, .dtype = STK_FLOAT32, .ndim = 1, .device = 1, .shape = shape};
    const stk_options o = {.arrays = &label, .n_arrays = 1, .batch_size = MANY};
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    CHECK_EQ(stk_field(b, "label")->dtype, STK_FLOAT32);
    CHECK(memcmp(stk_field(b, "label")->data, y, sizeof y) == 0);
    stk_release(b);
    stk_close(l);
}

static void pixels_in_memory(void)
{
    static uint8_t px[10][6][5];
    for (int i = 0; i < 10; i++)
        memset(px[i], i * 20, sizeof px[i]);
    const int64_t shape[] = {10, 6, 5, 1};
    const stk_array image = {.name = "image", .data = px, .dtype = STK_UINT8, .ndim = 4, .device = 1, .shape = shape};
    const stk_options o = {
        .arrays = &image, .n_arrays = 1, .batch_size = 10, .ops = "Resize((3, 3))", .layout = STK_NHWC};
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    const stk_array *x = stk_field(b, "image");
    CHECK_EQ(x->shape[3], 3);
    for (int i = 0; i < 10; i++)
        CHECK(((float *)x->data)[i * 27 + 26] == (float)(i * 20) / 255.0f);
    stk_release(b);
    stk_close(l);
}

static void count_line(void *user, const char *text)
{
    CHECK(strstr(text, "left out"));
    atomic_fetch_add((atomic_int *)user, 1);
}

/* Zero is the default: pictures of one size need no ops. */
static void pixels_without_ops(void)
{
    static uint8_t px[4][2][3][3];
    memset(px, 51, sizeof px);
    const int64_t shape[] = {4, 2, 3, 3};
    const stk_array image = {.name = "image", .data = px, .dtype = STK_UINT8, .ndim = 4, .device = 1, .shape = shape};
    const stk_options o = {.arrays = &image, .n_arrays = 1};
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    const stk_array *x = stk_field(b, "image");
    CHECK(x->shape[1] == 3 && x->shape[2] == 2 && x->shape[3] == 3);
    CHECK(((float *)x->data)[17] == 51 / 255.0f);
    stk_release(b);
    stk_close(l);
}

static stk_loader *asked;

static void ask_back(void *user, const char *text)
{
    (void)text;
    stk_stats s;
    stk_error e;
    *(int *)user += stk_stats_get(asked, &s) == STK_OK && stk_bad_sample(asked, 0, &e) == 1;
}

static void a_log_may_ask_the_loader(void)
{
    int answers = 0;
    const stk_log_hook log = {.user = &answers, .line = ask_back};
    first_bad = 3;
    n_bad = 1;
    stk_options o = base_options();
    o.log = &log;
    o.on_error = STK_SKIP;
    asked = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    read_some(asked, 100, samples, &rc);
    CHECK_EQ(answers, 1);
    stk_close(asked);
    first_bad = MANY;
}

static void words(void)
{
    atomic_int lines = 0;
    const stk_log_hook log = {.user = &lines, .line = count_line};
    first_bad = 3;
    n_bad = 1;
    stk_options o = base_options();
    o.log = &log;
    o.on_error = STK_SKIP;
    stk_loader *l = open_loader(&o);
    int64_t samples[MANY];
    int rc;
    read_some(l, 100, samples, &rc);
    CHECK_EQ(lines, 1);
    char text[2000];
    const size_t n = stk_explain(l, text, sizeof text);
    CHECK(n == strlen(text) && strstr(text, "threads    3") && strstr(text, "CenterCrop"));
    CHECK(stk_explain(l, NULL, 0) == n);
    CHECK(stk_limit(l) != NULL);
    CHECK(stk_path(l, 17, text, sizeof text) > 0);
    CHECK_EQ(stk_path(l, 1000, text, sizeof text), 0);
    stk_close(l);
    first_bad = MANY;
}

int main(int argc, char **argv)
{
    make_pictures();
    const struct test_case cases[] = {
        T(an_epoch_has_every_sample_once),
        T(threads_change_nothing),
        T(ranks_join_to_one),
        T(resumes_exactly),
        T(a_state_of_something_else_is_refused),
        T(epochs_can_be_set),
        T(short_dropped_and_padded_batches),
        T(a_subset_keeps_its_names),
        T(raise_fails_one_batch),
        T(skip_shortens_one_batch),
        T(replace_takes_the_next_good_one),
        T(a_rotten_set_ends_the_run),
        T(none_may_be_bad),
        T(the_list_names_each_once),
        T(rows_know_their_position),
        T(a_machine_that_runs_out),
        T(closes_in_the_middle_of_a_search),
        T(kept_batches_are_never_overwritten),
        T(memory_is_held),
        T(an_allocator_of_ones_own),
        T(too_little_memory_names_the_minimum),
        T(absurd_options),
        T(options_may_grow),
        T(hooks_are_closed_once),
        T(a_state_is_read_strictly),
        T(several_callers),
        T(stop_wakes_everyone),
        T(closes_at_any_moment),
        T(a_child_can_open_its_own),
        T(an_op_of_ones_own),
        T(an_op_that_fails),
        T(arrays_in_memory),
        T(float_labels),
        T(pixels_in_memory),
        T(pixels_without_ops),
        T(a_log_may_ask_the_loader),
        T(words),
    };
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    for (int i = 0; i < MANY; i++)
        stk_free(pictures[i].bytes);
    return rc;
}
