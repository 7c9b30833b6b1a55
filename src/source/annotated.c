/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotated.c -- what sources of images with annotations in other files share.
 */
#include "source/annotated.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/size.h"
#include "source/query.h"
#include "source/tree.h"

int annotated_check(const struct names *paths, const char *what, const char *query, const char *const known[],
                    stk_error *e)
{
    const int rc = query_check(query, known, e);
    if (rc == STK_OK && paths->n != 1)
        return error_set(e, STK_EUSAGE, "open",
                         "the pattern matches %d %ss; give each %s as a source of its own, and the sources are joined",
                         (int)paths->n, what, what);
    return rc;
}

int annotated_open(struct source *s, const struct source_options *o, const struct annotated *a, stk_error *e)
{
    const struct files_report report = {.began_ns = a->began_ns, .stable = true};
    const struct files_options options = {.path = a->path,
                                          .folder = a->folder,
                                          .cache_dir = "off",
                                          .kind = INDEX_FILES,
                                          .list = -1,
                                          .threads = o->threads};
    int rc = files_open(s, &options, e);
    if (rc == STK_OK && image_paths_index(a->paths, s->classes.n > 0 ? &s->classes : a->classes, files_index(s)))
        rc = error_nomem(e, "open", a->paths->names.len);
    if (rc != STK_OK)
        return rc;
    files_finish(s, a->kind, &report);
    rc = columns_bind(s, a->columns, o->fields, e);
    for (int f = 0; f < s->n_fields; f++) /* the image is read as in any folder */
        if (s->fields[f].column == 0)
            s->fields[f].column = -1;
    return rc;
}

int annotated_end(struct source *s, int rc, const struct files_extra *x)
{
    if (rc == STK_OK)
        files_add_extra(s, x);
    else
        x->done(x->state);
    return rc;
}

void annotated_files_done(struct annotated_files *f)
{
    if (f->dir >= 0)
        close(f->dir);
    image_paths_done(&f->images);
    columns_done(&f->columns);
}

/* ------------------------------------------------------------------ images */

static int add_folder(struct names *all, const struct tree *t, const struct tree_dir *d)
{
    char path[PATH_MAX];
    const char *name = (const char *)d->names.data;
    for (int64_t k = 0; k < d->n; k++, name += strlen(name) + 1) {
        uint32_t ignored;
        const int n = snprintf(path, sizeof path, "%s%s", tree_path(t, d), name);
        if (n < 0 || (size_t)n >= sizeof path || names_add(all, path, (size_t)n, &ignored) < 0)
            return -1;
    }
    return 0;
}

int annotated_scan(struct image_paths *out, int dir, int threads, stk_error *e)
{
    struct tree t = {0};
    struct names all = {0};
    int rc = tree_scan(&t, dir, TREE_SUFFIX, threads, e), bad = 0;
    for (uint32_t i = 0; i < t.n && rc == STK_OK && !bad; i++) {
        if (t.dirs[i].os_error)
            rc = error_os(e, t.dirs[i].os_error, "open", "the folder %.300s cannot be read", tree_path(&t, &t.dirs[i]));
        else
            bad = add_folder(&all, &t, &t.dirs[i]);
    }
    uint32_t *order = rc == STK_OK && !bad && all.n > 0 ? names_sorted(&all) : NULL;
    bad |= all.n > 0 && !order;
    for (uint32_t k = 0; order && k < all.n && !bad; k++)
        bad = image_paths_add(out, names_at(&all, order[k]), names_length(&all, order[k]));
    free(order);
    names_done(&all);
    tree_done(&t);
    return rc != STK_OK ? rc : bad ? error_nomem(e, "open", out->names.len) : STK_OK;
}

int annotated_scan_images(struct image_paths *out, int dir, const char *name, int threads, stk_error *e)
{
    if (dir < 0)
        return error_os(e, errno, "open", "the folder of its images, %.300s, cannot be opened", name);
    const int rc = annotated_scan(out, dir, threads, e);
    close(dir);
    if (rc == STK_OK && image_paths_count(out) == 0)
        return error_set(e, STK_EUSAGE, "open", "there are no images below %.300s", name);
    return rc;
}

/* ------------------------------------------------------------------ files of annotations */

int annotated_load(const struct source *s, struct reading *r, int dir, const char *path, size_t held, struct buf *to,
                   stk_error *e)
{
    static const uint8_t zeros[IO_SLACK];
    stk_error why = {.sample = -1};
    int64_t size = -1;
    int rc = source_allow_file(s, r, dir, path, size_add(r->rest ? 0 : r->n_bytes, size_add(held, to->len)), 2, e);
    if (rc != STK_OK)
        return rc;
    struct buf *const file = &r->spare[0];
    rc = io_read(dir, path, s->max_bytes, file, &size, NULL, &why);
    if (rc != STK_OK && why.os_error == ENOENT)
        return STK_ENOTFOUND;
    if (rc != STK_OK && size != 0) {
        error_set(e, rc, "read", "its file %.200s: %.300s", path, why.reason);
        if (e)
            e->os_error = why.os_error;
        return rc;
    }
    if (buf_add(to, file->data, size ? file->len : 0) || buf_add(to, zeros, sizeof zeros))
        return error_nomem(e, "read", (size_t)size);
    to->len -= sizeof zeros;
    return STK_OK;
}

size_t annotated_beside(const struct source *s, int64_t i, const char *folder, const char *suffix, char *buf, size_t n)
{
    char key[PATH_MAX];
    if (source_key(s, i, key, sizeof key) >= sizeof key)
        return SIZE_MAX;
    const char *dot = strrchr(key, '.');
    const int stem = dot && !strchr(dot, '/') ? (int)(dot - key) : (int)strlen(key);
    const int length = snprintf(buf, n, "%s%.*s%s", folder, stem, key, suffix);
    return length > 0 ? (size_t)length : 0;
}

uint64_t annotated_hash(const struct source *s, int dir,
                        size_t (*name)(const struct source *s, int64_t i, char *buf, size_t n))
{
    uint64_t all = 0;
    for (int64_t i = 0; i < s->count; i++) {
        char path[PATH_MAX];
        struct stat st;
        const size_t n = name(s, i, path, sizeof path);
        const bool there = n > 0 && n < sizeof path && fstatat(dir, path, &st, 0) == 0;
        all = hash_mix(all, there ? (uint64_t)st.st_size : UINT64_MAX);
    }
    return all;
}

static bool path_of(const char *folder, const char *below, char to[PATH_MAX])
{
    const size_t n = strlen(folder);
    const int length = snprintf(to, PATH_MAX, "%s%s%s", folder, n > 0 && folder[n - 1] != '/' ? "/" : "", below);
    return length > 0 && length < PATH_MAX;
}

int annotated_folder(const char *folder, const char *below)
{
    char path[PATH_MAX];
    if (!path_of(folder, below, path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool annotated_has_folder(const char *folder, const char *below)
{
    char path[PATH_MAX];
    struct stat st;
    return path_of(folder, below, path) && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ------------------------------------------------------------------ sets */

int annotated_set(const char *prefix, const struct names *sets, char set[1024], stk_error *e)
{
    char list[256] = "";
    uint32_t ignored;
    for (uint32_t i = 0; i < sets->n; i++) {
        const size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%.60s", n ? ", " : "", names_at(sets, i));
    }
    if (strcmp(set, "all") == 0) {
        set[0] = 0;
        return STK_OK;
    }
    if (set[0] && !names_find(sets, set, strlen(set), &ignored))
        return error_set(e, STK_ENOTFOUND, "open", "there is no set %.100s; %s%s", set,
                         sets->n ? "there are " : "it has no sets", list);
    if (!set[0] && sets->n > 1)
        return error_set(e, STK_EUSAGE, "open",
                         "it has several sets (%s); name one, as in %sFOLDER?set=%.60s, or set=all", list, prefix,
                         names_at(sets, 0));
    if (!set[0] && sets->n == 1)
        snprintf(set, 1024, "%.1000s", names_at(sets, 0));
    return STK_OK;
}

static const char *const set_names[] = {"train",   "val",      "valid",       "validation", "test",    "training",
                                        "testing", "trainval", "train_extra", "train2017",  "val2017", "test2017"};
enum { N_SETS = sizeof set_names / sizeof set_names[0] };

bool annotated_is_set(const char *name, size_t n)
{
    for (int i = 0; i < N_SETS; i++)
        if (strlen(set_names[i]) == n && memcmp(set_names[i], name, n) == 0)
            return true;
    return false;
}

static bool has_set(const char *folder, int i, const char *other)
{
    char below[64];
    snprintf(below, sizeof below, "%s/%s", set_names[i], other);
    return annotated_has_folder(folder, below);
}

bool annotated_has_sets(const char *folder, const char *other)
{
    for (int i = 0; i < N_SETS; i++)
        if (has_set(folder, i, "images") && has_set(folder, i, other))
            return true;
    return false;
}

int annotated_enter_set(const char *prefix, char folder[PATH_MAX], char set[1024], stk_error *e)
{
    struct names sets = {0};
    int rc = STK_OK;
    if (annotated_has_folder(folder, "images"))
        return STK_OK;
    for (int i = 0; i < N_SETS && rc == STK_OK; i++) {
        uint32_t ignored;
        if (has_set(folder, i, "images") && names_add(&sets, set_names[i], strlen(set_names[i]), &ignored) < 0)
            rc = error_nomem(e, "open", sizeof sets);
    }
    if (rc == STK_OK && sets.n > 0)
        rc = strcmp(set, "all") == 0 ? error_set(e, STK_EUSAGE, "open",
                                                 "set=all needs sets below images/; give each set as a source of "
                                                 "its own, and the sources are joined")
                                     : annotated_set(prefix, &sets, set, e);
    const size_t n = strlen(folder);
    if (rc == STK_OK && sets.n > 0) {
        snprintf(folder + n, PATH_MAX - n, "%s%s", n > 0 && folder[n - 1] != '/' ? "/" : "", set);
        set[0] = 0;
    }
    names_done(&sets);
    return rc;
}
