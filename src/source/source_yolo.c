/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_yolo.c -- a folder in YOLO's format: yolo:coco8?set=train, yolo:coco8/data.yaml?set=train
 *
 *     images/train/a.jpg  labels/train/a.txt      or     train/images/a.jpg  train/labels/a.txt
 *     data.yaml           the names of the classes, and where the sets are
 *
 * An image without a label file has no objects.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/io.h"
#include "base/text.h"
#include "format/yolo.h"
#include "source/annotated.h"
#include "source/query.h"

enum what { IMAGE, BOXES, LABELS, KEYPOINTS, N_COLUMNS };

struct yolo_dataset {
    struct annotated_files files;
    char images_at[PATH_MAX], labels_at[PATH_MAX]; /* the folders, as typed, with a "/" at the end */
    struct yolo_yaml yaml;
};

/* ------------------------------------------------------------------ reading */

static size_t label_path(const struct source *s, int64_t i, char *buf, size_t n)
{
    return annotated_beside(s, i, "", ".txt", buf, n);
}

/* Lines that are not blank. */
static size_t count_lines(const char *p, size_t n)
{
    size_t lines = 1;
    for (const char *end = p + n; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
        lines++;
    return lines;
}

static int parse(const struct source *s, struct reading *r, const char *path, size_t room, size_t *n, stk_error *e)
{
    const struct yolo_dataset *v = files_extra_state(s);
    const size_t points = (size_t)(v->yaml.shape.points * v->yaml.shape.dims);
    const char *text = (const char *)r->spare[1].data;
    struct yolo y = {.p = text, .end = text + r->spare[1].len, .shape = v->yaml.shape};
    int64_t *const labels = (int64_t *)(void *)r->derived.data;
    float *const boxes = (float *)(void *)(labels + room), *const keypoints = boxes + 4 * room;
    struct yolo_object o;
    *n = 0;
    while (*n < room && yolo_next(&y, &o, points ? keypoints + *n * points : NULL)) {
        if (source_n_classes(s) > 0 && o.label >= source_n_classes(s))
            return error_set(e, STK_EDATA, "read",
                             "line %lld of %.200s%.200s: its class is %lld, but there are only %d classes",
                             (long long)y.line, v->labels_at, path, (long long)o.label, source_n_classes(s));
        labels[*n] = o.label;
        memcpy(boxes + 4 * *n, o.box, sizeof o.box);
        ++*n;
    }
    return y.problem ? error_set(e, STK_EDATA, "read", "line %lld of %.200s%.200s: %s", (long long)y.line, v->labels_at,
                                 path, y.problem)
                     : STK_OK;
}

static struct cell cell_of(const struct reading *r, const struct yolo_dataset *v, enum what w, size_t room, size_t n)
{
    const struct yolo_shape *shape = &v->yaml.shape;
    const uint8_t *const labels = r->derived.data, *const boxes = labels + room * sizeof(int64_t);
    struct cell c = {.bytes = labels, .n = n * sizeof(int64_t), .dtype = STK_INT64, .ndim = 1, .shape = {(int64_t)n}};
    if (w == LABELS)
        return c;
    c.dtype = STK_FLOAT32;
    c.bytes = boxes;
    c.n = n * sizeof(float[4]);
    c.ndim = 2;
    c.shape[1] = 4;
    if (w == BOXES)
        return c;
    c.bytes = boxes + room * sizeof(float[4]);
    c.n = n * (size_t)(shape->points * shape->dims) * sizeof(float);
    c.ndim = 3;
    c.shape[1] = shape->points;
    c.shape[2] = shape->dims;
    return c;
}

static int read_labels(const void *state, const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const struct yolo_dataset *v = state;
    char path[PATH_MAX];
    size_t n = 0;
    if (label_path(s, i, path, sizeof path) >= sizeof path)
        return error_os(e, ENAMETOOLONG, "read", "its labels cannot be opened");
    r->spare[1].len = 0;
    int rc = annotated_load(s, r, v->files.dir, path, 0, &r->spare[1], e);
    if (rc != STK_OK && rc != STK_ENOTFOUND)
        return rc;
    const size_t one = sizeof(int64_t) + sizeof(float) * (4 + (size_t)(v->yaml.shape.points * v->yaml.shape.dims));
    const size_t room = rc == STK_OK ? count_lines((const char *)r->spare[1].data, r->spare[1].len) : 0;
    if (buf_reserve(&r->derived, room * one + 1))
        return error_nomem(e, "read", room * one);
    rc = rc == STK_OK ? parse(s, r, path, room, &n, e) : STK_OK;
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
        if (s->fields[f].column > IMAGE)
            r->cells[f] = cell_of(r, v, (enum what)s->fields[f].column, room, n);
    return rc;
}

static uint64_t fingerprint(const void *state, const struct source *s)
{
    return annotated_hash(s, ((const struct yolo_dataset *)state)->files.dir, label_path);
}

static void free_dataset(void *state)
{
    struct yolo_dataset *v = state;
    annotated_files_done(&v->files);
    yolo_yaml_done(&v->yaml);
    free(v);
}

/* ------------------------------------------------------------------ data.yaml */

static bool is_yaml(const char *name)
{
    return text_has_suffix(name, ".yaml") || text_has_suffix(name, ".yml");
}

static int load_yaml(struct yolo_dataset *v, const char *path, stk_error *e)
{
    struct buf text = {0};
    int64_t size;
    const int rc = io_read(AT_FDCWD, path, 1 << 24, &text, &size, NULL, e);
    const char *problem = rc == STK_OK ? yolo_yaml_read(&v->yaml, (const char *)text.data, text.len) : NULL;
    buf_done(&text);
    if (problem == YOLO_NO_MEMORY)
        return error_nomem(e, "open", (size_t)size);
    return problem ? error_set(e, STK_EDATA, "open", "%.300s: %s", path, problem) : rc;
}

/* Looks for the only yaml file in a folder; false: there is none, or there are several. */
static bool find_yaml(const char *folder, char to[PATH_MAX])
{
    DIR *dir = opendir(folder[0] ? folder : ".");
    int found = 0;
    for (const struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        if (is_yaml(entry->d_name)) {
            const size_t n = strlen(folder);
            found++;
            snprintf(to, PATH_MAX, "%.3000s%s%.255s", folder, n > 0 && folder[n - 1] != '/' ? "/" : "", entry->d_name);
        }
    if (dir)
        closedir(dir);
    return found == 1;
}

/* The folder above, as typed; with a "/" at the end, or "". */
static void above(char folder[PATH_MAX])
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        folder[--n] = 0;
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[1] = 0;
    else
        folder[0] = 0;
}

/* ------------------------------------------------------------------ folders */

static void add_below(char folder[PATH_MAX], const char *below)
{
    const size_t n = strlen(folder);
    snprintf(folder + n, PATH_MAX - n, "%s%s", n > 0 && folder[n - 1] != '/' && below[0] ? "/" : "", below);
}

/* The labels of images/train/ are in labels/train/: the last folder named images becomes labels. */
static int place_labels(struct yolo_dataset *v, stk_error *e)
{
    const char *last = NULL;
    for (const char *p = v->images_at; (p = strstr(p, "images")) != NULL; p++)
        if ((p == v->images_at || p[-1] == '/') && p[6] == '/')
            last = p;
    if (!last)
        return error_set(e, STK_EUSAGE, "open",
                         "labels are looked for in labels/, which must be next to a folder images/; "
                         "the images are in %.300s",
                         v->images_at);
    snprintf(v->labels_at, sizeof v->labels_at, "%.*slabels%s", (int)(last - v->images_at), v->images_at, last + 6);
    v->files.dir = annotated_folder(v->labels_at, "");
    return v->files.dir < 0
               ? error_os(e, errno, "open", "the folder of its labels, %.300s, cannot be opened", v->labels_at)
               : STK_OK;
}

/* A data.yaml says where its sets are. */
static int place_by_yaml(struct yolo_dataset *v, const char *path, char set[1024], stk_error *e)
{
    static const char *const keys[] = {"train", "val", "test"};
    const char *const values[] = {v->yaml.train, v->yaml.val, v->yaml.test};
    struct names sets = {0};
    uint32_t ignored;
    int rc = STK_OK;
    for (int i = 0; i < 3 && rc == STK_OK; i++)
        if (values[i][0] && names_add(&sets, keys[i], strlen(keys[i]), &ignored) < 0)
            rc = error_nomem(e, "open", sizeof sets);
    if (rc == STK_OK && strcmp(set, "all") == 0)
        rc = error_set(e, STK_EUSAGE, "open",
                       "set=all is not possible with a data.yaml; give each set as a source of its own, and the "
                       "sources are joined");
    if (rc == STK_OK)
        rc = annotated_set("yolo:", &sets, set, e);
    names_done(&sets);
    if (rc != STK_OK)
        return rc;
    const char *below = set[0] == 'v' ? v->yaml.val : set[0] == 't' && set[1] == 'e' ? v->yaml.test : v->yaml.train;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    above(folder);
    if (v->yaml.path[0] == '/')
        snprintf(folder, sizeof folder, "%s", v->yaml.path);
    else if (annotated_has_folder(folder, v->yaml.path)) /* many files have a path that was valid elsewhere */
        add_below(folder, v->yaml.path);
    if (below[0] == '/')
        snprintf(folder, sizeof folder, "%s", below);
    else
        add_below(folder, strncmp(below, "../", 3) == 0 && !annotated_has_folder(folder, below) ? below + 3 : below);
    snprintf(v->images_at, sizeof v->images_at, "%.4000s/", folder);
    return STK_OK;
}

static int place_by_folder(struct yolo_dataset *v, const char *path, char set[1024], stk_error *e)
{
    char folder[PATH_MAX], yaml[PATH_MAX];
    snprintf(folder, sizeof folder, "%.4000s", path);
    bool found = find_yaml(folder, yaml);
    int rc = annotated_enter_set("yolo:", folder, set, e);
    if (rc != STK_OK)
        return rc;
    snprintf(v->images_at, sizeof v->images_at, "%.4000s", folder);
    add_below(v->images_at, "images/");
    if (!found) {
        above(folder);
        found = find_yaml(folder, yaml);
    }
    return found ? load_yaml(v, yaml, e) : STK_OK;
}

/* Leaves only the images of a set: images/train/. */
static int choose_set(struct yolo_dataset *v, char set[1024], stk_error *e)
{
    struct names sets = {0};
    int rc = STK_OK;
    DIR *dir = opendir(v->images_at);
    for (const struct dirent *entry; dir && rc == STK_OK && (entry = readdir(dir)) != NULL;) {
        uint32_t ignored;
        if (annotated_is_set(entry->d_name, strlen(entry->d_name)) &&
            names_add(&sets, entry->d_name, strlen(entry->d_name), &ignored) < 0)
            rc = error_nomem(e, "open", sizeof sets);
    }
    if (dir)
        closedir(dir);
    if (rc == STK_OK && (sets.n > 0 || set[0]))
        rc = annotated_set("yolo:", &sets, set, e);
    names_done(&sets);
    if (rc == STK_OK && set[0]) {
        add_below(v->images_at, set);
        add_below(v->images_at, "/");
    }
    return rc;
}

/* ------------------------------------------------------------------ opening */

static int add_columns(struct yolo_dataset *v, stk_error *e)
{
    const struct yolo_shape *shape = &v->yaml.shape;
    const struct column all[N_COLUMNS] = {
        [IMAGE] = {.name = "image", .kind = STK_IMAGE},
        [BOXES] = {.name = "boxes",
                   .kind = STK_TENSOR,
                   .dtype = STK_FLOAT32,
                   .ndim = 2,
                   .shape = {-1, 4},
                   .follow = FOLLOW_BOXES,
                   .box_format = BOX_CXCYWH,
                   .relative = true},
        [LABELS] = {.name = "labels",
                    .kind = STK_TENSOR,
                    .dtype = STK_INT64,
                    .ndim = 1,
                    .shape = {-1},
                    .follow = FOLLOW_EACH,
                    .classes = true},
        [KEYPOINTS] = {.name = "keypoints",
                       .kind = STK_TENSOR,
                       .dtype = STK_FLOAT32,
                       .ndim = 3,
                       .shape = {-1, shape->points, shape->dims},
                       .follow = FOLLOW_POINTS,
                       .relative = true},
    };
    for (int w = 0; w < (shape->points > 0 ? N_COLUMNS : KEYPOINTS); w++)
        if (columns_add(&v->files.columns, &all[w]))
            return error_nomem(e, "open", sizeof all);
    return STK_OK;
}

static int make(struct source *s, const struct source_options *o, struct yolo_dataset *v, const char *path,
                const char *query, stk_error *e)
{
    const uint64_t began_ns = now_ns();
    char set[1024] = "";
    query_get(query, "set", set, sizeof set);
    int rc;
    if (is_yaml(path)) {
        rc = load_yaml(v, path, e);
        if (rc == STK_OK)
            rc = place_by_yaml(v, path, set, e);
    } else {
        rc = place_by_folder(v, path, set, e);
        if (rc == STK_OK)
            rc = choose_set(v, set, e);
    }
    if (rc == STK_OK)
        rc = place_labels(v, e);
    if (rc == STK_OK)
        rc = annotated_scan_images(&v->files.images, annotated_folder(v->images_at, ""), v->images_at, o->threads, e);
    if (rc == STK_OK)
        rc = add_columns(v, e);
    if (rc == STK_OK)
        rc = annotated_open(s, o,
                            &(struct annotated){.kind = "YOLO labels",
                                                .path = path,
                                                .folder = v->images_at,
                                                .paths = &v->files.images,
                                                .classes = &v->yaml.names,
                                                .columns = &v->files.columns,
                                                .began_ns = began_ns},
                            e);
    image_paths_done(&v->files.images);
    return rc;
}

int source_yolo_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                     stk_error *e)
{
    static const char *const known[] = {"set", NULL};
    int rc = annotated_check(paths, "folder", query, known, e);
    if (rc != STK_OK)
        return rc;
    struct yolo_dataset *v = calloc(1, sizeof *v);
    if (!v)
        return error_nomem(e, "open", sizeof *v);
    v->files.dir = -1;
    rc = make(s, o, v, names_at(paths, 0), query, e);
    return annotated_end(
        s, rc,
        &(struct files_extra){.read = read_labels, .done = free_dataset, .state = v, .fingerprint = fingerprint});
}

/* Whether a folder has a text file in labels/ or one folder below. */
static bool has_texts(const char *folder, int depth)
{
    DIR *dir = opendir(folder);
    bool found = false;
    for (const struct dirent *entry; dir && !found && (entry = readdir(dir)) != NULL;) {
        char below[PATH_MAX];
        found = text_has_suffix(entry->d_name, ".txt");
        if (!found && depth > 0 && annotated_is_set(entry->d_name, strlen(entry->d_name)) &&
            snprintf(below, sizeof below, "%.3000s/%s", folder, entry->d_name) > 0)
            found = has_texts(below, depth - 1);
    }
    if (dir)
        closedir(dir);
    return found;
}

bool source_yolo_is(const char *folder)
{
    char labels[PATH_MAX];
    snprintf(labels, sizeof labels, "%.3000s/labels", folder);
    if (annotated_has_folder(folder, "images"))
        return annotated_has_folder(folder, "labels") && has_texts(labels, 1);
    return annotated_has_sets(folder, "labels");
}
