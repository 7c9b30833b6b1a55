/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_zip.c -- zip archives: stored and compressed files, damage, hostile sizes.
 */
#include "base/crc32.h"
#include "format/gunzip.h"
#include "support/archives.h"
#include "support/zips.h"

/* "hello hello hello hello\n" */
static const uint8_t deflated[] = {0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x27, 0xb9, 0x00};
enum { HELLO = 24 };
static const char hello[] = "hello hello hello hello\n";

static void save(const char *below, struct zips *z)
{
    zips_end(z);
    temp_bytes(below, z->bytes.data, z->bytes.len);
    zips_done(z);
    *z = (struct zips){0};
}

static struct zips_file packed(const char *name)
{
    return (struct zips_file){.name = name,
                              .p = deflated,
                              .n = sizeof deflated,
                              .raw = HELLO,
                              .crc = crc32_choose(STK_CPU_DEFAULT)->of((const uint8_t *)hello, HELLO),
                              .method = 8};
}

static void add(struct zips *z, const char *name, const char *text)
{
    const size_t n = strlen(text);
    zips_add(z, &(struct zips_file){.name = name,
                                    .p = text,
                                    .n = n,
                                    .raw = (uint32_t)n,
                                    .crc = crc32_choose(STK_CPU_DEFAULT)->of((const uint8_t *)text, n)});
}

static void groups(void)
{
    struct zips z = {0};
    struct zips_file f = packed("a/1.txt");
    add(&z, "a/", "");
    add(&z, "a/1.jpg", "one");
    zips_add(&z, &f);
    add(&z, "a/1.cls", "4");
    add(&z, "a/2.jpg", "two");
    f = packed("a/2.cls");
    zips_add(&z, &f);
    add(&z, "a/1.jpg", "again");
    save("g.zip", &z);
    CHECK_STR(shown("g.zip", NULL), "a/1 [0] image=one txt=hello hello hello hello\n | a/2 [1] image=two | "
                                    "a/1 !the label is missing, although other samples have one | ");
    CHECK_STR(shown("zip:g.zip", "txt"), shown("g.zip", "txt"));
}

static void class_folders(void)
{
    struct zips z = {0};
    add(&z, "set/dog/1.jpg", "one");
    add(&z, "set/cat/1.png", "two");
    save("f.zip", &z);
    CHECK_STR(shown("f.zip", NULL), "set/dog/1 [1] image=one | set/cat/1 [0] image=two | ");
}

static void refused(void)
{
    struct zips z = {0};
    struct zips_file f = packed("1.jpg");
    f.raw = HELLO - 1; /* the header gives a size that is too small */
    zips_add(&z, &f);
    f = packed("2.jpg");
    f.raw = HELLO + 1;
    zips_add(&z, &f);
    f = packed("3.jpg");
    f.crc++;
    zips_add(&z, &f);
    f = packed("4.jpg");
    f.flags = 1;
    zips_add(&z, &f);
    zips_add(&z, &(struct zips_file){.name = "5.jpg", .p = "stored", .n = 6, .raw = 6, .crc = 1});
    f = packed("6.jpg");
    zips_add(&z, &f);
    save("r.zip", &z);
    CHECK_STR(shown("r.zip", NULL), "1 !its jpg is damaged: it does not decompress to 23 bytes | "
                                    "2 !its jpg is damaged: it does not decompress to 25 bytes | "
                                    "3 !the checksum of its jpg is wrong | "
                                    "4 !is encrypted (at byte 454 of the shard) | "
                                    "5 !the checksum of its jpg is wrong | "
                                    "6 image=hello hello hello hello\n | ");
    add(&z, "a.jpg", "cut");
    zips_end(&z);
    temp_bytes("cut.zip", z.bytes.data, z.bytes.len - 1);
    CHECK(strstr(shown("cut.zip", NULL), "!is not a zip archive, or is truncated"));
    zips_done(&z);
}

static int count_cells(void *user, const char *name, stk_kind kind, const stk_cell *c)
{
    (void)name, (void)kind;
    *(size_t *)user += c->n;
    return 0;
}

static void cells(void)
{
    struct zips z = {0};
    const struct zips_file f = packed("1.txt");
    zips_add(&z, &f);
    save("c.zip", &z);
    char path[4096];
    snprintf(path, sizeof path, "%s", temp_path("c.zip"));
    const stk_source_options o = {.source = path, .cache_dir = "off"};
    stk_source *s;
    stk_error e;
    size_t n = 0;
    CHECK_EQ(stk_source_open(&s, &o, &e), STK_OK);
    CHECK_EQ(stk_source_cells(s, 0, count_cells, &n, &e), STK_OK);
    CHECK_EQ(n, HELLO);
    stk_source_close(s);
}

static void too_large(void)
{
    struct zips z = {0};
    struct zips_file f = packed("1.jpg");
    zips_add(&z, &f);
    add(&z, "2.jpg", "small");
    save("l.zip", &z);
    struct source *s;
    stk_error e;
    const struct source_options o = {.path = temp_path("l.zip"), .cache_dir = "off", .max_bytes = HELLO - 1};
    CHECK_EQ(source_open(&s, &o, &e), STK_OK);
    struct reading r = {0};
    CHECK_EQ(source_read(s, &r, 0, &e), STK_EDATA);
    CHECK(strstr(e.reason, "max_bytes"));
    CHECK_EQ(source_read(s, &r, 1, &e), STK_OK);
    reading_done(&r);
    source_close(s);
}

int main(int argc, char **argv)
{
    if (!gunzip_here()) {
        printf("skipped: no zlib in this build\n");
        return 77;
    }
    temp_begin();
    const struct test_case cases[] = {T(groups), T(class_folders), T(refused), T(cells), T(too_large)};
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    temp_end();
    return rc;
}
