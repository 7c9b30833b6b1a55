/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_cache_list.c -- lists and deletes cached indexes.
 *
 * The location of an index's source is in a file of the same name with the suffix ".source".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"
#include "source/records_index.h"
#include "source/source.h"

enum { HEX = 16, FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW };

void index_save_location(const char *file, const char *location)
{
    char name[PATH_MAX];
    const int n = snprintf(name, sizeof name, "%s.source", file);
    if (n > 0 && (size_t)n < sizeof name)
        file_replace(name, location, strlen(location));
}

static DIR *open_list(const char *cache_dir)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/index", cache_dir);
    return n > 0 && (size_t)n < sizeof path ? opendir(path) : NULL;
}

static bool is_index(const char *name)
{
    return strlen(name) == HEX && strspn(name, "0123456789abcdef") == HEX;
}

static void read_location(int dir, const char *file, char *buf, size_t n)
{
    char name[HEX + 16];
    snprintf(name, sizeof name, "%s.source", file);
    const int fd = openat(dir, name, FLAGS);
    const ssize_t got = fd < 0 ? -1 : io_pread(fd, buf, n - 1, 0);
    buf[got > 0 ? got : 0] = 0;
    if (fd >= 0)
        close(fd);
}

/* The number of samples in an index of files or of shards. */
static int64_t count_samples(int dir, const char *file)
{
    union {
        uint64_t magic;
        struct index_head files;
        struct records_head records;
    } h;
    const int fd = openat(dir, file, FLAGS);
    const ssize_t got = fd < 0 ? -1 : io_pread(fd, &h, sizeof h, 0);
    if (fd >= 0)
        close(fd);
    uint64_t n = 0;
    if (got >= (ssize_t)sizeof h.files && h.magic == INDEX_MAGIC)
        n = h.files.n;
    else if (got >= (ssize_t)sizeof h.records && h.magic == RECORDS_MAGIC)
        n = h.records.n;
    return n <= INT64_MAX ? (int64_t)n : 0;
}

int source_list_cached(const char *cache_dir, int (*each)(void *user, const stk_cached *c), void *user)
{
    DIR *d = open_list(cache_dir);
    int stop = 0;
    for (const struct dirent *f; d && !stop && (f = readdir(d));) {
        char location[PATH_MAX];
        struct stat st;
        if (!is_index(f->d_name) || fstatat(dirfd(d), f->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        read_location(dirfd(d), f->d_name, location, sizeof location);
        const stk_cached c = {.source = location,
                              .kind = "index",
                              .entries = count_samples(dirfd(d), f->d_name),
                              .bytes = (int64_t)st.st_size,
                              .used = (int64_t)st.st_mtim.tv_sec};
        stop = each(user, &c);
    }
    if (d)
        closedir(d);
    return stop;
}

/* Deletes an index and its location. Returns 0 or an errno. */
static int delete_index(int dir, const char *file, int64_t *bytes)
{
    char name[HEX + 16];
    struct stat st;
    const int64_t size = fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (int64_t)st.st_size : 0;
    if (unlinkat(dir, file, 0) != 0)
        return errno == ENOENT ? 0 : errno;
    *bytes += size;
    snprintf(name, sizeof name, "%s.source", file);
    unlinkat(dir, name, 0);
    return 0;
}

int source_delete_cached(const char *cache_dir, const char *location, int64_t *bytes)
{
    DIR *d = open_list(cache_dir);
    int rc = 0;
    for (const struct dirent *f; d && (f = readdir(d));) {
        char named[PATH_MAX];
        if (!is_index(f->d_name))
            continue;
        read_location(dirfd(d), f->d_name, named, sizeof named);
        if (location && strcmp(location, named) != 0)
            continue;
        const int why = delete_index(dirfd(d), f->d_name, bytes);
        rc = why ? why : rc;
    }
    if (d)
        closedir(d);
    return rc;
}
