/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_index.c -- finds the images, the categories and the annotations of a file in COCO's format.
 *
 * Images, categories and annotations may come in any order in the file, so that ids are resolved at the end. An
 * annotation takes 40 bytes until then, and 16 bytes afterwards.
 */
#include "source/coco_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/search.h"
#include "format/coco.h"
#include "format/json_stream.h"

enum { IMAGES, CATEGORIES, ANNOTATIONS };
static const char *const arrays[] = {"images", "categories", "annotations", NULL};

struct found_image {
    int64_t id;
    uint64_t name; /* offset in names */
    uint32_t n_name;
    int32_t w, h;
};

struct found_category {
    int64_t id;
    uint64_t name;
    uint32_t n_name;
};

struct found_annotation {
    int64_t image_id, id, category;
    int64_t at;
    uint32_t bytes;
    bool has_id, has_category;
};

struct scan {
    int fd;
    int64_t at;
    int os_error;
    uint64_t hash;
    struct buf names, images, categories, annotations;
    struct coco_index *x;
};

/* ------------------------------------------------------------------ the file */

static int64_t read_file(void *user, void *to, size_t n)
{
    struct scan *s = user;
    const ssize_t got = io_pread(s->fd, to, n, s->at);
    if (got < 0) {
        s->os_error = errno;
        return -1;
    }
    s->hash = hash_bytes(to, (size_t)got, s->hash);
    s->at += got;
    return got;
}

static int no_memory(stk_error *e, size_t bytes)
{
    return error_nomem(e, "open", bytes);
}

static int bad_element(const struct json_element *el, const char *what, int64_t id, const char *problem, stk_error *e)
{
    return error_set(e, STK_EDATA, "open", "the %s at byte %lld (id %lld): %s", what, (long long)el->at, (long long)id,
                     problem);
}

static int add_image(struct scan *s, const struct json_element *el, stk_error *e)
{
    struct coco_image v;
    const char *problem = coco_image(el->text, &v);
    if (problem)
        return bad_element(el, "image", v.id, problem, e);
    const struct found_image one = {
        .id = v.id, .name = s->names.len, .n_name = (uint32_t)v.file_name.n, .w = (int32_t)v.w, .h = (int32_t)v.h};
    if (buf_add(&s->names, v.file_name.p, v.file_name.n) || buf_add(&s->images, &one, sizeof one))
        return no_memory(e, s->images.len);
    return STK_OK;
}

static int add_category(struct scan *s, const struct json_element *el, stk_error *e)
{
    struct coco_category v;
    const char *problem = coco_category(el->text, &v);
    if (problem)
        return bad_element(el, "category", v.id, problem, e);
    const struct found_category one = {.id = v.id, .name = s->names.len, .n_name = (uint32_t)v.name.n};
    if (v.keypoints > s->x->keypoints)
        s->x->keypoints = v.keypoints;
    if (buf_add(&s->names, v.name.p, v.name.n) || buf_add(&s->categories, &one, sizeof one))
        return no_memory(e, s->categories.len);
    return STK_OK;
}

/* The number of points of the first annotation that has some, if the categories do not name them. */
static void count_keypoints(struct scan *s, struct slice text)
{
    struct buf numbers = {0};
    if (s->x->keypoints == 0 && text.n > 0 && coco_numbers(text, &numbers) == NULL)
        s->x->keypoints = (int64_t)(numbers.len / sizeof(double) / 3);
    buf_done(&numbers);
}

static int add_annotation(struct scan *s, const struct json_element *el, stk_error *e)
{
    struct coco_annotation v;
    const char *problem = coco_annotation(el->text, &v);
    if (problem)
        return bad_element(el, "annotation", v.id, problem, e);
    if (v.panoptic)
        return error_set(e, STK_EUSAGE, "open",
                         "COCO's panoptic annotations are not supported; use instances_*.json, or its PNG files as "
                         "masks of a folder (pairs:DIR)");
    const struct found_annotation one = {.image_id = v.image_id,
                                         .id = v.id,
                                         .category = v.category_id,
                                         .at = el->at,
                                         .bytes = (uint32_t)el->text.n,
                                         .has_id = v.has_id,
                                         .has_category = v.has_category};
    s->x->has_boxes |= v.bbox.n > 0 || v.segmentation.n > 0;
    s->x->has_captions |= v.caption.n > 0;
    count_keypoints(s, v.keypoints);
    return buf_add(&s->annotations, &one, sizeof one) ? no_memory(e, s->annotations.len) : STK_OK;
}

static int scan_file(struct scan *s, stk_error *e)
{
    static int (*const add[])(struct scan *, const struct json_element *, stk_error *) = {add_image, add_category,
                                                                                          add_annotation};
    struct json_stream j = {.read = read_file, .user = s, .wanted = arrays};
    struct json_element el;
    int rc = STK_OK, got = 0;
    while (rc == STK_OK && (got = json_stream_next(&j, &el)) > 0)
        rc = add[el.array](s, &el, e);
    if (rc == STK_OK && got < 0)
        rc = j.no_memory ? no_memory(e, j.text.len)
             : j.problem
                 ? error_set(e, STK_EDATA, "open", "invalid JSON at byte %lld: %s", (long long)j.offset, j.problem)
                 : error_os(e, s->os_error, "open", "cannot be read");
    else if (rc == STK_OK && !(j.found & 1u << IMAGES))
        rc = error_set(e, STK_EUSAGE, "open", "has no list \"images\", which a file in COCO's format needs");
    json_stream_done(&j);
    return rc;
}

/* ------------------------------------------------------------------ ids */

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_image(const void *a, const void *b)
{
    return compare(((const struct found_image *)a)->id, ((const struct found_image *)b)->id);
}

static int by_category(const void *a, const void *b)
{
    return compare(((const struct found_category *)a)->id, ((const struct found_category *)b)->id);
}

static int by_value(const void *a, const void *b)
{
    return compare(*(const int64_t *)a, *(const int64_t *)b);
}

static int twice(const char *what, int64_t id, stk_error *e)
{
    return error_set(e, STK_EDATA, "open", "the %s id %lld appears twice", what, (long long)id);
}

/* The index of an id among n, which ascend; -1: none. */
static int64_t find(const int64_t *ids, int64_t n, int64_t id)
{
    const int64_t i = n > 0 ? search_last(ids, sizeof *ids, n, id) : 0;
    return n > 0 && ids[i] == id ? i : -1;
}

int64_t coco_index_category(const struct coco_index *x, int64_t id)
{
    return find(x->categories, x->n_categories, id);
}

static int take_images(struct scan *s, stk_error *e)
{
    struct coco_index *x = s->x;
    struct found_image *at = (struct found_image *)(void *)s->images.data;
    x->n = (int64_t)(s->images.len / sizeof *at);
    if (x->n == 0)
        return error_set(e, STK_EUSAGE, "open", "its list of images is empty");
    qsort(at, (size_t)x->n, sizeof *at, by_image);
    x->ids = malloc((size_t)x->n * sizeof *x->ids);
    x->sizes = malloc((size_t)x->n * sizeof *x->sizes);
    if (!x->ids || !x->sizes)
        return no_memory(e, (size_t)x->n * sizeof *x->ids);
    for (int64_t i = 0; i < x->n; i++) {
        if (i > 0 && at[i].id == at[i - 1].id)
            return twice("image", at[i].id, e);
        x->ids[i] = at[i].id;
        x->sizes[i][0] = at[i].w;
        x->sizes[i][1] = at[i].h;
        if (image_paths_add(&x->paths, (const char *)s->names.data + at[i].name, at[i].n_name))
            return no_memory(e, s->names.len);
    }
    return STK_OK;
}

static int add_class(struct coco_index *x, const char *name, size_t n, int64_t id, stk_error *e)
{
    struct buf text = {0};
    uint32_t ignored;
    int added = names_add(&x->classes, name, n, &ignored);
    if (added == 0)
        added = buf_add(&text, name, n) || buf_printf(&text, " (%lld)", (long long)id)
                    ? -1
                    : names_add(&x->classes, text.data, text.len, &ignored);
    buf_done(&text);
    return added < 0 ? no_memory(e, n) : added == 0 ? twice("category", id, e) : STK_OK;
}

static int take_categories(struct scan *s, stk_error *e)
{
    struct coco_index *x = s->x;
    struct found_category *at = (struct found_category *)(void *)s->categories.data;
    const int64_t n = (int64_t)(s->categories.len / sizeof *at);
    if (n == 0)
        return STK_OK;
    qsort(at, (size_t)n, sizeof *at, by_category);
    x->categories = malloc((size_t)n * sizeof *x->categories);
    if (!x->categories)
        return no_memory(e, (size_t)n * sizeof *x->categories);
    for (int64_t i = 0; i < n; i++) {
        if (i > 0 && at[i].id == at[i - 1].id)
            return twice("category", at[i].id, e);
        x->categories[i] = at[i].id;
        const int rc = add_class(x, (const char *)s->names.data + at[i].name, at[i].n_name, at[i].id, e);
        if (rc != STK_OK)
            return rc;
    }
    x->n_categories = n;
    return STK_OK;
}

/* ------------------------------------------------------------------ annotations */

/* Replaces the id of each annotation's image by its index; -1: it has none, and is skipped. */
static int resolve(struct scan *s, bool ignore, stk_error *e)
{
    const struct coco_index *x = s->x;
    struct found_annotation *at = (struct found_annotation *)(void *)s->annotations.data;
    const int64_t n = (int64_t)(s->annotations.len / sizeof *at);
    int64_t dangling = 0, first = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t image = find(x->ids, x->n, at[i].image_id);
        if (image < 0 && dangling++ == 0)
            first = i;
        if (at[i].has_category && x->n_categories > 0 && coco_index_category(x, at[i].category) < 0)
            return error_set(e, STK_EDATA, "open",
                             "annotation %lld has the category %lld, which is not among its %lld categories",
                             (long long)at[i].id, (long long)at[i].category, (long long)x->n_categories);
        if (image >= 0)
            at[i].image_id = image;
        at[i].category = image < 0 ? -1 : 0; /* from here on: whether it is skipped */
    }
    if (dangling > 0 && !ignore)
        return error_set(
            e, STK_EDATA, "open",
            "annotation %lld refers to image %lld, which the file does not list (such annotations: %lld); add "
            "the images, or leave these annotations out with coco:FILE?dangling=ignore",
            (long long)at[first].id, (long long)at[first].image_id, (long long)dangling);
    return STK_OK;
}

static int check_twice(const struct scan *s, stk_error *e)
{
    const struct found_annotation *at = (const struct found_annotation *)(const void *)s->annotations.data;
    const size_t n = s->annotations.len / sizeof *at;
    int64_t *ids = n > 0 ? malloc(n * sizeof *ids) : NULL;
    if (n > 0 && !ids)
        return no_memory(e, n * sizeof *ids);
    size_t k = 0;
    bool sorted = true;
    for (size_t i = 0; i < n; i++)
        if (at[i].has_id) {
            ids[k++] = at[i].id;
            sorted &= k < 2 || ids[k - 2] <= ids[k - 1];
        }
    if (!sorted)
        qsort(ids, k, sizeof *ids, by_value);
    int rc = STK_OK;
    for (size_t i = 1; i < k && rc == STK_OK; i++)
        if (ids[i] == ids[i - 1])
            rc = twice("annotation", ids[i], e);
    free(ids);
    return rc;
}

/* Orders the annotations by their images, and keeps the order within an image. */
static int place_annotations(struct scan *s, stk_error *e)
{
    struct coco_index *x = s->x;
    const struct found_annotation *at = (const struct found_annotation *)(const void *)s->annotations.data;
    const size_t n = s->annotations.len / sizeof *at;
    x->starts = calloc((size_t)x->n + 2, sizeof *x->starts);
    x->annotations = malloc((n + 1) * sizeof *x->annotations);
    if (!x->starts || !x->annotations)
        return no_memory(e, n * sizeof *x->annotations);
    for (size_t i = 0; i < n; i++)
        if (at[i].category == 0)
            x->starts[at[i].image_id + 2]++;
    for (int64_t i = 2; i <= x->n + 1; i++)
        x->starts[i] += x->starts[i - 1];
    for (size_t i = 0; i < n; i++)
        if (at[i].category == 0)
            x->annotations[x->starts[at[i].image_id + 1]++] = (struct coco_text){at[i].at, at[i].bytes};
    x->n_annotations = (int64_t)x->starts[x->n];
    return STK_OK;
}

int coco_index_read(struct coco_index *x, int fd, bool ignore_dangling, stk_error *e)
{
    struct scan s = {.fd = fd, .x = x};
    *x = (struct coco_index){0};
    int rc = scan_file(&s, e);
    if (rc == STK_OK)
        rc = take_images(&s, e);
    if (rc == STK_OK)
        rc = take_categories(&s, e);
    if (rc == STK_OK)
        rc = check_twice(&s, e);
    if (rc == STK_OK)
        rc = resolve(&s, ignore_dangling, e);
    if (rc == STK_OK)
        rc = place_annotations(&s, e);
    x->hash = s.hash;
    buf_done(&s.names);
    buf_done(&s.images);
    buf_done(&s.categories);
    buf_done(&s.annotations);
    return rc;
}

void coco_index_done(struct coco_index *x)
{
    image_paths_done(&x->paths);
    names_done(&x->classes);
    free(x->ids);
    free(x->sizes);
    free(x->starts);
    free(x->annotations);
    free(x->categories);
    *x = (struct coco_index){0};
}
