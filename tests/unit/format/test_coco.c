/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_coco.c -- large JSON documents in pieces, objects of COCO's format, run lengths and polygons.
 */
#include "format/coco.h"

#include "format/json_stream.h"
#include "test.h"

/* ------------------------------------------------------------------ documents */

struct piece {
    const char *p;
    size_t n, step; /* bytes of one read */
};

static int64_t read_piece(void *user, void *to, size_t n)
{
    struct piece *m = user;
    size_t k = m->n < n ? m->n : n;
    if (m->step && k > m->step)
        k = m->step;
    memcpy(to, m->p, k);
    m->p += k;
    m->n -= k;
    return (int64_t)k;
}

/* All elements as text: the index of the array, offset, and the element. */
static const char *all(const char *text, size_t n, size_t step)
{
    static char seen[4096];
    static const char *const wanted[] = {"a", "bc", NULL};
    struct piece m = {text, n, step};
    struct json_stream s = {.read = read_piece, .user = &m, .wanted = wanted};
    struct json_element el;
    size_t at = 0;
    int rc;
    seen[0] = 0;
    while ((rc = json_stream_next(&s, &el)) > 0)
        at += (size_t)snprintf(seen + at, sizeof seen - at, "%d@%d=%.*s ", el.array, (int)el.at, (int)el.text.n,
                               el.text.p);
    if (rc < 0)
        snprintf(seen + at, sizeof seen - at, "! %s", s.problem ? s.problem : "failed");
    json_stream_done(&s);
    return seen;
}

static const char *of(const char *text)
{
    return all(text, strlen(text), 0);
}

static void documents(void)
{
    CHECK_STR(of("{}"), "");
    CHECK_STR(of(" \n{ \"a\" : [ ] , \"bc\":[1,{\"x\":[2]} , \"s\"]}\n"), "1@22=1 1@24={\"x\":[2]} 1@36=\"s\" ");
    CHECK_STR(of("\xef\xbb\xbf{\"no\":[[1],2],\"x\":{\"a\":[3]},\"a\":[\"\\\"]\\\\\"]}"), "0@36=\"\\\"]\\\\\" ");
    CHECK_STR(of("[]"), "! an object was expected");
    CHECK_STR(of(""), "! an object was expected");
    CHECK_STR(of("{} x"), "! text follows the document");
    CHECK_STR(of("{\"a\":{}}"), "! an array was expected");
    CHECK_STR(of("{\"a\":[1],\"a\":[2]}"), "0@6=1 ! the key of an array appears twice");
    CHECK_STR(of("{\"a\":[],,}"), "! a key was expected");
    CHECK_STR(of("{\"a\":[] \"bc\":[]}"), "! a comma or a closing bracket was expected");
    CHECK_STR(of("{\"a\":[1 2]}"), "0@6=1 ! a comma or a closing bracket was expected");
    CHECK_STR(of("{\"a\":[{\"x\":]]}"), "! brackets do not match");
    CHECK_STR(all("{\"a\":[\"\0\"]}", 11, 0), "! a 0 byte in a string");
    char deep[512];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    CHECK_STR(all(deep, sizeof deep, 0), "! nested more than 64 deep");
}

/* Any size of reads yields the same; any truncation is an error. */
static void in_pieces(void)
{
    static const char text[] = "{\"i\":[\"\\\\\",[{}]],\"a\":[{\"k\":\"a\\\"b\"},-1.5e3 , \"\\u0041\"], \"bc\":[[[]]]}";
    const size_t n = sizeof text - 1;
    char whole[4096];
    snprintf(whole, sizeof whole, "%s", of(text));
    CHECK(strchr(whole, '!') == NULL);
    for (size_t step = 1; step < n; step++)
        CHECK_STR(all(text, n, step), whole);
    for (size_t k = 0; k < n; k++)
        CHECK(strchr(all(text, k, 7), '!') != NULL);
}

/* ------------------------------------------------------------------ objects */

static struct slice text_of(const char *text)
{
    static char copy[4][4096];
    static int next;
    char *to = copy[next++ % 4];
    snprintf(to, sizeof copy[0], "%s", text);
    return (struct slice){to, strlen(to)};
}

static void objects(void)
{
    struct coco_image im;
    CHECK(!coco_image(text_of("{\"id\": 7, \"file_name\": \"a\\/b.jpg\", \"width\": 3.0, \"height\": 2, \"x\": {}}"),
                      &im));
    CHECK(im.id == 7 && im.w == 3 && im.h == 2 && im.file_name.n == 7 && memcmp(im.file_name.p, "a/b.jpg", 7) == 0);
    CHECK_STR(coco_image(text_of("{\"id\": \"7\", \"file_name\": \"a\"}"), &im),
              "its id is missing or is not an integer");
    CHECK_STR(coco_image(text_of("{\"id\": 7, \"file_name\": null}"), &im), "it has no file_name");
    CHECK_STR(coco_image(text_of("{\"id\": 7, \"file_name\": \"a\", \"width\": 1e99}"), &im),
              "its width is not an integer");
    CHECK_STR(coco_image(text_of("{\"id\": 7, \"file_name\": \"a\", \"width\": -1}"), &im),
              "its width or height is negative or too large");
    CHECK_STR(coco_image(text_of("[1]"), &im), "another kind of value was expected");
    struct coco_category cat;
    CHECK(!coco_category(text_of("{\"name\":\"dog\",\"id\":18,\"keypoints\":[\"nose\",\"tail\"]}"), &cat));
    CHECK(cat.id == 18 && cat.keypoints == 2 && cat.name.n == 3);
    struct coco_annotation a;
    CHECK(!coco_annotation(text_of("{\"id\":1,\"image_id\":2,\"bbox\":[1,2,3,4],\"segments\":0}"), &a));
    CHECK(a.has_id && !a.has_category && a.bbox.n == 9 && a.caption.n == 0);
    CHECK_STR(coco_annotation(text_of("{\"id\":1}"), &a), "its image_id is missing or is not an integer");
    static const char whole[] = "{\"id\":1,\"image_id\":2,\"bbox\":[1,2],\"caption\":\"x\"}";
    for (size_t k = 0; k + 1 < sizeof whole; k++) {
        struct slice cut = text_of(whole);
        cut.n = k;
        cut.p[k] = 0;
        CHECK(coco_annotation(cut, &a) != NULL);
    }
    double box[4];
    CHECK(!coco_box(text_of("[0, 1.5, 2e1, 4]"), box));
    CHECK(box[1] == 1.5 && box[2] == 20);
    CHECK_STR(coco_box(text_of("[0, 1, 2]"), box), "its bbox has fewer than 4 numbers");
    CHECK_STR(coco_box(text_of("[0, 1, 2, 3, 4]"), box), "its bbox has more than 4 numbers");
    CHECK_STR(coco_box(text_of("[0, NaN, 2, 3]"), box), "its bbox has a value that is not a finite number");
    CHECK_STR(coco_box(text_of("[0, 1, -2, 3]"), box), "its bbox has a negative width or height");
    CHECK_STR(coco_box(text_of("[0, 1, 1e99, 3]"), box), "its bbox is far outside the image");
    CHECK_STR(coco_box(text_of("{}"), box), "its bbox is not a list");
    CHECK_STR(coco_box((struct slice){0}, box), "it has no bbox");
}

/* ------------------------------------------------------------------ masks */

/* The mask of 6 x 4 pixels as text, or what is wrong. */
static const char *mask(const char *text)
{
    enum { W = 6, H = 4 };
    static char seen[W * H + H + 1];
    uint8_t px[W * H] = {0};
    struct buf points = {0}, scratch = {0};
    struct rle_mask m = {.px = px, .w = W, .h = H};
    const char *problem = coco_mask(text_of(text), &m, &points, &scratch);
    buf_done(&points);
    buf_done(&scratch);
    if (problem)
        return problem;
    char *to = seen;
    for (int i = 0; i < W * H; i++) {
        *to++ = px[i] ? '#' : '.';
        if (i % W == W - 1)
            *to++ = '\n';
    }
    return seen;
}

/* What pycocotools makes of these; tests/python/test_coco.py compares many more. */
static void masks(void)
{
    CHECK_STR(mask("[[1,1,4,1,4,3,1,3]]"), "......\n.###..\n.###..\n......\n");
    CHECK_STR(mask("[[1,1,4,1,4,3,1,3],[0,0,1,0,1,4,0,4]]"), "#.....\n####..\n####..\n#.....\n");
    CHECK_STR(mask("[[-5,-5,2,-5,2,9,-5,9]]"), "##....\n##....\n##....\n##....\n");
    CHECK_STR(mask("[[1,1,1,1,4,1,4,1,4,3,1,3]]"), "......\n.###..\n.###..\n......\n");
    CHECK_STR(mask("{\"size\":[4,6],\"counts\":[5,2,17]}"), "......\n.#....\n.#....\n......\n");
    CHECK_STR(mask("{\"size\":[4,6],\"counts\":[0,4,20]}"), "#.....\n#.....\n#.....\n#.....\n");
    CHECK_STR(mask("{\"counts\":\"52a0\",\"size\":[4,6]}"), "......\n.#....\n.#....\n......\n");
}

static void bad_masks(void)
{
    CHECK_STR(mask("[]"), "its segmentation is empty");
    CHECK_STR(mask("null"), "it has no segmentation");
    CHECK_STR(mask("[[1,2,3,4]]"), "a polygon has fewer than 3 points");
    CHECK_STR(mask("[[1,2,3,4,5,6,7]]"), "a polygon has an odd number of coordinates");
    CHECK_STR(mask("[[1,2,3,4,5,NaN]]"), "a polygon has a coordinate that is not a finite number");
    CHECK_STR(mask("[[1,2,3,4,5,1e300]]"), "a polygon is far outside the image");
    CHECK_STR(mask("[[1,2,3,4,5,\"6\"]]"), "a polygon of its segmentation is not a list of numbers");
    CHECK_STR(mask("[[9e6,9e6,-9e6,9e6,9e6,-9e6]]"), "the outlines of its polygons are too long");
    CHECK_STR(mask("{\"size\":[4,6],\"counts\":[5,2,18]}"), "its runs are longer than the image");
    CHECK_STR(mask("{\"size\":[4,6],\"counts\":[5,2,16]}"), "its runs are shorter than the image");
    CHECK_STR(mask("{\"size\":[4,6],\"counts\":[5,-2,21]}"), "a run of its segmentation is not a count");
    CHECK_STR(mask("{\"size\":[6,4],\"counts\":[24]}"), "the size of its segmentation differs from that of its image");
    CHECK_STR(mask("{\"counts\":[24]}"), "its segmentation has no size");
    CHECK_STR(mask("{\"size\":[4,6]}"), "its segmentation has no counts");
    CHECK_STR(mask("{\"size\":[4,6],\"counts\":\"52a\"}"), "its compressed runs are damaged");
    CHECK_STR(mask("{\"size\":[4,6],\"counts\":\"52\\u0001\"}"), "its compressed runs are damaged");
    CHECK_STR(mask("{\"size\":[4,6],\"counts\":\"oooooooooooooooooooooooo\"}"), "its compressed runs are damaged");
    CHECK_STR(mask("{\"size\":[4,6],\"counts\":\"@\"}"), "a run has a negative length");
    CHECK_STR(mask("{\"size\":[4,6],\"counts\":\"52\"}"), "its runs are shorter than the image");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {T(documents), T(in_pieces), T(objects), T(masks), T(bad_masks)};
    return test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
}
