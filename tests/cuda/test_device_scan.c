/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_scan.c -- whole scans that the device decodes without checkpoints, in the first epoch: with a fake
 * driver, or with a real one.
 *
 * Good files must be finished there. Files that only look good must have the pixels, or the error, that the CPU gives
 * them.
 */
#include "support/images.h"
#include "support/open_loader.h"

#ifdef HAVE_JPEG

#include <jpeglib.h>

enum { FILES = 400, DAMAGED_FROM = 240, BATCH = 16 };

static struct {
    unsigned char *bytes;
    unsigned long n;
} files[FILES + 1];
static bool ready;
static int64_t first, count; /* of the files that are read */

#define NEEDS_GPU()                                                                                                    \
    if (!ready)                                                                                                        \
    SKIP("there is no GPU")

/* ------------------------------------------------------------------ files */

static const struct {
    int h, v, channels;
} samplings[] = {{2, 2, 3}, {2, 1, 3}, {1, 1, 3}, {1, 2, 3}, {1, 1, 1}};

static void compress(const struct test_image *p, int i)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr err;
    c.err = jpeg_std_error(&err);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &files[i].bytes, &files[i].n);
    c.image_width = (JDIMENSION)p->w;
    c.image_height = (JDIMENSION)p->h;
    c.input_components = p->channels;
    c.in_color_space = p->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 5 + i * 37 % 96, TRUE);
    c.optimize_coding = i % 3 == 1;
    c.restart_interval = i % 40 == 39 ? 7 : 0;
    c.comp_info[0].h_samp_factor = samplings[i % 5].h;
    c.comp_info[0].v_samp_factor = samplings[i % 5].v;
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = p->px + (size_t)c.next_scanline * (size_t)p->w * (size_t)p->channels;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
}

/* Where the coded bytes start. */
static unsigned long scan_of(int i)
{
    unsigned long at = 2;
    while (files[i].bytes[at + 1] != 0xda)
        at += 2u + (unsigned long)(files[i].bytes[at + 2] << 8 | files[i].bytes[at + 3]);
    return at + 2u + (unsigned long)(files[i].bytes[at + 2] << 8 | files[i].bytes[at + 3]);
}

/* Changes a file so that it still ends as it should, mostly. */
static void damage(int i)
{
    unsigned char *b = files[i].bytes;
    const unsigned long scan = scan_of(i), n = files[i].n, coded = n - scan - 2;
    unsigned long at = scan + coded * (unsigned long)(i % 11) / 11;
    switch (i % 6) {
    case 0: /* the end is missing */
        files[i].n = at;
        break;
    case 1: /* and the marker is there */
        while (b[at - 1] == 0xff)
            at++;
        memcpy(b + at, "\xff\xd9", 2);
        files[i].n = at + 2;
        break;
    case 2: /* one byte is wrong */
    case 3:
        at += b[at] == 0xff;
        b[at] = (unsigned char)(b[at] == 0 && b[at - 1] == 0xff ? 0 : (b[at] ^ 1u << i % 7) % 255);
        break;
    case 4: /* bytes are missing */
        at = at > scan && b[at - 1] == 0xff ? at + 1 : at;
        memmove(b + at, b + at + (n - at) / 9, n - at - (n - at) / 9);
        files[i].n = n - (n - at) / 9;
        break;
    default: /* the image is said to have another height */
        for (at = 2; b[at + 1] != 0xc0;)
            at += 2u + (unsigned long)(b[at + 2] << 8 | b[at + 3]);
        b[at + 6] = (unsigned char)(b[at + 6] + (i % 4 < 2 ? 16 : -8));
    }
}

/* Flat images have many MCUs in a piece, noise a few pieces in an MCU. */
static void make_files(void)
{
    for (int i = 0; i < FILES; i++) {
        const int k = i % 20;
        const int32_t w = k < 8 ? 8 + 5 * k : 30 + i * 53 % 470, h = k < 8 ? 8 + 3 * k : 30 + i * 31 % 470;
        struct test_image p = test_image_make(w, h, samplings[i % 5].channels, (uint32_t)i);
        const size_t n = (size_t)w * (size_t)h * (size_t)p.channels;
        uint32_t seed = (uint32_t)i;
        for (size_t at = 0; at < n && i % 7 < 2; at++)
            p.px[at] = (uint8_t)(i % 7 == 0 ? 100 : noise(&seed));
        compress(&p, i);
        test_image_done(&p);
        if (i >= DAMAGED_FROM)
            damage(i);
    }
}

static int64_t count_files(void *user)
{
    (void)user;
    return count;
}

static int read_file(void *user, int thread, int64_t sample, const void **bytes, size_t *n, int64_t *label,
                     stk_error *e)
{
    (void)user, (void)thread, (void)e;
    *bytes = files[first + sample].bytes;
    *n = files[first + sample].n;
    *label = sample;
    return STK_OK;
}

static const stk_read_hooks hooks = {.count = count_files, .read = read_file};

/* ------------------------------------------------------------------ comparing */

static stk_options some_options(const char *ops)
{
    return (stk_options){.read_hooks = &hooks,
                         .ops = ops,
                         .batch_size = BATCH,
                         .threads = 3,
                         .shuffle = 1,
                         .max_bad = 1,
                         .dtype = STK_UINT8,
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

/* One epoch. Returns how many images the device decoded in it. */
static int64_t compare_epoch(stk_loader *host, stk_loader *there)
{
    stk_stats before, here, s;
    CHECK_EQ(stk_stats_get(there, &before), STK_OK);
    for (int rc = STK_OK; rc == STK_OK;) {
        stk_batch *a = NULL, *b = NULL;
        stk_error e = {0}, f = {0};
        rc = stk_next(host, &a, &e);
        CHECK_EQ(rc, stk_next(there, &b, &f));
        if (a && b)
            CHECK(same_field(a, b, "image") && same_field(a, b, "index") && same_field(a, b, "label") &&
                  same_field(a, b, "valid"));
        if (rc != STK_OK && rc != STK_END)
            CHECK(strcmp(e.text, f.text) == 0);
        stk_release(a);
        stk_release(b);
    }
    CHECK_EQ(stk_stats_get(host, &here), STK_OK);
    CHECK_EQ(stk_stats_get(there, &s), STK_OK);
    CHECK_EQ(here.bad, s.bad);
    CHECK_EQ(here.samples, s.samples);
    CHECK(s.device_decoded <= s.device_samples);
    return s.device_decoded - before.device_decoded;
}

/* Returns how many images the device decoded in the first epoch. */
static int64_t compare(stk_options o, int epochs)
{
    stk_loader *host = open_loader(&o);
    o.device = "cuda";
    o.device_work = STK_DEVICE_WORK_DECODE;
    stk_loader *there = open_loader(&o);
    const int64_t n = compare_epoch(host, there);
    for (int i = 1; i < epochs; i++)
        compare_epoch(host, there);
    stk_close(host);
    stk_close(there);
    return n;
}

/* ------------------------------------------------------------------ cases */

static const char *const ops[] = {"RandomResizedCrop(40) | RandomHorizontalFlip", "Resize((50, 30))",
                                  "Resize(20) | CenterCrop(16)"};

static void good_files_need_no_checkpoints(void)
{
    NEEDS_GPU();
    first = 0, count = DAMAGED_FROM;
    for (int i = 0; i < 3; i++)
        CHECK(compare(some_options(ops[i]), 3) > DAMAGED_FROM / 3);
}

static void damaged_files_are_made_again(void)
{
    NEEDS_GPU();
    const stk_on_error policies[] = {STK_SKIP, STK_REPLACE, STK_RAISE};
    first = DAMAGED_FROM, count = FILES - DAMAGED_FROM;
    for (int i = 0; i < 9; i++) {
        stk_options o = some_options(ops[i % 3]);
        o.on_error = policies[i / 3];
        o.pad_last = i % 2;
        const int64_t n = compare(o, 2);
        CHECK(n > 0 || o.on_error == STK_RAISE); /* which ends the epoch early */
    }
}

/* A cache of files must not keep a damaged one. */
static void files_to_keep_are_decoded_here(void)
{
    NEEDS_GPU();
    first = DAMAGED_FROM, count = FILES - DAMAGED_FROM;
    stk_options o = some_options(ops[0]);
    o.cache = STK_CACHE_BYTES;
    CHECK_EQ(compare(o, 1), 0);
    compare(o, 3);
}

/* The tables of this resize take all of the room of a row but a few bytes. */
static void tables_may_fill_a_row(void)
{
    NEEDS_GPU();
    struct test_image p = test_image_make(64, 6, 3, 1);
    compress(&p, FILES);
    test_image_done(&p);
    first = FILES, count = 1;
    for (int w = 9680; w <= 9840; w += 16) {
        char op[40];
        snprintf(op, sizeof op, "Resize((6, %d))", w);
        compare(some_options(op), 3);
    }
}

/* Repeats of a sample have draws of their own. */
static void good_and_damaged_files_are_mixed(void)
{
    NEEDS_GPU();
    first = DAMAGED_FROM / 2, count = FILES - DAMAGED_FROM / 2;
    double weight[FILES] = {0};
    for (int i = DAMAGED_FROM / 2 - 4; i < DAMAGED_FROM / 2 + 20; i++)
        weight[i] = 1;
    for (int64_t size = 1; size < 100; size = 3 * size + 1) {
        stk_options o = some_options(ops[0]);
        o.on_error = size % 2 ? STK_SKIP : STK_REPLACE;
        o.batch_size = size;
        compare(o, 2);
        o.shuffle = 0;
        o.weights = weight;
        o.n_weights = count;
        compare(o, 2);
    }
}

int main(int argc, char **argv)
{
    make_files();
    stk_gpu gpu;
    ready = stk_gpu_get(0, &gpu, NULL) == STK_OK;
    TESTS(T(good_files_need_no_checkpoints), T(damaged_files_are_made_again), T(good_and_damaged_files_are_mixed),
          T(files_to_keep_are_decoded_here), T(tables_may_fill_a_row))
}

#else

int main(void)
{
    printf("skipped: built without libjpeg\n");
    return 77;
}

#endif
