/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_folder.c -- files: a picture each, in folders of their classes, and other fields beside them.
 */
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "pack/keys.h"
#include "pack/place.h"
#include "pack/target.h"

/* Whether a key says its class itself, as "cat/1" does. */
static bool has_class(const struct target *t, const struct packed *p)
{
    if (p->label < 0 || p->label >= t->o.n_classes)
        return false;
    const char *class = t->o.classes[p->label], *key = (const char *)p->key.data;
    const size_t n = strlen(class);
    return strncmp(key, class, n) == 0 && key[n] == '/';
}

static int put_file(struct target *t, const char *name, const struct packed *p, const struct packed_field *f,
                    stk_error *e)
{
    const struct content c = {.bytes = packed_bytes(p, f), .n = (int64_t)f->n};
    t->bytes += c.n;
    return place_file(t->dir, name, &c, t->o.force, e);
}

static int put(struct target *t, const struct packed *p, stk_error *e)
{
    struct buf name = {0};
    const bool in_class = has_class(t, p);
    const bool made_class = !in_class && p->label >= 0 && p->label < t->o.n_classes;
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
            rc = put_file(t, (const char *)name.data, p, f, e);
    }
    buf_done(&name);
    return rc;
}

static int begin(struct target *t, stk_error *e)
{
    (void)e;
    place_sweep(t->dir);
    return STK_OK;
}

static int end(struct target *t, stk_error *e)
{
    (void)e;
    syncfs(t->dir); /* one for all files */
    return STK_OK;
}

const struct target_format target_folder = {
    .to = STK_TO_FOLDER, .name = "folder", .begin = begin, .write = put, .end = end};
