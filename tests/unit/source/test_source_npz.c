/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_npz.c -- npz archives: stored and compressed members, names, damage, limits.
 */
#include "base/crc32.h"
#include "format/gunzip.h"
#include "support/npy_files.h"
#include "support/zips.h"

static const uint8_t px[2 * 2 * 2 * 3] = {9, 8, 7, 6, 5};
static const int16_t y[] = {3, -4};

static void add(struct zips *z, const char *name, const uint8_t *npy, size_t n, bool deflated)
{
    uint8_t packed[1100];
    struct zips_file f = {
        .name = name, .p = npy, .n = n, .raw = (uint32_t)n, .crc = crc32_choose(STK_CPU_DEFAULT)->of(npy, n)};
    if (deflated) { /* one block, as it is */
        packed[0] = 1;
        packed[1] = (uint8_t)n;
        packed[2] = (uint8_t)(n >> 8);
        packed[3] = (uint8_t)~packed[1];
        packed[4] = (uint8_t)~packed[2];
        memcpy(packed + 5, npy, n);
        f.p = packed;
        f.n = n + 5;
        f.method = 8;
    }
    zips_add(z, &f);
}

static void write_archive(struct zips *z, const char *below)
{
    zips_end(z);
    temp_bytes(below, z->bytes.data, z->bytes.len);
    zips_done(z);
}

static void make(const char *below, bool deflated)
{
    struct zips z = {0};
    uint8_t npy[1024];
    size_t n = npy_bytes(npy, "<i2", "False", "(2,)", y, sizeof y);
    add(&z, "labels.npy", npy, n, deflated);
    n = npy_bytes(npy, "|u1", "False", "(2, 2, 2, 3)", px, sizeof px);
    add(&z, "images.npy", npy, n, deflated);
    add(&z, "notes.txt", npy, 3, false);
    write_archive(&z, below);
}

static void check(const char *format, const char *below)
{
    uint8_t row[12] = {0};
    struct source *s = open_named(format, below, NULL);
    CHECK(s != NULL);
    CHECK_STR(source_kind(s), "npz archives");
    CHECK_EQ(source_count(s), 2);
    CHECK_EQ(source_n_fields(s), 2);
    CHECK_STR(source_field(s, 0)->name, "image");
    CHECK_EQ(source_field(s, 0)->kind, FIELD_PIXELS);
    CHECK_EQ(source_label(s, 0), 3);
    CHECK_EQ(source_label(s, 1), -4);
    CHECK_EQ(source_copy(s, NULL, 0, 0, row, &error), STK_OK);
    CHECK(memcmp(row, px, 12) == 0);
    CHECK_EQ(source_copy(s, NULL, 1, 0, row, &error), STK_OK);
    CHECK(memcmp(row, px + 12, 12) == 0);
    source_close(s);
}

static void stored_and_deflated(void)
{
    make("s.npz", false);
    check("%", "s.npz");
    check("npz:%?label=labels&image=images", "s.npz");
    if (!gunzip_here())
        SKIP("this build has no zlib");
    make("d.npz", true);
    check("%", "d.npz");
    check("npz:%", "d.npz");
}

static void named(void)
{
    struct source *s = open_named("npz:%?target=labels", "s.npz", NULL);
    CHECK_EQ(source_n_fields(s), 1);
    CHECK_STR(source_field(s, 0)->name, "target");
    int16_t v = 0;
    CHECK_EQ(source_copy(s, NULL, 1, 0, &v, &error), STK_OK);
    CHECK_EQ(v, -4);
    source_close(s);
    refused("npz:%?label=none", "s.npz", "has no array none; the arrays are");
    refused("npz:%?label=label", "s.npz", "; did you mean labels?");
}

static void what_is_refused(void)
{
    uint8_t npy[1024];
    struct zips z = {0};
    const size_t n = npy_bytes(npy, "|O", "False", "(2,)", y, sizeof y);
    add(&z, "a.npy", npy, n, false);
    write_archive(&z, "o.npz");
    refused("%", "o.npz", "a: contains Python objects");
    z = (struct zips){0};
    add(&z, "a.txt", npy, n, false);
    write_archive(&z, "e.npz");
    refused("%", "e.npz", "contains no arrays");
    temp_file("n.npz", "hello");
    refused("%", "n.npz", "n.npz");
    if (!gunzip_here())
        return;
    const struct source_options small = {.max_bytes = 50};
    CHECK(open_named("%", "d.npz", &small) == NULL);
    CHECK(strstr(error.text, "more than the 50 that max_bytes allows") != NULL);
}

/* For every truncated or changed byte: an error with a reason, or the right numbers. */
static void damaged(void)
{
    struct stat st;
    if (!gunzip_here())
        SKIP("this build has no zlib");
    make("x.npz", true);
    CHECK_EQ(stat(temp_path("x.npz"), &st), 0);
    for (off_t n = 0; n < st.st_size; n++) {
        make("x.npz", true);
        CHECK_EQ(truncate(temp_path("x.npz"), n), 0);
        refused("%", "x.npz", "x.npz");
    }
    make("x.npz", true);
    const int fd = open(temp_path("x.npz"), O_RDWR);
    CHECK_EQ(pwrite(fd, "\xff", 1, 45 + 30), 1);
    close(fd);
    refused("%", "x.npz", "damaged");
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(stored_and_deflated), T(named), T(what_is_refused), T(damaged))
}
