/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c -- reads and writes whole blocks and whole files.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/io.h"

bool file_read_at(int fd, void *to, size_t n, int64_t at)
{
    return io_pread(fd, to, n, at) == (ssize_t)n;
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
        mkdir(part, 0700); /* if it fails, so does mkdir below */
        *p = '/';
    }
    if (mkdir(part, 0700) == 0)
        return 0;
    const int why = errno;
    return stat(part, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : why;
}

void *file_load(const char *path, enum file_owner whose, size_t least, size_t *bytes)
{
    const int fd = io_open(AT_FDCWD, path);
    if (fd < 0)
        return NULL;
    struct stat st;
    void *block = NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (whose == FILE_ANY || st.st_uid == geteuid()) && st.st_size > 0 &&
        (uintmax_t)st.st_size >= least && (uintmax_t)st.st_size <= SIZE_MAX / 2)
        block = malloc((size_t)st.st_size);
    if (block && !file_read_at(fd, block, (size_t)st.st_size, 0)) {
        free(block);
        block = NULL;
    }
    close(fd);
    *bytes = block ? (size_t)st.st_size : 0;
    return block;
}

int file_replace(const char *path, const void *from, size_t n)
{
    char temp[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int length = snprintf(temp, sizeof temp, "%.*s", slash ? (int)(slash - path) : 0, path);
    if (length > 0 && (size_t)length < sizeof temp)
        file_make_folders(temp); /* if it fails, so does open */
    const int all = snprintf(temp, sizeof temp, "%s.%ld.%llx.tmp", path, (long)getpid(), (unsigned long long)now_ns());
    if (all < 0 || (size_t)all >= sizeof temp)
        return ENAMETOOLONG;
    const int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    int rc = file_write_at(fd, from, n, 0);
    if (close(fd) != 0 && rc == 0)
        rc = errno;
    if (rc == 0 && rename(temp, path) != 0)
        rc = errno;
    if (rc != 0)
        unlink(temp);
    return rc;
}
