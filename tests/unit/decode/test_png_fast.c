/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_png_fast.c -- the fast path of PNG: ordinary images take it, all others do not. In both cases, verdict,
 * messages, warnings and pixels are those of libpng. Covers png_fast.c.
 */
#include "decode/png_fast.h"

#include "base/bytes.h"
#include "base/cpu.h"
#include "base/crc32.h"
#include "base/rng.h"
#include "decode/decode.h"
#include "support/images.h"

static struct rng rng;

static int below(int n)
{
    return (int)rng_below(&rng, (uint64_t)n);
}

#ifdef HAVE_PNG

/* An image that resembles a photo, so that the writer of libpng chooses all filters. */
static struct buf make(int32_t w, int32_t h, int32_t channels)
{
    const stk_encode_options o = {.format = STK_PNG};
    struct image im = {.stride = (size_t)(w * channels), .w = w, .h = h, .channels = channels};
    im.px = malloc(im.stride * (size_t)h);
    for (int32_t y = 0; y < h; y++)
        for (size_t x = 0; x < im.stride; x++)
            im.px[(size_t)y * im.stride + x] =
                (uint8_t)((size_t)y * (y % 7 ? 3 : 90) + x * (y % 5 ? 2 : 50) + (size_t)below(1 + y % 20));
    struct buf b = {0};
    void *bytes = NULL;
    CHECK_EQ(encode_pixels(&im, &o, &bytes, &b.len, NULL), STK_OK);
    b.data = bytes;
    b.cap = b.len;
    free(im.px);
    return b;
}

/* ------------------------------------------------------------------ both paths */

struct result {
    int rc, warnings;
    struct image image;
    stk_error e;
    struct arena arena;
};

static struct png_fast *fast[2]; /* in plain C, and with the best instruction set */
static struct result slow_result, fast_result;

static void decode(struct png_fast *f, const struct image_job *job, bool slow, struct result *r)
{
    struct image_job j = *job;
    const struct want w = {.crop = job->crop, .whole = job->whole};
    j.arena = &r->arena;
    r->warnings = 0;
    r->e = (stk_error){0};
    CHECK_EQ(arena_reserve(j.arena, decode_scratch(job->head, &w)), 0);
    r->rc = slow ? png_slow_pixels(f, &j, &r->image, &r->warnings, &r->e)
                 : codec_png.pixels(f, &j, &r->image, &r->warnings, &r->e);
}

static bool same(const struct result *a, const struct result *b)
{
    if (a->rc != b->rc || a->warnings != b->warnings || strcmp(a->e.reason, b->e.reason) != 0)
        return false;
    for (int32_t y = 0; a->rc == STK_OK && y < a->image.h; y++)
        if (memcmp(a->image.px + (size_t)y * a->image.stride, b->image.px + (size_t)y * b->image.stride,
                   (size_t)a->image.w * 3) != 0)
            return false;
    return true;
}

/* Whether the fast path itself took the image. */
static bool taken(struct png_fast *f, const struct image_job *job)
{
    const struct want w = {.crop = job->crop, .whole = job->whole};
    struct arena a = {0};
    struct png_chunks c;
    struct png_rows how;
    struct image_job j = *job;
    j.arena = &a;
    CHECK_EQ(arena_reserve(&a, decode_scratch(job->head, &w)), 0);
    CHECK_EQ(png_chunks_read(job->bytes, job->n, false, &c, NULL), STK_OK);
    png_rows_init(&how, &c, png_fast_kernels(f));
    uint8_t *px = arena_alloc(&a, rgb_bytes(job->crop.w, job->crop.h));
    const size_t used = a.used;
    const bool good = png_fast_pixels(f, &j, &c, &how, px);
    CHECK_EQ(a.used, used);
    arena_done(&a);
    return good;
}

static struct rect some_crop(const struct head *h)
{
    struct rect c = {.w = 1 + below(h->w), .h = 1 + below(h->h)};
    c.x = below(h->w - c.w + 1);
    c.y = below(h->h - c.h + 1);
    return c;
}

/* Compares a file, whole and in some crops. Returns how many times the fast path took it. */
static int compare(const struct buf *b, int crops)
{
    const struct decode_limits limits = {.no_exif = true};
    struct head h;
    int n = 0;
    if (decode_head(b->data, b->len, &limits, &h, NULL) != STK_OK || h.w > 2000 || h.h > 2000)
        return 0;
    for (int i = 0; i < crops; i++) {
        const struct rect all = {0, 0, h.w, h.h};
        const struct image_job job = {
            .bytes = b->data, .n = b->len, .head = &h, .crop = i < 2 ? all : some_crop(&h), .whole = i == 1};
        decode(fast[0], &job, true, &slow_result);
        for (int k = 0; k < 2; k++) {
            decode(fast[k], &job, false, &fast_result);
            CHECK(same(&slow_result, &fast_result));
        }
        n += taken(fast[0], &job);
    }
    return n;
}

static void ordinary_images(void)
{
    static const int32_t sizes[][2] = {{1, 1}, {3, 2}, {16, 9}, {17, 8}, {40, 33}, {300, 200}, {2000, 20}, {7, 1500}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int32_t channels = 1; channels <= 3; channels += 2) {
            struct buf b = make(sizes[i][0], sizes[i][1], channels);
            const int n = compare(&b, 12); /* a crop that ends with the last bytes of the stream goes to libpng */
            CHECK(n >= (b.len > 1000 ? 11 : 2));
            buf_done(&b);
        }
}

/* ------------------------------------------------------------------ odd ones */

static void cut_off(void)
{
    struct buf b = make(30, 25, 3);
    for (const size_t all = b.len; b.len > 33; b.len--) {
        struct buf part = {0};
        buf_add(&part, b.data, b.len); /* memory of exactly this size */
        const int n = compare(&part, 3);
        CHECK(all - b.len <= 12 ? n >= 2 : n <= 1); /* a crop that ends early may take the fast path */
        buf_done(&part);
    }
    buf_done(&b);
}

/* Where the first chunk of pixels begins. */
static size_t idat(const struct buf *b)
{
    struct png_chunks c;
    CHECK_EQ(png_chunks_read(b->data, b->len, false, &c, NULL), STK_OK);
    return c.idat;
}

static void sum_again(struct buf *b, size_t chunk)
{
    const size_t n = be32(b->data + chunk);
    const uint32_t sum = crc32_choose(STK_CPU_DEFAULT)->of(b->data + chunk + 4, n + 4);
    for (size_t i = 0; i < 4; i++)
        b->data[chunk + 8 + n + i] = (uint8_t)(sum >> (24 - 8 * i));
}

/* Flips every bit of the pixels and of the bytes around them, with the old checksum and with a new one. */
static void turned_bits(void)
{
    struct buf b = make(20, 17, 3);
    const size_t chunk = idat(&b);
    for (size_t i = chunk; i < b.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            b.data[i] ^= (uint8_t)(1 << bit);
            compare(&b, 3);
            if (i >= chunk + 8 && i < b.len - 16) {
                sum_again(&b, chunk);
                compare(&b, 3);
            }
            b.data[i] ^= (uint8_t)(1 << bit);
            sum_again(&b, chunk);
        }
    buf_done(&b);
}

/* Files that the fast path leaves to libpng: a wrong checksum of a chunk or of the stream, too much data, an unknown
 * filter. */
static void left_to_libpng(void)
{
    struct buf b = make(50, 40, 3);
    const size_t chunk = idat(&b), n = be32(b.data + chunk);
    CHECK_EQ(compare(&b, 2), 2);
    b.data[chunk + 8 + n] ^= 1;
    CHECK_EQ(compare(&b, 2), 0);
    b.data[chunk + 8 + n] ^= 1;
    b.data[chunk + 8 + n - 1] ^= 1;
    sum_again(&b, chunk);
    CHECK_EQ(compare(&b, 2), 0);
    b.data[chunk + 8 + n - 1] ^= 1;
    sum_again(&b, chunk);
    struct buf more = {0};
    buf_add(&more, b.data, chunk + 12 + n);
    buf_add(&more, "\0\0\0\1IDATx\0\0\0\0", 13);
    sum_again(&more, chunk + 12 + n);
    buf_add(&more, b.data + chunk + 12 + n, b.len - chunk - 12 - n);
    CHECK_EQ(compare(&more, 2), 0);
    buf_done(&more);
    buf_done(&b);
}

/* Chunks of every size: decoding crosses their borders, and crops end near them. */
static void many_chunks(void)
{
    struct buf b = make(60, 50, 3);
    const size_t chunk = idat(&b), n = be32(b.data + chunk);
    for (size_t size = 1; size < n; size += size < 40 ? 1 : size / 3) {
        struct buf split = {0};
        buf_add(&split, b.data, chunk);
        for (size_t at = 0; at < n; at += size) {
            const size_t k = n - at < size ? n - at : size, begin = split.len;
            const uint8_t head[8] = {0, 0, (uint8_t)(k >> 8), (uint8_t)k, 'I', 'D', 'A', 'T'};
            buf_add(&split, head, 8);
            buf_add(&split, b.data + chunk + 8 + at, k);
            buf_add(&split, "\0\0\0\0", 4);
            sum_again(&split, begin);
        }
        buf_add(&split, b.data + chunk + 12 + n, b.len - chunk - 12 - n);
        CHECK(compare(&split, 10) >= 10 - (size > 16));
        buf_done(&split);
    }
    buf_done(&b);
}

/* ------------------------------------------------------------------ real ones */

static int n_taken, n_compared;

static void compare_file(const char *path, struct buf *b, void *user)
{
    (void)path;
    (void)user;
    if (!png_signature(b->data, b->len))
        return;
    n_compared += 3;
    n_taken += compare(b, 3);
}

static void corpus(void)
{
    const char *data = getenv("STOKER_TEST_DATA");
    char path[4096];
    if (!data)
        SKIP("STOKER_TEST_DATA names no folder");
    snprintf(path, sizeof path, "%s/corpus", data);
    each_file(path, 3, compare_file, NULL);
    printf("the fast path took %d of %d\n", n_taken, n_compared);
    CHECK(n_taken > 0);
}

int main(int argc, char **argv)
{
    stk_cpu best;
    rng_init(&rng, &(struct draw){.seed = 1}, "test_png_fast", 0);
    CHECK_EQ(cpu_choose(STK_CPU_DEFAULT, &best, NULL), STK_OK);
    fast[0] = codec_png.open(STK_CPU_C);
    fast[1] = codec_png.open(best);
    const struct test_case cases[] = {T(ordinary_images), T(cut_off),     T(turned_bits),
                                      T(left_to_libpng),  T(many_chunks), T(corpus)};
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    codec_png.close(fast[0]);
    codec_png.close(fast[1]);
    arena_done(&slow_result.arena);
    arena_done(&fast_result.arena);
    return rc;
}

#else

int main(void)
{
    printf("skipped: no PNG in this build (%d)\n", below(1));
    return 77;
}

#endif
