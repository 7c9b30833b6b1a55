/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_folder.c -- files: a picture each, in folders of their classes, and other fields beside them.
 *
 * Names come from outside. Every folder on the way is opened without following links, and a name that would
 * leave the target is refused. A file that is there already with the same bytes stays; with others it is an error,
 * unless that was asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "pack/keys.h"
#include "pack/target.h"

static int failed(const char *name, int why, const char *what, stk_error *e)
{
    const int rc = error_os(e, why, "write", "%s", what);
    error_at(e, name, -1);
    return rc;
}

/* The folder that a name lies in, opened, each on the way made; *last: the name within it. */
static int open_below(int root, const char *name, const char **last, int *out, stk_error *e)
{
    int dir = dup(root);
    const char *p = name;
    for (size_t n = strcspn(p, "/"); dir >= 0 && p[n]; n = strcspn(p, "/")) {
        char part[256];
        memcpy(part, p, n); /* keys_is_safe has seen to its length */
        part[n] = 0;
        if (mkdirat(dir, part, 0777) && errno != EEXIST)
            break;
        const int next = openat(dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        const int why = errno;
        close(dir);
        dir = next;
        errno = why;
        p += n + 1;
    }
    *last = p;
    *out = dir;
    if (dir >= 0 && !strchr(p, '/'))
        return STK_OK;
    const int rc = failed(name, errno, "cannot make its folder", e);
    if (dir >= 0)
        close(dir);
    return rc;
}

/* 1: the same bytes are there; 0: nothing is; -1: something else is. */
static int look(int dir, const char *name, const uint8_t *bytes, size_t n)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? 0 : -1;
    if (!S_ISREG(st.st_mode) || st.st_size != (off_t)n)
        return -1;
    const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    uint8_t *there = malloc(n + 1);
    const bool same = fd >= 0 && there && file_read_at(fd, there, n, 0) && memcmp(there, bytes, n) == 0;
    free(there);
    if (fd >= 0)
        close(fd);
    return same ? 1 : -1;
}

static int write_new(int dir, const char *last, const char *name, const uint8_t *bytes, size_t n, stk_error *e)
{
    static const char temp[] = ".stoker-unpack.part";
    const int fd = openat(dir, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return failed(name, errno, "cannot make it", e);
    int why = file_write_at(fd, bytes, n, 0);
    if (close(fd) && !why)
        why = errno;
    if (!why && renameat(dir, temp, dir, last))
        why = errno;
    if (why)
        unlinkat(dir, temp, 0);
    return why ? failed(name, why, "cannot write it", e) : STK_OK;
}

static int put_file(struct target *t, const char *name, const uint8_t *bytes, size_t n, stk_error *e)
{
    if (!keys_is_safe(name)) {
        const int rc =
            error_set(e, STK_EDATA, "write", "this name would leave the folder, or is none; nothing is written");
        error_at(e, name, -1);
        return rc;
    }
    int dir;
    const char *last;
    int rc = open_below(t->dir, name, &last, &dir, e);
    if (rc != STK_OK)
        return rc;
    const int there = look(dir, last, bytes, n);
    if (there < 0 && !t->o.force)
        rc = failed(name, EEXIST, "something else is there; --force writes over it", e);
    else if (there <= 0)
        rc = write_new(dir, last, name, bytes, n, e);
    close(dir);
    t->bytes += rc == STK_OK ? (int64_t)n : 0;
    return rc;
}

/* Whether a key says its class itself, as "cat/1" does. */
static bool has_class(const struct target *t, const struct packed *p)
{
    if (p->label < 0 || p->label >= t->o.n_classes)
        return false;
    const char *class = t->o.classes[p->label], *key = (const char *)p->key.data;
    const size_t n = strlen(class);
    return strncmp(key, class, n) == 0 && key[n] == '/';
}

static int put(struct target *t, const struct packed *p, stk_error *e)
{
    struct buf name = {0};
    const bool in_class = has_class(t, p);
    const bool made_class = !t->o.plain && !in_class && p->label >= 0 && p->label < t->o.n_classes;
    int rc = STK_OK;
    for (int i = 0; i < p->n_fields && rc == STK_OK; i++) {
        const struct packed_field *f = &p->fields[i];
        if ((in_class || made_class) && strcmp(f->name, "cls") == 0)
            continue; /* the folder says it */
        name.len = 0;
        if ((made_class && buf_printf(&name, "%s/", t->o.classes[p->label])) ||
            keys_name((const char *)p->key.data, f->name, i == p->picture, &name))
            rc = error_nomem(e, "write", p->key.len);
        else
            rc = put_file(t, (const char *)name.data, packed_bytes(p, f), f->n, e);
    }
    buf_done(&name);
    return rc;
}

static int end(struct target *t, stk_error *e)
{
    (void)e;
    syncfs(t->dir); /* one for all files */
    return STK_OK;
}

const struct target_format target_folder = {.to = STK_TO_FOLDER, .name = "folder", .write = put, .end = end};
