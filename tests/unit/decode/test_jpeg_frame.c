/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jpeg_frame.c -- the markers of plain JPEGs, files that our decoder leaves to libjpeg, and which part of an image
 * a crop needs.
 */
#include "support/images.h"

#ifdef HAVE_JPEG

#include "decode/jpeg_frame.h"
#include "support/jpegs.h"

static const struct jpeg_spec plain = {70, 50, 2, 2, 80, 5, true, 1, false};

static void fields(void)
{
    static const struct {
        int across, down;
        enum jpeg_sampling sampling;
        int32_t mcus_x, mcus_y;
    } kinds[] = {
        {0, 0, JPEG_GREY, 9, 7}, {1, 1, JPEG_444, 9, 7}, {2, 1, JPEG_422, 5, 7},
        {2, 2, JPEG_420, 5, 4},  {1, 2, JPEG_440, 9, 4},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct jpeg_spec s = plain;
        s.across = kinds[i].across;
        s.down = kinds[i].down;
        size_t n;
        unsigned char *bytes = jpeg_made(&s, &n);
        struct jpeg_frame f;
        CHECK(jpeg_frame_read(&f, bytes, n));
        CHECK(f.w == 70 && f.h == 50 && f.restart == 5 && f.sampling == kinds[i].sampling);
        CHECK(f.mcus_x == kinds[i].mcus_x && f.mcus_y == kinds[i].mcus_y);
        CHECK_EQ(f.n_components, kinds[i].across ? 3 : 1);
        CHECK(f.scan > 100 && f.scan < n && f.component[0].q[0] > 0 && f.component[0].dc != f.component[0].ac);
        free(bytes);
    }
}

/* The segment of a marker, from its FF on; NULL: there is none. */
static uint8_t *segment(uint8_t *bytes, size_t n, int marker)
{
    for (size_t at = 2; at + 4 < n && bytes[at] == 0xff; at += 2 + ((size_t)bytes[at + 2] << 8 | bytes[at + 3]))
        if (bytes[at + 1] == marker)
            return bytes + at;
    return NULL;
}

/* Changes one byte of a segment. Returns whether our decoder still takes the image. */
static bool with_change(int marker, size_t offset, uint8_t value)
{
    size_t n;
    unsigned char *bytes = jpeg_made(&plain, &n);
    uint8_t *at = segment(bytes, n, marker);
    struct jpeg_frame f;
    CHECK(at != NULL);
    if (at)
        at[offset] = value;
    const bool ours = jpeg_frame_read(&f, bytes, n);
    free(bytes);
    return ours;
}

enum { SOF0 = 0xc0, DHT = 0xc4, SOS = 0xda, DQT = 0xdb, DRI = 0xdd, APP0 = 0xe0 };

static void not_ours(void)
{
    static const uint8_t frames[] = {0xc2, 0xc3, 0xc5, 0xc9, 0xca, 0xcc, 0xd8, 0xd9, 0xdc, 0x01, 0xd0};
    for (size_t i = 0; i < sizeof frames; i++)
        CHECK(!with_change(SOF0, 1, frames[i])); /* progressive, lossless, arithmetic, SOI, DNL, ... */
    CHECK(with_change(SOF0, 1, 0xc1));           /* extended, which differs only in the tables that it may have */
    CHECK(!with_change(SOF0, 4, 12));            /* bits */
    CHECK(!with_change(SOF0, 9, 4));             /* components */
    CHECK(!with_change(SOF0, 11, 0x41));
    CHECK(!with_change(SOF0, 14, 0x21));
    CHECK(!with_change(SOF0, 12, 5)); /* a slot that does not exist */
    CHECK(!with_change(SOF0, 12, 3)); /* a table that does not exist */
    CHECK(!with_change(SOF0, 13, 1)); /* two components with the same name */
    CHECK(with_change(SOF0, 8, 71));
    CHECK(!with_change(APP0, 9, 2)); /* JFIF 2 */
    CHECK(!with_change(DQT, 4, 4));
    CHECK(!with_change(DQT, 4, 0x10));
    CHECK(!with_change(DHT, 4, 4));
    CHECK(!with_change(DHT, 4, 0x20));
    CHECK(!with_change(DHT, 5, 255));
    CHECK(!with_change(DHT, 1, 0xfe)); /* a comment: a table is missing */
    CHECK(!with_change(DRI, 3, 5));
    CHECK(with_change(DRI, 5, 0));
    CHECK(!with_change(SOS, 4, 1)); /* the first of several scans */
    CHECK(!with_change(SOS, 5, 9)); /* another component */
    CHECK(!with_change(SOS, 6, 0x44));
    CHECK(!with_change(SOS, 12, 62));
    CHECK(!with_change(SOS, 13, 1));
}

static void sizes(void)
{
    struct jpeg_frame f = {.w = 65501, .h = 1, .sampling = JPEG_444, .n_components = 3};
    CHECK(!jpeg_frame_measure(&f));
    f.w = 65500;
    CHECK(jpeg_frame_measure(&f) && f.mcus_x == 8188);
    f.w = 4;
    CHECK(jpeg_frame_measure(&f));
    f.sampling = JPEG_420; /* two chroma columns: libjpeg upsamples them in its own way */
    CHECK(!jpeg_frame_measure(&f));
    f.w = 5;
    CHECK(jpeg_frame_measure(&f) && f.mcus_x == 1);
    f.h = 0;
    CHECK(!jpeg_frame_measure(&f));
}

/* Our decoder takes what libjpeg reads as YCbCr, and leaves what it reads as RGB. */
static void colours(void)
{
    CHECK(with_change(APP0, 4, 'X')); /* no JFIF; components 1, 2, 3 */
    size_t n;
    unsigned char *bytes = jpeg_made(&plain, &n);
    uint8_t *app = segment(bytes, n, APP0);
    app[1] = 0xee;
    for (int transform = 0; transform < 3; transform++) {
        struct jpeg_frame f;
        memcpy(app + 4, "Adobe\0\0\0\0\0\0", 11);
        app[15] = (uint8_t)transform;
        CHECK_EQ(jpeg_frame_read(&f, bytes, n), transform == 1);
    }
    free(bytes);
}

static void cut_and_filled(void)
{
    size_t n;
    unsigned char *bytes = jpeg_made(&plain, &n);
    struct jpeg_frame f;
    CHECK(jpeg_frame_read(&f, bytes, n));
    const size_t scan = f.scan;
    for (size_t keep = 0; keep < scan; keep++) {
        uint8_t *exact = malloc(keep + 1);
        memcpy(exact, bytes, keep);
        CHECK(!jpeg_frame_read(&f, exact, keep));
        free(exact);
    }
    uint8_t *filled = malloc(n + 3);
    memcpy(filled, bytes, 2);
    memset(filled + 2, 0xff, 3);
    memcpy(filled + 5, bytes + 2, n - 2);
    CHECK(jpeg_frame_read(&f, filled, n + 3));
    CHECK_EQ(f.scan, scan + 3);
    filled[2] = 0;
    CHECK(!jpeg_frame_read(&f, filled, n + 3));
    free(filled);
    free(bytes);
}

/* Finds the rows and columns of MCUs with a sample that affects the crop, by looking at each pixel. */
static void needs(void)
{
    for (enum jpeg_sampling sampling = JPEG_GREY; sampling < JPEG_SAMPLINGS; sampling++) {
        uint32_t seed = (uint32_t)sampling + 1;
        for (int i = 0; i < 2000; i++) {
            struct jpeg_frame f = {.w = 5 + (int32_t)(noise(&seed) % 90),
                                   .h = 1 + (int32_t)(noise(&seed) % 90),
                                   .sampling = sampling,
                                   .n_components = sampling == JPEG_GREY ? 1 : 3,
                                   .together = 1};
            CHECK(jpeg_frame_measure(&f));
            const struct rect c = test_image_crop(f.w, f.h, &seed);
            const struct jpeg_need need = jpeg_frame_need(&f, &c, false), whole = jpeg_frame_need(&f, &c, true);
            const bool across = f.mcu_w == 16, down = f.mcu_h == 16;
            const int32_t chroma_w = (f.w + 1) / 2, chroma_h = (f.h + 1) / 2, bottom = c.y + c.h - 1;
            int32_t x0 = INT32_MAX, x1 = 0, y0 = INT32_MAX, y1 = 0;
            for (int32_t x = across ? c.x & ~1 : c.x; x < c.x + c.w; x++) {
                const int32_t beside = across ? (x % 2 ? x / 2 + 1 : x / 2 - 1) : 0;
                const bool other = across && beside >= 0 && beside < chroma_w;
                const int32_t a = x / f.mcu_w, b = other ? beside / 8 : a;
                x0 = a < x0 ? a : x0, x0 = b < x0 ? b : x0;
                x1 = a + 1 > x1 ? a + 1 : x1, x1 = b + 1 > x1 ? b + 1 : x1;
            }
            for (int32_t y = c.y; y <= bottom; y++) {
                const int32_t beside = down ? (y % 2 ? y / 2 + 1 : y / 2 - 1) : 0;
                const bool other = down && beside >= 0 && beside < chroma_h;
                const int32_t a = y / f.mcu_h, b = other ? beside / 8 : a;
                y0 = a < y0 ? a : y0, y0 = b < y0 ? b : y0;
                y1 = a + 1 > y1 ? a + 1 : y1, y1 = b + 1 > y1 ? b + 1 : y1;
            }
            CHECK(need.x0 == x0 && need.x1 == x1 && need.y0 == y0 && need.y1 == y1);
            CHECK(need.end >= need.y1 && need.end <= f.mcus_y && need.end <= need.y1 + 1);
            CHECK(whole.end == f.mcus_y && whole.y1 == need.y1);
        }
    }
}

int main(int argc, char **argv)
{
    TESTS(T(fields), T(not_ours), T(sizes), T(colours), T(cut_and_filled), T(needs))
}

#else

int main(void)
{
    printf("skipped: no JPEG in this build\n");
    return 77;
}

#endif
