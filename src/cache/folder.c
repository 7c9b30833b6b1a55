/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.c -- the cache folder: where each dataset's entries are, how much it contains, and deleting.
 *
 * Deleting needs no lock: a process that has a file open continues to use it, and the file disappears when it is
 * closed.
 */
#include "cache/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/text.h"
#include "cache/cache.h"
#include "cache/volume.h"

enum { FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static const int64_t SPARE_LEAST = (int64_t)2 << 30;

/* ------------------------------------------------------------------ one dataset */

/* For people: nothing depends on it. A pipe or a link of that name is replaced, and never opened. */
static void write_source(int dir, const char *folder, const char *source)
{
    char path[PATH_MAX];
    struct stat st;
    const int n = snprintf(path, sizeof path, "%s/source", folder);
    const bool there = fstatat(dir, "source", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
                       st.st_size == (off_t)strlen(source);
    if (!there && n > 0 && (size_t)n < sizeof path)
        file_replace(path, source, strlen(source));
}

int folder_open(const char *cache_dir, const char *source, int *why)
{
    char path[PATH_MAX];
    const uint64_t key = hash_bytes(source, strlen(source), 0);
    const int n = snprintf(path, sizeof path, "%s/data/%016llx", cache_dir, (unsigned long long)key);
    *why = n > 0 && (size_t)n < sizeof path ? file_make_folders(path) : ENAMETOOLONG;
    if (*why)
        return -1;
    const int dir = open(path, FLAGS | O_DIRECTORY);
    if (dir < 0)
        *why = errno;
    else
        write_source(dir, path, source);
    return dir;
}

/* ------------------------------------------------------------------ room */

int64_t folder_free(int dir)
{
    struct statvfs v;
    return fstatvfs(dir, &v) == 0 ? (int64_t)v.f_bavail * (int64_t)v.f_frsize : -1;
}

int64_t folder_share(int dir, int64_t held, int64_t *spare)
{
    struct statvfs v;
    if (fstatvfs(dir, &v) != 0)
        return held;
    const int64_t all = (int64_t)v.f_blocks * (int64_t)v.f_frsize, left = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
    *spare = all / 10 > SPARE_LEAST ? all / 10 : SPARE_LEAST;
    return left > *spare ? held + (left - *spare) / 2 : held;
}

/* ------------------------------------------------------------------ all of them */

/* A folder that is being listed. */
struct going {
    DIR *d;
    const struct dirent *entry;
};

static bool begin(struct going *g, int at, const char *name)
{
    const int fd = openat(at, name, FLAGS | O_DIRECTORY | O_NOFOLLOW);
    *g = (struct going){.d = fd < 0 ? NULL : fdopendir(fd)};
    if (fd >= 0 && !g->d)
        close(fd);
    return g->d != NULL;
}

static const char *next(struct going *g)
{
    while ((g->entry = readdir(g->d)))
        if (g->entry->d_name[0] != '.')
            return g->entry->d_name;
    return NULL;
}

static int open_data(const char *cache_dir, struct going *g)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/data", cache_dir);
    if (n < 1 || (size_t)n >= sizeof path)
        return ENAMETOOLONG;
    return begin(g, AT_FDCWD, path) ? 0 : errno;
}

/* The kind of a file in a dataset's folder; CACHE_KINDS: none. */
static enum cache_kind kind_of(const char *file)
{
    int k = 0;
    for (; k < CACHE_KINDS; k++) {
        const char *name = cache_kind_name((enum cache_kind)k);
        if (strncmp(file, name, strlen(name)) == 0 && file[strlen(name)] == '.')
            break;
    }
    return (enum cache_kind)k;
}

static void read_source(int dir, char *buf, size_t n)
{
    const int fd = openat(dir, "source", FLAGS | O_NOFOLLOW);
    const ssize_t got = fd < 0 ? -1 : io_pread(fd, buf, n - 1, 0);
    buf[got > 0 ? got : 0] = 0;
    if (fd >= 0)
        close(fd);
}

static void add_file(stk_cached *c, const char *file, const struct stat *st)
{
    c->bytes += (int64_t)st->st_size;
    if (text_has_suffix(file, ".index")) {
        c->entries += (int64_t)st->st_size / (int64_t)sizeof(struct volume_record);
        c->used = (int64_t)st->st_mtim.tv_sec > c->used ? (int64_t)st->st_mtim.tv_sec : c->used;
    }
}

static void sum_up(struct going *g, stk_cached kinds[CACHE_KINDS])
{
    struct stat st;
    for (const char *file; (file = next(g));) {
        const enum cache_kind k = kind_of(file);
        if (k != CACHE_KINDS && fstatat(dirfd(g->d), file, &st, AT_SYMLINK_NOFOLLOW) == 0)
            add_file(&kinds[k], file, &st);
    }
}

int folder_list(const char *cache_dir, int (*each)(void *user, const stk_cached *c), void *user)
{
    struct going datasets, files;
    const int rc = open_data(cache_dir, &datasets);
    int stop = 0;
    if (rc)
        return rc == ENOENT ? 0 : rc;
    for (const char *dataset; !stop && (dataset = next(&datasets));) {
        char source[PATH_MAX];
        stk_cached kinds[CACHE_KINDS] = {{0}};
        if (!begin(&files, dirfd(datasets.d), dataset))
            continue;
        read_source(dirfd(files.d), source, sizeof source);
        sum_up(&files, kinds);
        for (int k = 0; k < CACHE_KINDS && !stop; k++) {
            kinds[k].source = source;
            kinds[k].kind = cache_kind_name((enum cache_kind)k);
            stop = kinds[k].bytes > 0 && each(user, &kinds[k]) != 0;
        }
        closedir(files.d);
    }
    closedir(datasets.d);
    return 0;
}

static int add_bytes(void *user, const stk_cached *c)
{
    *(int64_t *)user += c->bytes;
    return 0;
}

int64_t folder_bytes(const char *cache_dir)
{
    int64_t sum = 0;
    folder_list(cache_dir, add_bytes, &sum);
    return sum;
}

/* ------------------------------------------------------------------ deleting */

static int clear_dataset(struct going *g, const char *kind, int64_t *bytes)
{
    struct stat st;
    int rc = 0;
    for (const char *file; (file = next(g));) {
        const enum cache_kind k = kind_of(file);
        if (k == CACHE_KINDS || (kind && strcmp(kind, cache_kind_name(k)) != 0))
            continue;
        const int64_t size = fstatat(dirfd(g->d), file, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (int64_t)st.st_size : 0;
        if (unlinkat(dirfd(g->d), file, 0) == 0)
            *bytes += size;
        else if (errno != ENOENT)
            rc = errno;
    }
    return rc;
}

/* Whether only the file with its name is left. */
static bool is_empty(struct going *g)
{
    rewinddir(g->d);
    for (const char *file; (file = next(g));)
        if (strcmp(file, "source") != 0)
            return false;
    return true;
}

int folder_clear(const char *cache_dir, const char *kind, const char *source, int64_t *bytes)
{
    struct going datasets, files;
    int rc = open_data(cache_dir, &datasets);
    if (rc)
        return rc == ENOENT ? 0 : rc;
    for (const char *dataset; (dataset = next(&datasets));) {
        char named[PATH_MAX];
        if (!begin(&files, dirfd(datasets.d), dataset))
            continue;
        read_source(dirfd(files.d), named, sizeof named);
        if (!source || strcmp(source, named) == 0) {
            const int why = clear_dataset(&files, kind, bytes);
            rc = why ? why : rc;
            if (is_empty(&files) && unlinkat(dirfd(files.d), "source", 0) == 0)
                unlinkat(dirfd(datasets.d), dataset, AT_REMOVEDIR);
        }
        closedir(files.d);
    }
    closedir(datasets.d);
    return rc;
}
