/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jpeg_small.c -- images at a half, a quarter and an eighth of their size: compares ours, from a file and from its
 * DCT image, with those of libjpeg. Covers jpeg_small.h and the shrinking in jpeg_frame.c, jpeg_strip.c and decode.c.
 */
#ifdef HAVE_JPEG

#include "support/jpegs.h"

#include "base/cpu.h"

static const struct decode_limits limits = {.max_pixels = 256000000};

struct small {
    struct decoder *decoders[3];
    int n;
    struct arena theirs, ours;
    struct buf dct;
    int64_t compared, different;
};

static void small_init(struct small *s)
{
    *s = (struct small){0};
    for (stk_cpu cpu = STK_CPU_C; cpu <= STK_CPU_AVX512; cpu++) {
        stk_cpu chosen;
        if (cpu_choose(cpu, &chosen, NULL) == STK_OK && decoder_new(&s->decoders[s->n], cpu, NULL) == STK_OK)
            s->n++;
    }
}

static void small_done(struct small *s)
{
    CHECK(s->compared > 0);
    CHECK_EQ(s->different, 0);
    for (int i = 0; i < s->n; i++)
        decoder_free(s->decoders[i]);
    arena_done(&s->theirs);
    arena_done(&s->ours);
    buf_done(&s->dct);
}

static void differ(struct small *s, const char *name, const struct want *w, const char *what)
{
    if (s->different++ < 5)
        printf("%s: 1/%d, crop %dx%d at %d,%d: %s\n", name, w->shrink, w->crop.w, w->crop.h, w->crop.x, w->crop.y,
               what);
}

static void compare_want(struct small *s, const uint8_t *bytes, size_t n, const struct head *h, struct want w,
                         const char *name)
{
    struct image theirs, ours;
    int warnings;
    w.reference = true;
    const size_t scratch = decode_scratch(h, &w);
    CHECK(scratch > 0 && arena_reserve(&s->theirs, scratch) == 0);
    if (decode_pixels(s->decoders[0], bytes, n, h, &w, &s->theirs, &theirs, &warnings, NULL) != STK_OK)
        return;
    w.reference = false;
    s->compared++;
    for (int i = 0; i < 2 * s->n; i++) {
        CHECK_EQ(arena_reserve(&s->ours, scratch), 0);
        struct decoder *d = s->decoders[i / 2];
        if (i % 2 && s->dct.len == 0)
            continue;
        const int rc = i % 2 ? decode_dct_pixels(d, s->dct.data, s->dct.len, h, &w, &s->ours, &ours, NULL)
                             : decode_pixels(d, bytes, n, h, &w, &s->ours, &ours, &warnings, NULL);
        if (rc != STK_OK || !same_pixels(&ours, &theirs))
            differ(s, name, &w, i % 2 ? "another dct" : "other pixels");
    }
}

static void compare(struct small *s, const uint8_t *bytes, size_t n, int crops, uint32_t *seed, const char *name)
{
    struct head h;
    if (decode_head(bytes, n, &limits, &h, NULL) != STK_OK || decode_shrink(&h) < 8)
        return;
    s->dct.len = 0;
    decode_to_dct(s->decoders[0], bytes, n, &h, &s->dct);
    for (int shrink = 2; shrink <= 8; shrink *= 2) {
        const int32_t w = (head_width(&h) + shrink - 1) / shrink, rows = (head_height(&h) + shrink - 1) / shrink;
        compare_want(s, bytes, n, &h, (struct want){.crop = {0, 0, w, rows}, .shrink = shrink}, name);
        for (int i = 0; i < crops; i++) {
            const struct want want = {.crop = test_image_crop(w, rows, seed), .shrink = shrink};
            compare_want(s, bytes, n, &h, want, name);
        }
    }
}

static void made_ones(void)
{
    struct small s;
    uint32_t seed = 15;
    small_init(&s);
    for (int i = 0; i < 400; i++) {
        struct jpeg_spec spec = jpeg_spec_random(&seed, 300);
        spec.quality = spec.quality < 30 ? 30 : spec.quality; /* no overflow */
        size_t n;
        unsigned char *bytes = jpeg_made(&spec, &n);
        compare(&s, bytes, n, 4, &seed, "made");
        free(bytes);
    }
    small_done(&s);
}

/* Sizes that are impossible are refused, even if the crop would fit. */
static void impossible_ones(void)
{
    struct small s;
    small_init(&s);
    s.compared = 1;
    const struct jpeg_spec spec = {.w = 90, .h = 60, .across = 2, .down = 2, .quality = 80, .seed = 3};
    size_t n;
    unsigned char *bytes = jpeg_made(&spec, &n);
    struct head h;
    CHECK_EQ(decode_head(bytes, n, &limits, &h, NULL), STK_OK);
    static const int shrinks[] = {3, 16, -2};
    for (int i = 0; i < 3; i++)
        CHECK(shrinks[i] < 0 || decode_scratch(&h, &(struct want){.crop = {0, 0, 1, 1}, .shrink = shrinks[i]}) == 0);
    CHECK_EQ(decode_scratch(&h, &(struct want){.crop = {0, 0, 46, 30}, .shrink = 2}), 0);
    CHECK(decode_scratch(&h, &(struct want){.crop = {0, 0, 45, 30}, .shrink = 2}) > 0);
    h.format = STK_PNG;
    CHECK_EQ(decode_shrink(&h), 1);
    free(bytes);
    small_done(&s);
}

struct visit {
    struct small s;
    uint32_t seed;
    int files;
};

static void visit_file(const char *path, struct buf *b, void *user)
{
    struct visit *v = user;
    if (v->files++ % 16 == 0)
        compare(&v->s, b->data, b->len, 2, &v->seed, path);
}

static void photos(void)
{
    const char *data = getenv("STOKER_TEST_DATA");
    if (!data)
        SKIP("STOKER_TEST_DATA is not set");
    struct visit v = {.seed = 3};
    char folder[4096];
    small_init(&v.s);
    snprintf(folder, sizeof folder, "%s/photos", data);
    each_file(folder, 4, visit_file, &v);
    small_done(&v.s);
}

int main(int argc, char **argv)
{
    TESTS(T(made_ones), T(impossible_ones), T(photos))
}

#else
#include <stdio.h>

int main(void)
{
    printf("skipped: no JPEG in this build\n");
    return 77;
}

#endif
