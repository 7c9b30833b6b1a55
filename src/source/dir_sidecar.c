/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dir_sidecar.c -- a packed folder: the other fields of an image are in files next to it, named after it: cat/1.jpg,
 * cat/1.jpg.caption.txt, cat/1.jpg.box.npy.
 */
#include "source/source_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "base/size.h"
#include "source/columns.h"
#include "source/fields_text.h"
#include "source/files.h"

struct sidecar {
    struct columns columns; /* the image, and the suffixes */
};

/* Appends a file to r->derived. *at is the offset of its bytes; SIZE_MAX: the file does not exist. */
static int read_one(const struct source *s, struct reading *r, const char *path, size_t *at, stk_error *e)
{
    static const uint8_t zeros[IO_SLACK];
    stk_error why = {.sample = -1};
    struct buf *file = &r->spare[0];
    int64_t size = -1;
    *at = SIZE_MAX;
    int rc = source_allow_file(s, r, files_dir(s), path, size_add(r->rest ? 0 : r->n_bytes, r->derived.len), 2, e);
    if (rc != STK_OK)
        return rc;
    rc = io_read(files_dir(s), path, s->max_bytes, file, &size, NULL, &why);
    if (rc != STK_OK && why.os_error == ENOENT)
        return STK_OK;
    if (rc != STK_OK && size != 0) /* an empty file is an empty text */
        return error_set(e, rc, "read", "its file %.200s: %.300s", path, why.reason);
    *at = r->derived.len;
    return buf_add(&r->derived, file->data, size ? file->len : 0) || buf_add(&r->derived, zeros, IO_SLACK)
               ? error_nomem(e, "read", (size_t)size)
               : STK_OK;
}

static int read_sidecars(const void *state, const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const struct sidecar *b = state;
    char path[PATH_MAX];
    size_t at[FIELD_MAX];
    const size_t n = index_path(files_index(s), i, path, sizeof path);
    int rc = STK_OK;
    r->derived.len = 0;
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++) {
        at[f] = SIZE_MAX;
        if (s->fields[f].column < 1)
            continue;
        const char *suffix = b->columns.items[s->fields[f].column].name;
        if (n >= sizeof path || (size_t)snprintf(path + n, sizeof path - n, ".%s", suffix) >= sizeof path - n)
            return error_os(e, ENAMETOOLONG, "read", "cannot be opened");
        rc = read_one(s, r, path, &at[f], e);
        r->cells[f].n = at[f] == SIZE_MAX ? 0 : r->derived.len - at[f] - IO_SLACK;
    }
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++) /* r->derived no longer moves */
        if (s->fields[f].column >= 1)
            r->cells[f] = (struct cell){.bytes = at[f] == SIZE_MAX ? NULL : r->derived.data + at[f],
                                        .n = r->cells[f].n,
                                        .text = s->fields[f].text};
    return rc;
}

static void free_sidecars(void *state)
{
    struct sidecar *b = state;
    if (b)
        columns_done(&b->columns);
    free(b);
}

/* The suffixes of the files that contain the pack's fields. */
static int find_columns(struct columns *c, const char *own, stk_error *e)
{
    int rc = STK_OK;
    for (const char *at = own; at && rc == STK_OK;) {
        struct field_text t;
        rc = fields_text_next(own, &at, &t, e);
        if (rc != STK_OK || strcmp(t.column, "image") == 0 || strcmp(t.column, "label") == 0)
            continue;
        struct column one = {.kind = t.kind, .dtype = t.dtype, .ndim = t.ndim, .label = strcmp(t.column, "cls") == 0};
        memcpy(one.name, t.column, sizeof one.name);
        memcpy(one.shape, t.shape, sizeof one.shape);
        if (strchr(one.name, '/'))
            rc = error_set(e, STK_EUSAGE, "open", "its stoker.json is damaged or of another version; pack it again");
        else if (columns_add(c, &one))
            rc = error_nomem(e, "open", sizeof one);
    }
    return rc;
}

int dir_sidecar_fields(struct source *s, const struct source_options *o, stk_error *e)
{
    struct sidecar *b = calloc(1, sizeof *b);
    const struct column image = {.name = "image", .kind = STK_IMAGE};
    if (!b || columns_add(&b->columns, &image)) {
        free_sidecars(b);
        return error_nomem(e, "open", sizeof *b);
    }
    b->columns.labels = s->n_fields > 1;
    int rc = find_columns(&b->columns, o->sidecar_fields, e);
    if (rc == STK_OK)
        rc = columns_bind(s, &b->columns, o->fields, e);
    for (int f = 0; f < s->n_fields; f++) /* the image is read as in any folder */
        if (s->fields[f].column == 0)
            s->fields[f].column = -1;
    if (rc == STK_OK)
        files_add_extra(s, &(struct files_extra){.read = read_sidecars, .done = free_sidecars, .state = b});
    else
        free_sidecars(b);
    return rc;
}
