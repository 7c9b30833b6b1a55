/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_exif.c -- valid and damaged EXIF and XMP blocks.
 */
#include "decode/exif.h"

#include "test.h"

enum { SHORT = 3, LONG = 4, RATIONAL = 5, BYTE = 1, FLOAT = 11, DOUBLE = 12 };

/* A TIFF block under construction. */
struct block {
    uint8_t p[512];
    size_t n;
    int big;
};

static void put(struct block *b, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        b->p[b->n++] = (uint8_t)(v >> 8 * (b->big ? bytes - 1 - i : i));
}

static void begin(struct block *b, int big, int entries)
{
    *b = (struct block){.big = big};
    put(b, big ? 0x4d4d : 0x4949, 2);
    put(b, 42, 2);
    put(b, 8, 4);
    put(b, (uint64_t)entries, 2);
}

static void entry(struct block *b, int tag, int type, uint32_t count, uint64_t value, int value_bytes)
{
    put(b, (uint64_t)tag, 2);
    put(b, (uint64_t)type, 2);
    put(b, count, 4);
    put(b, value, value_bytes);
    for (int i = value_bytes; i < 4; i++)
        b->p[b->n++] = 0;
}

static int read_tiff(const uint8_t *p, size_t n)
{
    const struct exif x = {.tiff = p, .tiff_bytes = n};
    return exif_orientation(&x);
}

static int read_block(const struct block *b)
{
    return read_tiff(b->p, b->n);
}

static int read_xmp(const char *text)
{
    const struct exif x = {.xmp = (const uint8_t *)text, .xmp_bytes = strlen(text)};
    return exif_orientation(&x);
}

static struct block ordinary(int big, int orientation)
{
    struct block b;
    begin(&b, big, 2);
    entry(&b, 0x0100, LONG, 1, 640, 4);
    entry(&b, 0x0112, SHORT, 1, (uint64_t)orientation, 2);
    put(&b, 0, 4);
    return b;
}

static void both_orders(void)
{
    for (int big = 0; big < 2; big++)
        for (int o = 1; o <= 8; o++) {
            const struct block b = ordinary(big, o);
            CHECK_EQ(read_block(&b), o);
        }
}

static void nothing(void)
{
    const struct exif none = {0};
    CHECK_EQ(exif_orientation(&none), 1);
    CHECK_EQ(read_tiff((const uint8_t *)"", 0), 1);
    CHECK_EQ(read_tiff((const uint8_t *)"Exif\0\0", 6), 1);
    struct block b;
    begin(&b, 0, 0);
    CHECK_EQ(read_block(&b), 1);
}

static void values_without_meaning(void)
{
    for (int v = 9; v < 300; v += 17) {
        const struct block b = ordinary(0, v);
        CHECK_EQ(read_block(&b), 1);
    }
    const struct block zero = ordinary(1, 0);
    CHECK_EQ(read_block(&zero), 1);
}

static void prefixes(void)
{
    struct block b = ordinary(0, 6);
    uint8_t p[600] = "Exif\0\0Exif\0";
    memcpy(p + 6, b.p, b.n);
    CHECK_EQ(read_tiff(p, b.n + 6), 6);
    memcpy(p + 6, "Exif\0", 6);
    memcpy(p + 12, b.p, b.n);
    CHECK_EQ(read_tiff(p, b.n + 12), 6);
}

static void other_types(void)
{
    struct block b;
    begin(&b, 1, 1);
    entry(&b, 0x0112, LONG, 1, 8, 4);
    CHECK_EQ(read_block(&b), 8);
    begin(&b, 0, 1);
    entry(&b, 0x0112, BYTE, 1, 6, 1); /* Pillow does not read bytes as a number */
    CHECK_EQ(read_block(&b), 1);
    begin(&b, 0, 1);
    entry(&b, 0x0112, FLOAT, 1, 0x40c00000, 4);
    CHECK_EQ(read_block(&b), 6);
    begin(&b, 0, 1);
    entry(&b, 0x0112, RATIONAL, 1, 26, 4);
    put(&b, 0, 4);
    put(&b, 12, 4);
    put(&b, 4, 4);
    CHECK_EQ(read_block(&b), 3);
    begin(&b, 0, 1);
    entry(&b, 0x0112, DOUBLE, 1, 26, 4);
    put(&b, 0, 4);
    put(&b, 0x4014000000000000, 8);
    CHECK_EQ(read_block(&b), 5);
}

static void several_values(void)
{
    struct block b;
    begin(&b, 0, 1);
    entry(&b, 0x0112, SHORT, 3, 26, 4);
    put(&b, 0, 4);
    put(&b, 7, 2);
    put(&b, 1, 2);
    put(&b, 1, 2);
    CHECK_EQ(read_block(&b), 7);
}

static void first_of_two_wins(void)
{
    struct block b;
    begin(&b, 0, 2);
    entry(&b, 0x0112, SHORT, 1, 3, 2);
    entry(&b, 0x0112, SHORT, 1, 6, 2);
    CHECK_EQ(read_block(&b), 3);
}

/* An entry whose value is outside the block ends the directory. An entry that is invalid in itself is skipped. */
static void broken_neighbours(void)
{
    struct block b;
    begin(&b, 0, 2);
    entry(&b, 0x010f, 2, 20, 1000000, 4);
    entry(&b, 0x0112, SHORT, 1, 6, 2);
    CHECK_EQ(read_block(&b), 1);
    begin(&b, 0, 2);
    entry(&b, 0x010f, 2, 0x7fffffff, 8, 4);
    entry(&b, 0x0112, SHORT, 1, 6, 2);
    CHECK_EQ(read_block(&b), 6);
    begin(&b, 0, 2);
    entry(&b, 0x010f, 99, 1, 0, 4);
    entry(&b, 0x0112, SHORT, 1, 6, 2);
    CHECK_EQ(read_block(&b), 6);
}

static void cut_at_every_byte(void)
{
    for (int big = 0; big < 2; big++) {
        const struct block b = ordinary(big, 6);
        const size_t needed = 10 + 2 * 12;
        for (size_t n = 0; n <= b.n; n++) {
            uint8_t *exact = malloc(n ? n : 1);
            memcpy(exact, b.p, n);
            CHECK_EQ(read_tiff(exact, n), n >= needed ? 6 : 1);
            free(exact);
        }
    }
}

static void odd_headers(void)
{
    struct block b = ordinary(0, 6);
    b.p[2] = 0;
    b.p[3] = 42; /* as some cameras write it */
    CHECK_EQ(read_block(&b), 6);
    b.p[2] = 43;
    b.p[3] = 0; /* BigTIFF */
    CHECK_EQ(read_block(&b), 1);
    b.p[0] = 'X';
    CHECK_EQ(read_block(&b), 1);
    b = ordinary(0, 6);
    b.p[4] = b.p[5] = b.p[6] = b.p[7] = 0xff; /* directory far away */
    CHECK_EQ(read_block(&b), 1);
}

static void xmp(void)
{
    CHECK_EQ(read_xmp("<rdf tiff:Orientation=\"3\"/>"), 3);
    CHECK_EQ(read_xmp("<tiff:Orientation>8</tiff:Orientation>"), 8);
    CHECK_EQ(read_xmp("<tiff:Orientation/> tiff:Orientation=\"6"), 6);
    CHECK_EQ(read_xmp("<tiff:Orientation=3"), 1);
    CHECK_EQ(read_xmp("tiff:Orientation"), 1);
    CHECK_EQ(read_xmp("tiff:Orientation=\""), 1);
    CHECK_EQ(read_xmp("tiff:Orientation>9"), 1);
    CHECK_EQ(read_xmp(""), 1);
}

static void exif_before_xmp(void)
{
    static const char text[] = "tiff:Orientation=\"3\"";
    const struct block b = ordinary(0, 6);
    struct exif x = {b.p, b.n, (const uint8_t *)text, sizeof text - 1};
    CHECK_EQ(exif_orientation(&x), 6);
    struct block empty;
    begin(&empty, 0, 0);
    x.tiff = empty.p;
    x.tiff_bytes = empty.n;
    CHECK_EQ(exif_orientation(&x), 3);
    x.tiff = (const uint8_t *)"rubbish!";
    x.tiff_bytes = 8;
    CHECK_EQ(exif_orientation(&x), 1); /* as in Pillow: XMP is ignored if EXIF is broken */
}

int main(int argc, char **argv)
{
    TESTS(T(both_orders), T(nothing), T(values_without_meaning), T(prefixes), T(other_types), T(several_values),
          T(first_of_two_wins), T(broken_neighbours), T(cut_at_every_byte), T(odd_headers), T(xmp), T(exif_before_xmp))
}
