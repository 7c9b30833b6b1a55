/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_decode_jpeg.c -- JPEGs of every kind, made here by libjpeg: crops, colours, damage, heads.
 * Covers decode_jpeg.c, jpeg_turbo.c and jpeg_head.c.
 */
#include "support/images.h"

#ifdef HAVE_JPEG

#include <jpeglib.h>

#include "decode/jpeg_head.h"

enum kind { PLAIN, PROGRESSIVE = 1, ARITHMETIC = 2, NONINTERLEAVED = 4, RESTARTS = 8 };

struct spec {
    int h, v; /* sampling of the first component; the others have 1x1 */
    int channels;
    J_COLOR_SPACE space;
    int kind;
};

static const jpeg_scan_info apart[] = {
    {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}, {1, {3}, 0, 63, 0, 0}};

static void make(const struct test_image *p, const struct spec *s, unsigned char **out, unsigned long *n)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr err;
    *out = NULL;
    c.err = jpeg_std_error(&err);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, out, n);
    c.image_width = (JDIMENSION)p->w;
    c.image_height = (JDIMENSION)p->h;
    c.input_components = p->channels;
    c.in_color_space = p->channels == 1 ? JCS_GRAYSCALE : p->channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c);
    jpeg_set_colorspace(&c, s->space);
    jpeg_set_quality(&c, 85, TRUE);
    for (int i = 0; i < p->channels; i++) {
        const int full = i == 0 || i == 3;
        c.comp_info[i].h_samp_factor = full ? s->h : 1;
        c.comp_info[i].v_samp_factor = full ? s->v : 1;
    }
    if (s->kind & PROGRESSIVE)
        jpeg_simple_progression(&c);
    if (s->kind & NONINTERLEAVED) {
        c.scan_info = apart;
        c.num_scans = p->channels;
    }
    c.arith_code = (s->kind & ARITHMETIC) != 0;
    if (s->kind & RESTARTS)
        c.restart_interval = 3;
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = p->px + (size_t)c.next_scanline * (size_t)p->w * (size_t)p->channels;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
}

static const struct spec specs[] = {
    {1, 1, 3, JCS_YCbCr, PLAIN},
    {2, 2, 3, JCS_YCbCr, PLAIN},
    {2, 1, 3, JCS_YCbCr, PLAIN},
    {1, 2, 3, JCS_YCbCr, PLAIN},
    {4, 1, 3, JCS_YCbCr, PLAIN},
    {1, 4, 3, JCS_YCbCr, PLAIN},
    {4, 2, 3, JCS_YCbCr, PLAIN},
    {3, 1, 3, JCS_YCbCr, PLAIN},
    {1, 1, 3, JCS_RGB, PLAIN},
    {1, 1, 1, JCS_GRAYSCALE, PLAIN},
    {2, 2, 1, JCS_GRAYSCALE, PLAIN},
    {1, 1, 4, JCS_CMYK, PLAIN},
    {1, 1, 4, JCS_YCCK, PLAIN},
    {2, 2, 4, JCS_YCCK, PLAIN},
    {2, 2, 3, JCS_YCbCr, RESTARTS},
    {2, 2, 3, JCS_YCbCr, PROGRESSIVE},
    {1, 1, 3, JCS_YCbCr, PROGRESSIVE},
    {2, 1, 3, JCS_YCbCr, PROGRESSIVE | RESTARTS},
    {2, 2, 3, JCS_YCbCr, NONINTERLEAVED},
    {2, 2, 3, JCS_YCbCr, ARITHMETIC},
    {1, 1, 3, JCS_YCbCr, ARITHMETIC | RESTARTS},
    {2, 2, 3, JCS_YCbCr, ARITHMETIC | PROGRESSIVE},
};
enum { N_SPECS = sizeof specs / sizeof specs[0] };

static void crops(void)
{
    static const int32_t sizes[][2] = {{1, 1}, {3, 50}, {33, 17}, {64, 64}, {131, 90}, {300, 200}};
    for (size_t i = 0; i < N_SPECS; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            struct test_image p = test_image_make(sizes[k][0], sizes[k][1], specs[i].channels, (uint32_t)i);
            unsigned char *bytes;
            unsigned long n;
            char name[32];
            make(&p, &specs[i], &bytes, &n);
            snprintf(name, sizeof name, "spec %zu", i);
            CHECK_EQ(test_image_crops(bytes, n, 80, (uint32_t)(i * 7 + k), name), 0);
            free(bytes);
            test_image_done(&p);
        }
}

static void heads(void)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        struct test_image p = test_image_make(37, 23, specs[i].channels, 3);
        unsigned char *bytes;
        unsigned long n;
        make(&p, &specs[i], &bytes, &n);
        const struct decode_limits limits = {0};
        struct head h;
        CHECK_EQ(decode_head(bytes, n, &limits, &h, NULL), STK_OK);
        CHECK(h.format == STK_JPEG && h.w == 37 && h.h == 23 && h.bits == 8 && h.channels == specs[i].channels);
        CHECK_EQ(!!(h.odd & STK_ODD_PROGRESSIVE), !!(specs[i].kind & PROGRESSIVE));
        CHECK_EQ(!!(h.odd & STK_ODD_ARITHMETIC), !!(specs[i].kind & ARITHMETIC));
        CHECK_EQ(!!(h.odd & STK_ODD_GREY), specs[i].channels == 1);
        CHECK_EQ(!!(h.odd & STK_ODD_CMYK), specs[i].channels == 4);
        CHECK(!(h.odd & (STK_ODD_ROTATED | STK_ODD_ICC | STK_ODD_LOSSLESS | STK_ODD_DEEP)));
        free(bytes);
        test_image_done(&p);
    }
}

/* Inks are inverted, as Adobe writes them: 255 in all channels is white. */
static void inks(void)
{
    static const uint8_t cases[][7] = {{255, 255, 255, 255, 255, 255, 255},
                                       {255, 255, 255, 0, 0, 0, 0},
                                       {0, 255, 255, 255, 0, 255, 255},
                                       {255, 0, 0, 128, 128, 0, 0}};
    for (size_t i = 0; i < 4; i++) {
        struct test_image p = test_image_make(16, 16, 4, 0), q;
        for (int k = 0; k < 16 * 16; k++)
            memcpy(p.px + (size_t)k * 4, cases[i], 4);
        const struct spec s = {1, 1, 4, JCS_CMYK, PLAIN};
        unsigned char *bytes;
        unsigned long n;
        make(&p, &s, &bytes, &n);
        const struct want all = {0};
        int warnings;
        CHECK_EQ(test_image_decode(bytes, n, &all, false, &q, &warnings, NULL), STK_OK);
        for (int c = 0; q.px && c < 3; c++)
            CHECK(abs(q.px[c] - cases[i][4 + c]) <= 2);
        test_image_done(&q);
        test_image_done(&p);
        free(bytes);
    }
}

static int decode_all(const uint8_t *bytes, size_t n, bool whole, int *warnings, stk_error *e)
{
    struct test_image q;
    const struct want all = {.whole = whole};
    const int rc = test_image_decode(bytes, n, &all, false, &q, warnings, e);
    test_image_done(&q);
    return rc;
}

static void ends_too_early(void)
{
    struct test_image p = test_image_make(200, 200, 3, 9), q;
    unsigned char *bytes;
    unsigned long n;
    make(&p, &specs[0], &bytes, &n);
    stk_error e;
    int warnings;
    CHECK_EQ(decode_all(bytes, n / 2, false, &warnings, &e), STK_EDATA);
    CHECK(strstr(e.reason, "the file ends after") && strstr(e.reason, "before its last row"));
    CHECK_EQ(decode_all(bytes, 100, false, &warnings, &e), STK_EDATA);
    CHECK_STR(e.reason, "the file ends after 100 bytes, inside its header");
    const struct want top = {.crop = {10, 10, 100, 30}};
    CHECK_EQ(test_image_decode(bytes, n / 2, &top, false, &q, &warnings, NULL),
             STK_OK); /* the bytes that it needs are present */
    test_image_done(&q);
    CHECK_EQ(decode_all(bytes, n, true, &warnings, &e), STK_OK);
    CHECK_EQ(warnings, 0);
    uint8_t *endless = calloc(1, n + 16);
    memcpy(endless, bytes, n - 2);
    CHECK_EQ(decode_all(endless, n + 16, true, &warnings, &e), STK_OK); /* only EOI is missing */
    CHECK(warnings > 0);
    free(endless);
    free(bytes);
    test_image_done(&p);
}

/* Tables of one image must not help the next one, which lacks its own. */
static void tables_do_not_leak(void)
{
    struct test_image p = test_image_make(32, 32, 3, 9);
    unsigned char *bytes;
    unsigned long n;
    make(&p, &specs[0], &bytes, &n);
    uint8_t *bare = malloc(n);
    size_t m = 2;
    memcpy(bare, bytes, 2);
    for (size_t at = 2; at + 4 < n;) {
        const size_t len = (size_t)bytes[at + 2] << 8 | bytes[at + 3];
        const bool last = bytes[at + 1] == 0xda;
        const size_t take = last ? n - at : len + 2;
        if (bytes[at + 1] != 0xdb) {
            memcpy(bare + m, bytes + at, take);
            m += take;
        }
        at += take;
    }
    const struct decode_limits limits = {0};
    const struct want w = {.crop = {0, 0, 32, 32}};
    struct decoder *d;
    struct arena a = {0};
    struct image im;
    struct head h;
    stk_error e;
    int warnings;
    CHECK_EQ(decoder_new(&d, STK_CPU_DEFAULT, NULL), STK_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(decode_head(bytes, n, &limits, &h, NULL), STK_OK);
        CHECK_EQ(arena_reserve(&a, decode_scratch(&h, &w)), 0);
        CHECK_EQ(decode_pixels(d, bytes, n, &h, &w, &a, &im, &warnings, NULL), STK_OK);
        CHECK_EQ(decode_head(bare, m, &limits, &h, NULL), STK_OK);
        CHECK_EQ(arena_reserve(&a, decode_scratch(&h, &w)), 0);
        CHECK_EQ(decode_pixels(d, bare, m, &h, &w, &a, &im, &warnings, &e), STK_EDATA);
        CHECK(strstr(e.reason, "broken JPEG: ") != NULL);
    }
    decoder_free(d);
    arena_done(&a);
    free(bare);
    free(bytes);
    test_image_done(&p);
}

/* Thousands of empty scans of a large image. */
static uint8_t *make_scan_bomb(int scans, size_t *out)
{
    static const uint8_t frame[] = {0xff, 0xd8, 0xff, 0xc2, 0, 11, 8, 0x0f, 0xa0, 0x0f, 0xa0, 1, 1, 0x11, 0};
    static const uint8_t codes[] = {0xff, 0xc4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t scan[] = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0};
    static const uint8_t steps[] = {0xff, 0xdb, 0, 67, 0};
    struct buf b = {0};
    buf_add(&b, frame, sizeof frame);
    buf_add(&b, steps, sizeof steps);
    for (int i = 0; i < 64; i++)
        buf_add(&b, "\1", 1);
    buf_add(&b, codes, sizeof codes);
    for (int i = 0; i < scans; i++)
        buf_add(&b, scan, sizeof scan);
    buf_add(&b, "\xff\xd9", 2);
    *out = b.len;
    return b.data;
}

static void scan_bomb(void)
{
    size_t n;
    uint8_t *p = make_scan_bomb(5000, &n);
    const struct decode_limits limits = {0};
    const struct want w = {.crop = {0, 0, 8, 8}};
    struct decoder *d;
    struct arena a = {0};
    struct image im;
    struct head h;
    stk_error e = {0};
    int warnings;
    CHECK_EQ(decode_head(p, n, &limits, &h, &e), STK_OK);
    CHECK(decode_foreign(&h, &w) > (size_t)4000 * 4000 * 2);
    CHECK_EQ(decoder_new(&d, STK_CPU_DEFAULT, NULL), STK_OK);
    CHECK_EQ(arena_reserve(&a, decode_scratch(&h, &w)), 0);
    CHECK_EQ(decode_pixels(d, p, n, &h, &w, &a, &im, &warnings, &e), STK_EDATA);
    CHECK(strstr(e.reason, "scans") != NULL);
    decoder_free(d);
    arena_done(&a);
    free(p);
}

static void unsupported(void)
{
    struct test_image p = test_image_make(16, 16, 3, 1);
    unsigned char *bytes;
    unsigned long n;
    make(&p, &specs[0], &bytes, &n);
    uint8_t *sof = NULL;
    for (size_t i = 0; i + 10 < n && !sof; i++)
        if (bytes[i] == 0xff && bytes[i + 1] == 0xc0)
            sof = bytes + i;
    stk_error e;
    int warnings;
    sof[4] = 12;
    CHECK_EQ(decode_all(bytes, n, false, &warnings, &e), STK_EDATA);
    CHECK_STR(e.reason, "is a JPEG with 12 bits per sample; only 8 are supported");
    sof[4] = 8;
    sof[9] = 2;
    CHECK_EQ(decode_all(bytes, n, false, &warnings, &e), STK_EDATA);
    CHECK_STR(e.reason, "is a JPEG with 2 components; only 1 (grey), 3 (colour) and 4 (CMYK) are supported");
    sof[9] = 3;
    sof[5] = sof[6] = 0;
    CHECK_EQ(decode_all(bytes, n, false, &warnings, &e), STK_EDATA);
    CHECK_STR(e.reason, "has no pixels (16 x 0)");
    free(bytes);
    test_image_done(&p);
}

/* Two by two samples, each predicted from its left neighbour: 128, +1; -1, 0. */
static void lossless_grey(void)
{
    static const uint8_t file[] = {
        0xff, 0xd8, 0xff, 0xc3, 0, 11, 8, 0, 2, 0, 2,    1,    1,    0x11, 0, /* frame */
        0xff, 0xc4, 0,    21,   0, 0,  2, 0, 0, 0, 0,    0,    0,    0,    0,
        0,    0,    0,    0,    0, 0,  0, 1, /* codes: 00 is a difference of 0, 01 is followed by one bit */
        0xff, 0xda, 0,    8,    1, 1,  0, 1, 0, 0, 0x1a, 0x3f, 0xff, 0xd9,
    };
    static const uint8_t right[] = {128, 128, 128, 129, 129, 129, 127, 127, 127, 127, 127, 127};
    const struct want all = {.crop = {0, 0, 2, 2}, .whole = true};
    struct test_image p;
    int warnings = 0;
    CHECK_EQ(test_image_decode(file, sizeof file, &all, false, &p, &warnings, NULL), STK_OK);
    CHECK(memcmp(p.px, right, sizeof right) == 0);
    test_image_done(&p);
    test_image_crops(file, sizeof file, 4, 1, "lossless");
    for (size_t n = 0; n < sizeof file - 2; n++) /* cut anywhere */
        CHECK(test_image_decode(file, n, &all, false, &p, &warnings, NULL) != STK_OK);
}

/* Separate memory, so that the sanitizers report reads past the end. */
static int decode_followed_by(const uint8_t *file, size_t n, const char *tail, size_t n_tail)
{
    const struct want all = {.crop = {0, 0, 2, 2}, .whole = true};
    struct test_image p;
    int warnings = 0;
    uint8_t *bytes = malloc(n + n_tail);
    memcpy(bytes, file, n);
    memcpy(bytes + n, tail, n_tail);
    const int rc = test_image_decode(bytes, n + n_tail, &all, false, &p, &warnings, NULL);
    test_image_done(&p);
    free(bytes);
    return rc;
}

/* All pixels are present. As in Pillow, a known marker that is cut off counts as the end of the file. */
static void lossless_ends_inside_a_marker(void)
{
    static const uint8_t file[] = {
        0xff, 0xd8, 0xff, 0xc3, 0,    11,   8, 0, 2, 0, 2, 1, 1, 0x11, 0,                   /* frame */
        0xff, 0xc4, 0,    21,   0,    0,    2, 0, 0, 0, 0, 0, 0, 0,    0,    0,    0, 0, 0, /* codes */
        0,    0,    0,    1,    0xff, 0xda, 0, 8, 1, 1, 0, 1, 0, 0,    0x1a, 0x3f,
    };
    static const uint8_t known[] = {0x01, 0xc4, 0xd0, 0xd7, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xe0, 0xe1, 0xee, 0xef, 0xfe};
    static const uint8_t unknown[] = {0x02, 0xc0, 0xc3, 0xd8, 0xde, 0xf0, 0xfd};
    for (size_t i = 0; i < sizeof known; i++)
        for (size_t n = 2; n <= 3; n++)
            CHECK_EQ(decode_followed_by(file, sizeof file, (char[]){'\xff', (char)known[i], 0}, n), STK_OK);
    for (size_t i = 0; i < sizeof unknown; i++)
        for (size_t n = 2; n <= 3; n++)
            CHECK_EQ(decode_followed_by(file, sizeof file, (char[]){'\xff', (char)unknown[i], 0}, n), STK_EDATA);
    CHECK_EQ(decode_followed_by(file, sizeof file, "\xff\xfe\0\x20", 4), STK_OK);
    CHECK_EQ(decode_followed_by(file, sizeof file, "\xff\xfe\0\x20", 5), STK_OK);
    CHECK_EQ(decode_followed_by(file, sizeof file, "\xff\xfe\0\0", 4), STK_OK);
    CHECK_EQ(decode_followed_by(file, sizeof file, "\xff\xdd\0\0", 4), STK_EDATA);
}

/* One pixel of three samples. The first table has only the code 0, the other one 00, 01 and 10: a bit 1 is not a code
 * of the first component, but starts a valid one of the two after it. */
static void lossless_bad_code(void)
{
    enum { DATA_BYTES = 32 };
    static const uint8_t head[] = {
        0xff, 0xd8, 0xff, 0xc3, 0, 17, 8, 0, 1,    0, 1,    3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0,          /* frame */
        0xff, 0xc4, 0,    20,   0, 1,  0, 0, 0,    0, 0,    0, 0, 0,    0, 0, 0,    0, 0, 0,    0, 0,       /* codes */
        0xff, 0xc4, 0,    22,   1, 0,  3, 0, 0,    0, 0,    0, 0, 0,    0, 0, 0,    0, 0, 0,    0, 0, 0, 0, /* codes */
        0xff, 0xda, 0,    12,   3, 1,  0, 2, 0x10, 3, 0x10, 1, 0, 0,                                        /* scan */
    };
    const struct want all = {.crop = {0, 0, 1, 1}, .whole = true};
    uint8_t file[sizeof head + DATA_BYTES] = {0};
    struct test_image p;
    int warnings = 0;
    memcpy(file, head, sizeof head);
    CHECK_EQ(test_image_decode(file, sizeof file, &all, false, &p, &warnings, NULL), STK_OK);
    test_image_done(&p);
    file[sizeof head] = 0x80;
    CHECK_EQ(test_image_decode(file, sizeof file, &all, false, &p, &warnings, NULL), STK_EDATA);
    test_image_done(&p);
}

/* The code that consists only of ones is reserved: libjpeg refuses a table that uses it. */
static void lossless_code_of_ones(void)
{
    static const uint8_t file[] = {
        0xff, 0xd8, 0xff, 0xc3, 0,    11,   8, 0, 2, 0, 2, 1, 1, 0x11, 0,                      /* frame */
        0xff, 0xc4, 0,    21,   0,    2,    0, 0, 0, 0, 0, 0, 0, 0,    0,    0,    0,    0, 0, /* codes: 0 and 1 */
        0,    0,    0,    1,    0xff, 0xda, 0, 8, 1, 1, 0, 1, 0, 0,    0x73, 0xff, 0xd9,
    };
    CHECK_EQ(decode_followed_by(file, sizeof file, "", 0), STK_EDATA);
}

/* libjpeg accepts garbage and fill bytes between markers. */
static void rubbish_in_the_head(void)
{
    struct test_image p = test_image_make(16, 16, 3, 1);
    unsigned char *bytes;
    unsigned long n;
    make(&p, &specs[0], &bytes, &n);
    uint8_t *q = malloc(n + 8);
    memcpy(q, bytes, 2);
    memcpy(q + 2, "\xff\x00\x12\x34\xff\xff\xff", 7);
    memcpy(q + 9, bytes + 2, n - 2);
    stk_error e;
    int warnings;
    CHECK_EQ(decode_all(q, n + 7, true, &warnings, &e), STK_OK);
    CHECK(warnings > 0);
    free(q);
    free(bytes);
    test_image_done(&p);
}

static void one_photo(const char *path, struct buf *b, void *user)
{
    int *count = user;
    if ((*count)++ % 8 == 0)
        CHECK_EQ(test_image_crops(b->data, b->len, 12, (uint32_t)*count, path), 0);
}

static void crops_of_photos(void)
{
    const char *data = getenv("STOKER_TEST_DATA");
    if (!data)
        SKIP("STOKER_TEST_DATA is not set");
    char folder[4096];
    int count = 0;
    snprintf(folder, sizeof folder, "%s/photos", data);
    each_file(folder, 2, one_photo, &count);
    CHECK(count > 0);
}

/* Rewrites an image of several scans in one scan: coefficients, markers and pixels are the same. Other images are
 * refused. */
static void one_scan(void)
{
    struct decoder *d = NULL;
    CHECK_EQ(decoder_new(&d, STK_CPU_DEFAULT, NULL), STK_OK);
    for (int channels = 1; channels <= 3; channels += 2)
        for (int subsample = 0; subsample < 2; subsample++) {
            struct test_image p = test_image_make(123, 77, channels, 5);
            const struct image im = {
                .px = p.px, .stride = (size_t)(p.w * channels), .w = p.w, .h = p.h, .channels = channels};
            void *bytes = NULL, *plain = NULL;
            size_t n = 0, n_plain = 0;
            const stk_encode_options o = {.format = STK_JPEG, .progressive = 1, .subsample = subsample};
            const stk_encode_options one = {.format = STK_JPEG, .subsample = subsample};
            CHECK_EQ(encode_pixels(&im, &o, &bytes, &n, NULL), STK_OK);
            CHECK_EQ(encode_pixels(&im, &one, &plain, &n_plain, NULL), STK_OK);
            struct head h;
            struct buf out = {0};
            CHECK_EQ(decode_head(bytes, n, &(struct decode_limits){0}, &h, NULL), STK_OK);
            CHECK(h.odd & STK_ODD_PROGRESSIVE);
            CHECK(decode_rewrite(d, bytes, n, &h, &out));
            CHECK(out.len == n_plain && memcmp(out.data, plain, n_plain) == 0);
            out.len = 0;
            for (size_t cut = 0; cut < n; cut += cut < 700 ? 1 : 97) /* damaged: either no result or a correct one */
                if (decode_rewrite(d, bytes, cut, &h, &out))
                    CHECK(out.len > 0);
            CHECK_EQ(decode_head(plain, n_plain, &(struct decode_limits){0}, &h, NULL), STK_OK);
            CHECK(!decode_rewrite(d, plain, n_plain, &h, &out));
            buf_done(&out);
            free(bytes);
            free(plain);
            test_image_done(&p);
        }
    decoder_free(d);
}

int main(int argc, char **argv)
{
    TESTS(T(crops), T(heads), T(inks), T(ends_too_early), T(tables_do_not_leak), T(scan_bomb), T(unsupported),
          T(lossless_grey), T(lossless_ends_inside_a_marker), T(lossless_bad_code), T(lossless_code_of_ones),
          T(rubbish_in_the_head), T(crops_of_photos), T(one_scan))
}

#else

int main(void)
{
    printf("skipped: no JPEG in this build\n");
    return 77;
}

#endif
