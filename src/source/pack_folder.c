/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_folder.c -- a pack: stoker.json in its folder lists the files with the samples, their fields and their classes.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "base/json.h"
#include "source/recognise.h"

const char pack_manifest_name[] = "stoker.json";

bool pack_folder_is(const char *folder)
{
    static const char *const names[] = {pack_manifest_name, ".stoker-pack.journal"};
    char path[PATH_MAX];
    struct stat st;
    bool found = false;
    for (int i = 0; i < 2 && !found; i++) {
        const int n = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        found = n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    }
    return found;
}

int pack_manifest_read(int dir, struct buf *out, stk_error *e)
{
    enum { MOST = 256 << 20 };
    int64_t size;
    stk_error why = {0};
    const int rc = io_read(dir, pack_manifest_name, MOST, out, &size, NULL, &why);
    return rc == STK_OK ? rc
                        : error_set(e, rc == STK_EDATA ? STK_EUSAGE : rc, "open", "its stoker.json %s", why.reason);
}

static int damaged(stk_error *e)
{
    return error_set(e, STK_EUSAGE, "open", "its stoker.json is damaged or of another version; pack it again");
}

static int take_classes(struct recognised *r, struct json_value list, stk_error *e)
{
    struct buf name = {0};
    int rc = STK_OK;
    for (struct json_value v = json_first(list); v.p && rc == STK_OK; v = json_next(v)) {
        uint32_t number;
        name.len = 0;
        if (!json_get_text(v, &name))
            rc = damaged(e);
        else if (names_add(&r->classes, name.data, name.len, &number) < 0)
            rc = error_nomem(e, "open", name.len);
    }
    buf_done(&name);
    return rc;
}

/* Sets *path to the path of a file in the folder; *name is the offset of its name. */
static int take_name(const struct recognised *r, struct json_value v, struct buf *path, size_t *name, stk_error *e)
{
    path->len = 0;
    if (buf_printf(path, "%s/", r->path))
        return error_nomem(e, "open", path->len);
    *name = path->len;
    return json_get_text(json_find(v, "name"), path) && path->len > *name &&
                   !strchr((const char *)path->data + *name, '/')
               ? STK_OK
               : damaged(e);
}

/* Adds a further column to the query: "&labels=labels.npy". Skips the offsets of ragged columns. */
static int take_column(const char *name, struct buf *query, stk_error *e)
{
    enum { SUFFIX = 4, OFFSETS = 8 };
    const size_t all = strlen(name), n = all > SUFFIX ? all - SUFFIX : 0;
    if (n == 0 || strcmp(name + n, ".npy") != 0 ||
        (n > OFFSETS && memcmp(name + n - OFFSETS, ".offsets", OFFSETS) == 0))
        return STK_OK;
    return buf_printf(query, "%s%.*s=%s", query->len ? "&" : "", (int)n, name, name) ? error_nomem(e, "open", n)
                                                                                     : STK_OK;
}

/* Takes the files with samples, and further columns. */
static int take_files(struct recognised *r, struct json_value list, struct buf *query, stk_error *e)
{
    struct buf path = {0};
    int rc = STK_OK;
    for (struct json_value v = json_first(list); v.p && rc == STK_OK; v = json_next(v)) {
        int64_t samples = 0;
        uint32_t number;
        size_t name = 0;
        rc = take_name(r, v, &path, &name, e);
        if (rc == STK_OK && !json_get_int(json_find(v, "samples"), &samples))
            rc = damaged(e);
        if (rc == STK_OK && samples == 0)
            rc = take_column((const char *)path.data + name, query, e);
        else if (rc == STK_OK && names_add(&r->paths, path.data, path.len, &number) < 0)
            rc = error_nomem(e, "open", path.len);
    }
    buf_done(&path);
    return rc;
}

/* Takes classes, files and fields from stoker.json. */
static int take_manifest(struct recognised *r, struct json_value v, struct buf *format, stk_error *e)
{
    struct buf query = {0}, fields = {0}, names = {0};
    int64_t version = 0;
    if (!json_get_int(json_find(v, "stoker_pack"), &version) || version != 1 ||
        !json_get_text(json_find(v, "format"), format) || buf_printf(format, ":"))
        return damaged(e);
    int rc = take_classes(r, json_find(v, "classes"), e);
    if (rc == STK_OK)
        rc = take_files(r, json_find(v, "shards"), &query, e);
    if (!json_get_text(json_find(v, "fields"), &fields))
        buf_done(&fields);
    r->query = (char *)query.data;
    r->fields = (char *)fields.data;
    r->keys_are_files = json_get_text(json_find(v, "names"), &names) && strcmp((const char *)names.data, "files") == 0;
    buf_done(&names);
    if (rc != STK_OK)
        return rc;
    r->is_pack = true;
    if (strcmp((const char *)format->data, "folder:") == 0) {
        r->form = r->classes.n > 0 ? SOURCE_CLASSES : SOURCE_FILES;
        return STK_OK;
    }
    r->form = SOURCE_CONTAINER;
    r->container = container_find((const char *)format->data);
    if (!r->container || r->paths.n == 0)
        return damaged(e);
    return r->container->open ? STK_OK
                              : error_set(e, STK_EBUILD, "open", "this build cannot read %s", r->container->what);
}

int pack_folder_parse(struct recognised *r, const void *text, size_t n, stk_error *e)
{
    struct buf format = {0};
    const int rc = take_manifest(r, json_document(text, n), &format, e);
    buf_done(&format);
    return rc;
}

int pack_folder_read(struct recognised *r, stk_error *e)
{
    struct buf text = {0};
    const int dir = io_open(AT_FDCWD, r->path);
    int rc = dir < 0 ? error_os(e, errno, "open", "cannot be opened") : pack_manifest_read(dir, &text, e);
    if (rc == STK_OK)
        rc = pack_folder_parse(r, text.data, text.len, e);
    else if (rc == STK_ENOTFOUND)
        rc = error_set(e, STK_EUSAGE, "open",
                       "is an unfinished pack; run `stoker pack` with the same options to finish it");
    buf_done(&text);
    if (dir >= 0)
        close(dir);
    return rc;
}
