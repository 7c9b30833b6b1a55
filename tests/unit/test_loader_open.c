/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_loader_open.c -- options, and how memory is divided. Covers stoker.c too.
 */
#include <time.h>

#include "support/made_source.h"

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

/* Whether an image fits depends on memory alone, and the memory held stays within it. */
static void memory_is_held(void)
{
    const stk_read_hooks h = {.count = count, .read = read_large};
    const int64_t mib = 1 << 20;
    large_bytes = (size_t)(40 * mib);
    large = calloc(1, large_bytes);
    memcpy(large, images[0].bytes, images[0].n); /* an image with a long tail */
    for (int64_t memory = 144; memory <= 176; memory += 32)
        for (int threads = 1; threads <= 8; threads *= 2) {
            stk_options o = base_options();
            o.read_hooks = &h;
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

/* Eight ranks of one machine together ask for as much as one alone; what is free may change a little meanwhile. */
static void ranks_divide_the_default(void)
{
    stk_info one, eight;
    stk_stats s;
    setenv("LOCAL_WORLD_SIZE", "1", 1);
    stk_info_get(&one);
    setenv("LOCAL_WORLD_SIZE", "8", 1);
    stk_info_get(&eight);
    CHECK(eight.memory < one.memory / 4);
    stk_options o = base_options();
    o.threads = 1;
    stk_loader *l = open_loader(&o);
    unsetenv("LOCAL_WORLD_SIZE");
    stk_stats_get(l, &s);
    CHECK(s.memory_limit < one.memory / 4);
    stk_close(l);
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
        {{.read_hooks = &hooks, .source = "x"}, "more than one"},
        {{.read_hooks = &hooks, .batch_size = -1}, "batch_size"},
        {{.read_hooks = &hooks, .threads = -1}, "threads"},
        {{.read_hooks = &hooks, .threads = 100000}, "threads"},
        {{.read_hooks = &hooks, .rank = 2, .world_size = 2}, "rank is 2 and world_size is 2"},
        {{.read_hooks = &hooks, .dtype = (stk_dtype)77}, "dtype"},
        {{.read_hooks = &hooks, .dtype = STK_INT64}, "dtype"},
        {{.read_hooks = &hooks, .layout = (stk_layout)77}, "layout"},
        {{.read_hooks = &hooks, .fidelity = (stk_fidelity)3}, "draft"},
        {{.read_hooks = &hooks, .reader = (stk_reader)9}, "uring"},
        {{.read_hooks = &hooks, .on_error = (stk_on_error)9}, "on_error"},
        {{.read_hooks = &hooks, .max_bad = 2}, "max_bad"},
        {{.read_hooks = &hooks, .memory = -5}, "memory"},
        {{.read_hooks = &hooks, .take = -1}, "negative"},
        {{.read_hooks = &hooks, .max_pixels = -1}, "max_pixels"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ(stk_open(&l, &cases[i].o, &e), STK_EUSAGE);
        CHECK(l == NULL);
        CHECK(strstr(e.text, cases[i].words) != NULL);
    }
    CHECK_EQ(stk_open(&l, NULL, &e), STK_EUSAGE);
}

/* ------------------------------------------------------------------ rows of any size */

enum { SIZES = 5 };

static struct {
    void *bytes;
    size_t n;
} sized[SIZES];

static int64_t count_sized(void *user)
{
    (void)user;
    return SIZES;
}

static int read_sized(void *user, int thread, int64_t i, const void **bytes, size_t *n, int64_t *label, stk_error *e)
{
    (void)user, (void)thread, (void)e;
    *bytes = sized[i].bytes;
    *n = sized[i].n;
    *label = i;
    return STK_OK;
}

static int invert(void *user, const stk_row *row, stk_error *e)
{
    (void)user, (void)e;
    const stk_array *a = row->image;
    for (int64_t k = 0; k < a->shape[0] * a->shape[1] * a->shape[2]; k++)
        ((uint8_t *)a->data)[k] ^= 255;
    return STK_OK;
}

/* Image i has i + 2 rows of 3i + 1 pixels. */
static void make_sized(void)
{
    for (int i = 0; i < SIZES; i++) {
        uint8_t px[(SIZES + 1) * 3 * SIZES * 3];
        memset(px, i + 1, sizeof px);
        const stk_encode_options png = {.format = STK_PNG};
        CHECK_EQ(stk_encode(px, 3 * i + 1, i + 2, 3, (size_t)(3 * i + 1) * 3, &png, &sized[i].bytes, &sized[i].n, NULL),
                 STK_OK);
    }
}

static void one_image_a_batch_may_have_any_size(void)
{
    const stk_read_hooks any = {.count = count_sized, .read = read_sized};
    const stk_op_hook op = {.run = invert};
    stk_options o = {.read_hooks = &any, .dtype = STK_UINT8, .op = &op};
    make_sized();
    stk_loader *l = open_loader(&o);
    for (int epoch = 0; epoch < 3; epoch++)
        for (int i = 0; i < SIZES; i++) {
            stk_batch *b;
            CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
            const stk_array *x = stk_field(b, "image");
            CHECK(x->ndim == 4 && x->shape[0] == 1 && x->shape[1] == 3 && x->shape[2] == i + 2 &&
                  x->shape[3] == 3 * i + 1);
            CHECK_EQ(((uint8_t *)x->data)[3 * (i + 2) * (3 * i + 1) - 1], (i + 1) ^ 255);
            stk_release(b);
            if (i == SIZES - 1)
                CHECK_EQ(stk_next(l, &b, NULL), STK_END);
        }
    stk_stats s;
    CHECK_EQ(stk_stats_get(l, &s), STK_OK);
    for (int tries = 0; tries < 10000 && s.kept_bytes != 0; tries++) { /* a worker may be counting its row */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        CHECK_EQ(stk_stats_get(l, &s), STK_OK);
    }
    CHECK_EQ(s.kept_bytes, 0);
    stk_close(l);
    stk_error e;
    o.batch_size = 2;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "CenterCrop") && strstr(e.text, "batch_size"));
    for (int i = 0; i < SIZES; i++)
        stk_free(sized[i].bytes);
}

/* A program built for a later header works as long as it sets no option that is unknown here. */
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

/* The caller's close() is called once, wherever opening fails. */
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
    struct {
        stk_source_options known;
        int later;
    } more = {.known = {.read_hooks = &hooks}, .later = 1};
    const int before = closed;
    stk_source *s;
    CHECK_EQ(stk_source_open_sized(&s, &more.known, sizeof more, NULL), STK_EUSAGE);
    CHECK_EQ(closed, before + 1);
    more.known.threads = -1;
    CHECK_EQ(stk_source_open(&s, &more.known, NULL), STK_EUSAGE);
    CHECK_EQ(closed, before + 2);
}

/* A program built for a later header may set options of encoding that this library does not know. */
static void unknown_options_of_encoding_are_refused(void)
{
    struct {
        stk_encode_options known;
        int later;
    } o = {.known = {.format = STK_PNG}, .later = 1};
    const uint8_t px[3] = {0};
    void *out;
    size_t n;
    stk_error e;
    CHECK_EQ(stk_encode_sized(px, 1, 1, 3, 3, &o.known, sizeof o, &out, &n, &e), STK_EUSAGE);
    CHECK_SAYS(e.text, "does not know");
    o.later = 0;
    CHECK_EQ(stk_encode_sized(px, 1, 1, 3, 3, &o.known, sizeof o, &out, &n, &e), STK_OK);
    stk_free(out);
}

int main(int argc, char **argv)
{
    made_begin();
    const struct test_case cases[] = {
        T(memory_is_held),
        T(an_allocator_of_ones_own),
        T(kept_batches_are_never_overwritten),
        T(too_little_memory_names_the_minimum),
        T(ranks_divide_the_default),
        T(absurd_options),
        T(one_image_a_batch_may_have_any_size),
        T(options_may_grow),
        T(hooks_are_closed_once),
        T(unknown_options_of_encoding_are_refused),
    };
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    made_end();
    return rc;
}
