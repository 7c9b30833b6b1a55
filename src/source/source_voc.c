/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_voc.c -- a folder in Pascal VOC's format: voc:VOCdevkit/VOC2012?set=train
 *
 *     JPEGImages/2007_000027.jpg  Annotations/2007_000027.xml  SegmentationClass/2007_000027.png
 *     ImageSets/Main/train.txt    the names of a set, one per line
 *
 * task=segmentation takes the sets of ImageSets/Segmentation, and the masks instead of the boxes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/io.h"
#include "base/pool.h"
#include "base/size.h"
#include "base/text.h"
#include "format/voc.h"
#include "source/annotated.h"
#include "source/query.h"

enum what { IMAGE, BOXES, LABELS, DIFFICULT, TRUNCATED, MASK, INSTANCES, ANNOTATION, N_COLUMNS };

struct voc_dataset {
    struct annotated_files files; /* its folder contains JPEGImages */
    char root[PATH_MAX];
    bool segmentation;
    struct names classes;
};

struct entry {
    float box[4];
    int64_t label;
    uint8_t difficult, truncated;
};

/* ------------------------------------------------------------------ names */

static size_t annotation_path(const struct source *s, int64_t i, char *buf, size_t n)
{
    const struct voc_dataset *v = files_extra_state(s);
    return v->segmentation ? annotated_beside(s, i, "SegmentationClass/", ".png", buf, n)
                           : annotated_beside(s, i, "Annotations/", ".xml", buf, n);
}

/* ------------------------------------------------------------------ reading */

static bool wants(const struct source *s, enum what w)
{
    for (int f = 0; f < s->n_fields; f++)
        if (s->fields[f].column == (int)w)
            return true;
    return false;
}

static int load(const struct source *s, struct reading *r, const char *path, struct buf *to, stk_error *e)
{
    const struct voc_dataset *v = files_extra_state(s);
    const int rc = annotated_load(s, r, v->files.dir, path, 0, to, e);
    return rc == STK_ENOTFOUND ? error_set(e, STK_EDATA, "read", "its file %.300s does not exist", path) : rc;
}

static const struct names *classes_of(const struct source *s, const struct voc_dataset *v)
{
    return s->classes.n > 0 ? &s->classes : &v->classes;
}

/* Adds the objects of a text, which is changed, to r->spare[1]. */
static int parse(const struct source *s, struct reading *r, const char *path, struct slice text, stk_error *e)
{
    const struct voc_dataset *v = files_extra_state(s);
    const bool labels = wants(s, LABELS);
    struct voc x = {.p = text.p, .end = text.p + text.n};
    struct voc_object o;
    r->spare[1].len = 0;
    while (voc_next(&x, &o)) {
        uint32_t label = 0;
        if (labels && !names_find(classes_of(s, v), o.name.p, o.name.n, &label))
            return error_set(e, STK_EDATA, "read", "object %d of %.200s: its class %.*s is not one of the %d classes",
                             x.n_objects, path, o.name.n < 60 ? (int)o.name.n : 60, o.name.p, (int)classes_of(s, v)->n);
        const struct entry one = {.box = {(float)o.box[0], (float)o.box[1], (float)o.box[2], (float)o.box[3]},
                                  .label = label,
                                  .difficult = o.difficult,
                                  .truncated = o.truncated};
        if (buf_add(&r->spare[1], &one, sizeof one))
            return error_nomem(e, "read", r->spare[1].len);
    }
    if (x.problem && x.n_objects > 0)
        return error_set(e, STK_EDATA, "read", "object %d of %.200s: %s", x.n_objects, path, x.problem);
    return x.problem ? error_set(e, STK_EDATA, "read", "%.200s: %s", path, x.problem) : STK_OK;
}

/* Where the columns of a sample are in r->derived. */
struct places {
    size_t at[N_COLUMNS], bytes[N_COLUMNS];
    int64_t n; /* objects */
};

/* Appends a column of the objects. */
static int add_entries(const struct source *s, struct reading *r, struct places *p, enum what w, size_t from,
                       size_t bytes, stk_error *e)
{
    static const uint8_t zeros[8];
    if (!wants(s, w))
        return STK_OK;
    if (buf_add(&r->derived, zeros, -r->derived.len % sizeof zeros))
        return error_nomem(e, "read", r->derived.len);
    p->at[w] = r->derived.len;
    p->bytes[w] = (size_t)p->n * bytes;
    for (int64_t k = 0; k < p->n; k++)
        if (buf_add(&r->derived, r->spare[1].data + (size_t)k * sizeof(struct entry) + from, bytes))
            return error_nomem(e, "read", r->derived.len);
    return STK_OK;
}

static int read_objects(const struct source *s, struct reading *r, struct places *p, int64_t i, stk_error *e)
{
    char path[PATH_MAX];
    annotated_beside(s, i, "Annotations/", ".xml", path, sizeof path);
    int rc = load(s, r, path, &r->derived, e);
    if (rc != STK_OK)
        return rc;
    const size_t n = r->derived.len;
    p->bytes[ANNOTATION] = n;
    if (buf_reserve(&r->derived, size_add(size_mul(n, 2), 1))) /* a copy, which is changed */
        return error_nomem(e, "read", n);
    memcpy(r->derived.data + n, r->derived.data, n);
    rc = parse(s, r, path, (struct slice){(char *)r->derived.data + n, n}, e);
    p->n = (int64_t)(r->spare[1].len / sizeof(struct entry));
    if (rc == STK_OK)
        rc = add_entries(s, r, p, BOXES, offsetof(struct entry, box), sizeof(float[4]), e);
    if (rc == STK_OK)
        rc = add_entries(s, r, p, LABELS, offsetof(struct entry, label), sizeof(int64_t), e);
    if (rc == STK_OK)
        rc = add_entries(s, r, p, DIFFICULT, offsetof(struct entry, difficult), 1, e);
    if (rc == STK_OK)
        rc = add_entries(s, r, p, TRUNCATED, offsetof(struct entry, truncated), 1, e);
    return rc;
}

static int read_mask(const struct source *s, struct reading *r, struct places *p, enum what w, int64_t i, stk_error *e)
{
    char path[PATH_MAX];
    if (!wants(s, w))
        return STK_OK;
    annotated_beside(s, i, w == MASK ? "SegmentationClass/" : "SegmentationObject/", ".png", path, sizeof path);
    p->at[w] = r->derived.len;
    const int rc = load(s, r, path, &r->derived, e);
    p->bytes[w] = r->derived.len - p->at[w];
    if (rc == STK_OK && buf_reserve(&r->derived, r->derived.len + IO_SLACK))
        return error_nomem(e, "read", IO_SLACK);
    r->derived.len += rc == STK_OK ? IO_SLACK : 0; /* the zeros stay */
    return rc;
}

static struct cell cell_of(const struct reading *r, const struct places *p, enum what w)
{
    struct cell c = {.bytes = r->derived.data + p->at[w], .n = p->bytes[w]};
    if (w == MASK || w == INSTANCES || w == ANNOTATION)
        return c;
    c.dtype = w == BOXES ? STK_FLOAT32 : w == LABELS ? STK_INT64 : STK_UINT8;
    c.ndim = w == BOXES ? 2 : 1;
    c.shape[0] = p->n;
    c.shape[1] = 4;
    return c;
}

static int read_sample(const void *state, const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    (void)state;
    struct places p = {0};
    int rc = buf_reserve(&r->derived, 1) ? error_nomem(e, "read", 1) : STK_OK;
    r->derived.len = 0;
    if (rc == STK_OK &&
        (wants(s, BOXES) || wants(s, LABELS) || wants(s, DIFFICULT) || wants(s, TRUNCATED) || wants(s, ANNOTATION)))
        rc = read_objects(s, r, &p, i, e);
    if (rc == STK_OK)
        rc = read_mask(s, r, &p, MASK, i, e);
    if (rc == STK_OK)
        rc = read_mask(s, r, &p, INSTANCES, i, e);
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
        if (s->fields[f].column > IMAGE)
            r->cells[f] = cell_of(r, &p, (enum what)s->fields[f].column);
    return rc;
}

/* ------------------------------------------------------------------ classes */

struct naming {
    const struct voc_dataset *v;
    struct names found;
    pthread_mutex_t lock;
    bool no_memory;
};

/* Collects the names in one annotation. If it is damaged, reading the sample will report that. */
static void name_one(void *user, int64_t i)
{
    struct naming *n = user;
    char key[PATH_MAX], path[PATH_MAX + 32];
    struct buf text = {0};
    struct voc_object o;
    int64_t size;
    image_paths_get(&n->v->files.images, i, key, sizeof key);
    char *dot = strrchr(key, '.');
    snprintf(path, sizeof path, "Annotations/%.*s.xml", dot ? (int)(dot - key) : (int)strlen(key), key);
    if (io_read(n->v->files.dir, path, INT_MAX, &text, &size, NULL, NULL) == STK_OK) {
        struct voc x = {.p = (char *)text.data, .end = (char *)text.data + text.len};
        pthread_mutex_lock(&n->lock);
        while (voc_next(&x, &o)) {
            uint32_t ignored;
            n->no_memory |= names_add(&n->found, o.name.p, o.name.n, &ignored) < 0;
        }
        pthread_mutex_unlock(&n->lock);
    }
    buf_done(&text);
}

/* The classes of Pascal VOC, or those that the annotations have, in byte order. In Pascal VOC's masks, 0 is the
 * background. */
static int find_classes(struct voc_dataset *v, int threads, stk_error *e)
{
    static const char *const usual[] = {
        "aeroplane",   "bicycle", "bird",  "boat",      "bottle", "bus",         "car",   "cat",  "chair", "cow",
        "diningtable", "dog",     "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"};
    enum { N = sizeof usual / sizeof usual[0] };
    struct naming n = {.v = v, .lock = PTHREAD_MUTEX_INITIALIZER};
    bool bad = false;
    uint32_t ignored, known = 0;
    pool_for(threads, image_paths_count(&v->files.images), name_one, &n);
    for (int i = 0; i < N; i++)
        known += names_find(&n.found, usual[i], strlen(usual[i]), &ignored);
    if (known > 0 && known == n.found.n) {
        static const char background[] = "background";
        bad = v->segmentation && names_add(&v->classes, background, sizeof background - 1, &ignored) < 0;
        for (int i = 0; i < N && !bad; i++)
            bad = names_add(&v->classes, usual[i], strlen(usual[i]), &ignored) < 0;
    } else {
        uint32_t *order = n.found.n > 0 ? names_sorted(&n.found) : NULL;
        bad = n.found.n > 0 && !order;
        for (uint32_t k = 0; k < n.found.n && !bad; k++)
            bad = names_add(&v->classes, names_at(&n.found, order[k]), names_length(&n.found, order[k]), &ignored) < 0;
        free(order);
    }
    bad |= n.no_memory;
    names_done(&n.found);
    return bad ? error_nomem(e, "open", sizeof n) : STK_OK;
}

/* ------------------------------------------------------------------ sets */

/* The files of ImageSets/Main that name sets; those of single classes ("cat_train.txt") do not. */
static int find_sets(const struct voc_dataset *v, struct names *sets, stk_error *e)
{
    const int fd = openat(v->files.dir, v->segmentation ? "ImageSets/Segmentation" : "ImageSets/Main",
                          O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct names found = {0};
    bool bad = false;
    if (fd >= 0 && !dir)
        close(fd);
    for (const struct dirent *entry; dir && !bad && (entry = readdir(dir)) != NULL;) {
        uint32_t ignored;
        if (text_has_suffix(entry->d_name, ".txt") && !strchr(entry->d_name, '_'))
            bad = names_add(&found, entry->d_name, strlen(entry->d_name) - 4, &ignored) < 0;
    }
    if (dir)
        closedir(dir);
    uint32_t *order = !bad && found.n > 0 ? names_sorted(&found) : NULL, ignored;
    bad |= found.n > 0 && !order;
    for (uint32_t k = 0; k < found.n && !bad; k++)
        bad = names_add(sets, names_at(&found, order[k]), names_length(&found, order[k]), &ignored) < 0;
    free(order);
    names_done(&found);
    return bad ? error_nomem(e, "open", sizeof found) : STK_OK;
}

/* The images of a set: the first word of each line. */
static int read_set(struct voc_dataset *v, const char *set, stk_error *e)
{
    char path[PATH_MAX], name[PATH_MAX];
    struct buf text = {0};
    int64_t size;
    snprintf(path, sizeof path, "ImageSets/%s/%s.txt", v->segmentation ? "Segmentation" : "Main", set);
    int rc = io_read(v->files.dir, path, INT_MAX, &text, &size, NULL, e);
    const char *p = (const char *)text.data, *const end = p ? p + text.len : NULL;
    while (rc == STK_OK && p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p)), *line = p;
        p = stop ? stop + 1 : end;
        while (line < p && (*line == ' ' || *line == '\t'))
            line++;
        const size_t n = strcspn(line, " \t\r\n");
        if (n == 0)
            continue;
        const int length = snprintf(name, sizeof name, "%.*s.jpg", n < 1000 ? (int)n : 1000, line);
        if (image_paths_add(&v->files.images, name, (size_t)length))
            rc = error_nomem(e, "open", text.len);
    }
    if (rc == STK_OK && image_paths_count(&v->files.images) == 0)
        rc = error_set(e, STK_EUSAGE, "open", "its list %.200s names no images; choose another set", path);
    buf_done(&text);
    return rc;
}

static int find_images(struct voc_dataset *v, const char *query, int threads, stk_error *e)
{
    struct names sets = {0};
    char set[1024] = "";
    query_get(query, "set", set, sizeof set);
    int rc = find_sets(v, &sets, e);
    if (rc == STK_OK)
        rc = annotated_set("voc:", &sets, set, e);
    names_done(&sets);
    if (rc != STK_OK)
        return rc;
    if (set[0])
        return read_set(v, set, e);
    const int dir = openat(v->files.dir, "JPEGImages", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return annotated_scan_images(&v->files.images, dir, "JPEGImages", threads, e);
}

/* ------------------------------------------------------------------ opening */

static void free_dataset(void *state)
{
    struct voc_dataset *v = state;
    annotated_files_done(&v->files);
    names_done(&v->classes);
    free(v);
}

static uint64_t fingerprint(const void *state, const struct source *s)
{
    return annotated_hash(s, ((const struct voc_dataset *)state)->files.dir, annotation_path);
}

static int add_columns(struct voc_dataset *v, stk_error *e)
{
    struct column all[N_COLUMNS] = {
        [IMAGE] = {.name = "image", .kind = STK_IMAGE},
        [BOXES] = {.name = "boxes",
                   .kind = STK_TENSOR,
                   .dtype = STK_FLOAT32,
                   .ndim = 2,
                   .shape = {-1, 4},
                   .follow = FOLLOW_BOXES,
                   .box_format = BOX_XYXY},
        [LABELS] = {.name = "labels", .kind = STK_TENSOR, .dtype = STK_INT64, .ndim = 1, .shape = {-1}},
        [DIFFICULT] = {.name = "difficult", .kind = STK_TENSOR, .dtype = STK_UINT8, .ndim = 1, .shape = {-1}},
        [TRUNCATED] = {.name = "truncated", .kind = STK_TENSOR, .dtype = STK_UINT8, .ndim = 1, .shape = {-1}},
        [MASK] = {.name = "mask", .kind = STK_BYTES, .follow = FOLLOW_MASK},
        [INSTANCES] = {.name = "instances", .kind = STK_BYTES, .follow = FOLLOW_MASK, .implied = true},
        [ANNOTATION] = {.name = "annotation", .kind = STK_TEXT, .implied = true},
    };
    for (int w = 0; w < N_COLUMNS; w++) {
        const bool object = w >= BOXES && w <= TRUNCATED;
        if (object && w != BOXES)
            all[w].follow = FOLLOW_EACH;
        all[w].classes = w == LABELS;
        all[w].implied |= w == TRUNCATED || (v->segmentation ? object : w == MASK);
        if (columns_add(&v->files.columns, &all[w]))
            return error_nomem(e, "open", sizeof all);
    }
    return STK_OK;
}

static int make(struct source *s, const struct source_options *o, struct voc_dataset *v, const char *query,
                stk_error *e)
{
    const uint64_t began_ns = now_ns();
    char task[32] = "", images[PATH_MAX + 16];
    query_get(query, "task", task, sizeof task);
    if (task[0] && strcmp(task, "detection") != 0 && strcmp(task, "segmentation") != 0)
        return error_set(e, STK_EUSAGE, "open", "the task %s is unknown; task must be detection or segmentation", task);
    v->files.dir = annotated_folder(v->root, "");
    if (v->files.dir < 0)
        return error_os(e, errno, "open", "cannot be opened");
    v->segmentation = task[0] ? task[0] == 's' : !annotated_has_folder(v->root, "Annotations");
    int rc = find_images(v, query, o->threads, e);
    if (rc == STK_OK && s->classes.n == 0 && annotated_has_folder(v->root, "Annotations"))
        rc = find_classes(v, o->threads, e);
    if (rc == STK_OK)
        rc = add_columns(v, e);
    const size_t n = strlen(v->root);
    snprintf(images, sizeof images, "%s%sJPEGImages/", v->root, n > 0 && v->root[n - 1] != '/' ? "/" : "");
    if (rc == STK_OK)
        rc = annotated_open(s, o,
                            &(struct annotated){.kind = "Pascal VOC",
                                                .path = v->root,
                                                .folder = images,
                                                .paths = &v->files.images,
                                                .classes = &v->classes,
                                                .columns = &v->files.columns,
                                                .began_ns = began_ns},
                            e);
    image_paths_done(&v->files.images);
    return rc;
}

int source_voc_open(struct source *s, const struct source_options *o, const struct names *paths, const char *query,
                    stk_error *e)
{
    static const char *const known[] = {"set", "task", NULL};
    int rc = annotated_check(paths, "folder", query, known, e);
    if (rc != STK_OK)
        return rc;
    struct voc_dataset *v = calloc(1, sizeof *v);
    if (!v)
        return error_nomem(e, "open", sizeof *v);
    v->files.dir = -1;
    snprintf(v->root, sizeof v->root, "%s", names_at(paths, 0));
    rc = make(s, o, v, query, e);
    return annotated_end(
        s, rc,
        &(struct files_extra){.read = read_sample, .done = free_dataset, .state = v, .fingerprint = fingerprint});
}

bool source_voc_is(const char *folder)
{
    return annotated_has_folder(folder, "JPEGImages") &&
           (annotated_has_folder(folder, "Annotations") || annotated_has_folder(folder, "SegmentationClass"));
}
