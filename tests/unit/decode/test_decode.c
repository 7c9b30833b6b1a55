/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_decode.c -- what all formats have in common: error messages, limits, orientation, crops.
 */
#include "decode/decode.h"

#include "decode/orient.h"
#include "support/images.h"

static const stk_format formats[] = {STK_JPEG, STK_PNG, STK_WEBP};

/* The reason why a file of these bytes is refused. */
static const char *refusal(const void *bytes, size_t n, int64_t max_pixels, int code, stk_error *e)
{
    const struct decode_limits limits = {.max_pixels = max_pixels};
    struct head h;
    CHECK_EQ(decode_head(bytes, n, &limits, &h, e), code);
    CHECK_STR(e->stage, "decode");
    return e->reason;
}

static bool have(stk_format f)
{
    return decode_version(f) != NULL;
}

/* Makes an encoded image, which the caller frees. Returns false if the build lacks the codec. */
static bool encoded(stk_format f, int32_t w, int32_t h, void **out, size_t *n)
{
    struct test_image p = test_image_make(w, h, 3, 1);
    const struct image im = test_image_image(&p);
    const stk_encode_options o = {.format = f, .quality = 95, .lossless = 1};
    const int rc = have(f) ? encode_pixels(&im, &o, out, n, NULL) : STK_EBUILD;
    test_image_done(&p);
    return rc == STK_OK;
}

static void no_images(void)
{
    stk_error e;
    CHECK_STR(refusal("", 0, 0, STK_EDATA, &e), "is empty");
    CHECK_STR(refusal("<!DOCTYPE html><p>404", 21, 0, STK_EDATA, &e), "is HTML, not an image");
    CHECK_STR(refusal("GIF89a....", 10, 0, STK_EDATA, &e), "its format is GIF, not JPEG, PNG or WebP");
    CHECK_STR(refusal("%PDF-1.5", 8, 0, STK_EDATA, &e), "its format is PDF, not JPEG, PNG or WebP");
    CHECK_STR(refusal("ab", 2, 0, STK_EDATA, &e), "is not a JPEG, PNG or WebP image: it starts with 61 62");
    CHECK_STR(refusal("\0\0\0\0\0\0\0\0\0\0", 10, 0, STK_EDATA, &e),
              "is not a JPEG, PNG or WebP image: it starts with 00 00 00 00 00 00 00 00");
}

/* Damage often leaves a part of the signature intact. */
static void damaged_signatures(void)
{
    static const struct {
        const char *bytes, *words;
        size_t n;
    } cases[] = {
        {"\x89PNG\n\x1a\n\0\0\0\rIHDR",
         "damaged PNG: its first bytes are 89 50 4e 47 0a 1a 0a 00, not 89 50 4e 47 0d 0a 1a 0a; line endings were "
         "changed, as by a transfer in text mode",
         15},
        {"\x09PNG\r\n\x1a\n\0\0\0\rIHDR",
         "damaged PNG: its first bytes are 09 50 4e 47 0d 0a 1a 0a, not 89 50 4e 47 0d 0a 1a 0a", 16},
        {"\x89PNG", "the file ends after 4 bytes, inside the signature of a PNG", 4},
        {"\xff\xd8", "the file ends after 2 bytes, inside the signature of a JPEG", 2},
        {"\xff\xd8\0\x10JFIF", "damaged JPEG: its first bytes are ff d8 00, not ff d8 ff", 8},
        {"\0\xd8\xff\xe0\0\x10JFIF", "damaged JPEG: its first bytes are 00 d8 ff, not ff d8 ff", 10},
        {"\xff\xff\xff\xff", "is not a JPEG, PNG or WebP image: it starts with ff ff ff ff", 4},
        {"RIFF\4\0", "the file ends after 6 bytes, inside the signature of a WebP", 6},
        {"RIFX\4\0\0\0WEBPVP8 ", "damaged WebP: its first bytes are 52 49 46 58, not 52 49 46 46", 16},
        {"RIFF\4\0\0\0WEBPALPH", "damaged WebP: its first chunk is neither VP8, VP8L nor VP8X", 16},
        {"RIFF\4\0\0\0WAVEfmt ", "is a RIFF file, but not a WebP image", 16},
    };
    stk_error e;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_STR(refusal(cases[i].bytes, cases[i].n, 0, STK_EDATA, &e), cases[i].words);
}

static void too_large(void)
{
    /* SOI, SOF0 of 60000 x 60000 with three components, SOS */
    static const uint8_t huge[] = {0xff, 0xd8, 0xff, 0xc0, 0,    17, 8, 0xea, 0x60, 0xea, 0x60, 3,
                                   1,    0x11, 0,    2,    0x11, 0,  3, 0x11, 0,    0xff, 0xda, 0,
                                   12,   3,    1,    0,    2,    0,  3, 0,    0,    63,   0};
    stk_error e;
    if (have(STK_JPEG)) {
        CHECK_STR(refusal(huge, sizeof huge, 256000000, STK_EDATA, &e),
                  "60000x60000 is 3600 million pixels, over the limit of 256 million; raise max_pixels");
        const struct decode_limits none = {0};
        struct head h;
        CHECK_EQ(decode_head(huge, sizeof huge, &none, &h, &e), STK_OK);
        CHECK_STR(refusal(huge, sizeof huge, 1000, STK_EDATA, &e),
                  "60000x60000 is 3600 million pixels, over the limit of 1000; raise max_pixels");
    }
    void *p;
    size_t n;
    for (int i = 0; i < 3; i++)
        if (encoded(formats[i], 40, 30, &p, &n)) {
            CHECK_STR(refusal(p, n, 1199, STK_EDATA, &e),
                      "40x30 is 1200 pixels, over the limit of 1199; raise max_pixels");
            const struct decode_limits limits = {.max_pixels = 1200};
            struct head h;
            CHECK_EQ(decode_head(p, n, &limits, &h, NULL), STK_OK);
            CHECK(h.format == formats[i] && h.w == 40 && h.h == 30 && h.channels == 3 && h.bits == 8 &&
                  h.orientation == 1 && (h.odd & ((1u << STK_N_ODDITIES) - 1)) == 0);
            free(p);
        }
}

static void absent_codecs(void)
{
    static const char *const starts[] = {"\xff\xd8\xff\xe0    ", "\x89PNG\r\n\x1a\n"};
    stk_error e;
    for (int i = 0; i < 2; i++)
        if (!have(formats[i]))
            refusal(starts[i], 8, 0, STK_EBUILD, &e);
    if (!have(STK_WEBP))
        refusal("RIFF\4\0\0\0WEBPVP8 ", 16, 0, STK_EBUILD, &e);
    CHECK_STR(format_name(STK_JPEG), "JPEG");
    CHECK_STR(format_name(STK_FORMAT_UNKNOWN), "unknown");
    CHECK(decode_version(STK_FORMAT_UNKNOWN) == NULL);
}

static void crops_of_every_format(void)
{
    static const int32_t sizes[][2] = {{1, 1}, {7, 3}, {16, 16}, {17, 33}, {97, 61}, {200, 150}};
    for (int i = 0; i < 3; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            void *p;
            size_t n;
            if (encoded(formats[i], sizes[k][0], sizes[k][1], &p, &n)) {
                CHECK_EQ(test_image_crops(p, n, 60, (uint32_t)k, format_name(formats[i])), 0);
                free(p);
            }
        }
}

static void lossless_ones_come_back(void)
{
    for (int i = 1; i < 3; i++)
        for (int channels = 1; channels <= 3; channels += 2) {
            struct test_image p = test_image_make(53, 31, channels, 5), q;
            const struct image im = test_image_image(&p);
            const stk_encode_options o = {.format = formats[i], .lossless = 1};
            void *bytes;
            size_t n;
            int warnings = 0, wrong = 0;
            if (have(formats[i]) && encode_pixels(&im, &o, &bytes, &n, NULL) == STK_OK) {
                const struct want all = {.whole = true};
                CHECK_EQ(test_image_decode(bytes, n, &all, false, &q, &warnings, NULL), STK_OK);
                for (int k = 0; q.px && k < 53 * 31 * 3; k++)
                    wrong += q.px[k] != p.px[channels == 1 ? k / 3 : k];
                CHECK_EQ(wrong, 0);
                CHECK_EQ(warnings, 0);
                test_image_done(&q);
                free(bytes);
            }
            test_image_done(&p);
        }
}

/* Adds an EXIF block with orientation o after the first two bytes of a JPEG. */
static uint8_t *with_orientation(const uint8_t *jpeg, size_t n, int o, size_t *out)
{
    const uint8_t app1[] = {0xff, 0xe1, 0, 34,   'E', 'x', 'i', 'f', 0, 0, 'M', 'M',        0, 42, 0, 0, 0, 8,
                            0,    1,    1, 0x12, 0,   3,   0,   0,   0, 1, 0,   (uint8_t)o, 0, 0,  0, 0, 0, 0};
    uint8_t *p = malloc(n + sizeof app1);
    memcpy(p, jpeg, 2);
    memcpy(p + 2, app1, sizeof app1);
    memcpy(p + 2 + sizeof app1, jpeg + 2, n - 2);
    *out = n + sizeof app1;
    return p;
}

static void orientation(void)
{
    void *jpeg;
    size_t n, m;
    if (!encoded(STK_JPEG, 75, 50, &jpeg, &n))
        SKIP("no JPEG in this build");
    const struct want all = {0};
    struct test_image stored, upright;
    int warnings;
    CHECK_EQ(test_image_decode(jpeg, n, &all, false, &stored, &warnings, NULL), STK_OK);
    const struct image im = test_image_image(&stored);
    uint8_t *expected = malloc(75 * 50 * 3);
    for (int o = 1; o <= 8; o++) {
        uint8_t *p = with_orientation(jpeg, n, o, &m);
        CHECK_EQ(test_image_decode(p, m, &all, false, &upright, &warnings, NULL), STK_OK);
        CHECK_EQ(upright.w, o > 4 ? 50 : 75);
        orient_pixels(o, &im, expected);
        CHECK(memcmp(expected, upright.px, 75 * 50 * 3) == 0);
        test_image_done(&upright);
        CHECK_EQ(test_image_crops(p, m, 100, (uint32_t)o, "orientation"), 0);
        CHECK_EQ(test_image_decode(p, m, &all, true, &upright, &warnings, NULL), STK_OK);
        CHECK(upright.w == 75 && memcmp(stored.px, upright.px, 75 * 50 * 3) == 0);
        test_image_done(&upright);
        const struct decode_limits limits = {.no_exif = true};
        struct head h;
        CHECK_EQ(decode_head(p, m, &limits, &h, NULL), STK_OK);
        CHECK(h.orientation == 1 && (h.odd & STK_ODD_ROTATED) == (o > 1 ? STK_ODD_ROTATED : 0u));
        free(p);
    }
    free(expected);
    test_image_done(&stored);
    free(jpeg);
}

/* A file that is cut at any byte, or has any byte changed, is refused or decoded. If a cut file is decoded, its pixels
 * are the same. */
static void damage(void)
{
    for (int i = 0; i < 3; i++) {
        void *p;
        size_t n;
        if (!encoded(formats[i], 19, 21, &p, &n))
            continue;
        struct test_image whole, part;
        const struct want all = {.whole = true};
        int warnings, wrong = 0, refused = 0;
        CHECK_EQ(test_image_decode(p, n, &all, false, &whole, &warnings, NULL), STK_OK);
        for (size_t k = 0; k < n; k++) {
            uint8_t *cut = malloc(k ? k : 1);
            memcpy(cut, p, k);
            stk_error e = {0};
            if (test_image_decode(cut, k, &all, false, &part, &warnings, &e) != STK_OK)
                refused += e.code == STK_EDATA && e.reason[0];
            else
                wrong += memcmp(whole.px, part.px, 19 * 21 * 3) != 0;
            test_image_done(&part);
            free(cut);
        }
        CHECK_EQ(wrong, 0);
        CHECK((size_t)refused >
              n - 24); /* a PNG may lack the checksum of its stream, that of its last chunk, and IEND */
        for (size_t k = 0; k < n; k++) {
            ((uint8_t *)p)[k] ^= 0xff;
            test_image_decode(p, n, &all, false, &part, &warnings, NULL);
            test_image_done(&part);
            ((uint8_t *)p)[k] ^= 0xff;
        }
        test_image_done(&whole);
        free(p);
    }
}

static void absurd_crops(void)
{
    void *p;
    size_t n;
    if (!encoded(STK_PNG, 20, 10, &p, &n))
        SKIP("no PNG in this build");
    static const struct rect wrong[] = {{0, 0, 0, 0},
                                        {0, 0, 21, 10},
                                        {-1, 0, 5, 5},
                                        {0, 9, 1, 2},
                                        {0, 0, -1, 5},
                                        {20, 0, 1, 1},
                                        {INT32_MAX, 0, INT32_MAX, 1}};
    const struct decode_limits limits = {0};
    struct head h;
    struct decoder *d;
    struct arena a = {0};
    struct image im;
    stk_error e;
    int warnings;
    CHECK_EQ(decode_head(p, n, &limits, &h, NULL), STK_OK);
    CHECK_EQ(decoder_new(&d, STK_CPU_DEFAULT, NULL), STK_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct want w = {.crop = wrong[i]};
        CHECK_EQ(decode_scratch(&h, &w), 0);
        CHECK_EQ(decode_pixels(d, p, n, &h, &w, &a, &im, &warnings, &e), STK_EBUG);
    }
    const struct want w = {.crop = {0, 0, 20, 10}};
    CHECK_EQ(decode_pixels(d, p, n, &h, &w, &a, &im, &warnings, &e), STK_EBUG); /* an arena without memory */
    decoder_free(d);
    decoder_free(NULL);
    free(p);
}

static void encoding_errors(void)
{
    uint8_t px[12] = {0};
    const struct image im = {px, 6, 2, 2, 3}, four = {px, 8, 2, 2, 4}, none = {px, 0, 0, 2, 3};
    stk_encode_options o = {0};
    stk_error e;
    void *out;
    size_t n;
    CHECK_EQ(encode_pixels(&im, &o, &out, &n, &e), STK_EUSAGE);
    o.format = (stk_format)17;
    CHECK_EQ(encode_pixels(&im, &o, &out, &n, &e), STK_EUSAGE);
    for (int i = 0; i < 3; i++) {
        o = (stk_encode_options){.format = formats[i]};
        CHECK_EQ(encode_pixels(&four, &o, &out, &n, &e), have(formats[i]) ? STK_EUSAGE : STK_EBUILD);
        CHECK_EQ(encode_pixels(&none, &o, &out, &n, &e), have(formats[i]) ? STK_EUSAGE : STK_EBUILD);
        o.quality = 101;
        CHECK_EQ(encode_pixels(&im, &o, &out, &n, &e), have(formats[i]) ? STK_EUSAGE : STK_EBUILD);
    }
}

int main(int argc, char **argv)
{
    TESTS(T(no_images), T(damaged_signatures), T(too_large), T(absent_codecs), T(crops_of_every_format),
          T(lossless_ones_come_back), T(orientation), T(damage), T(absurd_crops), T(encoding_errors))
}
