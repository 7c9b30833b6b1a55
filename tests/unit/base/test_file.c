/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_file.c -- reads and writes at an offset of a file, and creates folders.
 */
#include "base/file.h"

#include "support/temp_tree.h"
#include "test.h"

static void whole_or_not_at_all(void)
{
    char p[8] = "";
    temp_file("text", "0123456789");
    const int fd = open(temp_path("text"), O_RDWR);
    CHECK(file_read_at(fd, p, 4, 3) && memcmp(p, "3456", 4) == 0);
    CHECK(file_read_at(fd, p, 2, 8) && file_read_at(fd, p, 0, 99));
    CHECK(!file_read_at(fd, p, 3, 8));
    CHECK(!file_read_at(fd, p, 1, 99));
    CHECK_EQ(file_write_at(fd, "ab", 2, 9), 0);
    CHECK(file_read_at(fd, p, 3, 8) && memcmp(p, "8ab", 3) == 0);
    close(fd);
    CHECK(!file_read_at(fd, p, 1, 0));
    CHECK_EQ(file_write_at(fd, p, 1, 0), EBADF);
}

static void no_room(void)
{
    const int fd = open("/dev/full", O_WRONLY);
    if (fd < 0)
        SKIP("there is no /dev/full");
    CHECK_EQ(file_write_at(fd, "x", 1, 0), ENOSPC);
    close(fd);
}

static void folders(void)
{
    struct stat st;
    CHECK_EQ(file_make_folders(temp_path("a/b/c")), 0);
    CHECK_EQ(file_make_folders(temp_path("a/b/c")), 0);
    CHECK(stat(temp_path("a/b/c"), &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 077) == 0);
    temp_file("file", "");
    CHECK_EQ(file_make_folders(temp_path("file")), EEXIST);
    CHECK_EQ(file_make_folders(temp_path("file/below")), ENOTDIR);
    CHECK_EQ(file_make_folders(""), ENAMETOOLONG);
    char deep[2 * PATH_MAX];
    memset(deep, 'x', sizeof deep);
    deep[sizeof deep - 1] = 0;
    CHECK_EQ(file_make_folders(deep), ENAMETOOLONG);
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(whole_or_not_at_all), T(no_room), T(folders))
}
