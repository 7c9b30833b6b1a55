/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images.h -- shared by the tests of the decoders: generated images, crops compared with the whole image, files of the
 * test data.
 */
#ifndef IMAGES_H
#define IMAGES_H

#include <dirent.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "decode/decode.h"
#include "test.h"

/* An image that owns its memory. */
struct test_image {
    uint8_t *px; /* rows of w * channels */
    int32_t w, h, channels;
};

static inline void test_image_done(struct test_image *p)
{
    free(p->px);
    p->px = NULL;
}

static inline uint32_t noise(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* Gradients, edges and some noise, so that neighbouring pixels differ. */
static inline struct test_image test_image_make(int32_t w, int32_t h, int32_t channels, uint32_t seed)
{
    struct test_image p = {malloc((size_t)w * (size_t)h * (size_t)channels), w, h, channels};
    for (int32_t y = 0; p.px && y < h; y++)
        for (int32_t x = 0; x < w; x++)
            for (int32_t c = 0; c < channels; c++) {
                const uint32_t edge = (x / 5 + y / 7 + c) % 3 == 0 ? 90 : 0;
                p.px[((size_t)y * (size_t)w + (size_t)x) * (size_t)channels + (size_t)c] =
                    (uint8_t)((uint32_t)(x * (3 + c) + y * (5 - c)) + edge + noise(&seed) % 24);
            }
    return p;
}

static inline struct image test_image_image(const struct test_image *p)
{
    return (struct image){p->px, (size_t)p->w * (size_t)p->channels, p->w, p->h, p->channels};
}

/* Decodes what w asks for (an empty crop: all of it) into separate memory. Checks that the promised scratch memory is
 * enough, and that nothing is written after it. */
static inline int test_image_decode(const void *bytes, size_t n, const struct want *want, bool no_exif,
                                    struct test_image *out, int *warnings, stk_error *e)
{
    const struct decode_limits limits = {.max_pixels = 256000000, .no_exif = no_exif};
    struct head h;
    struct arena a = {0};
    struct image im;
    struct decoder *d = NULL;
    struct want w = *want;
    *out = (struct test_image){0};
    int rc = decode_head(bytes, n, &limits, &h, e);
    if (rc != STK_OK)
        return rc;
    if (w.crop.w == 0)
        w.crop = (struct rect){0, 0, head_width(&h), head_height(&h)};
    rc = decoder_new(&d, STK_CPU_DEFAULT, e);
    const size_t scratch = decode_scratch(&h, &w);
    CHECK(scratch > 0);
    CHECK(decode_foreign(&h, &w) > 0);
    if (rc == STK_OK && arena_reserve(&a, scratch) == 0) {
        rc = decode_pixels(d, bytes, n, &h, &w, &a, &im, warnings, e);
        CHECK(rc != STK_EBUG);
    }
    if (rc == STK_OK) {
        CHECK(im.w == w.crop.w && im.h == w.crop.h && im.channels == 3);
        *out = (struct test_image){malloc((size_t)im.w * (size_t)im.h * 3), im.w, im.h, 3};
        for (int32_t y = 0; out->px && y < im.h; y++)
            memcpy(out->px + (size_t)y * (size_t)im.w * 3, im.px + (size_t)y * im.stride, (size_t)im.w * 3);
    }
    arena_done(&a);
    decoder_free(d);
    return rc;
}

static inline bool test_image_has(const struct test_image *whole, const struct rect *r, const struct test_image *part)
{
    for (int32_t y = 0; y < r->h; y++)
        if (memcmp(whole->px + ((size_t)(r->y + y) * (size_t)whole->w + (size_t)r->x) * 3,
                   part->px + (size_t)y * (size_t)r->w * 3, (size_t)r->w * 3) != 0)
            return false;
    return true;
}

/* A random crop, often at an edge, small or narrow. */
static inline struct rect test_image_crop(int32_t w, int32_t h, uint32_t *seed)
{
    struct rect r;
    r.w = 1 + (int32_t)(noise(seed) % (uint32_t)(noise(seed) % 3 ? w : w < 9 ? w : 9));
    r.h = 1 + (int32_t)(noise(seed) % (uint32_t)(noise(seed) % 3 ? h : h < 9 ? h : 9));
    r.x = noise(seed) % 5 ? (int32_t)(noise(seed) % (uint32_t)(w - r.w + 1)) : w - r.w;
    r.y = noise(seed) % 5 ? (int32_t)(noise(seed) % (uint32_t)(h - r.h + 1)) : h - r.h;
    return r;
}

/* Compares n random crops with the same crops of the whole. Returns how many differ. The whole of a damaged image may
 * fail. */
static inline int test_image_crops(const void *bytes, size_t n, int n_crops, uint32_t seed, const char *name)
{
    const struct want all = {0};
    struct test_image whole;
    int warnings, bad = 0;
    if (test_image_decode(bytes, n, &all, false, &whole, &warnings, NULL) != STK_OK)
        return 0;
    for (int i = 0; i < n_crops; i++) {
        const struct want w = {.crop = test_image_crop(whole.w, whole.h, &seed), .whole = i % 16 == 15};
        struct test_image part;
        const int rc = test_image_decode(bytes, n, &w, false, &part, &warnings, NULL);
        const bool same = rc == STK_OK ? test_image_has(&whole, &w.crop, &part) : w.whole;
        if (!same && bad++ == 0)
            printf("%s: %dx%d: crop %dx%d at %d,%d differs (%d)\n", name, whole.w, whole.h, w.crop.w, w.crop.h,
                   w.crop.x, w.crop.y, rc);
        test_image_done(&part);
    }
    test_image_done(&whole);
    return bad;
}

static inline bool file_load(const char *path, struct buf *b)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    b->len = 0;
    size_t n = 0;
    do {
        b->len += n;
        if (buf_reserve(b, b->len + 65536))
            break;
    } while ((n = fread(b->data + b->len, 1, 65536, f)) > 0);
    fclose(f);
    return true;
}

/* Calls each() for every file below a folder, up to `depth` levels deep. */
static inline void each_file(const char *folder, int depth, void (*each)(const char *path, struct buf *b, void *user),
                             void *user)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    struct buf b = {0};
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        char path[4096];
        struct stat st;
        const int len = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || len < 0 || len >= (int)sizeof path || stat(path, &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode) && depth > 0)
            each_file(path, depth - 1, each, user);
        else if (S_ISREG(st.st_mode) && file_load(path, &b))
            each(path, &b, user);
    }
    buf_done(&b);
    closedir(d);
}

#endif
