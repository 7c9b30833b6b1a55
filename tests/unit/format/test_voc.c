/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_voc.c -- annotations of Pascal VOC and of YOLO, valid, unusual and damaged.
 */
#include "format/voc.h"

#include "format/yolo.h"
#include "test.h"

/* ------------------------------------------------------------------ VOC */

static char seen[4096];

/* All objects as text, or what is wrong. */
static const char *voc_of(const char *text, size_t n)
{
    char copy[4096];
    size_t at = 0;
    memcpy(copy, text, n);
    struct voc v = {.p = copy, .end = copy + n};
    struct voc_object o;
    seen[0] = 0;
    while (voc_next(&v, &o))
        at += (size_t)snprintf(seen + at, sizeof seen - at, "%.*s(%g %g %g %g)%s%s ", (int)o.name.n, o.name.p, o.box[0],
                               o.box[1], o.box[2], o.box[3], o.difficult ? "d" : "", o.truncated ? "t" : "");
    if (v.problem)
        snprintf(seen + at, sizeof seen - at, "! %d %s", v.n_objects, v.problem);
    return seen;
}

static const char *voc(const char *text)
{
    return voc_of(text, strlen(text));
}

#define BOX "<bndbox><xmin>1</xmin><ymin> 2.5 </ymin><xmax>3</xmax><ymax>4</ymax></bndbox>"

static void voc_objects(void)
{
    CHECK_STR(voc("<annotation/>"), "");
    CHECK_STR(
        voc("\xef\xbb\xbf<?xml version='1.0'?><!-- <x> --><annotation verified=\"a>b\"><size><width>9</width></size>"
            "<object><name>cat</name>" BOX "<difficult>1</difficult></object>"
            "<object>" BOX "<truncated>1</truncated><part><name>head</name><bndbox><xmin>7</xmin></bndbox></part>"
            "<name>a &amp; b &#233;&#x20AC;</name></object></annotation>\n"),
        "cat(1 2.5 3 4)d a & b \xc3\xa9\xe2\x82\xac(1 2.5 3 4)t ");
    CHECK_STR(voc("<annotation><object><name>x</name>" BOX "</object><owner><name>me</name></owner></annotation>"),
              "x(1 2.5 3 4) ");
}

static void voc_problems(void)
{
    CHECK_STR(voc(""), "! 0 the file ends before its root element is closed");
    CHECK_STR(voc("{}"), "! 0 it is not XML");
    CHECK_STR(voc("<html></html>"), "! 0 the root element is not <annotation>");
    CHECK_STR(voc("<annotation></annotation><annotation/>"), "! 0 there is more than one root element");
    CHECK_STR(voc("<annotation><a></b></annotation>"), "! 0 a closing tag does not match the last opening tag");
    CHECK_STR(voc("<annotation><object>" BOX "</object></annotation>"), "! 1 it has no name");
    CHECK_STR(voc("<annotation><object><name>x</name></object></annotation>"), "! 1 its box has fewer than 4 sides");
    CHECK_STR(voc("<annotation><object><name>x</name>" BOX "<bndbox><xmax>0</xmax></bndbox></object></annotation>"),
              "! 1 its box has a negative width or height");
    CHECK_STR(voc("<annotation><object><name>x</name><bndbox><xmin>nan</xmin></bndbox></object></annotation>"),
              "! 1 a side of its box is not a finite number");
    CHECK_STR(voc("<annotation><object><name>x</name><bndbox><xmin>1e99</xmin></bndbox></object></annotation>"),
              "! 1 its box is far outside the image");
    CHECK_STR(voc("<annotation><object><name>&lol;</name></object></annotation>"), "! 1 an unknown entity");
    CHECK_STR(voc("<annotation><object><name>&#xD800;</name></object></annotation>"), "! 1 an unknown entity");
    CHECK_STR(voc("<!DOCTYPE a [<!ENTITY lol \"lol\"><!ENTITY lol2 \"&lol;&lol;\">]><annotation>&lol2;</annotation>"),
              "! 0 it has declarations (<!DOCTYPE, <![CDATA[), which are not read");
    char deep[1024] = "<annotation>";
    for (int i = 0; i < 20; i++)
        strncat(deep, "<a>", sizeof deep - strlen(deep) - 1);
    CHECK_STR(voc(deep), "! 0 elements are nested more than 16 deep");
    static const char whole[] = "<annotation><object><name>cat&amp;</name>" BOX "</object></annotation>";
    for (size_t k = 0; k < sizeof whole - 1; k++)
        CHECK(strchr(voc_of(whole, k), '!') != NULL);
}

/* ------------------------------------------------------------------ YOLO */

static const char *yolo_of(const char *text, size_t n, struct yolo_shape shape)
{
    float points[8] = {0};
    size_t at = 0;
    struct yolo y = {.p = text, .end = text + n, .shape = shape};
    struct yolo_object o;
    seen[0] = 0;
    while (yolo_next(&y, &o, shape.points ? points : NULL))
        at += (size_t)snprintf(seen + at, sizeof seen - at, "%d(%g %g %g %g)%s%g ", (int)o.label, (double)o.box[0],
                               (double)o.box[1], (double)o.box[2], (double)o.box[3], shape.points ? "" : "#",
                               (double)points[1]);
    if (y.problem)
        snprintf(seen + at, sizeof seen - at, "! %d %s", (int)y.line, y.problem);
    return seen;
}

static const char *yolo(const char *text)
{
    return yolo_of(text, strlen(text), (struct yolo_shape){0});
}

static void yolo_lines(void)
{
    const struct yolo_shape two = {1, 2};
    CHECK_STR(yolo(""), "");
    CHECK_STR(yolo("\n \r\n"), "");
    CHECK_STR(yolo("0 0.5 0.5 0.25 1\r\n\n 12\t.5 .5 1e-1 0"), "0(0.5 0.5 0.25 1)#0 12(0.5 0.5 0.1 0)#0 ");
    CHECK_STR(yolo("3 0 0.25 0.5 0.25 0.5 0.75"), "3(0.25 0.5 0.5 0.5)#0 ");
    CHECK_STR(yolo_of("0 .5 .5 .2 .2 .1 .4", 19, two), "0(0.5 0.5 0.2 0.2)0.4 ");
    CHECK_STR(yolo_of("\n0 .5 .5 .2 .2", 14, two), "! 2 it has neither a box nor as many keypoints as kpt_shape says");
    CHECK_STR(yolo("0 0.5 0.5\n"), "! 1 it has neither a box nor a polygon");
    CHECK_STR(yolo("0 0 0 1 0 1"), "! 1 it has neither a box nor a polygon");
    CHECK_STR(yolo("0 0 0 1 0 1 1 .5"), "! 1 it has neither a box nor a polygon");
    CHECK_STR(yolo("0 .5 .5 .1 .1\ncat .5 .5 .1 .1"),
              "0(0.5 0.5 0.1 0.1)#0 ! 2 it contains something other than numbers");
    CHECK_STR(yolo("0 .5 .5 .1 .1x"), "! 1 it contains something other than numbers");
    CHECK_STR(yolo("-1 .5 .5 .1 .1"), "! 1 its class is not an index");
    CHECK_STR(yolo("0.5 .5 .5 .1 .1"), "! 1 its class is not an index");
    CHECK_STR(yolo("0 nan .5 .1 .1"), "! 1 it has a value that is not a finite number");
    CHECK_STR(yolo("0 .5 .5 -.1 .1"), "! 1 its box has a negative width or height");
    CHECK_STR(yolo("0 .5 .5 1e99 .1"),
              "! 1 it has a value far outside the image; coordinates are shares of the image, from 0 to 1");
    CHECK_STR(yolo("0 320 240 10 10"),
              "! 1 its box is outside the image; coordinates are shares of the image, from 0 to 1");
}

static const char *yaml(const char *text)
{
    struct yolo_yaml y;
    const char *problem = yolo_yaml_read(&y, text, strlen(text));
    size_t at = (size_t)snprintf(seen, sizeof seen, "%s|%s|%s|%d,%d|", y.path, y.train, y.val, (int)y.shape.points,
                                 (int)y.shape.dims);
    for (uint32_t i = 0; i < y.names.n; i++)
        at += (size_t)snprintf(seen + at, sizeof seen - at, "%s;", names_at(&y.names, i));
    yolo_yaml_done(&y);
    return problem ? problem : seen;
}

static void yaml_files(void)
{
    CHECK_STR(yaml(""), "|||0,0|");
    CHECK_STR(
        yaml(
            "# x\npath: ../a # here\ntrain: 'images/train'\nval: images/val\r\nnc: 2\nnames:\n  0: cat\n  1: \"a: b\"\n"
            "kpt_shape: [17, 3]\n"),
        "../a|images/train|images/val|17,3|cat;a: b;");
    CHECK_STR(yaml("names: ['a, b', c,\n  d] # e\nval: x"), "||x|0,0|a, b;c;d;");
    CHECK_STR(yaml("names:\n- a\n- b c\n\nval: x"), "||x|0,0|a;b c;");
    CHECK_STR(yaml("names: {0: a, 1: b}"), "|||0,0|a;b;");
    CHECK_STR(yaml("names:\n  0: a\n  2: b"), "the keys of names are not 0, 1, 2, ..., in this order");
    CHECK_STR(yaml("names: [a, a]"), "a name appears twice");
    CHECK_STR(yaml("names: [a, b"), "the list of names is not closed");
    CHECK_STR(yaml("names: cat"), "names are neither a list nor a map from 0, 1, 2, ...");
    CHECK_STR(yaml("kpt_shape: [17]"), "kpt_shape is not [points, dimensions], with 2 or 3 dimensions");
    CHECK_STR(yaml("train: [a, b]"), "a set with a list of folders is not supported; give each folder as a source");
}

int main(int argc, char **argv)
{
    TESTS(T(voc_objects), T(voc_problems), T(yolo_lines), T(yaml_files))
}
