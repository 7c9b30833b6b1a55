/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_decode_png.c -- PNGs of all fifteen kinds, plain and interlaced, written here without a library (stored blocks,
 * no filter): pixels, crops, chunks, texts, damage. Covers decode_png.c, png_chunks.c and png_rows.c.
 */
#include "support/images.h"

#include "base/crc32.h"
#include "decode/png_chunks.h"

/* ------------------------------------------------------------------ a small writer */

struct png {
    struct buf b;
};

static void put32(struct buf *b, uint32_t v)
{
    const uint8_t p[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    buf_add(b, p, 4);
}

static void chunk(struct png *p, const char *name, const void *data, size_t n)
{
    put32(&p->b, (uint32_t)n);
    const size_t at = p->b.len;
    buf_add(&p->b, name, 4);
    buf_add(&p->b, data, n);
    put32(&p->b, crc32_choose(STK_CPU_DEFAULT)->of(p->b.data + at, n + 4));
}

static void begin(struct png *p, uint32_t w, uint32_t h, int bits, int colour, int interlaced)
{
    *p = (struct png){0};
    buf_add(&p->b, "\x89PNG\r\n\x1a\n", 8);
    struct buf ihdr = {0};
    put32(&ihdr, w);
    put32(&ihdr, h);
    const uint8_t rest[5] = {(uint8_t)bits, (uint8_t)colour, 0, 0, (uint8_t)interlaced};
    buf_add(&ihdr, rest, 5);
    chunk(p, "IHDR", ihdr.data, ihdr.len);
    buf_done(&ihdr);
}

/* Writes a zlib stream of stored blocks, with the checksum at its end only if asked for. */
static struct buf stored(const struct buf *raw, bool with_end)
{
    struct buf z = {0};
    buf_add(&z, "\x78\x01", 2);
    for (size_t at = 0; at < raw->len;) {
        const size_t n = raw->len - at < 65535 ? raw->len - at : 65535;
        const uint8_t head[5] = {at + n == raw->len, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)~n, (uint8_t)(~n >> 8)};
        buf_add(&z, head, 5);
        buf_add(&z, raw->data + at, n);
        at += n;
    }
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < raw->len; i++) {
        a = (a + raw->data[i]) % 65521;
        b = (b + a) % 65521;
    }
    if (with_end)
        put32(&z, b << 16 | a);
    return z;
}

static void pixels(struct png *p, const struct buf *raw)
{
    struct buf z = stored(raw, true);
    chunk(p, "IDAT", z.data, z.len / 2); /* in two chunks, like a large image */
    chunk(p, "IDAT", z.data + z.len / 2, z.len - z.len / 2);
    buf_done(&z);
    chunk(p, "IEND", "", 0);
}

/* ------------------------------------------------------------------ all kinds */

struct kind {
    int colour, bits, samples;
};

static const struct kind kinds[] = {{0, 1, 1}, {0, 2, 1},  {0, 4, 1},  {0, 8, 1}, {0, 16, 1},
                                    {2, 8, 3}, {2, 16, 3}, {3, 1, 1},  {3, 2, 1}, {3, 4, 1},
                                    {3, 8, 1}, {4, 8, 2},  {4, 16, 2}, {6, 8, 4}, {6, 16, 4}};

static uint32_t sample_at(const struct kind *k, int32_t x, int32_t y, int s)
{
    uint32_t v = (uint32_t)(x * 7919 + y * 104729 + s * 31337 + 12345);
    v = v * 2654435761u >> 8;
    return v & ((1u << k->bits) - 1);
}

static uint8_t palette_at(uint32_t i, int c)
{
    return (uint8_t)(i * 37 + (uint32_t)c * 91 + 5);
}

/* 200 colours: higher indices are black. */
static void expected(const struct kind *k, int32_t x, int32_t y, uint8_t rgb[3])
{
    for (int c = 0; c < 3; c++) {
        const uint32_t v = sample_at(k, x, y, k->samples < 3 ? 0 : c);
        if (k->colour == 3)
            rgb[c] = v < 200 ? palette_at(v, c) : 0;
        else if (k->colour == 0 && k->bits == 16)
            rgb[c] = (uint8_t)((v + 128) / 257);
        else if (k->bits == 16)
            rgb[c] = (uint8_t)(v >> 8);
        else
            rgb[c] = (uint8_t)(v * 255 / ((1u << k->bits) - 1));
    }
}

/* Writes rows y0, y0+dy, ... of columns x0, x0+dx, ...: one pass of an interlaced image, or a whole image. */
static void pass(struct buf *raw, const struct kind *k, int32_t w, int32_t h, const int32_t at[4])
{
    if (at[0] >= w)
        return;
    for (int32_t y = at[1]; y < h; y += at[3]) {
        uint32_t bits = 0;
        int n = 0;
        buf_add(raw, "", 1); /* no filter */
        for (int32_t x = at[0]; x < w; x += at[2])
            for (int s = 0; s < k->samples; s++) {
                bits = bits << k->bits | sample_at(k, x, y, s);
                for (n += k->bits; n >= 8; n -= 8) {
                    const uint8_t byte = (uint8_t)(bits >> (n - 8));
                    buf_add(raw, &byte, 1);
                }
            }
        const uint8_t last = (uint8_t)(bits << (8 - n));
        if (n > 0)
            buf_add(raw, &last, 1);
    }
}

static struct buf rows(const struct kind *k, int32_t w, int32_t h, bool interlaced)
{
    static const int32_t adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                        {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    static const int32_t plain[4] = {0, 0, 1, 1};
    struct buf raw = {0};
    for (int i = 0; interlaced && i < 7; i++)
        pass(&raw, k, w, h, adam7[i]);
    if (!interlaced)
        pass(&raw, k, w, h, plain);
    return raw;
}

static struct png make(const struct kind *k, int32_t w, int32_t h, bool interlaced)
{
    struct png p;
    begin(&p, (uint32_t)w, (uint32_t)h, k->bits, k->colour, interlaced);
    if (k->colour == 3) {
        uint8_t palette[600];
        for (uint32_t i = 0; i < 600; i++)
            palette[i] = palette_at(i / 3, (int)(i % 3));
        chunk(&p, "PLTE", palette, k->bits == 8 ? 600 : 3u << k->bits);
    }
    struct buf raw = rows(k, w, h, interlaced);
    pixels(&p, &raw);
    buf_done(&raw);
    return p;
}

static int wrong_pixels(const struct kind *k, const struct test_image *q)
{
    int wrong = 0;
    for (int32_t y = 0; y < q->h; y++)
        for (int32_t x = 0; x < q->w; x++) {
            uint8_t rgb[3];
            expected(k, x, y, rgb);
            wrong += memcmp(rgb, q->px + ((size_t)y * (size_t)q->w + (size_t)x) * 3, 3) != 0;
        }
    return wrong;
}

static void every_kind(void)
{
    static const int32_t sizes[][2] = {{1, 1}, {2, 3}, {5, 9}, {8, 8}, {33, 20}, {3, 70}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (int interlaced = 0; interlaced < 2; interlaced++) {
                struct png p = make(&kinds[i], sizes[s][0], sizes[s][1], interlaced);
                struct test_image q;
                int warnings;
                const struct want all = {.whole = true};
                CHECK_EQ(test_image_decode(p.b.data, p.b.len, &all, false, &q, &warnings, NULL), STK_OK);
                CHECK_EQ(warnings, 0);
                if (q.px)
                    CHECK_EQ(wrong_pixels(&kinds[i], &q), 0);
                test_image_done(&q);
                CHECK_EQ(test_image_crops(p.b.data, p.b.len, 20, (uint32_t)(i + s), "png"), 0);
                buf_done(&p.b);
            }
}

static void heads(void)
{
    const struct decode_limits limits = {0};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct png p = make(&kinds[i], 12, 7, i % 2);
        struct head h;
        CHECK_EQ(decode_head(p.b.data, p.b.len, &limits, &h, NULL), STK_OK);
        CHECK(h.format == STK_PNG && h.w == 12 && h.h == 7 && h.bits == kinds[i].bits &&
              h.channels == kinds[i].samples);
        CHECK_EQ(!!(h.odd & STK_ODD_GREY), kinds[i].colour == 0 || kinds[i].colour == 4);
        CHECK_EQ(!!(h.odd & STK_ODD_ALPHA), kinds[i].colour >= 4);
        CHECK_EQ(!!(h.odd & STK_ODD_PALETTE), kinds[i].colour == 3);
        CHECK_EQ(!!(h.odd & STK_ODD_DEEP), kinds[i].bits == 16);
        CHECK_EQ(!!(h.odd & STK_ODD_INTERLACED), i % 2);
        buf_done(&p.b);
    }
}

/* ------------------------------------------------------------------ chunks */

static const struct kind rgb8 = {2, 8, 3};

/* Makes a small RGB image with one more chunk, before or after its pixels. */
static struct png with_chunk(const char *name, const void *data, size_t n, bool behind)
{
    struct png p;
    struct buf raw = rows(&rgb8, 6, 4, false), z = stored(&raw, true);
    begin(&p, 6, 4, 8, 2, 0);
    if (!behind)
        chunk(&p, name, data, n);
    chunk(&p, "IDAT", z.data, z.len);
    if (behind)
        chunk(&p, name, data, n);
    chunk(&p, "IEND", "", 0);
    buf_done(&raw);
    buf_done(&z);
    return p;
}

static struct head head_with(const char *name, const void *data, size_t n, bool behind)
{
    const struct decode_limits limits = {0};
    struct png p = with_chunk(name, data, n, behind);
    struct head h = {0};
    CHECK_EQ(decode_head(p.b.data, p.b.len, &limits, &h, NULL), STK_OK);
    buf_done(&p.b);
    return h;
}

#define TIFF_6 "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"
#define HEX_6  "4d4d002a00000008\n00010112000300000001\n00060000"

static void orientation_in_chunks(void)
{
    static const char tiff[] = TIFF_6, text[] = "exif\0" TIFF_6,
                      xmp[] = "XML:com.adobe.xmp\0\0\0\0\0<tiff:Orientation>6<",
                      raw[] = "Raw profile type exif\0\nexif\n  22\n" HEX_6 "\n";
    for (int behind = 0; behind < 2; behind++) {
        CHECK_EQ(head_with("eXIf", tiff, sizeof tiff - 1, behind).orientation, 6);
        CHECK_EQ(head_with("tEXt", text, sizeof text - 1, behind).orientation, 6);
        CHECK_EQ(head_with("iTXt", xmp, sizeof xmp - 1, behind).orientation, 6);
        CHECK_EQ(head_with("tEXt", raw, sizeof raw - 1, behind).orientation, 6);
    }
    CHECK_EQ(head_with("tEXt", "Raw profile type exif\0rubbish", 29, false).orientation, 1);
    CHECK_EQ(head_with("tEXt", "Raw profile type exif", 21, false).orientation, 1);
    CHECK_EQ(head_with("iTXt", "XML:com.adobe.xmp\0\0\0", 20, false).orientation, 1);
}

static void packed_texts(void)
{
    static const char raw[] = "\nexif\n  22\n" HEX_6 "\n", xmp[] = "<x tiff:Orientation=\"6\"/>";
    struct buf text = {0}, z, data = {0};
    buf_add(&text, raw, sizeof raw - 1);
    z = stored(&text, true);
    buf_add(&data, "Raw profile type exif\0", 23);
    buf_add(&data, z.data, z.len);
    CHECK_EQ(head_with("zTXt", data.data, data.len, false).orientation, 6);
    data.data[data.len - 1] ^= 1; /* a wrong sum */
    CHECK_EQ(head_with("zTXt", data.data, data.len, true).orientation, 1);
    buf_done(&z);
    data.len = text.len = 0;
    buf_add(&text, xmp, sizeof xmp - 1);
    z = stored(&text, true);
    buf_add(&data, "XML:com.adobe.xmp\0\1\0\0", 22);
    buf_add(&data, z.data, z.len);
    CHECK_EQ(head_with("iTXt", data.data, data.len, true).orientation, 6);
    buf_done(&z);
    buf_done(&data);
    buf_done(&text);
}

static void oddities(void)
{
    CHECK(head_with("tRNS", "\0\1\0\2\0\3", 6, false).odd & STK_ODD_ALPHA);
    CHECK(head_with("iCCP", "x\0\0rubbish", 10, false).odd & STK_ODD_ICC);
    CHECK(head_with("acTL", "\0\0\0\2\0\0\0\0", 8, false).odd & STK_ODD_ANIMATED);
    CHECK_EQ(head_with("acTL", "\0\0\0\1\0\0\0\0", 8, false).odd, 0);
    CHECK_EQ(head_with("prVt", "whatever", 8, false).odd, 0);
    CHECK_EQ(head_with("CRIT", "unknown and critical", 20, false).odd, 0);
}

static int decode_all(const struct buf *b, int *warnings, stk_error *e)
{
    struct test_image q;
    const struct want all = {.whole = true};
    const int rc = test_image_decode(b->data, b->len, &all, false, &q, warnings, e);
    if (rc == STK_OK)
        CHECK_EQ(wrong_pixels(&rgb8, &q), 0);
    test_image_done(&q);
    return rc;
}

/* Damage that Pillow accepts. */
static void forgiven(void)
{
    struct png p;
    stk_error e;
    int warnings;
    struct buf raw = rows(&rgb8, 6, 4, false), z = stored(&raw, false);
    begin(&p, 6, 4, 8, 2, 0);
    chunk(&p, "IDAT", z.data, z.len); /* the ends of the stream and of the file are missing */
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_OK);
    CHECK_EQ(warnings, 0);
    p.b.data[p.b.len - 1] ^= 1; /* wrong checksum of pixels */
    chunk(&p, "IEND", "", 0);
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_OK);
    buf_done(&p.b);
    p = make(&rgb8, 6, 4, true);
    p.b.len -= 12 + 4 + 4; /* the same, interlaced: IEND, checksum, sum */
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_OK);
    buf_done(&p.b);
    p = with_chunk("tEXt", "no zero in it", 13, true);
    p.b.data[p.b.len - 12 - 1] ^= 1;
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_OK);
    buf_done(&p.b);
    buf_done(&raw);
    buf_done(&z);
}

static void bad_sum_is_a_warning(void)
{
    struct png p = make(&rgb8, 6, 4, false);
    stk_error e;
    int warnings;
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_OK);
    CHECK_EQ(warnings, 0);
    struct png_chunks c;
    CHECK_EQ(png_chunks_read(p.b.data, p.b.len, true, &c, NULL), STK_OK);
    const size_t first = (size_t)p.b.data[c.idat + 3];
    p.b.data[c.idat + 8 + first] ^= 1;
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_OK);
    CHECK_EQ(warnings, 1);
    buf_done(&p.b);
}

/* A pixel of the first row is changed. Only two checksums show it: that of the chunk, which is verified for crops, too,
 * and that of the stream, for which Pillow refuses the image. A crop that uses this chunk is refused as well. */
static void bad_sum_in_a_crop(void)
{
    const struct kind k = {2, 8, 3};
    const struct want top = {.crop = {0, 0, 8, 2}};
    struct test_image q;
    int warnings;
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        struct png p = make(&k, 64, 64, interlaced);
        struct png_chunks c;
        CHECK_EQ(png_chunks_read(p.b.data, p.b.len, true, &c, NULL), STK_OK);
        CHECK_EQ(test_image_decode(p.b.data, p.b.len, &top, false, &q, &warnings, NULL), STK_OK);
        CHECK_EQ(warnings, 0);
        test_image_done(&q);
        p.b.data[c.idat + 8 + 2 + 5 + 1] ^= 1;
        CHECK_EQ(test_image_decode(p.b.data, p.b.len, &top, false, &q, &warnings, NULL), STK_EDATA);
        p.b.data[c.idat + 8 + 2 + 5 + 1] ^= 1;
        p.b.data[p.b.len - 12 - 4 - 5] ^= 1; /* the last pixel, in the second chunk */
        const int rc = test_image_decode(p.b.data, p.b.len, &top, false, &q, &warnings, NULL);
        CHECK_EQ(rc, interlaced ? STK_EDATA : STK_OK); /* the pixels of an interlaced image are spread over the file */
        if (rc == STK_OK)
            test_image_done(&q);
        buf_done(&p.b);
    }
}

static void refused(void)
{
    struct png p = make(&rgb8, 6, 4, false);
    stk_error e;
    int warnings;
    p.b.data[8 + 8 + 3] ^= 1; /* width, and so the checksum */
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_EDATA);
    CHECK_STR(e.reason, "the checksum of its IHDR chunk is wrong");
    buf_done(&p.b);

    p = make(&rgb8, 6, 4, false);
    p.b.len = 8 + 25 + 8 + 20;
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_EDATA);
    CHECK_STR(e.reason, "the file ends after 61 bytes, before its last row");
    p.b.len = 8 + 20;
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_EDATA);
    CHECK_STR(e.reason, "the file ends after 28 bytes, inside its header");
    buf_done(&p.b);

    begin(&p, 6, 4, 8, 2, 0);
    chunk(&p, "IEND", "", 0);
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_EDATA);
    CHECK_STR(e.reason, "has no pixels (no IDAT chunk)");
    buf_done(&p.b);

    begin(&p, 6, 4, 3, 2, 0);
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_EDATA);
    CHECK_STR(e.reason, "has colour type 2 with 3 bits, which PNG does not define");
    buf_done(&p.b);

    p = with_chunk("tEXt", "a text that is cut off", 22, true);
    p.b.len -= 12 + 4 + 10;
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_EDATA);
    CHECK(strstr(e.reason, "inside a chunk after its pixels") != NULL);
    buf_done(&p.b);

    p = make(&rgb8, 6, 4, false);
    p.b.data[8 + 25 + 8 + 7] = 9; /* the first row's filter */
    CHECK_EQ(decode_all(&p.b, &warnings, &e), STK_EDATA);
    CHECK(strstr(e.reason, "broken PNG: ") != NULL);
    buf_done(&p.b);
}

int main(int argc, char **argv)
{
    if (!decode_version(STK_PNG)) {
        printf("skipped: no PNG in this build\n");
        return 77;
    }
    TESTS(T(every_kind), T(heads), T(orientation_in_chunks), T(packed_texts), T(oddities), T(forgiven),
          T(bad_sum_is_a_warning), T(bad_sum_in_a_crop), T(refused))
}
