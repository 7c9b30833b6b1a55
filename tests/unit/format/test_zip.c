/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_zip.c -- directories of zip archives: valid, unusual and damaged.
 */
#include "format/zip.h"

#include "support/zips.h"
#include "test.h"

struct memory {
    const uint8_t *p;
    size_t n;
};

static const uint8_t *peek(void *user, int64_t at, size_t n, size_t *got)
{
    const struct memory *m = user;
    CHECK(at >= 0);
    const size_t left = at < (int64_t)m->n ? m->n - (size_t)at : 0;
    *got = n < left ? n : left;
    return *got ? m->p + at : NULL;
}

/* The members as text: name, bytes, raw size, and the bytes themselves if they are stored; "!" before bad ones.
 */
static char seen[8192];

static const char *all(const uint8_t *p, size_t n)
{
    struct memory memory = {p, n};
    struct zip z = {.peek = peek, .user = &memory, .bytes = (int64_t)n};
    const char *reason = zip_begin(&z);
    if (reason)
        return reason;
    struct zip_member m;
    size_t at = 0;
    seen[0] = 0;
    while (at < sizeof seen - 1024 && zip_next(&z, &m)) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)m.n_name, m.name ? m.name : "");
        if (!m.reason)
            zip_locate(&z, &m);
        const int shown = m.deflated || m.reason ? 0 : (int)m.bytes;
        at += (size_t)snprintf(seen + at, sizeof seen - at, "%s%s:%.*s%s ", m.reason ? "!" : "", name, shown,
                               shown ? (const char *)p + m.at : "", m.deflated ? "deflated" : "");
    }
    return seen;
}

static const char *read_zip(const struct zips *z)
{
    return all(z->bytes.data, z->bytes.len);
}

static void add_text(struct zips *z, const char *name, const char *text)
{
    zips_add(z, &(struct zips_file){.name = name, .p = text, .n = strlen(text), .raw = (uint32_t)strlen(text)});
}

static void plain(void)
{
    struct zips z = {0};
    add_text(&z, "a/1.txt", "one");
    add_text(&z, "a/", "");
    zips_add(&z, &(struct zips_file){.name = "b", .p = "xx", .n = 2, .raw = 100, .method = 8});
    add_text(&z, "a/1.txt", "again");
    zips_end(&z);
    CHECK_STR(read_zip(&z), "a/1.txt:one b:deflated a/1.txt:again ");
    zips_bytes(&z.bytes, "a comment behind it", 19);
    CHECK_STR(read_zip(&z), "a/1.txt:one b:deflated a/1.txt:again ");
    zips_done(&z);
    struct zips empty = {0};
    zips_end(&empty);
    CHECK_STR(read_zip(&empty), "");
    zips_done(&empty);
}

static void behind_a_program(void)
{
    struct zips z = {.before = 7};
    zips_bytes(&z.bytes, "#!/bin/", 7);
    add_text(&z, "x", "one");
    zips_end(&z);
    CHECK_STR(read_zip(&z), "x:one ");
    zips_done(&z);
}

static void refused(void)
{
    struct zips z = {0};
    zips_add(&z, &(struct zips_file){.name = "secret", .p = "x", .n = 1, .raw = 1, .flags = 1});
    zips_add(&z, &(struct zips_file){.name = "bzip2", .p = "x", .n = 1, .raw = 1, .method = 12});
    zips_add(&z, &(struct zips_file){.name = "bomb", .p = "x", .n = 1, .raw = 1u << 30, .method = 8});
    zips_add(&z, &(struct zips_file){.name = "two", .p = "x", .n = 1, .raw = 2});
    zips_add(&z, &(struct zips_file){.name = "outside", .p = "x", .n = 1, .raw = 1, .header = 1u << 30});
    zips_add(&z, &(struct zips_file){.name = "elsewhere", .p = "x", .n = 1, .raw = 1, .header = 1});
    add_text(&z, "../../good", "good");
    zips_end(&z);
    CHECK_STR(read_zip(&z), "!secret: !bzip2: !bomb:deflated !two: !outside: !elsewhere: ../../good:good ");
    zips_done(&z);
}

static void in_64_bits(void)
{
    uint8_t extra[4 + 4 + 24] = {7, 7, 0, 0, 1, 0, 24, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3};
    struct zips z = {0};
    add_text(&z, "first", "one");
    extra[24] = (uint8_t)z.bytes.len;
    zips_add(&z, &(struct zips_file){.name = "wide",
                                     .p = "two",
                                     .n = 3,
                                     .raw = UINT32_MAX,
                                     .extra = extra,
                                     .n_extra = sizeof extra,
                                     .header = UINT32_MAX});
    /* The stated offset of the header is 2^32 - 1, and so are both sizes. */
    memset(z.directory.data + z.directory.len - sizeof extra - 4 - 46 + 20, 0xff, 4);
    const size_t at = z.bytes.len;
    zips_bytes(&z.bytes, z.directory.data, z.directory.len);
    const size_t end = z.bytes.len;
    zips_bytes(&z.bytes, "PK\6\6", 4);
    zips_put(&z.bytes, 44, 8);
    zips_put(&z.bytes, 45 | 45 << 16, 4);
    zips_put(&z.bytes, 0, 8);
    zips_put(&z.bytes, 2, 8);
    zips_put(&z.bytes, 2, 8);
    zips_put(&z.bytes, z.directory.len, 8);
    zips_put(&z.bytes, at, 8);
    zips_bytes(&z.bytes, "PK\6\7\0\0\0\0", 8);
    zips_put(&z.bytes, end, 8);
    zips_put(&z.bytes, 1, 4);
    zips_bytes(&z.bytes, "PK\5\6\0\0\0\0\2\0\2\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0", 22);
    CHECK_STR(read_zip(&z), "first:one wide:two ");
    z.bytes.data[z.bytes.len - 22 - 12] ^= 0x40; /* the locator is wrong, but the directory is found */
    CHECK_STR(read_zip(&z), "first:one wide:two ");
    zips_done(&z);
}

/* For every truncation and every changed byte: no crash and no endless loop. */
static void damaged_everywhere(void)
{
    struct zips z = {0};
    add_text(&z, "a", "one");
    add_text(&z, "b", "two");
    zips_end(&z);
    for (size_t n = 0; n < z.bytes.len; n++) {
        uint8_t *cut = malloc(n ? n : 1);
        memcpy(cut, z.bytes.data, n);
        CHECK(strstr(all(cut, n), "central directory"));
        free(cut);
    }
    for (size_t i = 0; i < 8 * z.bytes.len; i++) {
        z.bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
        CHECK(read_zip(&z) != NULL);
        z.bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    CHECK_STR(read_zip(&z), "a:one b:two ");
    z.bytes.data[z.bytes.len - 22 - 47] ^= 1; /* the second entry */
    CHECK_STR(read_zip(&z), "a:one !: ");
    zips_done(&z);
}

int main(int argc, char **argv)
{
    TESTS(T(plain), T(behind_a_program), T(refused), T(in_64_bits), T(damaged_everywhere))
}
