/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_cache.c -- the cache of indexes on disk, per user.
 *
 * A cache file is a copy of the index's block, with a checksum in its head. It is valid while device, inode and time of
 * every folder, and of the list, are unchanged: these change when a file is added, removed or renamed. Rewriting a file
 * in place does not change its folder. So the sizes of some files, spread over all, are compared too, and reading a
 * file of another size deletes the cache. Names and labels in a valid index are right. Sizes are a good guess;
 * index_measure checks all of them.
 *
 * A folder that was changed in the same clock tick in which it was read could change again without a new time. Such an
 * index is not cached.
 *
 * Nothing here is an error for the caller. Without a usable folder there is no cache.
 */
#include "source/index.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/pool.h"

/* ------------------------------------------------------------------ paths */

size_t index_cache_dir(const char *asked, char *buf, size_t n)
{
    const char *dir = asked && asked[0] ? asked : getenv("STOKER_CACHE_DIR");
    const char *below = "";
    if (!dir || !dir[0]) {
        dir = getenv("XDG_CACHE_HOME");
        below = "/stoker";
    }
    if (!dir || dir[0] == 0) {
        dir = getenv("HOME");
        below = "/.cache/stoker";
    }
    if (!dir || dir[0] == 0 || strcmp(dir, "off") == 0) {
        if (n > 0)
            buf[0] = 0;
        return 0;
    }
    const int length = snprintf(buf, n, "%s%s", dir, below);
    return length > 0 ? (size_t)length : 0;
}

char *index_cache_file(const char *asked, uint64_t key)
{
    char dir[PATH_MAX];
    const size_t n = index_cache_dir(asked, dir, sizeof dir);
    if (n == 0 || n >= sizeof dir)
        return NULL;
    const size_t room = n + sizeof "/index/0123456789abcdef";
    char *file = malloc(room);
    if (file)
        snprintf(file, room, "%s/index/%016llx", dir, (unsigned long long)key);
    return file;
}

/* ------------------------------------------------------------------ detecting changes */

/* File systems have coarse clocks. Zero nanoseconds mean a clock of one or two seconds. */
enum { TICK_NS = 20 * 1000 * 1000, COARSE_S = 2 };

bool index_stamp(struct stamp *w, const struct stat *st)
{
    *w = (struct stamp){(uint64_t)st->st_dev, (uint64_t)st->st_ino, (int64_t)st->st_mtim.tv_sec,
                        (int64_t)st->st_mtim.tv_nsec};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t s = (int64_t)now.tv_sec - w->seconds, ns = (int64_t)now.tv_nsec - w->nanoseconds;
    if (w->nanoseconds == 0)
        return s > COARSE_S;
    return s > 1 || (s >= 0 && s * 1000000000 + ns > TICK_NS);
}

static bool same(const struct stamp *a, const struct stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->seconds == b->seconds && a->nanoseconds == b->nanoseconds;
}

enum { DIRS_A_TURN = 64, FILES_COMPARED = 256 };

struct checking {
    const struct index *x;
    int dir;
    atomic_bool changed;
};

static void check_dirs(void *user, int64_t turn)
{
    struct checking *c = user;
    const uint64_t last = (uint64_t)(turn + 1) * DIRS_A_TURN, n = c->x->head->n_dirs, end = last < n ? last : n;
    for (uint64_t i = (uint64_t)turn * DIRS_A_TURN; i < end && !atomic_load(&c->changed); i++) {
        const char *path = c->x->pool + c->x->dir_at[i];
        struct stamp now = {0}; /* the stamp of a missing folder */
        struct stat st;
        if (fstatat(c->dir, path[0] ? path : ".", &st, 0) == 0)
            index_stamp(&now, &st);
        if (!same(&now, &c->x->stamp[i]))
            atomic_store(&c->changed, true);
    }
}

static bool files_changed(const struct index *x, int dir)
{
    const uint64_t n = x->head->n, step = n / FILES_COMPARED + 1;
    for (uint64_t i = 0; i < n; i += step) {
        char path[PATH_MAX];
        struct stat st;
        if (x->size[i] < 0 || index_path(x, (int64_t)i, path, sizeof path) >= sizeof path)
            continue;
        if (fstatat(dir, path, &st, 0) != 0 || (int64_t)st.st_size != x->size[i])
            return true;
    }
    return false;
}

static bool list_changed(const struct index_head *h, int list)
{
    struct stamp now;
    struct stat st;
    if (fstat(list, &st) != 0)
        return true;
    index_stamp(&now, &st);
    return !same(&now, &h->list) || (int64_t)st.st_size != h->list_bytes;
}

static bool changed(const struct index *x, int dir, int list, int threads)
{
    if (list >= 0 && list_changed(x->head, list))
        return true;
    struct checking c = {.x = x, .dir = dir};
    pool_for(threads, (int64_t)((x->head->n_dirs + DIRS_A_TURN - 1) / DIRS_A_TURN), check_dirs, &c);
    return atomic_load(&c.changed) || files_changed(x, dir);
}

/* ------------------------------------------------------------------ reading and writing */

int index_load(struct index *x, const char *file, enum index_kind kind, int dir, int list, int threads)
{
    size_t bytes;
    void *block = file_load(file, FILE_OWN, sizeof(struct index_head), &bytes);
    if (!block || index_adopt(x, block, bytes)) {
        free(block);
        return -1;
    }
    const bool is_list = x->head->kind == INDEX_LIST;
    if (is_list != (kind == INDEX_LIST) || changed(x, dir, list, threads)) {
        index_done(x);
        return -1;
    }
    return 0;
}

static int write_block(int fd, const struct index *x)
{
    const size_t n_sizes = (size_t)x->head->n;
    int64_t *sizes = malloc(n_sizes * sizeof *sizes); /* a copy, since other threads may store sizes */
    if (!sizes)
        return -1;
    for (size_t i = 0; i < n_sizes; i++)
        sizes[i] = atomic_load_explicit(&x->size[i], memory_order_relaxed);
    const uint8_t *rest = (const void *)x->name_at;
    const size_t rest_bytes = (size_t)x->head->bytes - sizeof *x->head - n_sizes * sizeof *sizes;
    struct index_head head = *x->head;
    head.checksum = index_checksum(&head, sizes, rest, rest_bytes);
    const size_t sizes_bytes = n_sizes * sizeof *sizes;
    const int rc = file_write_at(fd, &head, sizeof head, 0) || file_write_at(fd, sizes, sizes_bytes, sizeof head) ||
                   file_write_at(fd, rest, rest_bytes, (int64_t)(sizeof head + sizes_bytes));
    free(sizes);
    return rc ? -1 : 0;
}

void index_save(const struct index *x, const char *file)
{
    const size_t room = strlen(file) + 64;
    char *temp = malloc(room);
    if (!temp)
        return;
    const char *slash = strrchr(file, '/');
    snprintf(temp, room, "%.*s", slash ? (int)(slash - file) : 0, file);
    file_make_folders(temp); /* if it fails, so does open() */
    snprintf(temp, room, "%s.%ld.%llx.tmp", file, (long)getpid(), (unsigned long long)now_ns());
    const int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        int rc = write_block(fd, x);
        if (close(fd) != 0)
            rc = -1;
        if (rc != 0 || rename(temp, file) != 0)
            unlink(temp);
    }
    free(temp);
}
