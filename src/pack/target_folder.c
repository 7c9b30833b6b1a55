/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_folder.c -- files: a picture each, in folders of their classes, and other fields beside them, in files that
 * are called as the picture is, with a suffix: cat/1.jpg, cat/1.jpg.caption.txt.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/picture.h"
#include "pack/keys.h"
#include "pack/place.h"
#include "pack/target.h"

struct folder_target {
    struct keys names; /* of the files that were written */
    struct buf made, name;
};

/* Whether something of this name is found again by who looks for pictures. */
static bool is_found(const char *name, size_t n)
{
    char part[256];
    if (n == 0 || n >= sizeof part || memchr(name, '/', n))
        return false;
    memcpy(part, name, n);
    part[n] = 0;
    return !picture_junk(part);
}

static int begin(struct target *t, stk_error *e)
{
    for (int i = 0; i < t->o.n_classes; i++)
        if (!is_found(t->o.classes[i], strlen(t->o.classes[i])))
            return error_set(e, STK_EUSAGE, "write",
                             "the class \"%.100s\" cannot be a folder whose pictures are found: pack to another target",
                             t->o.classes[i]);
    place_sweep(t->dir, 0); /* the journal is locked: no other run packs into it */
    t->state = calloc(1, sizeof(struct folder_target));
    return t->state ? STK_OK : error_nomem(e, "write", sizeof(struct folder_target));
}

static void close_target(struct target *t)
{
    struct folder_target *s = t->state;
    if (s) {
        keys_done(&s->names);
        buf_done(&s->made);
        buf_done(&s->name);
    }
    free(s);
    t->state = NULL;
}

static bool is_label(const struct packed_field *f)
{
    return strcmp(f->name, "cls") == 0;
}

/* The class that a sample's folder stands for; NULL: folders are no classes here. */
static int class_of(const struct target *t, const struct packed *p, const char **class, stk_error *e)
{
    *class = NULL;
    if (t->o.n_classes == 0)
        return STK_OK;
    if (p->label < 0 || p->label >= t->o.n_classes)
        return error_set(e, STK_EDATA, "write",
                         "has no class, and so no folder: pack to another target, or leave the label out (--fields)");
    *class = t->o.classes[p->label];
    return STK_OK;
}

static bool begins_with_folder(const char *name, const char *folder)
{
    const size_t n = strlen(folder);
    return strncmp(name, folder, n) == 0 && name[n] == '/';
}

/* Every part of a path. */
static int check_path(const char *path, stk_error *e)
{
    for (const char *part = path; *part;) {
        const size_t n = strcspn(part, "/");
        if (!is_found(part, n))
            return error_set(e, STK_EUSAGE, "write",
                             "would be called %.200s, which is not found in a folder: pack to another target", path);
        part += n + (part[n] == '/');
    }
    return STK_OK;
}

/* The name of the picture's file, which is no other's, in s->name. */
static int name_picture(struct target *t, const struct packed *p, stk_error *e)
{
    struct folder_target *s = t->state;
    const struct packed_field *f = &p->fields[p->picture];
    const char *class;
    int rc = class_of(t, p, &class, e);
    if (rc != STK_OK)
        return rc;
    s->made.len = s->name.len = 0;
    if (keys_name((const char *)p->key.data, f->name, true, &s->name))
        return error_nomem(e, "write", p->key.len);
    const char *name = (const char *)s->name.data;
    const bool suffixed = picture_suffix(name, strlen(name)), foldered = !class || begins_with_folder(name, class);
    if (buf_printf(&s->made, "%s%s%s%s%s", foldered ? "" : class, foldered ? "" : "/", name, suffixed ? "" : ".",
                   suffixed ? "" : f->name))
        return error_nomem(e, "write", s->made.len);
    if (!picture_suffix((const char *)s->made.data, s->made.len))
        return error_set(e, STK_EDATA, "write", "is no picture, of which a folder consists");
    rc = check_path((const char *)s->made.data, e);
    s->name.len = 0;
    if (rc == STK_OK && keys_unique(&s->names, (const char *)s->made.data, p->sample, &s->name))
        rc = error_nomem(e, "write", s->made.len);
    return rc;
}

static int put_file(struct target *t, const struct packed *p, const struct packed_field *f, stk_error *e)
{
    const struct folder_target *s = t->state;
    const struct content c = {.bytes = packed_bytes(p, f), .n = (int64_t)f->n};
    t->bytes += c.n;
    return place_file(t->dir, (const char *)s->name.data, &c, t->o.force, e);
}

static int put(struct target *t, const struct packed *p, stk_error *e)
{
    struct folder_target *s = t->state;
    int rc = name_picture(t, p, e);
    if (rc == STK_OK)
        rc = put_file(t, p, &p->fields[p->picture], e);
    const size_t n = s->name.len;
    for (int i = 0; i < p->n_fields && rc == STK_OK; i++) {
        const struct packed_field *f = &p->fields[i];
        if (i == p->picture || (is_label(f) && t->o.n_classes > 0))
            continue; /* the folder says the class */
        s->name.len = n;
        rc = buf_printf(&s->name, ".%s", f->name) ? error_nomem(e, "write", n) : put_file(t, p, f, e);
    }
    return rc;
}

static int end(struct target *t, stk_error *e)
{
    (void)e;
    syncfs(t->dir); /* one for all files */
    return STK_OK;
}

const struct target_format target_folder = {
    .to = STK_TO_FOLDER, .name = "folder", .begin = begin, .write = put, .end = end, .close = close_target};
