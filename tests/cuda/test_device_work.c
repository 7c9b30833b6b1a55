/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_work.c -- rows that the device finishes: with a fake driver, which runs the kernels' text as C, or with a
 * real one.
 *
 * A row must have the bits that the CPU gives it, for every op, type and layout, whether the device can finish it or
 * not.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cuda/parcel_work.h"
#include "decode/jpeg_kernel.h"
#include "loader_device.h"
#include "support/open_loader.h"

enum { SAMPLES = 48, BATCH = 7, SIDE = 400, CUT = 20 };

static struct {
    void *bytes;
    size_t n;
} files[SAMPLES];
static bool ready;
static int64_t decoded;    /* images whose Huffman codes the device decoded, in all comparisons */
static atomic_bool rotten; /* some bytes have changed since the checkpoints were made */

#define NEEDS_GPU()                                                                                                    \
    if (!ready)                                                                                                        \
    SKIP("there is no GPU")

/* ------------------------------------------------------------------ images */

/* Smooth, with edges and noise, so that blocks have few and many coefficients. */
static uint8_t level(int s, int x, int y, int c)
{
    const int wave = (x * (3 + s % 5) + y * (2 + s % 3) + c * 40) / 3 % 256, edge = (x / 29 + y / 31) % 2 * 60;
    const int noise = s % 4 == 0 ? (x * 7919 + y * 104729 + x * y * 31) % 97 : 0;
    return (uint8_t)((wave + edge + noise) % 256);
}

/* Colour in both samplings, grey, several scans, PNG, and one that is cut off. */
static void make_files(void)
{
    static uint8_t px[SIDE * SIDE * 3];
    for (int s = 0; s < SAMPLES; s++) {
        const int w = 40 + s * 53 % (SIDE - 40), h = 40 + s * 31 % (SIDE - 40), channels = s % 9 == 4 ? 1 : 3;
        for (int i = 0; i < w * h * channels; i++)
            px[i] = level(s, i / channels % w, i / channels / w, i % channels);
        const stk_encode_options o = {.format = s % 11 == 3 ? STK_PNG : STK_JPEG,
                                      .quality = 30 + s * 17 % 70,
                                      .subsample = s % 3 != 0,
                                      .progressive = s % 10 == 7};
        stk_error e = {0};
        CHECK_EQ(stk_encode(px, w, h, channels, (size_t)(w * channels), &o, &files[s].bytes, &files[s].n, &e), STK_OK);
    }
    files[CUT].n = files[CUT].n * 2 / 3;
}

static int64_t count(void *user)
{
    (void)user;
    return SAMPLES;
}

static int read_file(void *user, int thread, int64_t sample, const void **bytes, size_t *n, int64_t *label,
                     stk_error *e)
{
    (void)user, (void)thread, (void)e;
    static _Thread_local uint8_t changed[1 << 20];
    *bytes = files[sample].bytes;
    *n = files[sample].n;
    *label = sample;
    if (rotten && *n < sizeof changed) {
        memcpy(changed, *bytes, *n);
        for (size_t i = *n - *n / 5; i < *n - *n / 5 + 8; i++)
            changed[i] = (uint8_t)(changed[i] ^ (changed[i] == 255 || changed[i - 1] == 255 ? 0 : 0x2c));
        *bytes = changed;
    }
    return STK_OK;
}

static const stk_read_hooks hooks = {.count = count, .read = read_file};

static stk_options some_options(const char *ops)
{
    return (stk_options){.read_hooks = &hooks,
                         .ops = ops,
                         .batch_size = BATCH,
                         .threads = 3,
                         .shuffle = 1,
                         .on_error = STK_SKIP,
                         .max_bad = 1,
                         .cache_dir = "off",
                         .memory = 512 << 20};
}

static bool same_field(const stk_batch *a, const stk_batch *b, const char *name)
{
    const stk_array *here = stk_field(a, name), *there = stk_field(b, name);
    uint8_t *x = read_field(a, here), *y = read_field(b, there);
    const size_t n = field_bytes(here);
    const bool same = n == field_bytes(there) && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return same;
}

/* Compares all batches of some epochs. Returns how many images the device finished. */
static int64_t compare_work(const stk_options *o, int epochs, stk_device_work work)
{
    stk_options there = *o;
    there.device = "cuda";
    there.device_work = work;
    stk_loader *a = open_loader(o), *b = open_loader(&there);
    for (int ended = 0; ended < epochs;) {
        stk_batch *x, *y;
        const int rc = stk_next(a, &x, NULL), other = stk_next(b, &y, NULL);
        CHECK_EQ(rc, other);
        if (rc == STK_OK && other == STK_OK)
            CHECK(same_field(x, y, "image") && same_field(x, y, "index") && same_field(x, y, "valid"));
        stk_release(x);
        stk_release(y);
        ended += rc != STK_OK;
        if (rc != STK_OK && rc != STK_END)
            break;
    }
    stk_stats s;
    CHECK_EQ(stk_stats_get(b, &s), STK_OK);
    CHECK(s.device_decoded <= (work != STK_DEVICE_WORK_IDCT ? s.device_samples : 0));
    decoded += s.device_decoded;
    stk_close(a);
    stk_close(b);
    return s.device_samples;
}

static int64_t compare(const stk_options *o, int epochs)
{
    const int64_t n = compare_work(o, epochs, STK_DEVICE_WORK_IDCT);
    CHECK_EQ(compare_work(o, epochs, STK_DEVICE_WORK_DECODE) > 0, n > 0);
    return n;
}

/* ------------------------------------------------------------------ cases */

static const char crop[] = "RandomResizedCrop(50) | RandomHorizontalFlip";

static void jpegs_are_finished_there(void)
{
    NEEDS_GPU();
    stk_options o = some_options("RandomResizedCrop(50) | RandomHorizontalFlip | Normalize");
    CHECK(compare(&o, 3) > 2 * SAMPLES);
    CHECK(decoded > SAMPLES / 2);
}

/* From the second epoch on, whatever the crops: the checkpoints of a file are completed when it is met again. */
static void all_codes_are_decoded_there(void)
{
    NEEDS_GPU();
    const char *const ops[] = {crop, "Resize((40, 40))"};
    for (int i = 0; i < 2; i++) {
        stk_options o = some_options(ops[i]);
        o.device = "cuda";
        o.device_work = STK_DEVICE_WORK_DECODE;
        o.idle = 1; /* nothing but the rows asked for */
        stk_loader *l = open_loader(&o);
        stk_stats before = {0}, s;
        for (int epoch = 0; epoch < 6; epoch++) {
            for (int64_t k = 0; k < SAMPLES; k++) {
                stk_batch *b = NULL;
                CHECK_EQ(stk_loader_get(l, &k, NULL, 1, epoch, &b, NULL), k == CUT ? STK_EDATA : STK_OK);
                stk_release(b);
            }
            CHECK_EQ(stk_stats_get(l, &s), STK_OK);
            const int64_t finished = s.device_samples - before.device_samples,
                          coded = s.device_decoded - before.device_decoded;
            CHECK(finished > SAMPLES / 2);
            CHECK_EQ(coded, epoch == 0 ? 0 : finished);
            before = s;
        }
        stk_close(l);
    }
}

/* Whatever it chooses, and whenever it moves. */
static void auto_is_equal(void)
{
    NEEDS_GPU();
    stk_options o = some_options(crop);
    compare_work(&o, 12, STK_DEVICE_WORK_AUTO);
}

/* The share that auto chooses. */
static void the_share_follows_the_load(void)
{
    static const struct {
        int share;
        struct parcel_load load;
        int next;
        const char *why;
    } cases[] = {
        {0, {.taken = 1, .waited = 0.4, .idle = 0.0, .cores = 1.0}, 4, "the program waits for batches"},
        {3, {.taken = 1, .waited = 0.02, .idle = 0.1, .cores = 0.2}, 5, "the program waits for batches"},
        {14, {.taken = 1, .waited = 0.4, .idle = 0.0, .cores = 1.0}, 16, "the program waits for batches"},
        {16, {.taken = 1, .waited = 0.9, .idle = 0.0, .cores = 1.0}, 16, "the program waits for batches"},
        {7, {.taken = 1, .waited = 0.4, .idle = 0.9, .cores = 0.1}, 7, "but not for the CPU"},
        {7, {.taken = 1, .waited = 0.0, .idle = 0.05, .cores = 0.95}, 8, "nearly all cores"},
        {7, {.taken = 1, .waited = 0.0, .idle = 0.05, .cores = 0.3}, 7, "keep up"},
        {7, {.taken = 1, .waited = 0.0, .idle = 0.2, .cores = 0.8}, 7, "keep up"},
        {7, {.taken = 1, .waited = 0.008, .idle = 0.6, .cores = 0.4}, 7, "keep up"},
        {7, {.taken = 1, .waited = 0.0, .idle = 0.4, .cores = 0.6}, 6, "time left"},
        {7, {.taken = 1, .waited = 0.0, .idle = 0.8, .cores = 0.2}, 5, "time left"},
        {0, {.taken = 1, .waited = 0.0, .idle = 1.2, .cores = -0.2}, 0, "time left"},
        {7, {.taken = 1, .waited = 0.4, .device = 0.3, .idle = 0.4, .cores = 0.6}, 5, "waits for the GPU"},
        {4, {.taken = 0.1, .waited = 0.4, .idle = 0.0, .cores = 1.0}, 4, "the GPU can make few of the rows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct parcel_choice c = loader_parcel_choose(cases[i].share, cases[i].load);
        CHECK_EQ(c.share, cases[i].next);
        CHECK_SAYS(c.why, cases[i].why);
    }
}

/* Workers that take 300 us for a row, or 20 us if the device has its codes, and a program that takes a row every
 * 100 us: wherever the share starts, it settles, and no higher than is needed. */
static void the_share_settles(void)
{
    for (int threads = 1; threads <= 8; threads++)
        for (int start = 0; start <= 16; start += 8) {
            int share = start, last = -1, since = 0;
            for (int i = 0; i < 200; i++, since++) {
                const double each = (300.0 * (16 - share) + 20.0 * share) / 16 / threads;
                const double time = each > 100 ? each : 100;
                const struct parcel_load load = {
                    .waited = 1 - 100 / time, .idle = 1 - each / time, .cores = each / time * threads / 8, .taken = 1};
                share = loader_parcel_choose(share, load).share;
                since = share == last ? since : 0;
                last = share;
            }
            CHECK(since > 150);
            CHECK(threads < 3 ? share > 4 : threads < 5 ? share < 10 : share == 0);
        }
}

static void all_forms_are_equal(void)
{
    NEEDS_GPU();
    const stk_dtype types[] = {STK_FLOAT32, STK_FLOAT16, STK_BFLOAT16, STK_UINT8};
    for (int t = 0; t < 4; t++)
        for (stk_layout layout = STK_NCHW; layout <= STK_NHWC; layout++) {
            stk_options o = some_options(crop);
            o.dtype = types[t];
            o.layout = layout;
            CHECK(compare(&o, 1) > 0);
        }
}

static void passes_are_in_the_same_order(void)
{
    NEEDS_GPU();
    const char *const ops[] = {"Resize((31, 77))",
                               "Resize((200, 20))",
                               "Resize((20, 200), interpolation=bicubic)",
                               "Resize(60) | CenterCrop(50) | RandomVerticalFlip",
                               "Resize((90, 41), interpolation=nearest)",
                               "Resize((90, 90), antialias=False)",
                               "Resize((300, 300), interpolation=lanczos) | RandomHorizontalFlip(p=1)",
                               "CenterCrop(40) | RandomHorizontalFlip | RandomVerticalFlip"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        stk_options o = some_options(ops[i]);
        o.dtype = STK_UINT8;
        CHECK(compare(&o, 1) > 0);
    }
}

static void other_ops_run_on_the_cpu(void)
{
    NEEDS_GPU();
    const char *const ops[] = {
        "RandomResizedCrop(50) | ColorJitter(0.4, 0.4, 0.4)", "Grayscale(1) | RandomResizedCrop(50)",
        "RandomResizedCrop(50) | Normalize | RandomErasing(p=1, value=random)", "RandomRotation(30) | CenterCrop(40)"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        stk_options o = some_options(ops[i]);
        CHECK_EQ(compare(&o, 1), 0);
    }
    stk_options o = some_options("Resize(20) | CenterCrop(16)");
    o.fidelity = STK_DRAFT;
    compare(&o, 1);
}

static void coefficients_from_caches_are_equal(void)
{
    NEEDS_GPU();
    const stk_cache caches[] = {STK_CACHE_BYTES, STK_CACHE_DCT, STK_CACHE_PIXELS};
    for (int i = 0; i < 3; i++) {
        stk_options o = some_options(crop);
        o.cache = caches[i];
        o.pad_last = 1;
        CHECK(compare(&o, 3) > (i < 2 ? SAMPLES : -1));
    }
}

static void batches_of_all_sizes_are_equal(void)
{
    NEEDS_GPU();
    for (int64_t size = 1; size < 200; size = 3 * size + 1) {
        stk_options o = some_options("RandomResizedCrop(30)");
        o.batch_size = size;
        compare(&o, 1);
    }
}

static void single_rows_are_equal(void)
{
    NEEDS_GPU();
    stk_options o = some_options(crop);
    stk_loader *host = open_loader(&o);
    o.device = "cuda";
    o.device_work = STK_DEVICE_WORK_DECODE;
    stk_loader *l = open_loader(&o);
    const int64_t samples[] = {7, 3, 9, 1, 0, 2, 4, 5, 6, 8, 10, 11}; /* more than a batch has */
    for (int64_t n = 1; n <= 12; n += 11)
        for (int epoch = 0; epoch < 4; epoch++) {
            stk_batch *a, *b;
            CHECK_EQ(stk_loader_get(host, samples, NULL, n, epoch, &a, NULL), STK_OK);
            CHECK_EQ(stk_loader_get(l, samples, NULL, n, epoch, &b, NULL), STK_OK);
            CHECK(same_field(a, b, "image") && same_field(a, b, "label"));
            stk_release(a);
            stk_release(b);
        }
    stk_close(l);
    stk_close(host);
}

/* Work is under way when the loader is closed. */
static void closing_waits_for_the_device(void)
{
    NEEDS_GPU();
    stk_options o = some_options(crop);
    o.device = "cuda";
    o.device_work = STK_DEVICE_WORK_IDCT;
    for (int i = 0; i < 5; i++) {
        stk_loader *l = open_loader(&o);
        stk_batch *b = NULL;
        for (int k = 0; k < i; k++) {
            stk_release(b);
            CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
        }
        stk_close(l);
        stk_release(b);
    }
}

static void the_choice_is_explained(void)
{
    NEEDS_GPU();
    const stk_device_work works[] = {STK_DEVICE_WORK_DEFAULT, STK_DEVICE_WORK_NONE, STK_DEVICE_WORK_IDCT,
                                     STK_DEVICE_WORK_DECODE};
    const char *const words[] = {"device_work=auto", "on the CPU, as device_work asks",
                                 "codes of JPEGs, as device_work asks",
                                 "and decodes their codes as soon as it can, as device_work asks"};
    for (int i = 0; i < 4; i++) {
        char text[8192];
        stk_options o = some_options(crop);
        o.device = "cuda";
        o.device_work = works[i];
        stk_loader *l = open_loader(&o);
        stk_explain(l, text, sizeof text);
        CHECK_SAYS(text, words[i]);
        stk_close(l);
    }
}

/* What the device finds out is reported with a later batch. */
static void damage_is_noticed(void)
{
    NEEDS_GPU();
    stk_options o = some_options(crop);
    o.on_error = STK_RAISE;
    o.take = 2;
    o.batch_size = 2;
    o.device = "cuda";
    o.device_work = STK_DEVICE_WORK_DECODE;
    stk_loader *l = open_loader(&o);
    int rc = STK_OK;
    stk_error e = {0};
    for (int i = 0; i < 2000 && (rc == STK_OK || rc == STK_END); i++) {
        stk_batch *b = NULL;
        rotten = i >= 20;
        rc = stk_next(l, &b, &e);
        stk_release(b);
    }
    rotten = false;
    CHECK_EQ(rc, STK_EDATA);
    CHECK_SAYS(e.text, "its file was damaged after its checkpoints were made");
    stk_close(l);
}

/* One sample, as in an epoch. NULL: an error. */
static stk_batch *get(stk_loader *l, int64_t sample, stk_error *e)
{
    stk_batch *b = NULL;
    const int rc = stk_loader_get(l, &sample, NULL, 1, 0, &b, e);
    return rc == STK_OK ? b : NULL;
}

/* No later batch may report the damage of one that the caller asked for. */
static void damage_in_single_rows_is_noticed(void)
{
    NEEDS_GPU();
    stk_options o = some_options("Resize((40, 40))");
    o.idle = 1;
    stk_loader *host = open_loader(&o);
    o.device = "cuda";
    o.device_work = STK_DEVICE_WORK_DECODE;
    stk_loader *l = open_loader(&o);
    stk_error e = {0};
    for (int64_t k = 0; k < 2 * CUT; k++) /* all checkpoints are known after the second time */
        stk_release(get(l, k % CUT, NULL));
    bool failed = false;
    for (int64_t k = 0; k < CUT && !failed; k++) {
        stk_batch *want = get(host, k, NULL);
        rotten = true;
        stk_batch *b = get(l, k, &e);
        rotten = false;
        failed = b == NULL;
        CHECK(failed || same_field(want, b, "image"));
        stk_release(want);
        stk_release(b);
    }
    CHECK(failed);
    CHECK_SAYS(e.text, "its file was damaged after its checkpoints were made");
    stk_close(host);
    stk_close(l);
}

/* With auto, small rows have no room that they would hardly use: 1,024 of them fit into little memory. */
static void small_rows_are_small(void)
{
    NEEDS_GPU();
    stk_options o = some_options("Resize((16, 16))");
    o.batch_size = 1024;
    o.threads = 1;
    o.memory = 96 << 20;
    o.device = "cuda";
    stk_close(open_loader(&o));
}

static void it_needs_a_device(void)
{
    stk_loader *l = NULL;
    stk_error e = {0};
    stk_options o = some_options(crop);
    o.device_work = STK_DEVICE_WORK_IDCT;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    CHECK_SAYS(e.text, "device_work needs a GPU");
    o.device_work = (stk_device_work)99;
    CHECK_EQ(stk_open(&l, &o, &e), STK_EUSAGE);
    o.device_work = STK_DEVICE_WORK_NONE;
    stk_close(open_loader(&o));
}

/* Numbers that no encoder writes: sums wrap and saturate in the same way. */
static void extreme_coefficients_are_equal(void)
{
    uint64_t state = 1;
    for (int round = 0; round < 20000; round++) {
        union {
            uint64_t aligned[16];
            int16_t v[JPEG_BLOCK];
        } coef = {{0}}, products = {{0}};
        int below = 0;
        union {
            uint64_t aligned[16];
            uint16_t v[JPEG_BLOCK];
        } q = {{0}};
        uint64_t there[8];
        uint8_t here[64];
        const int n = round % 3 == 0 ? 8 : 64;
        for (int i = 0; i < 64; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const int bits = round % 16;
            q.v[i] = (uint16_t)(round % 2 ? state >> 48 : 1 + (state >> 60));
            coef.v[i] = (int16_t)(i < n ? (int16_t)(state >> 32) >> bits : 0);
            below |= i >= 8 && coef.v[i];
        }
        jpeg_idct_c(here, 8, coef.v, q.v);
        for (int i = 0; i < 64; i++)
            products.v[i] = (int16_t)(uint16_t)((int16_t)q.v[i] * coef.v[i]);
        parcel_idct(products.v, below, (uint8_t *)there, 8);
        CHECK(memcmp(here, there, 64) == 0);
    }
}

int main(int argc, char **argv)
{
    make_files();
    stk_gpu gpu;
    ready = stk_gpu_get(0, &gpu, NULL) == STK_OK;
    TESTS(T(extreme_coefficients_are_equal), T(it_needs_a_device), T(jpegs_are_finished_there),
          T(all_codes_are_decoded_there), T(the_share_follows_the_load), T(the_share_settles), T(auto_is_equal),
          T(all_forms_are_equal), T(passes_are_in_the_same_order), T(other_ops_run_on_the_cpu),
          T(coefficients_from_caches_are_equal), T(batches_of_all_sizes_are_equal), T(single_rows_are_equal),
          T(closing_waits_for_the_device), T(damage_is_noticed), T(damage_in_single_rows_is_noticed),
          T(small_rows_are_small), T(the_choice_is_explained))
}
