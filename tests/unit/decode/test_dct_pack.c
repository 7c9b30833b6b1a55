/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_dct_pack.c -- packs decode to the pixels that libjpeg gives for the file; broken ones never leave their bytes.
 * Covers dct_pack.c, dct_block*.c and the packs of decode.c and decode_jpeg.c.
 *
 *     STOKER_TEST_JPEGS=10000 test_dct_pack     as many made ones, all photos
 */
#ifdef HAVE_JPEG

#include "support/jpegs.h"

#include "base/cpu.h"
#include "decode/dct_pack.h"

static const struct decode_limits limits = {.max_pixels = 256000000};

static int64_t made_number(void)
{
    const char *given = getenv("STOKER_TEST_JPEGS");
    const int64_t n = given ? strtoll(given, NULL, 10) : 0;
    return n > 0 ? n : 500;
}

/* A decoder for every set of kernels that this machine has. */
struct packs {
    struct jpegs j;
    struct decoder *decoders[3];
    int n;
    struct buf pack;
    int64_t files, packed, file_bytes, pack_bytes;
};

static void packs_init(struct packs *p)
{
    struct machine m;
    machine_look(&m);
    *p = (struct packs){0};
    CHECK(jpegs_init(&p->j, STK_CPU_C));
    const stk_cpu sets[] = {STK_CPU_C, STK_CPU_AVX2, STK_CPU_AVX512};
    const bool have[] = {true, m.avx2, m.avx512};
    for (int i = 0; i < 3; i++)
        if (have[i] && decoder_new(&p->decoders[p->n], sets[i], NULL) == STK_OK)
            p->n++;
}

static void packs_done(struct packs *p)
{
    CHECK_EQ(p->j.different, 0);
    for (int i = 0; i < p->n; i++)
        decoder_free(p->decoders[i]);
    buf_done(&p->pack);
    jpegs_done(&p->j);
}

/* A crop of the pack, by one of the decoders, into memory that others may have used. */
static int unpack(struct packs *p, int which, const struct head *h, const struct want *w, struct image *out)
{
    if (arena_reserve(&p->j.ours, decode_scratch(h, w)))
        return STK_ENOMEM;
    const int rc = decode_pack_pixels(p->decoders[which], p->pack.data, p->pack.len, h, w, &p->j.ours, out, NULL);
    CHECK(rc != STK_EBUG);
    return rc;
}

static void compare_crop(struct packs *p, const uint8_t *bytes, size_t n, const struct rect *crop, const char *name)
{
    struct head h, of_pack;
    struct image theirs, ours;
    int warnings;
    CHECK_EQ(decode_head(bytes, n, &limits, &h, NULL), STK_OK);
    CHECK_EQ(decode_pack_head(p->pack.data, p->pack.len, &limits, &of_pack, NULL), STK_OK);
    CHECK(memcmp(&h, &of_pack, sizeof h) == 0);
    CHECK_EQ(jpegs_reference(&p->j, bytes, n, &h, crop, false, &theirs, &warnings, NULL), STK_OK);
    for (int i = 0; i < p->n; i++) {
        const int rc = unpack(p, i, &of_pack, &(struct want){.crop = *crop}, &ours);
        if (rc != STK_OK || !same_pixels(&ours, &theirs))
            jpegs_differ(&p->j, name, crop, rc == STK_OK ? "other pixels" : "not decoded");
    }
}

/* The pack of a picture, all of it and some crops; false: it has none. */
static bool compare(struct packs *p, const uint8_t *bytes, size_t n, int crops, uint32_t *seed, const char *name)
{
    struct head h;
    p->files++;
    p->pack.len = 0;
    if (decode_head(bytes, n, &limits, &h, NULL) != STK_OK ||
        !decode_pack(p->decoders[p->n - 1], bytes, n, &h, &p->pack))
        return false;
    p->packed++;
    p->file_bytes += (int64_t)n;
    p->pack_bytes += (int64_t)p->pack.len;
    const int32_t w = head_width(&h), rows = head_height(&h);
    compare_crop(p, bytes, n, &(struct rect){0, 0, w, rows}, name);
    for (int i = 0; i < crops; i++) {
        const struct rect crop = picture_crop(w, rows, seed);
        compare_crop(p, bytes, n, &crop, name);
    }
    return true;
}

static void made_ones(void)
{
    struct packs p;
    uint32_t seed = 5;
    packs_init(&p);
    for (int64_t i = 0; i < made_number(); i++) {
        const struct jpeg_spec s = jpeg_spec_random(&seed, 200);
        size_t n;
        unsigned char *bytes = jpeg_made(&s, &n);
        const bool usual = s.across != 2 || s.w > 4; /* libjpeg does not interpolate so few columns */
        CHECK_EQ(compare(&p, bytes, n, 6, &seed, "made"), usual);
        free(bytes);
    }
    packs_done(&p);
}

/* Several scans: libjpeg reads the coefficients. */
static void progressive_ones(void)
{
    struct packs p;
    uint32_t seed = 6;
    packs_init(&p);
    for (int i = 0; i < 100; i++) {
        struct picture made = picture_make(5 + (int32_t)(noise(&seed) % 150), 1 + (int32_t)(noise(&seed) % 90),
                                           i % 4 ? 3 : 1, noise(&seed));
        const struct image im = picture_image(&made);
        const stk_encode_options o = {.format = STK_JPEG,
                                      .quality = 1 + (int)(noise(&seed) % 100),
                                      .progressive = 1,
                                      .subsample = (int)(noise(&seed) % 2)};
        void *bytes = NULL;
        size_t n = 0;
        CHECK_EQ(encode_pixels(&im, &o, &bytes, &n, NULL), STK_OK);
        CHECK(compare(&p, bytes, n, 6, &seed, "progressive"));
        /* What lacks its end is smoothed, or damaged. */
        CHECK(!compare(&p, bytes, n / 2, 0, &seed, "cut"));
        free(bytes);
        picture_done(&made);
    }
    packs_done(&p);
}

static void damaged_ones_have_none(void)
{
    struct packs p;
    uint32_t seed = 7;
    packs_init(&p);
    const struct jpeg_spec s = {.w = 90, .h = 60, .across = 2, .down = 2, .quality = 80, .seed = 3};
    size_t n;
    unsigned char *bytes = jpeg_made(&s, &n);
    for (size_t k = 0; k < n - 2; k++)
        CHECK(!compare(&p, bytes, k, 0, &seed, "cut"));
    CHECK(compare(&p, bytes, n, 0, &seed, "whole"));
    free(bytes);
    packs_done(&p);
}

/* Into memory that runs out: all or nothing, and what was there before stays. */
static void memory_ends(void)
{
    struct packs p;
    packs_init(&p);
    const struct jpeg_spec s = {.w = 90, .h = 60, .across = 2, .down = 1, .quality = 80, .seed = 3};
    size_t n;
    unsigned char *bytes = jpeg_made(&s, &n);
    struct head h;
    CHECK_EQ(decode_head(bytes, n, &limits, &h, NULL), STK_OK);
    struct buf all = {0};
    CHECK(decode_pack(p.decoders[0], bytes, n, &h, &all));
    for (size_t max = 3; max < all.len + 3; max += 97) {
        struct buf b = {.max = max};
        CHECK_EQ(buf_add(&b, "old", 3), 0);
        CHECK(!decode_pack(p.decoders[0], bytes, n, &h, &b));
        CHECK_EQ(b.len, 3);
        buf_done(&b);
    }
    struct buf b = {.max = all.len + 3};
    CHECK_EQ(buf_add(&b, "old", 3), 0);
    CHECK(decode_pack(p.decoders[0], bytes, n, &h, &b));
    CHECK(b.len == all.len + 3 && memcmp(b.data, "old", 3) == 0 && memcmp(b.data + 3, all.data, all.len) == 0);
    buf_done(&b);
    buf_done(&all);
    free(bytes);
    packs_done(&p);
}

/* A pack that is a file has no checkpoints, takes nothing from the heap, and leaves none of what was lent to the next.
 */
static void files_of_packs(void)
{
    struct packs p;
    packs_init(&p);
    const struct jpeg_spec s = {.w = 90, .h = 60, .across = 2, .down = 2, .quality = 80, .seed = 5};
    size_t n, n_new;
    unsigned char *bytes = jpeg_made(&s, &n);
    struct decoder *d = p.decoders[0];
    struct head h, packed;
    struct image im;
    int warnings;
    const struct want w = {.crop = {8, 8, 40, 30}};
    CHECK_EQ(decode_head(bytes, n, &limits, &h, NULL), STK_OK);
    CHECK(decode_pack_file(d, bytes, n, &h, &p.pack));
    CHECK_EQ(decode_head(p.pack.data, p.pack.len, &limits, &packed, NULL), STK_OK);
    CHECK(packed.packed && !h.packed && decode_foreign(&packed, &w) == 0 && decode_foreign(&h, &w) > 0);
    CHECK(!decode_pack(d, p.pack.data, p.pack.len, &packed, &p.pack));
    CHECK_EQ(arena_reserve(&p.j.ours, decode_scratch(&packed, &w)), 0);
    decoder_lend_checkpoints(d, NULL, 0);
    CHECK_EQ(decode_pixels(d, p.pack.data, p.pack.len, &packed, &w, &p.j.ours, &im, &warnings, NULL), STK_OK);
    CHECK(!decoder_new_checkpoints(d, &n_new));
    CHECK_EQ(arena_reserve(&p.j.ours, decode_scratch(&h, &w)), 0);
    CHECK_EQ(decode_pixels(d, bytes, n, &h, &w, &p.j.ours, &im, &warnings, NULL), STK_OK);
    CHECK(!decoder_new_checkpoints(d, &n_new));
    free(bytes);
    packs_done(&p);
}

/* A pack with other bytes, in memory of exactly its size. Whatever comes of it, nothing else is touched. */
static void decode_broken(struct packs *p, const uint8_t *bytes, size_t n)
{
    uint8_t *exact = malloc(n);
    memcpy(exact, bytes, n);
    for (int i = 0; i < p->n; i++) {
        struct head h;
        struct image im;
        if (decode_pack_head(exact, n, &limits, &h, NULL) != STK_OK)
            break;
        const struct want w = {.crop = {0, 0, head_width(&h), head_height(&h)}};
        if (w.crop.w > 1000 || arena_reserve(&p->j.ours, decode_scratch(&h, &w)))
            break;
        decode_pack_pixels(p->decoders[i], exact, n, &h, &w, &p->j.ours, &im, NULL);
    }
    free(exact);
}

static void broken_packs(void)
{
    struct packs p;
    uint32_t seed = 8;
    packs_init(&p);
    const struct jpeg_spec s = {.w = 150, .h = 40, .across = 2, .down = 2, .quality = 95, .seed = 4};
    size_t n;
    unsigned char *bytes = jpeg_made(&s, &n);
    CHECK(compare(&p, bytes, n, 0, &seed, "whole"));
    const size_t len = p.pack.len;
    for (size_t k = 0; k < len; k += k < 1000 ? 1 : 37)
        decode_broken(&p, p.pack.data, k);
    for (size_t k = 0; k < len; k++) {
        const uint8_t old = p.pack.data[k];
        static const uint8_t others[] = {0, 0xff, 0x80};
        for (int i = 0; i < 3; i++) {
            p.pack.data[k] = i == 2 ? old ^ 0x10 : others[i];
            decode_broken(&p, p.pack.data, len);
        }
        p.pack.data[k] = old;
    }
    for (int i = 0; i < 2000; i++) { /* many at once, behind the head */
        uint8_t *other = malloc(len);
        memcpy(other, p.pack.data, len);
        for (int k = 0; k < 100; k++)
            other[32 + noise(&seed) % (len - 32)] = (uint8_t)noise(&seed);
        decode_broken(&p, other, len);
        free(other);
    }
    free(bytes);
    packs_done(&p);
}

struct visit {
    struct packs p;
    uint32_t seed;
    int every;
};

static void visit_file(const char *path, struct buf *b, void *user)
{
    struct visit *v = user;
    struct head h;
    const struct decode_limits small = {.max_pixels = 4000000};
    if (v->p.files % v->every != 0 || decode_head(b->data, b->len, &small, &h, NULL) != STK_OK) {
        v->p.files++;
        return;
    }
    compare(&v->p, b->data, b->len, 3, &v->seed, path);
}

static void visit_folder(const char *name, int every)
{
    struct visit v = {.seed = 9, .every = every};
    char folder[4096];
    packs_init(&v.p);
    snprintf(folder, sizeof folder, "%s/%s", getenv("STOKER_TEST_DATA"), name);
    each_file(folder, 4, visit_file, &v);
    CHECK(v.p.packed > 0);
    if (v.p.packed > 0)
        printf("%s: %" PRId64 " packs, %.2f times the JPEGs' bytes\n", name, v.p.packed,
               (double)v.p.pack_bytes / (double)v.p.file_bytes);
    packs_done(&v.p);
}

static void photos(void)
{
    if (!getenv("STOKER_TEST_DATA"))
        SKIP("STOKER_TEST_DATA is not set");
    visit_folder("photos", made_number() > 1000 ? 1 : 8);
}

static void corpus(void)
{
    if (!getenv("STOKER_TEST_DATA"))
        SKIP("STOKER_TEST_DATA is not set");
    visit_folder("corpus", 1);
}

int main(int argc, char **argv)
{
    TESTS(T(made_ones), T(progressive_ones), T(damaged_ones_have_none), T(memory_ends), T(files_of_packs),
          T(broken_packs), T(photos), T(corpus))
}

#else
#include <stdio.h>

int main(void)
{
    printf("skipped: no JPEG in this build\n");
    return 77;
}

#endif
