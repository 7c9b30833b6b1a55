/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jpeg_baseline.c -- compares our JPEG decoder with libjpeg: generated images of every sampling, size, quality and
 * restart interval, the photos and the corpus if they are available, and damage of every kind. Also covers
 * jpeg_strip.c.
 *
 * STOKER_TEST_JPEGS sets how many images are generated; the default is 1000.
 */
#include "support/images.h"

#ifdef HAVE_JPEG

#include "base/cpu.h"
#include "support/jpegs.h"

static int64_t wanted_number(void)
{
    const char *given = getenv("STOKER_TEST_JPEGS");
    const int64_t n = given ? strtoll(given, NULL, 10) : 0;
    return n > 0 ? n : 1000;
}

/* Two chroma columns or fewer are upsampled in another way. */
static bool is_ours(const struct jpeg_spec *s)
{
    return s->across != 2 || s->w > 4;
}

static void one_made(struct jpegs *j, uint32_t number)
{
    uint32_t seed = number * 2654435761u;
    const struct jpeg_spec s = jpeg_spec_random(&seed, number % 8 ? 90 : 220);
    size_t n;
    unsigned char *bytes = jpeg_made(&s, &n);
    char name[64];
    snprintf(name, sizeof name, "made %u: %dx%d, %dx%d, restart %d", number, s.w, s.h, s.across, s.down, s.restart);
    const struct rect all = {0};
    if (jpegs_compare(j, bytes, n, &all, true, name) != is_ours(&s))
        jpegs_differ(j, name, &all, "not decoded by whom it should");
    for (int i = 0; i < 3; i++) {
        const struct rect crop = test_image_crop(s.w, s.h, &seed);
        if (jpegs_compare(j, bytes, n, &crop, false, name) != is_ours(&s))
            jpegs_differ(j, name, &crop, "not decoded by whom it should");
    }
    free(bytes);
}

static void made_ones(void)
{
    const int64_t n = wanted_number();
    for (stk_cpu cpu = STK_CPU_C; cpu <= STK_CPU_AVX512; cpu++) {
        struct jpegs j;
        stk_cpu chosen;
        if (cpu_choose(cpu, &chosen, NULL) != STK_OK)
            continue;
        CHECK(jpegs_init(&j, cpu));
        for (int64_t i = 0; i < n && j.different < 5; i++)
            one_made(&j, (uint32_t)i + (uint32_t)cpu * 1000003);
        CHECK_EQ(j.different, 0);
        jpegs_done(&j);
    }
}

/* ------------------------------------------------------------------ damage */

static const struct jpeg_spec frail[] = {
    {40, 30, 2, 2, 70, 0, true, 5, false},  {33, 20, 1, 1, 90, 0, false, 8, false},
    {50, 17, 2, 1, 80, 3, true, 12, false}, {20, 40, 1, 2, 60, 1, true, 16, false},
    {61, 24, 0, 0, 95, 0, true, 20, false}, {40, 30, 2, 2, 70, 0, true, 5, true},
};
enum { N_FRAIL = sizeof frail / sizeof frail[0] };

static void keep_new_checkpoints(struct jpegs *j)
{
    size_t n;
    const void *made = decoder_new_checkpoints(j->decoder, &n);
    CHECK(j->checkpoints || !made);
    if (made) {
        j->checkpoints->len = 0;
        CHECK_EQ(buf_add(j->checkpoints, made, n), 0);
    }
}

/* The decoder returns the verdict, messages, warnings and pixels of libjpeg. */
static void same_as_libjpeg(struct jpegs *j, const uint8_t *bytes, size_t n, const struct want *want, const char *name)
{
    const struct decode_limits limits = {.max_pixels = 1 << 20};
    struct head h;
    struct image a, b;
    int warnings = 0, reference_warnings = 0;
    stk_error e = {0}, reference_e = {0};
    if (decode_head(bytes, n, &limits, &h, NULL) != STK_OK)
        return;
    struct want w = *want;
    if (w.crop.x + w.crop.w > head_width(&h) || w.crop.y + w.crop.h > head_height(&h))
        w.crop = (struct rect){0, 0, head_width(&h), head_height(&h)};
    CHECK_EQ(arena_reserve(&j->ours, decode_scratch(&h, &w)), 0);
    if (j->checkpoints)
        decoder_lend_checkpoints(j->decoder, j->checkpoints->data, j->checkpoints->len, false);
    const int rc = decode_pixels(j->decoder, bytes, n, &h, &w, &j->ours, &a, &warnings, &e);
    keep_new_checkpoints(j);
    w.reference = true;
    CHECK_EQ(arena_reserve(&j->theirs, decode_scratch(&h, &w)), 0);
    const int reference =
        decode_pixels(j->decoder, bytes, n, &h, &w, &j->theirs, &b, &reference_warnings, &reference_e);
    j->images++;
    if (rc != reference || warnings != reference_warnings || strcmp(e.text, reference_e.text) != 0)
        jpegs_differ(j, name, &w.crop, "another verdict");
    else if (rc == STK_OK && !same_pixels(&a, &b))
        jpegs_differ(j, name, &w.crop, "other pixels");
}

/* Crops with and without checkpoints. */
static void all_ways(struct jpegs *j, const uint8_t *bytes, size_t n, const struct jpeg_spec *s, uint32_t *seed,
                     const char *name)
{
    uint8_t *exact = malloc(n ? n : 1); /* so that a sanitizer reports the first byte past the end */
    memcpy(exact, bytes, n);
    const struct want wants[] = {{.crop = {0, 0, s->w, s->h}},
                                 {.crop = {0, 0, s->w, s->h}, .whole = true},
                                 {.crop = test_image_crop(s->w, s->h, seed)}};
    struct buf checkpoints = {0};
    for (int i = 0; i < 9; i++) {
        j->checkpoints = i < 3 ? NULL : &checkpoints; /* without checkpoints, making them, using them */
        same_as_libjpeg(j, exact, n, &wants[i % 3], name);
    }
    buf_done(&checkpoints);
    j->checkpoints = NULL;
    free(exact);
}

static void cut_anywhere(void)
{
    struct jpegs j;
    uint32_t seed = 7;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    for (int i = 0; i < N_FRAIL; i++) {
        size_t n;
        unsigned char *bytes = jpeg_made(&frail[i], &n);
        for (size_t keep = 0; keep < n; keep++) {
            char name[64];
            snprintf(name, sizeof name, "frail %d cut at %zu of %zu", i, keep, n);
            all_ways(&j, bytes, keep, &frail[i], &seed, name);
        }
        free(bytes);
    }
    CHECK(j.images > 1000);
    CHECK_EQ(j.different, 0);
    jpegs_done(&j);
}

static void bytes_changed(void)
{
    struct jpegs j;
    uint32_t seed = 11;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    for (int64_t round = 0; round < 5 * wanted_number(); round++) {
        const struct jpeg_spec *s = &frail[round % N_FRAIL];
        size_t n;
        unsigned char *bytes = jpeg_made(s, &n);
        char name[64];
        snprintf(name, sizeof name, "frail, flip %d", (int)round);
        for (uint32_t flips = noise(&seed) % 3 + 1; flips > 0; flips--) {
            const size_t at = round % 2 ? noise(&seed) % n : n - 1 - noise(&seed) % (n / 2);
            bytes[at] = noise(&seed) % 4 ? (uint8_t)noise(&seed) : 0xff;
        }
        all_ways(&j, bytes, n, s, &seed, name);
        free(bytes);
    }
    CHECK_EQ(j.different, 0);
    jpegs_done(&j);
}

/* With several scans, the checkpoints are a DCT image. If one of its bytes is changed, it is not used, and does no
 * harm. */
static void checkpoints_of_several_scans(void)
{
    const struct jpeg_spec s = {90, 60, 2, 2, 80, 0, true, 4, true};
    struct jpegs j;
    struct buf checkpoints = {0};
    size_t n;
    unsigned char *bytes = jpeg_made(&s, &n);
    const struct want want = {.crop = {11, 7, 40, 33}};
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    j.checkpoints = &checkpoints;
    same_as_libjpeg(&j, bytes, n, &want, "several scans");
    CHECK(checkpoints.len > 100);
    const size_t len = checkpoints.len;
    for (size_t i = 0; i < len; i++) {
        checkpoints.data[i] ^= 1 << (i % 8);
        same_as_libjpeg(&j, bytes, n, &want, "several scans, changed checkpoints");
        CHECK_EQ(checkpoints.len, len);
        checkpoints.data[i] ^= 1 << (i % 8);
    }
    same_as_libjpeg(&j, bytes, n, &want, "several scans, with checkpoints");
    CHECK_EQ(j.different, 0);
    jpegs_done(&j);
    buf_done(&checkpoints);
    free(bytes);
}

/* Garbage and fill bytes after, between and in place of the last markers. */
static void odd_ends(void)
{
    static const struct {
        const char *end;
        size_t n;
    } ends[] = {{"", 0},
                {"\xff", 1},
                {"\xff\xd9", 2},
                {"\xff\xff\xd9", 3},
                {"\x00\xff\xd9", 3},
                {"\x12\x34\x56\x78\x12\x34\x56\x78\x9a", 9},
                {"\x12\x34\x56\x78\x12\x34\x56\x78\x9a\xff\xd9", 11},
                {"\xff\xd0\xff\xd9", 4},
                {"\xff\xd7\xff\xd9", 4},
                {"\xff\x00\xff\xd9", 4},
                {"\xff\xd8\xff\xd9", 4},
                {"\xff\xda\x00\x08", 4},
                {"\xff\xd9\xff\xd9", 4}};
    struct jpegs j;
    uint32_t seed = 3;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    for (int i = 0; i < N_FRAIL; i++)
        for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++) {
            size_t n;
            unsigned char *bytes = jpeg_made(&frail[i], &n);
            uint8_t *changed = malloc(n + 16);
            char name[64];
            snprintf(name, sizeof name, "frail %d, end %zu", i, k);
            memcpy(changed, bytes, n - 2);
            memcpy(changed + n - 2, ends[k].end, ends[k].n);
            all_ways(&j, changed, n - 2 + ends[k].n, &frail[i], &seed, name);
            free(changed);
            free(bytes);
        }
    CHECK_EQ(j.different, 0);
    jpegs_done(&j);
}

/* ------------------------------------------------------------------ real files */

struct visit {
    struct jpegs j;
    uint32_t seed;
    int every, files;
};

static void visit_file(const char *path, struct buf *b, void *user)
{
    struct visit *v = user;
    const struct decode_limits limits = {.max_pixels = 4000000, .no_exif = true};
    struct head h;
    if (v->files++ % v->every != 0 || decode_head(b->data, b->len, &limits, &h, NULL) != STK_OK || h.format != STK_JPEG)
        return;
    const struct rect all = {0, 0, h.w, h.h};
    jpegs_compare(&v->j, b->data, b->len, &all, true, path);
    for (int i = 0; i < 3; i++) {
        const struct rect crop = test_image_crop(h.w, h.h, &v->seed);
        jpegs_compare(&v->j, b->data, b->len, &crop, false, path);
    }
}

static int64_t visit_folder(const char *name, int every, int64_t *by_us)
{
    const char *data = getenv("STOKER_TEST_DATA");
    struct visit v = {.seed = 1, .every = every};
    char folder[4096];
    CHECK(jpegs_init(&v.j, STK_CPU_DEFAULT));
    snprintf(folder, sizeof folder, "%s/%s", data, name);
    each_file(folder, 4, visit_file, &v);
    CHECK_EQ(v.j.different, 0);
    jpegs_done(&v.j);
    *by_us = v.j.by_us;
    return v.j.images;
}

static void photos(void)
{
    if (!getenv("STOKER_TEST_DATA"))
        SKIP("STOKER_TEST_DATA is not set");
    int64_t by_us;
    const int64_t all = visit_folder("photos", wanted_number() > 1000 ? 1 : 8, &by_us);
    CHECK(all > 0);
    CHECK(by_us > all * 95 / 100);
}

static void corpus(void)
{
    if (!getenv("STOKER_TEST_DATA"))
        SKIP("STOKER_TEST_DATA is not set");
    int64_t by_us;
    CHECK(visit_folder("corpus", 1, &by_us) > 0);
    CHECK(by_us > 0);
}

int main(int argc, char **argv)
{
    TESTS(T(made_ones), T(cut_anywhere), T(bytes_changed), T(checkpoints_of_several_scans), T(odd_ends), T(photos),
          T(corpus))
}

#else

int main(void)
{
    printf("skipped: no JPEG in this build\n");
    return 77;
}

#endif
