/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco.c -- reads the objects of an annotation file in COCO's format.
 */
#include "format/coco.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "format/json_stream.h"

#define COORDINATE_MOST 1e9 /* of a box; floats can hold it */

const char COCO_NO_MEMORY[] = "out of memory";

static bool is(struct slice s, const char *word)
{
    return s.n == strlen(word) && memcmp(s.p, word, s.n) == 0;
}

/* A member that is missing is NULL, to which nothing may be added. */
static struct json_cursor cursor_of(struct slice text)
{
    return (struct json_cursor){.p = text.p, .end = text.n > 0 ? text.p + text.n : text.p};
}

/* ------------------------------------------------------------------ values */

const char *coco_number(struct slice text, double *out)
{
    struct number v;
    if (text.n == 0 || number_read(text.p, text.n, &v) != text.n)
        return "is not a number";
    *out = v.d;
    return NULL;
}

/* An integer; 3.0 is one, too. */
static bool read_integer(struct slice text, int64_t *out)
{
    struct number v;
    if (text.n == 0 || number_read(text.p, text.n, &v) != text.n || v.big)
        return false;
    if (!v.whole && (floor(v.d) != v.d || fabs(v.d) > 9007199254740992.0))
        return false;
    *out = v.whole ? v.i : (int64_t)v.d;
    return true;
}

/* A string without its escapes, in place. */
static bool read_text(struct slice text, struct slice *out)
{
    if (text.n == 0)
        return false;
    struct json_reader r = {.p = text.p, .end = text.p + text.n};
    return json_read_string(&r, out) && !memchr(out->p, 0, out->n);
}

const char *coco_numbers(struct slice text, struct buf *to)
{
    struct json_cursor c = cursor_of(text);
    struct slice one;
    while (json_array_next(&c, &one)) {
        double v;
        if (coco_number(one, &v))
            return "contains something other than numbers";
        if (buf_add(to, &v, sizeof v))
            return COCO_NO_MEMORY;
    }
    return c.problem ? "is not a list of numbers" : NULL;
}

const char *coco_box(struct slice text, double to[4])
{
    struct json_cursor c = cursor_of(text);
    struct slice one;
    int n = 0;
    if (text.n == 0)
        return "it has no bbox";
    while (json_array_next(&c, &one)) {
        double v;
        if (n == 4 || coco_number(one, &v) || !isfinite(v))
            return n == 4 ? "its bbox has more than 4 numbers" : "its bbox has a value that is not a finite number";
        if (fabs(v) > COORDINATE_MOST)
            return "its bbox is far outside the image";
        to[n++] = v;
    }
    if (c.problem || n < 4)
        return c.problem ? "its bbox is not a list" : "its bbox has fewer than 4 numbers";
    return to[2] < 0 || to[3] < 0 ? "its bbox has a negative width or height" : NULL;
}

/* ------------------------------------------------------------------ objects */

static const char *id_problem(const struct json_cursor *c)
{
    return c->problem ? c->problem : "its id is missing or is not an integer";
}

const char *coco_image(struct slice text, struct coco_image *out)
{
    struct json_cursor c = cursor_of(text);
    struct slice key, value, name = {0};
    bool id = false;
    *out = (struct coco_image){0};
    while (json_object_next(&c, &key, &value)) {
        if (is(key, "id"))
            id = read_integer(value, &out->id);
        else if (is(key, "file_name"))
            name = value;
        else if (is(key, "width") && !read_integer(value, &out->w) && !is(value, "null"))
            return "its width is not an integer";
        else if (is(key, "height") && !read_integer(value, &out->h) && !is(value, "null"))
            return "its height is not an integer";
    }
    if (c.problem || !id)
        return id_problem(&c);
    if (!read_text(name, &out->file_name) || out->file_name.n == 0)
        return "it has no file_name";
    return out->w < 0 || out->h < 0 || out->w > INT32_MAX || out->h > INT32_MAX
               ? "its width or height is negative or too large"
               : NULL;
}

static int64_t count_elements(struct slice text)
{
    struct json_cursor c = cursor_of(text);
    struct slice one;
    int64_t n = 0;
    while (json_array_next(&c, &one))
        n++;
    return n;
}

const char *coco_category(struct slice text, struct coco_category *out)
{
    struct json_cursor c = cursor_of(text);
    struct slice key, value, name = {0};
    bool id = false;
    *out = (struct coco_category){0};
    while (json_object_next(&c, &key, &value)) {
        if (is(key, "id"))
            id = read_integer(value, &out->id);
        else if (is(key, "name"))
            name = value;
        else if (is(key, "keypoints"))
            out->keypoints = count_elements(value);
    }
    if (c.problem || !id)
        return id_problem(&c);
    return read_text(name, &out->name) ? NULL : "it has no name";
}

const char *coco_annotation(struct slice text, struct coco_annotation *out)
{
    struct json_cursor c = cursor_of(text);
    struct slice key, value;
    bool image = false;
    *out = (struct coco_annotation){0};
    while (json_object_next(&c, &key, &value)) {
        struct slice *const to = is(key, "bbox")           ? &out->bbox
                                 : is(key, "area")         ? &out->area
                                 : is(key, "iscrowd")      ? &out->iscrowd
                                 : is(key, "segmentation") ? &out->segmentation
                                 : is(key, "keypoints")    ? &out->keypoints
                                 : is(key, "caption")      ? &out->caption
                                                           : NULL;
        if (to)
            *to = value;
        else if (is(key, "image_id"))
            image = read_integer(value, &out->image_id);
        else if (is(key, "id"))
            out->has_id = read_integer(value, &out->id);
        else if (is(key, "category_id"))
            out->has_category = read_integer(value, &out->category_id);
        else if (is(key, "segments_info"))
            out->panoptic = true;
    }
    if (c.problem)
        return c.problem;
    return image ? NULL : "its image_id is missing or is not an integer";
}

/* ------------------------------------------------------------------ masks */

static const char *draw_polygons(struct slice text, struct rle_mask *m, struct buf *points, struct buf *scratch)
{
    struct json_cursor c = cursor_of(text);
    struct slice one;
    int64_t n = 0;
    for (; json_array_next(&c, &one); n++) {
        points->len = 0;
        const char *problem = coco_numbers(one, points);
        if (problem)
            return problem == COCO_NO_MEMORY ? problem : "a polygon of its segmentation is not a list of numbers";
        const size_t count = points->len / sizeof(double);
        if (count % 2 != 0)
            return "a polygon has an odd number of coordinates";
        problem = rle_polygon(m, (const double *)(const void *)points->data, count / 2, scratch);
        if (problem)
            return problem == RLE_NO_MEMORY ? COCO_NO_MEMORY : problem;
    }
    if (c.problem)
        return "its segmentation is damaged";
    return n == 0 ? "its segmentation is empty" : NULL;
}

static const char *draw_runs(struct slice text, struct rle_mask *m)
{
    struct json_cursor c = cursor_of(text);
    struct slice one;
    const char *problem = NULL;
    while (!problem && json_array_next(&c, &one)) {
        int64_t run;
        if (!read_integer(one, &run) || run < 0)
            return "a run of its segmentation is not a count";
        problem = rle_run(m, (uint64_t)run);
    }
    if (c.problem)
        return "its segmentation is damaged";
    return problem ? problem : rle_end(m);
}

static const char *draw_rle(struct slice text, struct rle_mask *m)
{
    struct json_cursor c = cursor_of(text);
    struct slice key, value, counts = {0}, size = {0};
    while (json_object_next(&c, &key, &value))
        if (is(key, "counts"))
            counts = value;
        else if (is(key, "size"))
            size = value;
    struct json_cursor s = cursor_of(size);
    struct slice h, w;
    int64_t height, width;
    if (c.problem || counts.n == 0)
        return "its segmentation has no counts";
    if (size.n == 0 || !json_array_next(&s, &h) || !json_array_next(&s, &w) || !read_integer(h, &height) ||
        !read_integer(w, &width))
        return "its segmentation has no size";
    if (height != m->h || width != m->w)
        return "the size of its segmentation differs from that of its image";
    if (*counts.p == '[')
        return draw_runs(counts, m);
    return read_text(counts, &value) ? rle_string(m, value.p, value.n) : "its segmentation has no counts";
}

const char *coco_mask(struct slice text, struct rle_mask *m, struct buf *points, struct buf *scratch)
{
    if (text.n == 0 || is(text, "null"))
        return "it has no segmentation";
    return *text.p == '{' ? draw_rle(text, m) : draw_polygons(text, m, points, scratch);
}
