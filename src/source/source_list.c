/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_list.c -- a list of files, with or without labels.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/pool.h"
#include "source/fields_text.h"
#include "source/files.h"
#include "source/list_fields.h"

/* ------------------------------------------------------------------ stamps of the folders */

struct stamping {
    struct index *x;
    int dir;
    atomic_bool unstable;
};

static void stamp_one(void *user, int64_t i)
{
    struct stamping *w = user;
    const char *path = w->x->pool + w->x->dir_at[i];
    struct stat st;
    if (fstatat(w->dir, path[0] ? path : ".", &st, 0) == 0 && !index_stamp(&w->x->stamp[i], &st))
        atomic_store(&w->unstable, true);
}

/* false: a folder changed just now. */
static bool stamp_folders(struct index *x, int dir, int threads)
{
    struct stamping w = {.x = x, .dir = dir};
    pool_for(threads, (int64_t)x->head->n_dirs, stamp_one, &w);
    return !atomic_load(&w.unstable);
}

/* ------------------------------------------------------------------ opening */

static bool any_file_exists(const struct source *s)
{
    const struct index *x = files_index(s);
    for (int64_t i = 0; i < (int64_t)x->head->n; i++) /* usually the first one exists */
        if (index_size(x, files_dir(s), i) >= 0)
            return true;
    return false;
}

static int no_file_exists(const struct source *s, stk_error *e)
{
    char first[PATH_MAX], below[PATH_MAX];
    s->ops->path(s, 0, first, sizeof first);
    s->ops->key(s, 0, below, sizeof below);
    struct stat st;
    const bool from_here = below[0] != '/' && stat(below, &st) == 0;
    const int64_t n = (int64_t)files_index(s)->head->n;
    char none[64] = "its only file does not exist; it";
    if (n > 1)
        snprintf(none, sizeof none, "none of the %lld files exists; the first", (long long)n);
    return error_set(e, STK_ENOTFOUND, "open", "%s was expected at %.300s; %s", none, first,
                     from_here             ? "paths are relative to the folder of the list, not to the current folder"
                     : strchr(below, '\\') ? "separate folders with /, not with \\"
                                           : "paths are relative to the folder of the list, unless they start with /");
}

/* Whether the fields need labels as integers. Without fields they do. Other kinds (label:text) read the column itself,
 * which plain lines do not have. Columns without a header have a number as their name. */
static bool needs_labels(const struct source_options *o, enum list_format format)
{
    for (const char *at = o->fields; at && at[0];) {
        struct field_text t;
        if (fields_text_next(o->fields, &at, &t, NULL) != STK_OK)
            return true;
        const size_t n = strlen(t.column);
        const bool label = list_label_rank((struct slice){t.column, n}) >= 0 || strspn(t.column, "0123456789") == n;
        if (label && (t.kind == STK_KIND_DEFAULT || t.kind == STK_INT || format == LIST_LINES))
            return true;
    }
    return !(o->fields && o->fields[0]);
}

static int make(struct source *s, const struct source_options *o, const char *name, int fd, struct files_report *report,
                stk_error *e)
{
    struct list l = {.name = name, .dir = files_dir(s), .lines.fd = fd};
    struct index *x = files_index(s);
    struct stamp list;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return error_os(e, errno, "open", "cannot be examined");
    const bool stable = index_stamp(&list, &st);
    int rc = list_detect(&l, e);
    l.labels_optional = !needs_labels(o, l.format);
    const int files = rc == 0 ? list_names_files(&l, e) : -1;
    if (files > 0)
        rc = list_index(&l, &s->classes, x, e);
    list_done(&l);
    report->values = files == 0;
    if (files < 0 || rc != 0)
        return e->code;
    if (files == 0)
        return STK_OK;
    x->head->list = list;
    x->head->list_bytes = (int64_t)st.st_size;
    report->stable = stamp_folders(x, files_dir(s), o->threads) && stable && !l.without_labels;
    return STK_OK;
}

/* The folder of a list, as typed; "": the current folder. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    char *folder = malloc(n + 1);
    if (folder) {
        memcpy(folder, path, n);
        folder[n] = 0;
    }
    return folder;
}

static int read_columns(const void *state, const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    return list_fields_read(state, s, r, i, e);
}

static void free_columns(void *state)
{
    list_fields_free(state);
}

/* Sets the fields that were asked for; other columns are read from the lines of the list. */
static int choose_fields(struct source *s, const struct source_options *o, const char *name, int fd, stk_error *e)
{
    struct list l = {.name = name, .dir = files_dir(s), .lines.fd = fd};
    struct list_fields *f = NULL;
    int rc = list_detect(&l, e) == 0 ? list_fields_open(&f, &l, true, e) : e->code;
    if (rc == STK_OK && f->n != s->count)
        rc = error_set(e, STK_EUSAGE, "open", "the list changed while it was read; open it again");
    if (rc == STK_OK) {
        f->columns.labels = files_index(s)->head->has_labels;
        rc = columns_bind(s, &f->columns, o->fields, e);
    }
    if (rc == STK_OK)
        rc = list_fields_classes(f, &l, s, e);
    list_done(&l);
    if (rc == STK_OK)
        files_add_extra(s, &(struct files_extra){.read = read_columns, .done = free_columns, .state = f});
    else
        list_fields_free(f);
    return rc;
}

/* Stores the names of the columns that are neither path nor label. */
static int store_unused(struct source *s, const struct columns *c, stk_error *e)
{
    struct buf all = {0};
    int rc = STK_OK;
    for (int i = 1; i < c->n && rc == STK_OK; i++)
        if (!c->items[i].implied && !c->items[i].label &&
            buf_printf(&all, "%s%s", all.len ? ", " : "", c->items[i].name))
            rc = error_nomem(e, "open", all.len);
    if (rc == STK_OK && all.len > 0) {
        s->unused_columns = strndup((const char *)all.data, all.len);
        rc = s->unused_columns ? STK_OK : error_nomem(e, "open", all.len);
    }
    buf_done(&all);
    return rc;
}

/* Without `fields`: finds out which other columns the list has. */
static int find_unused(struct source *s, const char *name, int fd, stk_error *e)
{
    struct list l = {.name = name, .dir = files_dir(s), .lines.fd = fd};
    struct list_fields f = {.fd = -1, .paths = true};
    if (!list_has_columns(&l))
        return STK_OK;
    enum { LINES = 64 }; /* enough to find the names */
    int rc = list_detect(&l, e) == 0 ? list_fields_detect(&f, &l, LINES, e) : e->code;
    if (rc == STK_OK)
        rc = store_unused(s, &f.columns, e);
    list_fields_done(&f);
    list_done(&l);
    return rc;
}

static int open_at(struct source *s, const struct source_options *o, const char *path, int fd, stk_error *e)
{
    char *folder = folder_of(path);
    if (!folder)
        return error_nomem(e, "open", strlen(path));
    struct files_report report = {.began_ns = now_ns()};
    const struct files_options options = {.path = path,
                                          .folder = folder,
                                          .cache_dir = o->cache_dir,
                                          .kind = INDEX_LIST,
                                          .list = fd,
                                          .threads = o->threads};
    int rc = files_open(s, &options, e);
    if (rc == STK_OK && files_cached(s))
        report.stable = true;
    else if (rc == STK_OK)
        rc = make(s, o, path, fd, &report, e);
    if (rc == STK_OK && report.values) {
        s->ops->close(s);
        s->ops = NULL;
        free(folder);
        return source_table_open(s, o, path, fd, e);
    }
    if (rc == STK_OK && !any_file_exists(s))
        rc = no_file_exists(s, e);
    if (rc == STK_OK)
        files_finish(s, "list", &report);
    if (rc == STK_OK)
        rc = o->all_columns || (o->fields && o->fields[0]) ? choose_fields(s, o, path, fd, e)
                                                           : find_unused(s, path, fd, e);
    free(folder);
    return rc;
}

int source_list_open(struct source *s, const struct source_options *o, const char *path, stk_error *e)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const int rc = fd < 0 ? error_os(e, errno, "open", "cannot be opened") : open_at(s, o, path, fd, e);
    if (fd >= 0)
        close(fd);
    if (rc != STK_OK && !e->path[0])
        error_at(e, path, -1);
    return rc;
}
