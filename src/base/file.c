/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c -- reading and writing at a place in a file, whole or not at all.
 */
#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

bool file_read_at(int fd, void *to, size_t n, int64_t at)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t k = pread(fd, (uint8_t *)to + done, n - done, (off_t)(at + (int64_t)done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        done += (size_t)k;
    }
    return true;
}

int file_write_at(int fd, const void *from, size_t n, int64_t at)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t k = pwrite(fd, (const uint8_t *)from + done, n - done, (off_t)(at + (int64_t)done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k < 0 ? errno : ENOSPC;
        done += (size_t)k;
    }
    return 0;
}

int file_make_folders(const char *path)
{
    char part[PATH_MAX];
    struct stat st;
    const int n = snprintf(part, sizeof part, "%s", path);
    if (n < 1 || (size_t)n >= sizeof part)
        return ENAMETOOLONG;
    for (char *p = strchr(part + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        mkdir(part, 0700); /* when it fails, so will what lies below */
        *p = '/';
    }
    if (mkdir(part, 0700) == 0)
        return 0;
    const int why = errno;
    return stat(part, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : why;
}
