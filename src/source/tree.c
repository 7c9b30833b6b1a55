/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c -- scans all folders below a folder, level by level.
 *
 * The folders of a level are read in parallel. A thread writes only to the tree_dir of its folder. Between levels, one
 * thread lists the folders of the next level. Links are followed. A folder that is its own ancestor is a loop and is
 * skipped. A folder that is reached several times is read each time, as ImageFolder does, up to a limit, since crossing
 * links can create exponentially many paths.
 */
#include "source/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/image_file.h"
#include "base/io.h"
#include "base/pool.h"

/* ------------------------------------------------------------------ one folder */

struct child {
    uint64_t dev, ino;
};

static int add_child(struct tree_dir *d, const char *name, const struct stat *st)
{
    const struct child c = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
    return buf_add(&d->children, &c, sizeof c) || buf_add(&d->children, name, strlen(name) + 1) ? ENOMEM : 0;
}

static void count_other(struct tree_dir *d, const char *name)
{
    if (d->other++ > 0)
        return;
    const char *dot = strrchr(name, '.');
    const size_t n = dot ? strlen(dot) : 0;
    if (n < sizeof d->other_suffix)
        memcpy(d->other_suffix, dot ? dot : "", n + 1);
}

static bool is_sample(const struct tree *t, int fd, const char *name, size_t n)
{
    if (t->by == TREE_SUFFIX)
        return image_file_suffix(name, n);
    if (t->by == TREE_NPY)
        return n > 4 && memcmp(name + n - 4, ".npy", 4) == 0;
    uint8_t first[IMAGE_FILE_MAGIC];
    const ssize_t got = io_peek(fd, name, first, sizeof first);
    return got > 0 && image_file_magic(first, (size_t)got);
}

/* A folder that stat() fails on also counts: reading it reports the error, and its class keeps its index. */
static bool is_folder(int fd, const struct dirent *entry, struct stat *st)
{
    const unsigned char type = entry->d_type;
    if (type != DT_DIR && type != DT_LNK && type != DT_UNKNOWN)
        return false;
    if (fstatat(fd, entry->d_name, st, 0) == 0)
        return S_ISDIR(st->st_mode);
    *st = (struct stat){0};
    return type == DT_DIR;
}

/* Handles one entry of a folder. Returns 0 or an errno. */
static int take_entry(const struct tree *t, struct tree_dir *d, int fd, const struct dirent *entry)
{
    const char *name = entry->d_name;
    if (name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0)))
        return 0;
    if (image_file_junk(name)) {
        d->hidden++;
        return 0;
    }
    struct stat st;
    if (is_folder(fd, entry, &st))
        return add_child(d, name, &st);
    const size_t n = strlen(name);
    if (!is_sample(t, fd, name, n)) {
        count_other(d, name);
        return 0;
    }
    d->n++;
    return buf_add(&d->names, name, n + 1) ? ENOMEM : 0;
}

static int read_entries(const struct tree *t, struct tree_dir *d, DIR *dir)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry)
            return errno;
        const int rc = take_entry(t, d, dirfd(dir), entry);
        if (rc != 0)
            return rc;
    }
}

/* Names are sorted by the eight bytes after their common prefix, with a radix sort from the last byte to the first.
 * Only names with equal keys are compared as strings. */
struct entry {
    uint64_t key;
    const char *name;
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Sorts a[n] by key, with b[n] as scratch memory. Returns the one that contains the result. */
static struct entry *sort_by_key(struct entry *a, struct entry *b, size_t n)
{
    uint32_t count[8][256] = {{0}};
    for (size_t i = 0; i < n; i++)
        for (int d = 0; d < 8; d++)
            count[d][a[i].key >> 8 * d & 255]++;
    for (int d = 0; d < 8; d++) {
        if (count[d][a[0].key >> 8 * d & 255] == n) /* all names have the same byte here */
            continue;
        for (uint32_t v = 0, before = 0; v < 256; v++) {
            const uint32_t k = count[d][v];
            count[d][v] = before;
            before += k;
        }
        for (size_t i = 0; i < n; i++)
            b[count[d][a[i].key >> 8 * d & 255]++] = a[i];
        struct entry *const sorted = b;
        b = a;
        a = sorted;
    }
    return a;
}

static void sort_equal_keys(struct entry *a, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && a[end].key == a[i].key; end++)
            ;
        if (end - i > 1)
            qsort(a + i, end - i, sizeof *a, compare);
    }
}

static uint64_t key_of(const char *p)
{
    uint64_t key = 0;
    int i = 0;
    for (; i < 8 && p[i]; i++)
        key = key << 8 | (uint8_t)p[i];
    return i < 8 ? key << (8 * (8 - i)) : key;
}

static size_t common_prefix(const struct tree_dir *d)
{
    const char *first = (const char *)d->names.data, *end = first + d->names.len;
    size_t common = strlen(first);
    for (const char *p = first; p < end; p += strlen(p) + 1)
        for (size_t i = 0; i < common; i++)
            if (p[i] != first[i])
                common = i;
    return common;
}

static int sort_names(struct tree_dir *d)
{
    if (d->n < 2)
        return 0;
    const size_t n = (size_t)d->n;
    struct entry *entries = n < UINT32_MAX ? malloc(2 * n * sizeof *entries) : NULL;
    struct buf sorted = {0};
    if (!entries || buf_reserve(&sorted, d->names.len)) {
        free(entries);
        return ENOMEM;
    }
    const size_t common = common_prefix(d);
    const char *p = (const char *)d->names.data;
    for (size_t i = 0; i < n; i++, p += strlen(p) + 1)
        entries[i] = (struct entry){key_of(p + common), p};
    struct entry *const in_order = sort_by_key(entries, entries + n, n);
    sort_equal_keys(in_order, n);
    for (size_t i = 0; i < n; i++)
        buf_add(&sorted, in_order[i].name, strlen(in_order[i].name) + 1); /* cannot fail: reserved */
    free(entries);
    buf_done(&d->names);
    d->names = sorted;
    return 0;
}

static int scan(const struct tree *t, struct tree_dir *d)
{
    const char *path = tree_path(t, d);
    const int fd = openat(t->fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    struct stat st;
    DIR *dir = fstat(fd, &st) == 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        const int os_error = errno;
        close(fd);
        return os_error;
    }
    d->stable = index_stamp(&d->stamp, &st);
    int rc = buf_reserve(&d->names, 4096) ? ENOMEM : read_entries(t, d, dir);
    closedir(dir);
    if (rc == 0)
        rc = sort_names(d);
    if (d->n == 0 || rc != 0)
        buf_done(&d->names);
    return rc;
}

static void scan_one(void *user, int64_t i)
{
    struct tree *t = user;
    struct tree_dir *d = &t->dirs[t->level + (uint32_t)i];
    d->os_error = scan(t, d);
    if (d->os_error != 0)
        d->n = 0;
}

/* ------------------------------------------------------------------ all folders */

static int add_dir(struct tree *t, uint32_t parent, const char *name)
{
    if (t->n == t->cap) {
        const uint32_t cap = t->cap ? 2 * t->cap : 64;
        struct tree_dir *dirs = cap < UINT32_MAX / 2 ? realloc(t->dirs, cap * sizeof *dirs) : NULL;
        if (!dirs)
            return -1;
        t->dirs = dirs;
        t->cap = cap;
    }
    struct tree_dir d = {.path = t->paths.len, .parent = parent};
    if (t->n != TREE_ROOT) {
        const struct tree_dir above = t->dirs[parent];
        d.depth = above.depth + 1;
        d.top = parent == TREE_ROOT ? t->n : above.top;
        /* Reserve first: appending the parent's path from the same buffer must not move it. */
        if (buf_reserve(&t->paths, t->paths.len + above.path_bytes + strlen(name) + 2) ||
            buf_add(&t->paths, t->paths.data + above.path, above.path_bytes) || buf_add_str(&t->paths, name) ||
            buf_add(&t->paths, "/", 1))
            return -1;
    }
    d.path_bytes = t->paths.len - d.path;
    if (buf_add(&t->paths, "", 1))
        return -1;
    t->dirs[t->n++] = d;
    return 0;
}

static bool is_loop(const struct tree *t, uint32_t at, const struct child *c)
{
    for (;; at = t->dirs[at].parent) {
        const struct stamp *w = &t->dirs[at].stamp;
        if (w->ino == c->ino && w->dev == c->dev)
            return true;
        if (at == TREE_ROOT)
            return false;
    }
}

/* Adds the subfolders of a folder to the next level. */
static int expand(struct tree *t, uint32_t at)
{
    struct buf children = t->dirs[at].children;
    t->dirs[at].children = (struct buf){0};
    int rc = 0;
    for (size_t p = 0; p < children.len && rc == 0;) {
        struct child c;
        memcpy(&c, children.data + p, sizeof c);
        const char *name = (const char *)children.data + p + sizeof c;
        p += sizeof c + strlen(name) + 1;
        uint32_t number;
        const int added = names_add(&t->seen, &c, sizeof c, &number);
        if (added < 0)
            rc = -1;
        else if (t->dirs[at].depth >= TREE_DEPTH || is_loop(t, at, &c) || (added == 0 && ++t->repeats > TREE_REPEATS))
            t->loops++;
        else
            rc = add_dir(t, at, name);
    }
    buf_done(&children);
    return rc;
}

/* Whether the error is not the folder's own, so that skipping the folder would lose images. */
static bool is_fatal(int os_error)
{
    return os_error == ENOMEM || os_error == EMFILE || os_error == ENFILE;
}

int tree_scan(struct tree *t, int fd, enum tree_by by, int threads, stk_error *e)
{
    *t = (struct tree){.fd = fd, .by = by};
    if (add_dir(t, TREE_ROOT, ""))
        goto no_memory;
    while (t->level < t->n) {
        const uint32_t end = t->n;
        pool_for(threads, (int64_t)end - t->level, scan_one, t);
        for (uint32_t at = t->level; at < end; at++) {
            const struct tree_dir *d = &t->dirs[at];
            if (d->os_error && (at == TREE_ROOT || is_fatal(d->os_error)))
                return error_os(e, d->os_error, "open", "cannot read the folder%s%s", at == TREE_ROOT ? "" : " ",
                                tree_path(t, d));
            if (expand(t, at))
                goto no_memory;
        }
        t->level = end;
    }
    return STK_OK;

no_memory:
    return error_nomem(e, "open", t->paths.len);
}

void tree_done(struct tree *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        buf_done(&t->dirs[i].names);
        buf_done(&t->dirs[i].children);
    }
    free(t->dirs);
    buf_done(&t->paths);
    names_done(&t->seen);
    *t = (struct tree){0};
}
