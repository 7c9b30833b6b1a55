/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_coco.c -- annotations in COCO's format: coco:annotations/instances_val2017.json?images=val2017
 *
 * A sample is an image of the file, in the order of their ids, with its annotations in the order of the file. These are
 * read from the file with the sample, so that only their offsets are held in memory.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/io.h"
#include "source/annotated.h"
#include "source/coco_cells.h"
#include "source/query.h"

static size_t skip_space(const uint8_t *p, size_t n, size_t at)
{
    while (at < n && (p[at] == ' ' || p[at] == '\t' || p[at] == '\r' || p[at] == '\n'))
        at++;
    return at;
}

bool source_coco_is(const uint8_t *p, size_t n)
{
    static const char *const keys[] = {"info", "licenses", "images", "annotations", "categories", "type"};
    const size_t brace = skip_space(p, n, n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    if (brace >= n || p[brace] != '{')
        return false;
    const size_t at = skip_space(p, n, brace + 1);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const size_t k = strlen(keys[i]);
        if (n - at > k + 2 && p[at] == '"' && memcmp(p + at + 1, keys[i], k) == 0 && p[at + 1 + k] == '"')
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------ the folder of the images */

/* Whether some of the first images are in this folder. */
static bool has_images(const struct image_paths *p, const char *folder)
{
    enum { TRIED = 16 };
    const int64_t n = image_paths_count(p);
    const size_t length = strlen(folder);
    for (int64_t i = 0; i < n && i < TRIED; i++) {
        char path[2 * PATH_MAX];
        struct stat st;
        const int begin =
            snprintf(path, sizeof path, "%s%s", folder, length > 0 && folder[length - 1] != '/' ? "/" : "");
        if (begin < 0 || begin >= PATH_MAX)
            return false;
        image_paths_get(p, i, path + begin, PATH_MAX);
        if (stat(path[begin] == '/' ? path + begin : path, &st) == 0 && S_ISREG(st.st_mode))
            return true;
    }
    return false;
}

/* The folder above a folder, both as typed and with a "/" at the end, or "" for the current one. */
static void above(const char *folder, char to[PATH_MAX])
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    size_t slash = n;
    while (slash > 0 && folder[slash - 1] != '/')
        slash--;
    const bool dots = n - slash <= 2 && strspn(folder + slash, ".") >= n - slash;
    if (dots)
        snprintf(to, PATH_MAX, "%.*s../", PATH_MAX - 4, folder);
    else
        snprintf(to, PATH_MAX, "%.*s", (int)slash, folder);
}

/* Tries the usual places: beside the file, in images/, and in a folder named like the end of the file's name, which is
 * val2017 for annotations/instances_val2017.json. */
static bool find_folder(const struct image_paths *p, const char *path, char to[PATH_MAX])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    char folders[2][PATH_MAX], stem[NAME_MAX + 1];
    if (strlen(path) >= PATH_MAX - NAME_MAX - 16 || strlen(name) > NAME_MAX)
        return false;
    snprintf(folders[0], PATH_MAX, "%.*s", (int)(name - path), path);
    above(folders[0], folders[1]);
    snprintf(stem, sizeof stem, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
    const char *part = stem, *end;
    do {
        end = strchr(part, '_');
        for (int i = 0; i < 8; i++) {
            const size_t n = strlen(folders[i & 1]);
            memcpy(to, folders[i & 1], n + 1);
            snprintf(to + n, PATH_MAX - n, "%s%s%s", i & 2 ? "images/" : "", i & 4 ? part : "", i & 4 ? "/" : "");
            if (has_images(p, to))
                return true;
        }
        part = end ? end + 1 : NULL;
    } while (part);
    return false;
}

static int choose_folder(const struct coco *c, const char *query, char to[PATH_MAX], stk_error *e)
{
    char first[PATH_MAX];
    if (!query_get(query, "images", to, PATH_MAX) && find_folder(&c->x.paths, c->path, to))
        return STK_OK;
    if (query_get(query, "images", to, PATH_MAX) && has_images(&c->x.paths, to))
        return STK_OK;
    image_paths_get(&c->x.paths, 0, first, sizeof first);
    if (query_get(query, "images", to, PATH_MAX))
        return error_set(e, STK_ENOTFOUND, "open", "its images are not in %.300s; the first one is %.300s", to, first);
    return error_set(e, STK_ENOTFOUND, "open",
                     "its images are neither next to it nor in the usual folders; the first one is %.300s; name their "
                     "folder: coco:FILE?images=FOLDER",
                     first);
}

/* ------------------------------------------------------------------ columns and classes */

static int add_columns(struct coco *c, stk_error *e)
{
    static const struct column all[COCO_COLUMNS] = {
        [COCO_IMAGE] = {.name = "image", .kind = STK_IMAGE},
        [COCO_BOXES] = {.name = "boxes",
                        .kind = STK_TENSOR,
                        .dtype = STK_FLOAT32,
                        .ndim = 2,
                        .shape = {-1, 4},
                        .follow = FOLLOW_BOXES,
                        .box_format = BOX_XYWH},
        [COCO_LABELS] =
            {.name = "labels", .kind = STK_TENSOR, .dtype = STK_INT64, .follow = FOLLOW_EACH, .classes = true},
        [COCO_AREA] = {.name = "area", .kind = STK_TENSOR, .dtype = STK_FLOAT32, .follow = FOLLOW_EACH},
        [COCO_ISCROWD] = {.name = "iscrowd", .kind = STK_TENSOR, .dtype = STK_INT64, .follow = FOLLOW_EACH},
        [COCO_KEYPOINTS] = {.name = "keypoints",
                            .kind = STK_TENSOR,
                            .dtype = STK_FLOAT32,
                            .ndim = 3,
                            .shape = {-1, 0, 3},
                            .follow = FOLLOW_POINTS},
        [COCO_CAPTIONS] = {.name = "captions", .kind = STK_JSON},
        [COCO_IMAGE_ID] = {.name = "image_id", .kind = STK_INT, .dtype = STK_INT64},
        [COCO_MASKS] = {.name = "masks",
                        .kind = STK_TENSOR,
                        .dtype = STK_UINT8,
                        .ndim = 3,
                        .shape = {-1, -1, -1},
                        .follow = FOLLOW_MASKS,
                        .implied = true},
        [COCO_CATEGORY_ID] =
            {.name = "category_id", .kind = STK_TENSOR, .dtype = STK_INT64, .follow = FOLLOW_EACH, .implied = true},
        [COCO_ID] = {.name = "id", .kind = STK_TENSOR, .dtype = STK_INT64, .follow = FOLLOW_EACH, .implied = true},
    };
    const bool captions = c->x.has_captions, boxes = !captions || c->x.has_boxes;
    for (int w = 0; w < COCO_COLUMNS; w++) {
        const bool has = w == COCO_IMAGE || w == COCO_IMAGE_ID || w == COCO_ID ? true
                         : w == COCO_CAPTIONS                                  ? captions
                         : w == COCO_KEYPOINTS                                 ? c->x.keypoints > 0
                                                                               : boxes;
        if (!has)
            continue;
        struct column one = all[w];
        if (one.follow == FOLLOW_EACH) {
            one.ndim = 1;
            one.shape[0] = -1;
        }
        if (w == COCO_KEYPOINTS)
            one.shape[1] = c->x.keypoints;
        c->whats[c->columns.n] = (enum coco_column)w;
        if (columns_add(&c->columns, &one))
            return error_nomem(e, "open", sizeof one);
    }
    return STK_OK;
}

/* Labels are indices into the names of the categories, or into the classes that were given. */
static int number_classes(struct coco *c, const struct source *s, stk_error *e)
{
    const int64_t n = c->x.n_categories;
    c->labels = malloc(((size_t)n + 1) * sizeof *c->labels);
    if (!c->labels)
        return error_nomem(e, "open", (size_t)n * sizeof *c->labels);
    for (int64_t i = 0; i < n; i++) {
        uint32_t given;
        const char *name = names_at(&c->x.classes, (uint32_t)i);
        c->labels[i] = s->classes.n == 0                                     ? i
                       : names_find(&s->classes, name, strlen(name), &given) ? (int64_t)given
                                                                             : -1;
    }
    return STK_OK;
}

/* ------------------------------------------------------------------ opening */

static void free_coco(void *state)
{
    struct coco *c = state;
    if (!c)
        return;
    if (c->fd >= 0)
        close(c->fd);
    coco_index_done(&c->x);
    columns_done(&c->columns);
    free(c->labels);
    free(c->path);
    free(c);
}

static uint64_t fingerprint(const void *state, const struct source *s)
{
    (void)s;
    return ((const struct coco *)state)->x.hash;
}

static int read_file(struct coco *c, const char *query, stk_error *e)
{
    char dangling[16] = "";
    if (query_get(query, "dangling", dangling, sizeof dangling) && strcmp(dangling, "ignore") != 0)
        return error_set(e, STK_EUSAGE, "open", "dangling=%s is unknown; the only value is ignore", dangling);
    c->fd = io_open(AT_FDCWD, c->path);
    if (c->fd < 0)
        return error_os(e, errno, "open", "cannot be opened");
    return coco_index_read(&c->x, c->fd, dangling[0] != 0, e);
}

static int make(struct source *s, const struct source_options *o, struct coco *c, const char *query, stk_error *e)
{
    const uint64_t began_ns = now_ns();
    char folder[PATH_MAX];
    int rc = read_file(c, query, e);
    if (rc == STK_OK)
        rc = choose_folder(c, query, folder, e);
    if (rc == STK_OK)
        rc = add_columns(c, e);
    if (rc == STK_OK)
        rc = number_classes(c, s, e);
    if (rc == STK_OK)
        rc = annotated_open(s, o,
                            &(struct annotated){.kind = "COCO annotations",
                                                .path = c->path,
                                                .folder = folder,
                                                .paths = &c->x.paths,
                                                .classes = &c->x.classes,
                                                .columns = &c->columns,
                                                .began_ns = began_ns},
                            e);
    image_paths_done(&c->x.paths);
    return rc;
}

int source_coco_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                     stk_error *e)
{
    static const char *const known[] = {"images", "dangling", NULL};
    int rc = annotated_check(paths, "file", query, known, e);
    if (rc != STK_OK)
        return rc;
    struct coco *c = calloc(1, sizeof *c);
    if (c)
        c->fd = -1;
    if (!c || !(c->path = strdup(names_at(paths, 0)))) {
        free_coco(c);
        return error_nomem(e, "open", sizeof *c);
    }
    rc = make(s, o, c, query, e);
    return annotated_end(
        s, rc,
        &(struct files_extra){.read = coco_cells_read, .done = free_coco, .state = c, .fingerprint = fingerprint});
}
