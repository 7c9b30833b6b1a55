/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temp_tree.h -- a temporary folder for tests about files.
 *
 *     temp_begin();
 *     temp_file("train/cat/1.jpg", "x");
 *     ... temp_path("train") ...
 *     temp_end();
 */
#ifndef TEMP_TREE_H
#define TEMP_TREE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char temp_root[1024];

static inline void temp_begin(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(temp_root, sizeof temp_root, "%s/stoker-test-XXXXXX", base && base[0] ? base : "/tmp");
    if (!mkdtemp(temp_root)) {
        perror(temp_root);
        exit(1);
    }
}

static inline int temp_remove(const char *path, const struct stat *st, int flag, struct FTW *f)
{
    (void)st;
    (void)flag;
    (void)f;
    return remove(path);
}

static inline void temp_end(void)
{
    nftw(temp_root, temp_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* One of four buffers in turn. */
static inline const char *temp_path(const char *below)
{
    static char paths[4][3 * PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", temp_root, below);
    return path;
}

static inline void temp_dir(const char *below)
{
    char path[3 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/", temp_root, below);
    for (char *p = strchr(path + strlen(temp_root) + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            perror(path);
        *p = '/';
    }
}

static inline void temp_bytes(const char *below, const void *p, size_t n)
{
    char folder[2 * PATH_MAX];
    snprintf(folder, sizeof folder, "%s", below);
    char *slash = strrchr(folder, '/');
    if (slash) {
        *slash = 0;
        temp_dir(folder);
    }
    const int fd = open(temp_path(below), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, p, n) != (ssize_t)n)
        perror(below);
    if (fd >= 0)
        close(fd);
}

static inline void temp_file(const char *below, const char *text)
{
    temp_bytes(below, text, strlen(text));
}

static inline void temp_link(const char *below, const char *target)
{
    if (symlink(target, temp_path(below)) != 0)
        perror(below);
}

/* Waits until the times of files are reliable. */
static inline void temp_settle(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 60 * 1000 * 1000}, NULL);
}

#endif
