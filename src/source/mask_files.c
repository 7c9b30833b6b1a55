/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask_files.c -- masks that a column names by their paths: "image,mask" in a list, or a column of text in a container.
 *
 * A path is relative to the folder of the source, like the paths of images in a list. A source that the caller reads
 * has no folder; then it is the folder of the sample's own path. Arrays in memory have neither: there, paths are
 * relative to the current folder.
 */
#include "source/mask_files.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "source/annotated.h"
#include "source/source_ops.h"

/* The path of the file that a cell names. false: it is too long, or not a path. */
static bool path_of(const struct source *s, int64_t i, const struct cell *c, char path[PATH_MAX])
{
    if (c->n == 0 || memchr(c->bytes, 0, c->n))
        return false;
    path[0] = 0;
    if (c->bytes[0] != '/' && s->location)
        snprintf(path, PATH_MAX, "%s", s->location);
    else if (c->bytes[0] != '/')
        source_path(s, i, path, PATH_MAX);
    char *const slash = strrchr(path, '/'), *const to = slash ? slash + 1 : path;
    const size_t room = PATH_MAX - (size_t)(to - path);
    return (size_t)snprintf(to, room, "%.*s", (int)c->n, (const char *)c->bytes) < room;
}

/* Appends the file of a field to r->masks; *at is where it starts. */
static int load(const struct source *s, struct reading *r, int64_t i, int f, size_t *at, stk_error *e)
{
    char path[PATH_MAX];
    struct cell *c = &r->cells[f];
    if (!path_of(s, i, c, path))
        return error_set(e, STK_EDATA, "read", "%s must be the path of a file, but it is \"%.*s\"", s->fields[f].name,
                         (int)(c->n < 80 ? c->n : 80), (const char *)c->bytes);
    *at = r->masks.len;
    const int rc = annotated_load(s, r, AT_FDCWD, path, r->derived.len, &r->masks, e);
    if (rc == STK_ENOTFOUND)
        return error_set(e, STK_EDATA, "read", "its %s %.400s does not exist", s->fields[f].name, path);
    c->n = r->masks.len - *at;
    r->masks.len += rc == STK_OK ? IO_SLACK : 0; /* the zeros stay */
    return rc;
}

int mask_files_read(const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    size_t at[FIELD_MAX];
    int rc = STK_OK;
    r->masks.len = 0;
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
        if (s->fields[f].file && r->cells[f].bytes)
            rc = load(s, r, i, f, &at[f], e);
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++) /* r->masks no longer moves */
        if (s->fields[f].file && r->cells[f].bytes)
            r->cells[f] = (struct cell){.bytes = r->masks.data + at[f], .n = r->cells[f].n};
    return rc;
}
