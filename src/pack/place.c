/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c -- writes files below a folder under names that may be hostile.
 */
#include "pack/place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "pack/keys.h"

enum { STEP = 1 << 18 };

static int failed(const char *name, int why, const char *what, stk_error *e)
{
    const int rc = error_os(e, why, "write", "%s", what);
    error_at(e, name, -1);
    return rc;
}

/* Opens the folder that is the next part of a name, and creates it if asked to. Closes dir. -1: see errno. */
static int step_into(int dir, const char *part, size_t n, bool make)
{
    char name[256];
    memcpy(name, part, n); /* keys_is_safe() has checked n */
    name[n] = 0;
    int next = -1, why = 0;
    if (make && mkdirat(dir, name, 0777) && errno != EEXIST)
        why = errno;
    else if ((next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        why = errno;
    close(dir);
    errno = why;
    return next;
}

/* Opens the folder that contains a file, and sets *last to the name within it. -1: see errno. */
static int open_folder(int root, const char *name, bool make, const char **last)
{
    int dir = fcntl(root, F_DUPFD_CLOEXEC, 0);
    const char *p = name;
    for (size_t n = strcspn(p, "/"); dir >= 0 && p[n]; n = strcspn(p, "/")) {
        dir = step_into(dir, p, n, make);
        p += n + 1;
    }
    *last = p;
    return dir;
}

int place_root(const char *path, bool *made)
{
    char part[4096];
    const size_t n = strlen(path);
    *made = false;
    if (n == 0 || n >= sizeof part) {
        errno = n ? ENAMETOOLONG : ENOENT;
        return -1;
    }
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        part[i] = 0;
        *made = mkdir(part, 0777) == 0;
        if (!*made && errno != EEXIST)
            return -1;
        part[i] = path[i];
    }
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

DIR *place_list(int root, const char *name)
{
    const int fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        close(fd);
    return d;
}

/* ------------------------------------------------------------------ comparing */

/* A range of the content, in memory or read into `to`. NULL: it cannot be read. */
static const uint8_t *range_of(const struct content *c, int64_t at, size_t n, uint8_t *to)
{
    if (c->bytes)
        return c->bytes + at;
    return file_read_at(c->fd, to, n, c->at + at) ? to : NULL;
}

static bool same_bytes(int fd, const struct content *c)
{
    uint8_t *there = malloc(2 * (size_t)STEP);
    bool same = there != NULL;
    for (int64_t at = 0; same && at < c->n; at += STEP) {
        const size_t n = c->n - at < STEP ? (size_t)(c->n - at) : STEP;
        const uint8_t *want = range_of(c, at, n, there + STEP);
        same = want && file_read_at(fd, there, n, at) && memcmp(there, want, n) == 0;
    }
    free(there);
    return same;
}

/* Returns 1 if the file exists with the same bytes, 0 if nothing exists, -1 if something else does. */
static int look(int dir, const char *name, const struct content *c)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? 0 : -1;
    if (!S_ISREG(st.st_mode) || st.st_size != c->n)
        return -1;
    const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const bool same = fd >= 0 && same_bytes(fd, c);
    if (fd >= 0)
        close(fd);
    return same ? 1 : -1;
}

/* ------------------------------------------------------------------ writing */

/* Returns 0, or an errno. Lets the kernel copy where it can. */
static int copy(int fd, const struct content *c)
{
    int64_t done = 0;
    off_t from = (off_t)c->at, to = 0;
    while (!c->bytes && done < c->n) {
        const ssize_t k = copy_file_range(c->fd, &from, fd, &to, (size_t)(c->n - done), 0);
        if (k <= 0)
            break;
        done += k;
    }
    uint8_t *room = c->bytes || done == c->n ? NULL : malloc(STEP);
    int why = 0;
    while (done < c->n && !why) {
        const size_t n = c->bytes ? (size_t)(c->n - done) : c->n - done < STEP ? (size_t)(c->n - done) : STEP;
        const uint8_t *p = c->bytes || room ? range_of(c, done, n, room) : NULL;
        why = p ? file_write_at(fd, p, n, done) : room || c->bytes ? EIO : ENOMEM;
        done += (int64_t)n;
    }
    free(room);
    return why;
}

/* A file is written at the root under a random name and then renamed. The name is random because writers may run on
 * other machines or in other containers, where process and thread ids repeat. */
static const char temp_before[] = ".stoker-", temp_after[] = ".part";

static int open_temp(int root, char temp[40])
{
    enum { TRIES = 100 };
    int fd = -1;
    errno = EEXIST;
    for (int i = 0; i < TRIES && fd < 0 && errno == EEXIST; i++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            return -1;
        snprintf(temp, 40, "%s%016" PRIx64 "%s", temp_before, number, temp_after);
        fd = openat(root, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    return fd;
}

static int write_new(int root, int dir, const char *last, const struct content *c)
{
    char temp[40];
    const int fd = open_temp(root, temp);
    if (fd < 0)
        return errno;
    int why = copy(fd, c);
    if (close(fd) && !why)
        why = errno;
    if (!why && renameat(root, temp, dir, last))
        why = errno;
    if (why)
        unlinkat(root, temp, 0);
    return why;
}

/* Whether this is a temporary file to which nobody has written for age_s seconds. */
static bool is_abandoned(int root, const char *name, int64_t age_s)
{
    const size_t before = sizeof temp_before - 1;
    if (strncmp(name, temp_before, before) != 0)
        return false;
    const size_t digits = strspn(name + before, "0123456789abcdef");
    struct stat st;
    return digits > 0 && strcmp(name + before + digits, temp_after) == 0 &&
           fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           (age_s == 0 || (int64_t)time(NULL) - (int64_t)st.st_mtime > age_s);
}

void place_sweep(int root, int64_t age_s)
{
    DIR *d = place_list(root, ".");
    for (const struct dirent *entry; d && (entry = readdir(d));)
        if (is_abandoned(root, entry->d_name, age_s))
            unlinkat(root, entry->d_name, 0);
    if (d)
        closedir(d);
}

int place_file(int root, const char *name, const struct content *c, bool force, stk_error *e)
{
    if (!keys_is_safe(name)) {
        const int rc = error_set(e, STK_EDATA, "write",
                                 "cannot be a file name: a part of it is empty, \"..\", or longer than 255 bytes");
        error_at(e, name, -1);
        return rc;
    }
    const char *last;
    const int dir = open_folder(root, name, true, &last);
    if (dir < 0)
        return failed(name, errno, "cannot create its folder", e);
    const int there = look(dir, last, c);
    const int why = there == 1 ? 0 : there < 0 && !force ? EEXIST : write_new(root, dir, last, c);
    close(dir);
    if (why == EEXIST && !force) {
        error_set(e, STK_EIO, "write", "exists with other content; --force replaces it");
        error_at(e, name, -1);
        if (e)
            e->os_error = why;
        return STK_EIO;
    }
    return why ? failed(name, why, "cannot write", e) : STK_OK;
}

void place_remove(int root, const char *name)
{
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s", name);
    bool removed = n > 0 && (size_t)n < sizeof path && keys_is_safe(name);
    for (int flags = 0; removed && path[0]; flags = AT_REMOVEDIR) {
        const char *last;
        const int dir = open_folder(root, path, false, &last);
        removed = dir >= 0 && unlinkat(dir, last, flags) == 0;
        if (dir >= 0)
            close(dir);
        char *slash = strrchr(path, '/');
        *(slash ? slash : path) = 0;
    }
}
