/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_folder.c -- a folder of images, one file per sample, in folders of their classes. Other fields are files
 * next to the image, with its name and a suffix: cat/1.jpg, cat/1.jpg.caption.txt.
 *
 * A list of the files, each name ended by 0, is written before the files themselves. So a later run with --force can
 * remove them, also after this one was killed. A run that continues another writes the same list over the first one.
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
#include "base/image_file.h"
#include "pack/keys.h"
#include "pack/place.h"
#include "pack/target.h"

static const char list_name[] = ".stoker-pack.files";

struct folder_target {
    struct keys names; /* of the files that were written */
    struct buf made, name;
    int list;
    int64_t list_bytes;
};

/* Whether a reader of folders looks at a name. It ignores hidden files and those of operating systems. */
static bool is_found(const char *name, size_t n)
{
    char part[256];
    if (n == 0 || n >= sizeof part || memchr(name, '/', n))
        return false;
    memcpy(part, name, n);
    part[n] = 0;
    return !image_file_junk(part);
}

static int begin(struct target *t, stk_error *e)
{
    for (int i = 0; i < t->o.n_classes; i++)
        if (!is_found(t->o.classes[i], strlen(t->o.classes[i])))
            return error_set(e, STK_EUSAGE, "write",
                             "the class \"%.100s\" cannot be the name of a folder: it contains /, or readers ignore "
                             "it; pack to another target",
                             t->o.classes[i]);
    place_sweep(t->dir, 0); /* the journal is locked, so no other run is active */
    struct folder_target *s = t->state = calloc(1, sizeof *s);
    if (!s)
        return error_nomem(e, "write", sizeof *s);
    s->list = openat(t->dir, list_name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    return s->list >= 0 ? STK_OK : error_os(e, errno, "write", "cannot create %s", list_name);
}

static void close_target(struct target *t)
{
    struct folder_target *s = t->state;
    if (s) {
        struct stat st;
        if (s->list >= 0 && fstat(s->list, &st) == 0 && st.st_size == 0)
            unlinkat(t->dir, list_name, 0);
        if (s->list >= 0)
            close(s->list);
        keys_done(&s->names);
        buf_done(&s->made);
        buf_done(&s->name);
    }
    free(s);
    t->state = NULL;
}

/* Sets *class to the class of a sample. NULL: folders are not classes here. */
static int class_of(const struct target *t, const struct packed *p, const char **class, stk_error *e)
{
    *class = NULL;
    if (t->o.n_classes == 0)
        return STK_OK;
    if (p->label < 0 || p->label >= t->o.n_classes)
        return error_set(e, STK_EDATA, "write",
                         "has no class, but every folder is a class here; pack to another target, or leave out the "
                         "label (--fields)");
    *class = t->o.classes[p->label];
    return STK_OK;
}

static bool begins_with_folder(const char *name, const char *folder)
{
    const size_t n = strlen(folder);
    return strncmp(name, folder, n) == 0 && name[n] == '/';
}

/* Checks every part of a path. */
static int check_path(const char *path, stk_error *e)
{
    for (const char *part = path; *part;) {
        const size_t n = strcspn(part, "/");
        if (!is_found(part, n))
            return error_set(e, STK_EUSAGE, "write",
                             "would get the name %.200s, which readers of folders ignore; pack to another target",
                             path);
        part += n + (part[n] == '/');
    }
    return STK_OK;
}

/* Sets s->name to a unique name for the image file. */
static int name_image(struct target *t, const struct packed *p, stk_error *e)
{
    struct folder_target *s = t->state;
    const struct packed_field *f = &p->fields[p->image];
    const char *class;
    int rc = class_of(t, p, &class, e);
    if (rc != STK_OK)
        return rc;
    s->made.len = s->name.len = 0;
    if (keys_name((const char *)p->key.data, f->name, true, &s->name))
        return error_nomem(e, "write", p->key.len);
    const char *name = (const char *)s->name.data;
    const bool suffixed = image_file_suffix(name, strlen(name)), foldered = !class || begins_with_folder(name, class);
    if (buf_printf(&s->made, "%s%s%s%s%s", foldered ? "" : class, foldered ? "" : "/", name, suffixed ? "" : ".",
                   suffixed ? "" : f->name))
        return error_nomem(e, "write", s->made.len);
    if (!image_file_suffix((const char *)s->made.data, s->made.len))
        return error_set(e, STK_EDATA, "write",
                         "is not named like an image (.jpg, .png, ...), so readers of folders would ignore it; pack to "
                         "another target");
    rc = check_path((const char *)s->made.data, e);
    s->name.len = 0;
    if (rc == STK_OK && keys_unique(&s->names, (const char *)s->made.data, p->sample, &s->name))
        rc = error_nomem(e, "write", s->made.len);
    return rc;
}

static int put_file(struct target *t, const struct packed *p, const struct packed_field *f, stk_error *e)
{
    struct folder_target *s = t->state;
    const struct content c = {.bytes = packed_bytes(p, f), .n = (int64_t)f->n};
    const size_t n = s->name.len + 1;
    const int why = file_write_at(s->list, s->name.data, n, s->list_bytes);
    if (why)
        return error_os(e, why, "write", "cannot write %s", list_name);
    s->list_bytes += (int64_t)n;
    t->bytes += c.n;
    return place_file(t->dir, (const char *)s->name.data, &c, t->o.force, e);
}

static int put(struct target *t, const struct packed *p, stk_error *e)
{
    struct folder_target *s = t->state;
    int rc = name_image(t, p, e);
    if (rc == STK_OK)
        rc = put_file(t, p, &p->fields[p->image], e);
    const size_t n = s->name.len;
    for (int i = 0; i < p->n_fields && rc == STK_OK; i++) {
        const struct packed_field *f = &p->fields[i];
        if (i == p->image || (strcmp(f->name, "cls") == 0 && t->o.n_classes > 0))
            continue; /* the folder is the class */
        s->name.len = n;
        rc = buf_printf(&s->name, ".%s", f->name) ? error_nomem(e, "write", n) : put_file(t, p, f, e);
    }
    return rc;
}

static int end(struct target *t, stk_error *e)
{
    const struct folder_target *s = t->state;
    if (ftruncate(s->list, s->list_bytes))
        return error_os(e, errno, "write", "cannot write %s", list_name);
    syncfs(t->dir); /* one call for all files */
    return STK_OK;
}

void target_folder_clear(int dir)
{
    const int fd = openat(dir, list_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    char *name = NULL;
    size_t room = 0;
    while (f && getdelim(&name, &room, 0, f) > 0)
        place_remove(dir, name);
    free(name);
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
}

const struct target_format target_folder = {
    .to = STK_TO_FOLDER, .name = "folder", .begin = begin, .write = put, .end = end, .close = close_target};
