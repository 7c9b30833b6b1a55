/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_io.c -- reads whole files, unusual files, and files that cannot be read.
 * Covers io_pread.c.
 */
#include "base/io.h"

#include "support/temp_tree.h"
#include "test.h"

static stk_error error;

static int read_at(const char *below, int64_t max, struct buf *b, int64_t *size)
{
    return io_read(AT_FDCWD, temp_path(below), max, b, size, NULL, &error);
}

static void whole_file(void)
{
    struct buf b = {0};
    int64_t size = -1;
    temp_file("a", "hello");
    CHECK_EQ(read_at("a", 100, &b, &size), STK_OK);
    CHECK_EQ(b.len, 5);
    CHECK_EQ(size, 5);
    CHECK(memcmp(b.data, "hello", 5) == 0);
    for (int i = 0; i < IO_SLACK; i++)
        CHECK(b.data[5 + i] == 0);
    buf_done(&b);
}

/* io_read() reports whether a file was in the page cache. Nothing else depends on it. */
static void warm_and_cold(void)
{
    struct buf b = {0};
    int64_t size;
    bool cold = true, plain = true;
    char *large = malloc(300000);
    memset(large, 'x', 300000);
    temp_bytes("probed", large, 300000);
    CHECK_EQ(io_read(AT_FDCWD, temp_path("probed"), 1 << 20, &b, &size, &cold, &error), STK_OK);
    CHECK(b.len == 300000 && memcmp(b.data, large, 300000) == 0);
    CHECK_EQ(io_read(AT_FDCWD, temp_path("missing"), 1 << 20, &b, &size, &plain, &error), STK_ENOTFOUND);
    CHECK(!plain);
    const int fd = open(temp_path("probed"), O_RDONLY);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    CHECK_EQ(io_read(AT_FDCWD, temp_path("probed"), 1 << 20, &b, &size, &cold, &error), STK_OK);
    CHECK(b.len == 300000 && memcmp(b.data, large, 300000) == 0 && b.data[300000] == 0);
    free(large);
    buf_done(&b);
}

static void buffer_is_reused(void)
{
    struct buf b = {0};
    int64_t size;
    char *large = calloc(1, 100000);
    temp_bytes("large", large, 100000);
    temp_file("small", "x");
    CHECK_EQ(read_at("large", 100000, &b, &size), STK_OK);
    const uint8_t *before = b.data;
    CHECK_EQ(read_at("small", 100000, &b, &size), STK_OK);
    CHECK(b.data == before);
    CHECK_EQ(b.len, 1);
    free(large);
    buf_done(&b);
}

static void relative_to_folder(void)
{
    struct buf b = {0};
    int64_t size;
    temp_file("d/inner", "abc");
    const int dir = open(temp_path("d"), O_RDONLY | O_DIRECTORY);
    CHECK_EQ(io_read(dir, "inner", 10, &b, &size, NULL, &error), STK_OK);
    CHECK_EQ(b.len, 3);
    close(dir);
    buf_done(&b);
}

static void fails(const char *below, int64_t max, int code, const char *words)
{
    struct buf b = {0};
    int64_t size = -1;
    CHECK_EQ(read_at(below, max, &b, &size), code);
    CHECK_EQ(error.code, code);
    CHECK_STR(error.stage, "read");
    CHECK(strstr(error.reason, words));
    buf_done(&b);
}

static void what_cannot_be_read(void)
{
    temp_file("empty", "");
    temp_file("ten", "0123456789");
    temp_dir("folder");
    mkfifo(temp_path("pipe"), 0666);
    fails("missing", 100, STK_ENOTFOUND, "No such file");
    fails("empty", 100, STK_EDATA, "is empty");
    fails("ten", 9, STK_EDATA, "max_bytes");
    fails("folder", 100, STK_EDATA, "a folder");
    fails("pipe", 100, STK_EDATA, "a pipe");
    fails("ten/below", 100, STK_ENOTFOUND, "Not a directory");
}

static void without_rights(void)
{
    if (geteuid() == 0)
        SKIP("root may read everything");
    temp_file("secret", "x");
    chmod(temp_path("secret"), 0);
    fails("secret", 100, STK_EIO, "Permission denied");
}

/* The kernel's own files claim 4096 bytes and have fewer, like a file that is truncated while it is read. */
static void shorter_than_it_says(void)
{
    const char *path = "/sys/devices/system/cpu/online";
    struct stat st;
    if (stat(path, &st) != 0 || st.st_size < 1024)
        SKIP("no such file here");
    struct buf b = {0};
    int64_t size;
    CHECK_EQ(io_read(AT_FDCWD, path, 1 << 20, &b, &size, NULL, &error), STK_EIO);
    CHECK(strstr(error.reason, "was truncated while it was read: it had 4096 bytes"));
    buf_done(&b);
}

static void first_bytes(void)
{
    uint8_t p[4];
    temp_file("short", "ab");
    temp_file("long", "abcdef");
    mkfifo(temp_path("pipe2"), 0666);
    CHECK_EQ(io_peek(AT_FDCWD, temp_path("short"), p, 4), 2);
    CHECK_EQ(io_peek(AT_FDCWD, temp_path("long"), p, 4), 4);
    CHECK(memcmp(p, "abcd", 4) == 0);
    CHECK_EQ(io_peek(AT_FDCWD, temp_path("pipe2"), p, 4), -1);
    CHECK_EQ(io_peek(AT_FDCWD, temp_path("none"), p, 4), -1);
}

static void positioned(void)
{
    char p[8];
    temp_file("text", "0123456789");
    const int fd = open(temp_path("text"), O_RDWR);
    CHECK_EQ(io_pread(fd, p, 4, 3), 4);
    CHECK(memcmp(p, "3456", 4) == 0);
    CHECK_EQ(io_pread(fd, p, 8, 8), 2);
    close(fd);
    CHECK_EQ(io_pread(fd, p, 1, 0), -1);
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(whole_file), T(warm_and_cold), T(buffer_is_reused), T(relative_to_folder), T(what_cannot_be_read),
          T(without_rights), T(shorter_than_it_says), T(first_bytes), T(positioned))
}
