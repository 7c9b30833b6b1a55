/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_dct_image.c -- DCT images decode to the pixels that libjpeg returns for the file. Decoding a damaged one never
 * reads outside its bytes. A JPEG made from one has the same coefficients. Covers dct_image.c, dct_block*.c and the DCT
 * images of decode.c, decode_jpeg.c and jpeg_turbo_write.c.
 *
 *     STOKER_TEST_JPEGS=10000 test_dct_image     makes so many files, and takes all photos
 */
#ifdef HAVE_JPEG

#include "support/jpegs.h"

#include "base/cpu.h"
#include "decode/dct_image.h"

static const struct decode_limits limits = {.max_pixels = 256000000};

static int64_t made_number(void)
{
    const char *given = getenv("STOKER_TEST_JPEGS");
    const int64_t n = given ? strtoll(given, NULL, 10) : 0;
    return n > 0 ? n : 500;
}

/* A decoder for every set of kernels that this machine has. */
struct dcts {
    struct jpegs j;
    struct decoder *decoders[3];
    int n;
    struct buf dct;
    int64_t files, made, file_bytes, dct_bytes;
};

static void dcts_init(struct dcts *p)
{
    struct machine m;
    machine_look(&m);
    *p = (struct dcts){0};
    CHECK(jpegs_init(&p->j, STK_CPU_C));
    const stk_cpu sets[] = {STK_CPU_C, STK_CPU_AVX2, STK_CPU_AVX512};
    const bool have[] = {true, m.avx2, m.avx512};
    for (int i = 0; i < 3; i++)
        if (have[i] && decoder_new(&p->decoders[p->n], sets[i], NULL) == STK_OK)
            p->n++;
}

static void dcts_done(struct dcts *p)
{
    CHECK_EQ(p->j.different, 0);
    for (int i = 0; i < p->n; i++)
        decoder_free(p->decoders[i]);
    buf_done(&p->dct);
    jpegs_done(&p->j);
}

/* Decodes a crop of the DCT image with one of the decoders, into memory that other decoders may have used. */
static int decode_crop(struct dcts *p, int which, const struct head *h, const struct want *w, struct image *out)
{
    if (arena_reserve(&p->j.ours, decode_scratch(h, w)))
        return STK_ENOMEM;
    const int rc = decode_dct_pixels(p->decoders[which], p->dct.data, p->dct.len, h, w, &p->j.ours, out, NULL);
    CHECK(rc != STK_EBUG);
    return rc;
}

static void compare_crop(struct dcts *p, const uint8_t *bytes, size_t n, const struct rect *crop, const char *name)
{
    struct head h, of_dct;
    struct image theirs, ours;
    int warnings;
    CHECK_EQ(decode_head(bytes, n, &limits, &h, NULL), STK_OK);
    CHECK_EQ(decode_dct_head(p->dct.data, p->dct.len, &limits, &of_dct, NULL), STK_OK);
    CHECK(memcmp(&h, &of_dct, sizeof h) == 0);
    CHECK_EQ(jpegs_reference(&p->j, bytes, n, &h, crop, false, &theirs, &warnings, NULL), STK_OK);
    for (int i = 0; i < p->n; i++) {
        const int rc = decode_crop(p, i, &of_dct, &(struct want){.crop = *crop}, &ours);
        if (rc != STK_OK || !same_pixels(&ours, &theirs))
            jpegs_differ(&p->j, name, crop, rc == STK_OK ? "other pixels" : "not decoded");
    }
}

/* ------------------------------------------------------------------ back to JPEG */

/* The coefficients of a JPEG, as libjpeg reads them. */
struct coefs {
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr err;
    jvirt_barray_ptr *arrays;
};

static void coefs_read(struct coefs *k, const uint8_t *bytes, size_t n)
{
    k->c.err = jpeg_std_error(&k->err);
    jpeg_create_decompress(&k->c);
    jpeg_mem_src(&k->c, bytes, (unsigned long)n);
    jpeg_read_header(&k->c, TRUE);
    k->arrays = jpeg_read_coefficients(&k->c);
}

static bool same_component(struct coefs *a, struct coefs *b, int i)
{
    const jpeg_component_info *x = &a->c.comp_info[i], *y = &b->c.comp_info[i];
    bool same = x->width_in_blocks == y->width_in_blocks && x->height_in_blocks == y->height_in_blocks &&
                memcmp(x->quant_table->quantval, y->quant_table->quantval, sizeof x->quant_table->quantval) == 0;
    for (JDIMENSION row = 0; same && row < x->height_in_blocks; row++) {
        JBLOCKARRAY p = a->c.mem->access_virt_barray((j_common_ptr)&a->c, a->arrays[i], row, 1, FALSE);
        JBLOCKARRAY q = b->c.mem->access_virt_barray((j_common_ptr)&b->c, b->arrays[i], row, 1, FALSE);
        same = memcmp(p[0], q[0], x->width_in_blocks * sizeof(JBLOCK)) == 0;
    }
    return same;
}

static bool same_coefficients(const uint8_t *bytes, size_t n, const struct buf *jpeg)
{
    struct coefs a, b;
    coefs_read(&a, bytes, n);
    coefs_read(&b, jpeg->data, jpeg->len);
    bool same = a.c.image_width == b.c.image_width && a.c.image_height == b.c.image_height &&
                a.c.num_components == b.c.num_components && a.c.jpeg_color_space == b.c.jpeg_color_space;
    for (int i = 0; same && i < a.c.num_components; i++)
        same = same_component(&a, &b, i);
    jpeg_destroy_decompress(&a.c);
    jpeg_destroy_decompress(&b.c);
    return same;
}

/* The JPEG of a DCT image has the coefficients, the orientation and the pixels of the original. */
static void compare_jpeg(struct dcts *p, const uint8_t *bytes, size_t n, const struct head *h, const char *name)
{
    const struct rect all = {0, 0, head_width(h), head_height(h)};
    struct buf file = {0}, jpeg = {0};
    struct head back;
    struct image was, is;
    int warnings;
    CHECK(decode_to_dct_file(p->decoders[0], bytes, n, h, &file));
    CHECK_EQ(decode_dct_file_to_jpeg(file.data, file.len, &jpeg, NULL), STK_OK);
    CHECK_EQ(decode_head(jpeg.data, jpeg.len, &limits, &back, NULL), STK_OK);
    CHECK(back.format == STK_JPEG && !back.dct && back.orientation == h->orientation);
    if (!same_coefficients(bytes, n, &jpeg))
        jpegs_differ(&p->j, name, &all, "other coefficients in the JPEG");
    CHECK_EQ(jpegs_reference(&p->j, bytes, n, h, &all, true, &was, &warnings, NULL), STK_OK);
    const struct want w = {.crop = all, .whole = true};
    CHECK_EQ(arena_reserve(&p->j.ours, decode_scratch(&back, &w)), 0);
    CHECK_EQ(decode_pixels(p->decoders[0], jpeg.data, jpeg.len, &back, &w, &p->j.ours, &is, &warnings, NULL), STK_OK);
    if (warnings || !same_pixels(&was, &is))
        jpegs_differ(&p->j, name, &all, "other pixels in the JPEG");
    buf_done(&file);
    buf_done(&jpeg);
}

/* Compares the DCT image of a file, whole and in some crops. Returns false if the file has no DCT image. */
static bool compare(struct dcts *p, const uint8_t *bytes, size_t n, int crops, uint32_t *seed, const char *name)
{
    struct head h;
    p->files++;
    p->dct.len = 0;
    if (decode_head(bytes, n, &limits, &h, NULL) != STK_OK ||
        !decode_to_dct(p->decoders[p->n - 1], bytes, n, &h, &p->dct))
        return false;
    p->made++;
    p->file_bytes += (int64_t)n;
    p->dct_bytes += (int64_t)p->dct.len;
    const int32_t w = head_width(&h), rows = head_height(&h);
    compare_crop(p, bytes, n, &(struct rect){0, 0, w, rows}, name);
    for (int i = 0; i < crops; i++) {
        const struct rect crop = test_image_crop(w, rows, seed);
        compare_crop(p, bytes, n, &crop, name);
    }
    compare_jpeg(p, bytes, n, &h, name);
    return true;
}

static void made_ones(void)
{
    struct dcts p;
    uint32_t seed = 5;
    dcts_init(&p);
    for (int64_t i = 0; i < made_number(); i++) {
        const struct jpeg_spec s = jpeg_spec_random(&seed, 200);
        size_t n;
        unsigned char *bytes = jpeg_made(&s, &n);
        const bool usual = s.across != 2 || s.w > 4; /* libjpeg does not interpolate so few columns */
        CHECK_EQ(compare(&p, bytes, n, 6, &seed, "made"), usual);
        free(bytes);
    }
    dcts_done(&p);
}

/* Several scans: libjpeg reads the coefficients. */
static void progressive_ones(void)
{
    struct dcts p;
    uint32_t seed = 6;
    dcts_init(&p);
    for (int i = 0; i < 100; i++) {
        struct test_image made = test_image_make(5 + (int32_t)(noise(&seed) % 150), 1 + (int32_t)(noise(&seed) % 90),
                                                 i % 4 ? 3 : 1, noise(&seed));
        const struct image im = test_image_image(&made);
        const stk_encode_options o = {.format = STK_JPEG,
                                      .quality = 1 + (int)(noise(&seed) % 100),
                                      .progressive = 1,
                                      .subsample = (int)(noise(&seed) % 2)};
        void *bytes = NULL;
        size_t n = 0;
        CHECK_EQ(encode_pixels(&im, &o, &bytes, &n, NULL), STK_OK);
        CHECK(compare(&p, bytes, n, 6, &seed, "progressive"));
        /* Files without their end are smoothed by libjpeg, or damaged. */
        CHECK(!compare(&p, bytes, n / 2, 0, &seed, "cut"));
        free(bytes);
        test_image_done(&made);
    }
    dcts_done(&p);
}

static void damaged_ones_have_none(void)
{
    struct dcts p;
    uint32_t seed = 7;
    dcts_init(&p);
    const struct jpeg_spec s = {.w = 90, .h = 60, .across = 2, .down = 2, .quality = 80, .seed = 3};
    size_t n;
    unsigned char *bytes = jpeg_made(&s, &n);
    for (size_t k = 0; k < n - 2; k++)
        CHECK(!compare(&p, bytes, k, 0, &seed, "cut"));
    CHECK(compare(&p, bytes, n, 0, &seed, "whole"));
    free(bytes);
    dcts_done(&p);
}

/* If the buffer is too small, nothing is appended, and earlier content stays. */
static void memory_ends(void)
{
    struct dcts p;
    dcts_init(&p);
    const struct jpeg_spec s = {.w = 90, .h = 60, .across = 2, .down = 1, .quality = 80, .seed = 3};
    size_t n;
    unsigned char *bytes = jpeg_made(&s, &n);
    struct head h;
    CHECK_EQ(decode_head(bytes, n, &limits, &h, NULL), STK_OK);
    struct buf all = {0};
    CHECK(decode_to_dct(p.decoders[0], bytes, n, &h, &all));
    for (size_t max = 3; max < all.len + 3; max += 97) {
        struct buf b = {.max = max};
        CHECK_EQ(buf_add(&b, "old", 3), 0);
        CHECK(!decode_to_dct(p.decoders[0], bytes, n, &h, &b));
        CHECK_EQ(b.len, 3);
        buf_done(&b);
    }
    struct buf b = {.max = all.len + 3};
    CHECK_EQ(buf_add(&b, "old", 3), 0);
    CHECK(decode_to_dct(p.decoders[0], bytes, n, &h, &b));
    CHECK(b.len == all.len + 3 && memcmp(b.data, "old", 3) == 0 && memcmp(b.data + 3, all.data, all.len) == 0);
    buf_done(&b);
    buf_done(&all);
    free(bytes);
    dcts_done(&p);
}

/* A DCT image that is a file makes no checkpoints, allocates nothing on the heap, and does not pass lent checkpoints on
 * to the next image. */
static void dct_files(void)
{
    struct dcts p;
    dcts_init(&p);
    const struct jpeg_spec s = {.w = 90, .h = 60, .across = 2, .down = 2, .quality = 80, .seed = 5};
    size_t n, n_new;
    unsigned char *bytes = jpeg_made(&s, &n);
    struct decoder *d = p.decoders[0];
    struct head h, of_file;
    struct image im;
    int warnings;
    const struct want w = {.crop = {8, 8, 40, 30}};
    CHECK_EQ(decode_head(bytes, n, &limits, &h, NULL), STK_OK);
    CHECK(decode_to_dct_file(d, bytes, n, &h, &p.dct));
    CHECK_EQ(decode_head(p.dct.data, p.dct.len, &limits, &of_file, NULL), STK_OK);
    CHECK(of_file.dct && !h.dct && decode_foreign(&of_file, &w) == 0 && decode_foreign(&h, &w) > 0);
    CHECK(!decode_to_dct(d, p.dct.data, p.dct.len, &of_file, &p.dct));
    CHECK_EQ(arena_reserve(&p.j.ours, decode_scratch(&of_file, &w)), 0);
    decoder_lend_checkpoints(d, NULL, 0, false);
    CHECK_EQ(decode_pixels(d, p.dct.data, p.dct.len, &of_file, &w, &p.j.ours, &im, &warnings, NULL), STK_OK);
    CHECK(!decoder_new_checkpoints(d, &n_new));
    CHECK_EQ(arena_reserve(&p.j.ours, decode_scratch(&h, &w)), 0);
    CHECK_EQ(decode_pixels(d, bytes, n, &h, &w, &p.j.ours, &im, &warnings, NULL), STK_OK);
    CHECK(!decoder_new_checkpoints(d, &n_new));
    free(bytes);
    dcts_done(&p);
}

/* Decodes a changed DCT image in memory of exactly its size. Any result is fine, but nothing else may be touched. */
static void decode_broken(struct dcts *p, const uint8_t *bytes, size_t n)
{
    uint8_t *exact = malloc(n);
    memcpy(exact, bytes, n);
    for (int i = 0; i < p->n; i++) {
        struct head h;
        struct image im;
        if (decode_dct_head(exact, n, &limits, &h, NULL) != STK_OK)
            break;
        const struct want w = {.crop = {0, 0, head_width(&h), head_height(&h)}};
        if (w.crop.w > 1000 || arena_reserve(&p->j.ours, decode_scratch(&h, &w)))
            break;
        decode_dct_pixels(p->decoders[i], exact, n, &h, &w, &p->j.ours, &im, NULL);
    }
    struct buf file = {0}, jpeg = {0};
    CHECK(dct_image_begin_file(&file) == 0 && buf_add(&file, exact, n) == 0);
    dct_image_end_file(&file, 0);
    const int rc = decode_dct_file_to_jpeg(file.data, file.len, &jpeg, NULL);
    CHECK(rc == STK_EDATA || (rc == STK_OK && jpeg.len > 0));
    buf_done(&file);
    buf_done(&jpeg);
    free(exact);
}

static void broken_dct_images(void)
{
    struct dcts p;
    uint32_t seed = 8;
    dcts_init(&p);
    const struct jpeg_spec s = {.w = 150, .h = 40, .across = 2, .down = 2, .quality = 95, .seed = 4};
    size_t n;
    unsigned char *bytes = jpeg_made(&s, &n);
    CHECK(compare(&p, bytes, n, 0, &seed, "whole"));
    const size_t len = p.dct.len;
    for (size_t k = 0; k < len; k += k < 1000 ? 1 : 37)
        decode_broken(&p, p.dct.data, k);
    for (size_t k = 0; k < len; k += k < 1000 ? 1 : 7) { /* the head, the tables and the first chunks byte by byte */
        const uint8_t old = p.dct.data[k];
        static const uint8_t others[] = {0, 0xff, 0x80};
        for (int i = 0; i < 3; i++) {
            p.dct.data[k] = i == 2 ? old ^ 0x10 : others[i];
            decode_broken(&p, p.dct.data, len);
        }
        p.dct.data[k] = old;
    }
    for (int i = 0; i < 500; i++) { /* many at once, after the head */
        uint8_t *other = malloc(len);
        memcpy(other, p.dct.data, len);
        for (int k = 0; k < 100; k++)
            other[32 + noise(&seed) % (len - 32)] = (uint8_t)noise(&seed);
        decode_broken(&p, other, len);
        free(other);
    }
    free(bytes);
    dcts_done(&p);
}

struct visit {
    struct dcts p;
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
    dcts_init(&v.p);
    snprintf(folder, sizeof folder, "%s/%s", getenv("STOKER_TEST_DATA"), name);
    each_file(folder, 4, visit_file, &v);
    CHECK(v.p.made > 0);
    if (v.p.made > 0)
        printf("%s: %" PRId64 " DCT images, %.2f times the JPEGs' bytes\n", name, v.p.made,
               (double)v.p.dct_bytes / (double)v.p.file_bytes);
    dcts_done(&v.p);
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
    TESTS(T(made_ones), T(progressive_ones), T(damaged_ones_have_none), T(memory_ends), T(dct_files),
          T(broken_dct_images), T(photos), T(corpus))
}

#else
#include <stdio.h>

int main(void)
{
    printf("skipped: no JPEG in this build\n");
    return 77;
}

#endif
