/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_dir.c -- a folder of class folders, a folder of files, or a single image file.
 *
 * A folder that contains more images directly than in its subfolders is a folder of files.
 *
 * The order of samples is that of ImageFolder: by class, then by the path of the folder as a string (so that "a-b" is
 * between "a" and "a/c"), then by name; all in byte order.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/image_file.h"
#include "base/pool.h"
#include "source/columns.h"
#include "source/files.h"
#include "source/recognise.h"
#include "source/source_dir.h"
#include "source/tree.h"

/* A folder in its position in the order, and where its samples go. */
struct place {
    const struct tree_dir *dir;
    const char *path;
    size_t path_bytes; /* without the "/" at the end */
    const char *top;   /* its class: the folder directly below the root */
    size_t top_bytes;
    int64_t label;
    int64_t first; /* index of its first sample */
    size_t pool;   /* offset of its names in the index; its own path follows */
};

struct making {
    const struct tree *tree;
    const struct names *given; /* classes; empty: as found */
    struct place *places;      /* one for every folder, in order */
    struct index *index;
    bool classes;
    int n_classes;
    const int64_t *by_top; /* number of images below each class folder */
};

/* ------------------------------------------------------------------ order */

static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const int by_class = bytes_compare(x->top, x->top_bytes, y->top, y->top_bytes);
    return by_class ? by_class : bytes_compare(x->path, x->path_bytes, y->path, y->path_bytes);
}

static size_t without_slash(const struct tree_dir *d)
{
    return d->path_bytes ? d->path_bytes - 1 : 0;
}

static int put_in_order(struct making *m)
{
    const struct tree *t = m->tree;
    m->places = calloc(t->n, sizeof *m->places);
    if (!m->places)
        return -1;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct tree_dir *d = &t->dirs[i], *top = &t->dirs[m->classes ? d->top : TREE_ROOT];
        m->places[i] = (struct place){.dir = d,
                                      .path = tree_path(t, d),
                                      .path_bytes = without_slash(d),
                                      .top = tree_path(t, top),
                                      .top_bytes = without_slash(top),
                                      .label = -1};
    }
    qsort(m->places, t->n, sizeof *m->places, compare);
    return 0;
}

/* ------------------------------------------------------------------ classes */

static int unknown_class(const struct names *given, const struct place *p, stk_error *e)
{
    char word[NAME_MAX + 1];
    const size_t n = p->top_bytes < NAME_MAX ? p->top_bytes : NAME_MAX;
    memcpy(word, p->top, n);
    word[n] = 0;
    struct nearest near = {.word = word};
    names_nearest(given, &near);
    return error_set(e, STK_EUSAGE, "open", "the class folder %s is not one of the %d given classes%s", word,
                     (int)given->n, near.found ? nearest_hint(&near) : "; add it to classes");
}

/* The label of a class folder: its index, or the index of its name in the given classes. */
static int label_of(struct making *m, const struct place *p, int64_t *label, stk_error *e)
{
    if (m->given->n == 0) {
        *label = m->n_classes++;
        return STK_OK;
    }
    uint32_t i;
    *label = -1;
    if (names_find(m->given, p->top, p->top_bytes, &i))
        *label = i;
    else if (m->by_top[p->dir - m->tree->dirs] > 0)
        return unknown_class(m->given, p, e);
    return STK_OK;
}

static int give_labels(struct making *m, stk_error *e)
{
    int64_t label = -1;
    for (uint32_t k = 0; k < m->tree->n && m->classes; k++) {
        struct place *p = &m->places[k];
        if (p->dir->depth == 1) { /* the class folder itself */
            const int rc = label_of(m, p, &label, e);
            if (rc != STK_OK)
                return rc;
        }
        p->label = p->dir->depth ? label : -1;
    }
    if (m->given->n > 0)
        m->n_classes = (int)m->given->n;
    return STK_OK;
}

/* ------------------------------------------------------------------ the index */

static bool is_sample_folder(const struct making *m, const struct tree_dir *d)
{
    return !m->classes || d->depth > 0; /* files next to class folders are not samples */
}

/* Whether the folder's name becomes a class. */
static bool names_class(const struct making *m, const struct tree_dir *d)
{
    return m->classes && d->depth == 1 && m->given->n == 0;
}

static void plan_index(struct making *m, struct index_head *h)
{
    h->kind = m->classes ? INDEX_CLASSES : INDEX_FILES;
    h->n_dirs = m->tree->n;
    h->n_classes = (uint64_t)m->n_classes;
    h->loops = m->tree->loops;
    for (uint32_t k = 0; k < m->tree->n; k++) {
        struct place *p = &m->places[k];
        const struct tree_dir *d = p->dir;
        p->first = (int64_t)h->n;
        p->pool = h->pool_bytes;
        h->hidden += d->hidden;
        h->other += d->other;
        if (is_sample_folder(m, d)) {
            h->n += (uint64_t)d->n;
            h->pool_bytes += d->names.len;
        } else {
            h->beside += d->n;
        }
        h->pool_bytes += d->path_bytes + 1;
        if (m->classes && d->depth == 1)
            h->empty_classes += m->by_top[d - m->tree->dirs] == 0 && d->os_error == 0;
        h->pool_bytes += names_class(m, d) ? p->path_bytes + 1 : 0;
    }
    h->pool_bytes += m->given->pool.len;
}

static void fill_folder(void *user, int64_t k)
{
    const struct making *m = user;
    const struct place *p = &m->places[k];
    struct index *x = m->index;
    size_t at = p->pool;
    if (is_sample_folder(m, p->dir) && p->dir->n > 0) {
        memcpy(x->pool + at, p->dir->names.data, p->dir->names.len);
        for (int64_t i = p->first; i < p->first + p->dir->n; i++) {
            x->name_at[i] = at;
            x->dir_of[i] = (uint32_t)k;
            at += strlen(x->pool + at) + 1;
        }
    }
    memcpy(x->pool + at, p->path, p->dir->path_bytes + 1);
    x->dir_at[k] = at;
    x->dir_label[k] = p->label;
    x->stamp[k] = p->dir->stamp;
    if (names_class(m, p->dir)) {
        at += p->dir->path_bytes + 1;
        memcpy(x->pool + at, p->path, p->path_bytes); /* the pool is zeroed */
        x->class_at[p->label] = at;
    }
}

/* Puts the given classes at the end of the pool. */
static void fill_classes(struct index *x, const struct names *given)
{
    size_t at = x->head->pool_bytes - given->pool.len;
    if (given->n > 0)
        memcpy(x->pool + at, given->pool.data, given->pool.len);
    for (uint32_t i = 0; i < given->n; i++, at += strlen(x->pool + at) + 1)
        x->class_at[i] = at;
}

static int make_index(struct making *m, int threads, stk_error *e)
{
    struct index_head head = {0};
    plan_index(m, &head);
    if (index_init(m->index, &head))
        return error_nomem(e, "open", (size_t)head.pool_bytes);
    pool_for(threads, (int64_t)m->tree->n, fill_folder, m);
    fill_classes(m->index, m->given);
    return STK_OK;
}

/* ------------------------------------------------------------------ opening */

static int64_t count_images(const struct tree *t)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        n += t->dirs[i].n;
    return n;
}

static void add_suffix(char *list, size_t room, const char *suffix)
{
    const size_t n = strlen(list), k = strlen(suffix);
    if (k > 0 && !strstr(list, suffix) && n + k + sizeof ", " <= room)
        snprintf(list + n, room - n, "%s%s", n ? ", " : "", suffix);
}

/* Reports what was looked for and what was found instead. */
static int no_samples(const struct tree *t, stk_error *e)
{
    int64_t other = 0, hidden = 0;
    char suffixes[48] = "";
    for (uint32_t i = 0; i < t->n; i++) {
        other += t->dirs[i].other;
        hidden += t->dirs[i].hidden;
        add_suffix(suffixes, sizeof suffixes, t->dirs[i].other_suffix);
    }
    if (other + hidden == 0)
        return error_set(e, STK_EUSAGE, "open", "no images: %s; looked for " IMAGE_FILE_SUFFIXES,
                         t->n > 1 ? "there are only empty folders" : "the folder is empty");
    const struct container *c = strchr(suffixes, ',') ? NULL : container_by_suffix(suffixes);
    if (t->n == 1 && c && c->open)
        return error_set(e, STK_EUSAGE, "open", "no images, but %lld file%s %s; to read them, use FOLDER/*%s",
                         (long long)other, other == 1 ? "" : "s", suffixes, suffixes);
    if (c && !c->open)
        return error_set(e, STK_EUSAGE, "open",
                         "no images, but %lld file%s %s, which %s read only from Python, with pyarrow: "
                         "stoker.Loader(\"FOLDER\")",
                         (long long)other, other == 1 ? "" : "s", suffixes, other == 1 ? "is" : "are");
    return error_set(e, STK_EUSAGE, "open",
                     "no images: looked for " IMAGE_FILE_SUFFIXES
                     " and for the first bytes of JPEG, PNG and WebP; there %s %lld other file%s%s%s%s and %lld hidden",
                     other == 1 ? "is" : "are", (long long)other, other == 1 ? "" : "s", suffixes[0] ? " (" : "",
                     suffixes, suffixes[0] ? ")" : "", (long long)hidden);
}

/* Looks for images by suffix, then for npy files, then for images by their first bytes. */
static int scan(struct tree *t, int dir, int threads, stk_error *e)
{
    static const enum tree_by ways[] = {TREE_SUFFIX, TREE_NPY, TREE_MAGIC};
    int rc = STK_OK;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && rc == STK_OK && count_images(t) == 0; i++) {
        tree_done(t);
        rc = tree_scan(t, dir, ways[i], threads, e);
    }
    if (rc == STK_OK && count_images(t) == 0)
        rc = no_samples(t, e);
    return rc;
}

/* The number of images of each class, by the index of its folder; NULL: out of memory. */
static int64_t *count_by_top(const struct tree *t)
{
    int64_t *by_top = calloc(t->n, sizeof *by_top);
    for (uint32_t i = 0; i < t->n && by_top; i++)
        by_top[t->dirs[i].top] += t->dirs[i].n;
    return by_top;
}

static void fill_report(const struct tree *t, struct files_report *report)
{
    report->stable = true;
    for (uint32_t i = 0; i < t->n; i++) {
        report->unreadable += t->dirs[i].os_error != 0;
        report->stable &= t->dirs[i].stable;
    }
}

/* Decides whether subfolders are classes. If a folder contains images both directly and in subfolders, the majority
 * decides, unless the caller asked for classes. */
static bool has_class_folders(const struct making *m, enum source_form form)
{
    const int64_t direct = m->by_top[TREE_ROOT], inside = count_images(m->tree) - direct;
    if (form == SOURCE_FILES || inside == 0)
        return false;
    return form == SOURCE_CLASSES || m->given->n > 0 || direct <= inside;
}

static int make(struct source *s, const struct source_options *o, enum source_form form, struct files_report *report,
                stk_error *e)
{
    struct tree tree = {0};
    struct making m = {.tree = &tree, .given = &s->classes, .index = files_index(s)};
    int64_t *by_top = NULL;
    int rc = scan(&tree, files_dir(s), o->threads, e);
    if (rc != STK_OK)
        goto done;
    m.by_top = by_top = count_by_top(&tree);
    if (!by_top)
        goto no_memory;
    m.classes = has_class_folders(&m, form);
    if (put_in_order(&m))
        goto no_memory;
    rc = give_labels(&m, e);
    if (rc == STK_OK)
        rc = make_index(&m, o->threads, e);
    fill_report(&tree, report);
    goto done;

no_memory:
    rc = error_nomem(e, "open", tree.n * sizeof *m.places);
done:
    free(m.places);
    free(by_top);
    tree_done(&tree);
    return rc;
}

/* A file is an image, or its plain bytes if `fields` says so. */
static int bind_fields(struct source *s, const char *fields, stk_error *e)
{
    if (!fields || !fields[0])
        return STK_OK;
    struct column file = {.name = "image", .kind = STK_IMAGE};
    const struct columns all = {.items = &file, .n = 1, .room = 1, .labels = s->n_fields > 1};
    const int rc = columns_bind(s, &all, fields, e);
    if (source_reads_fields(s))
        files_add_bytes(s);
    return rc;
}

int source_dir_open(struct source *s, const struct source_options *o, const char *path, enum source_form form,
                    stk_error *e)
{
    static const enum index_kind kinds[] = {
        [SOURCE_FOLDER] = INDEX_FOLDER, [SOURCE_CLASSES] = INDEX_CLASSES, [SOURCE_FILES] = INDEX_FILES};
    struct files_report report = {.began_ns = now_ns()};
    const struct files_options options = {.path = path,
                                          .folder = path,
                                          .cache_dir = o->cache_dir,
                                          .kind = kinds[form],
                                          .list = -1,
                                          .threads = o->threads};
    int rc = files_open(s, &options, e);
    if (rc == STK_OK && files_cached(s))
        report.stable = true;
    else if (rc == STK_OK)
        rc = make(s, o, form, &report, e);
    if (rc == STK_OK)
        files_finish(s, files_index(s)->head->kind == INDEX_CLASSES ? "folder of classes" : "folder of files", &report);
    if (rc == STK_OK)
        rc = o->sidecar_fields ? dir_sidecar_fields(s, o, e)
             : dir_npy_is(s)   ? dir_npy_fields(s, o, e)
                               : bind_fields(s, o->fields, e);
    if (rc != STK_OK)
        error_at(e, path, -1);
    return rc;
}

/* ------------------------------------------------------------------ a single file */

static int make_one(struct index *x, const char *name, stk_error *e)
{
    /* The pool contains the path of the folder, "", and the name. */
    const size_t bytes = 1 + strlen(name) + 1;
    const struct index_head head = {.kind = INDEX_FILES, .n = 1, .n_dirs = 1, .pool_bytes = bytes};
    if (index_init(x, &head))
        return error_nomem(e, "open", bytes);
    x->dir_label[0] = -1;
    x->name_at[0] = 1;
    memcpy(x->pool + 1, name, bytes - 1);
    return STK_OK;
}

int source_file_open(struct source *s, const struct source_options *o, const char *path, stk_error *e)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = strndup(path, (size_t)(name - path));
    if (!folder)
        return error_nomem(e, "open", strlen(path));
    const struct files_report report = {.began_ns = now_ns()};
    const struct files_options options = {.path = path,
                                          .folder = folder,
                                          .cache_dir = o->cache_dir,
                                          .kind = INDEX_FILES,
                                          .list = -1,
                                          .threads = o->threads};
    int rc = files_open(s, &options, e);
    if (rc == STK_OK && !files_cached(s))
        rc = make_one(files_index(s), name, e);
    if (rc == STK_OK)
        files_finish(s, "image file", &report);
    if (rc == STK_OK)
        rc = bind_fields(s, o->fields, e);
    if (rc != STK_OK)
        error_at(e, path, -1);
    free(folder);
    return rc;
}
