/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_decode_webp.c -- lossy and lossless WebP, with metadata and animated, assembled by hand.
 */
#include "support/images.h"

static void put_le(struct buf *b, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        const uint8_t byte = (uint8_t)(v >> 8 * i);
        buf_add(b, &byte, 1);
    }
}

static void chunk(struct buf *b, const char *name, const void *data, size_t n)
{
    buf_add(b, name, 4);
    put_le(b, (uint32_t)n, 4);
    buf_add(b, data, n);
    if (n % 2)
        buf_add(b, "", 1);
}

/* The chunks of one encoded image: what follows "RIFF size WEBP". */
static struct buf encoded(int32_t w, int32_t h, bool lossless, uint32_t seed)
{
    struct test_image p = test_image_make(w, h, 3, seed);
    const struct image im = test_image_image(&p);
    const stk_encode_options o = {.format = STK_WEBP, .quality = 80, .lossless = lossless};
    void *bytes = NULL;
    size_t n = 0;
    struct buf b = {0};
    CHECK_EQ(encode_pixels(&im, &o, &bytes, &n, NULL), STK_OK);
    buf_add(&b, (uint8_t *)bytes + 12, n - 12);
    free(bytes);
    test_image_done(&p);
    return b;
}

static struct buf riff(const struct buf *chunks)
{
    struct buf b = {0};
    buf_add(&b, "RIFF", 4);
    put_le(&b, (uint32_t)chunks->len + 4, 4);
    buf_add(&b, "WEBP", 4);
    buf_add(&b, chunks->data, chunks->len);
    return b;
}

static void vp8x(struct buf *b, uint32_t flags, int32_t w, int32_t h)
{
    struct buf x = {0};
    put_le(&x, flags, 4);
    put_le(&x, (uint32_t)w - 1, 3);
    put_le(&x, (uint32_t)h - 1, 3);
    chunk(b, "VP8X", x.data, x.len);
    buf_done(&x);
}

static struct test_image decoded(const struct buf *b)
{
    struct test_image q;
    const struct want all = {.whole = true};
    int warnings;
    CHECK_EQ(test_image_decode(b->data, b->len, &all, false, &q, &warnings, NULL), STK_OK);
    return q;
}

static void crops(void)
{
    static const int32_t sizes[][2] = {{1, 1}, {2, 9}, {17, 16}, {64, 48}, {131, 90}, {201, 150}};
    for (int lossless = 0; lossless < 2; lossless++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            struct buf body = encoded(sizes[k][0], sizes[k][1], lossless, (uint32_t)k), b = riff(&body);
            CHECK_EQ(test_image_crops(b.data, b.len, 150, (uint32_t)k, lossless ? "lossless" : "lossy"), 0);
            buf_done(&b);
            buf_done(&body);
        }
}

static void metadata(void)
{
    static const char tiff[] = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0";
    static const char xmp[] = "<tiff:Orientation>5<";
    static const struct {
        uint32_t flags;
        bool exif;
        int orientation;
    } cases[] = {{0x08, true, 8}, {0x04, false, 5}, {0x0c, true, 8}, {0x00, true, 1}};
    for (size_t i = 0; i < 4; i++) {
        struct buf body = encoded(30, 20, true, 1), chunks = {0};
        vp8x(&chunks, cases[i].flags | 0x20, 30, 20);
        chunk(&chunks, "ICCP", "profile", 7);
        buf_add(&chunks, body.data, body.len);
        if (cases[i].exif)
            chunk(&chunks, "EXIF", tiff, sizeof tiff - 1);
        chunk(&chunks, "XMP ", xmp, sizeof xmp - 1);
        struct buf b = riff(&chunks);
        const struct decode_limits limits = {0};
        struct head h = {0};
        CHECK_EQ(decode_head(b.data, b.len, &limits, &h, NULL), STK_OK);
        CHECK(h.w == 30 && h.h == 20 && h.channels == 3 && h.bits == 8);
        CHECK_EQ(h.orientation, cases[i].orientation);
        CHECK(h.odd & STK_ODD_ICC);
        CHECK_EQ(test_image_crops(b.data, b.len, 30, (uint32_t)i, "rotated"), 0);
        buf_done(&b);
        buf_done(&chunks);
        buf_done(&body);
    }
}

static void frame(struct buf *chunks, const struct buf *image, int32_t x, int32_t y, int32_t w, int32_t h)
{
    struct buf f = {0};
    put_le(&f, (uint32_t)x / 2, 3);
    put_le(&f, (uint32_t)y / 2, 3);
    put_le(&f, (uint32_t)w - 1, 3);
    put_le(&f, (uint32_t)h - 1, 3);
    put_le(&f, 100, 3);
    put_le(&f, 0, 1);
    buf_add(&f, image->data, image->len);
    chunk(chunks, "ANMF", f.data, f.len);
    buf_done(&f);
}

/* The first frame, on black. */
static void animation(void)
{
    for (int lossless = 0; lossless < 2; lossless++) {
        struct buf first = encoded(40, 30, lossless, 1), second = encoded(64, 50, lossless, 2), chunks = {0};
        vp8x(&chunks, 0x02, 64, 50);
        chunk(&chunks, "ANIM", "\x40\x80\xc0\xff\0\0", 6);
        frame(&chunks, &first, 10, 6, 40, 30);
        frame(&chunks, &second, 0, 0, 64, 50);
        struct buf b = riff(&chunks), alone = riff(&first);
        const struct decode_limits limits = {0};
        struct head h = {0};
        CHECK_EQ(decode_head(b.data, b.len, &limits, &h, NULL), STK_OK);
        CHECK(h.w == 64 && h.h == 50 && h.odd & STK_ODD_ANIMATED);
        struct test_image canvas = decoded(&b), still = decoded(&alone);
        int wrong = 0;
        for (int32_t y = 0; y < 50; y++)
            for (int32_t x = 0; x < 64; x++) {
                const bool inside = x >= 10 && x < 50 && y >= 6 && y < 36;
                const uint8_t *p = still.px + ((y - 6) * 40 + x - 10) * 3, black[3] = {0};
                wrong += memcmp(canvas.px + (y * 64 + x) * 3, inside ? p : black, 3) != 0;
            }
        CHECK_EQ(wrong, 0);
        CHECK_EQ(test_image_crops(b.data, b.len, 200, 3, "animated"), 0);
        test_image_done(&canvas);
        test_image_done(&still);
        buf_done(&alone);
        buf_done(&b);
        buf_done(&chunks);
        buf_done(&first);
        buf_done(&second);
    }
}

static void refused(void)
{
    struct buf body = encoded(40, 30, true, 1), b = riff(&body);
    const struct decode_limits limits = {0};
    struct head h;
    stk_error e;
    CHECK_EQ(decode_head(b.data, b.len - 1, &limits, &h, &e), STK_EDATA);
    CHECK(strstr(e.reason, "the file ends after") != NULL);
    b.data[16] = 4; /* the length of the image's chunk */
    b.data[17] = 0;
    CHECK_EQ(decode_head(b.data, b.len, &limits, &h, &e), STK_EDATA);
    CHECK(strstr(e.reason, "broken WebP") != NULL);
    buf_done(&b);
    buf_done(&body);
    struct test_image wide = {calloc(3, 20000), 20000, 1, 3};
    const struct image im = test_image_image(&wide);
    const stk_encode_options o = {.format = STK_WEBP};
    void *out;
    size_t n;
    CHECK_EQ(encode_pixels(&im, &o, &out, &n, &e), STK_EUSAGE);
    test_image_done(&wide);
}

int main(int argc, char **argv)
{
    if (!decode_version(STK_WEBP)) {
        printf("skipped: no WebP in this build\n");
        return 77;
    }
    TESTS(T(crops), T(metadata), T(animation), T(refused))
}
