/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_annotated.c -- folders of images with annotations: Pascal VOC, YOLO, masks, Cityscapes.
 */
#include "support/npy_files.h"

static struct reading reading;

static const struct cell *cell(const struct source *s, const char *name)
{
    static const struct cell none;
    for (int f = 0; f < source_n_fields(s); f++)
        if (strcmp(source_field(s, f)->name, name) == 0)
            return &reading.cells[f];
    CHECK(!"no such field");
    return &none;
}

/* Values of a cell as text: "1 2 3". */
static const char *values(const struct source *s, const char *name)
{
    static char text[1024];
    const struct cell *c = cell(s, name);
    size_t at = 0;
    text[0] = 0;
    if (!c->dtype) {
        snprintf(text, sizeof text, "%.*s", (int)c->n, (const char *)c->bytes);
        return text;
    }
    for (const uint8_t *p = c->bytes; p < c->bytes + c->n; p += dtype_bytes(c->dtype)) {
        float f;
        memcpy(&f, p, sizeof f);
        if (c->dtype == STK_FLOAT32)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%g", at ? " " : "", (double)f);
        else
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", at ? " " : "",
                                   (long long)dtype_integer(c->dtype, p));
    }
    return text;
}

static struct source *open_fields(const char *format, const char *below, const char *fields)
{
    const struct source_options o = {.fields = fields};
    struct source *s = open_named(format, below, &o);
    if (!s)
        printf("%s\n", error.text);
    CHECK(s != NULL);
    return s;
}

static void reads(const struct source *s, int64_t i)
{
    const int rc = source_read(s, &reading, i, &error);
    if (rc != STK_OK)
        printf("%s\n", error.text);
    CHECK_EQ(rc, STK_OK);
}

static void is_bad(const struct source *s, int64_t i, const char *words)
{
    CHECK_EQ(source_read(s, &reading, i, &error), STK_EDATA);
    CHECK_SAYS(error.text, words);
}

/* ------------------------------------------------------------------ VOC */

#define OBJECT(name)                                                                                                   \
    "<object><name>" name "</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></object>"

static void make_voc(const char *first)
{
    temp_file("voc/JPEGImages/a.jpg", "x");
    temp_file("voc/JPEGImages/b.jpg", "x");
    temp_file("voc/JPEGImages/c.jpg", "x");
    temp_file("voc/Annotations/a.xml", first);
    temp_file("voc/Annotations/b.xml", "<annotation>" OBJECT("dog") OBJECT("ape") "</annotation>");
    temp_file("voc/ImageSets/Main/train.txt", "b\r\na 1\n");
    temp_file("voc/ImageSets/Main/val.txt", "c\n");
    temp_file("voc/ImageSets/Main/dog_train.txt", "b 1\n");
    temp_file("voc/ImageSets/Segmentation/val.txt", "a\nb");
    temp_file("voc/SegmentationClass/a.png", "class");
    temp_file("voc/SegmentationObject/a.png", "object");
}

static void voc(void)
{
    make_voc("<annotation></annotation>");
    refused("%", "voc", "it has several sets (train, val); name one, as in voc:FOLDER?set=train");
    refused("voc:%?set=test", "voc", "there is no set test; there are train, val");
    refused("voc:%?task=x", "voc", "the task x is unknown");
    struct source *s = open_fields("voc:%?set=train", "voc", NULL);
    char text[256];
    CHECK_STR(source_kind(s), "Pascal VOC");
    source_fields_text(s, text, sizeof text);
    CHECK_STR(text, "image:image, boxes:boxes(xyxy), labels:each:int64, difficult:each:uint8");
    CHECK(source_count(s) == 2 && source_n_classes(s) == 2);
    CHECK_STR(source_class(s, 0), "ape");
    source_key(s, 0, text, sizeof text);
    CHECK_STR(text, "b.jpg");
    reads(s, 0);
    CHECK_STR(values(s, "boxes"), "1 2 3 4 1 2 3 4");
    CHECK_STR(values(s, "labels"), "1 0");
    CHECK_STR(values(s, "difficult"), "0 0");
    reads(s, 1);
    CHECK(cell(s, "boxes")->shape[0] == 0 && cell(s, "boxes")->bytes);
    source_close(s);
    s = open_fields("voc:%?set=all", "voc", NULL);
    CHECK_EQ(source_count(s), 3);
    is_bad(s, 2, "its file Annotations/c.xml does not exist");
    source_close(s);
    s = open_fields("voc:%?task=segmentation", "voc", "mask, instances, annotation, labels");
    reads(s, 0);
    CHECK_STR(values(s, "mask"), "class");
    CHECK_STR(values(s, "instances"), "object");
    CHECK_STR(values(s, "annotation"), "<annotation></annotation>");
    is_bad(s, 1, "its file SegmentationClass/b.png does not exist");
    source_close(s);
}

static void bad_voc(void)
{
    make_voc("<annotation>" OBJECT("cat") "<object></object></annotation>");
    struct source *s = open_fields("voc:%?set=train", "voc", NULL);
    reads(s, 0);
    is_bad(s, 1, "object 2 of Annotations/a.xml: it has no name");
    source_close(s);
    make_voc("<!DOCTYPE x><annotation/>");
    s = open_fields("voc:%?set=train", "voc", NULL);
    is_bad(s, 1, "Annotations/a.xml: it has declarations");
    source_close(s);
    static const char *const given[] = {"dog"};
    const struct source_options o = {.classes = given, .n_classes = 1};
    s = open_named("voc:%?set=train", "voc", &o);
    is_bad(s, 0, "object 2 of Annotations/b.xml: its class ape is not one of the 1 classes");
    source_close(s);
    make_voc("<annotation>" OBJECT("person") "</annotation>");
    temp_file("voc/Annotations/b.xml", "<annotation>" OBJECT("dog") "</annotation>");
    s = open_fields("voc:%?set=train", "voc", NULL);
    CHECK_EQ(source_n_classes(s), 20); /* all are Pascal VOC's own */
    reads(s, 0);
    CHECK_STR(values(s, "labels"), "11");
    source_close(s);
}

/* ------------------------------------------------------------------ YOLO */

static void yolo(void)
{
    temp_file("yolo/images/train/a.jpg", "x");
    temp_file("yolo/images/train/b.jpg", "x");
    temp_file("yolo/images/val/c.png", "x");
    temp_file("yolo/labels/train/b.txt", "1 0.5 0.5 0.25 0.5\n0 0 0 1 0 1 1\n");
    temp_file("yolo/labels/val/c.txt", "2 0.5 0.5 0.25 0.5");
    temp_file("yolo/data.yaml", "path: nowhere\ntrain: images/train\nval: ../images/val\nnames: [cat, dog]\n");
    refused("%", "yolo", "it has several sets");
    struct source *s = open_fields("yolo:%?set=train", "yolo", NULL);
    char text[256];
    source_fields_text(s, text, sizeof text);
    CHECK_STR(text, "image:image, boxes:boxes(cxcywh, relative), labels:each:int64");
    CHECK(source_count(s) == 2 && source_n_classes(s) == 2);
    reads(s, 0);
    CHECK(cell(s, "boxes")->shape[0] == 0 && cell(s, "boxes")->bytes);
    reads(s, 1);
    CHECK_STR(values(s, "boxes"), "0.5 0.5 0.25 0.5 0.5 0.5 1 1");
    CHECK_STR(values(s, "labels"), "1 0");
    const uint64_t fingerprint = source_fingerprint(s);
    source_close(s);
    temp_file("yolo/labels/train/a.txt", "x");
    s = open_fields("yolo:%?set=train", "yolo/data.yaml", NULL);
    CHECK(source_fingerprint(s) != fingerprint);
    is_bad(s, 0, "labels/train/a.txt: it contains something other than numbers");
    CHECK_SAYS(error.text, "line 1 of ");
    source_close(s);
    s = open_fields("yolo:%?set=val", "yolo/data.yaml", NULL);
    is_bad(s, 0, "its class is 2, but there are only 2 classes");
    source_close(s);
    refused("yolo:%?set=test", "yolo/data.yaml", "there is no set test; there are train, val");
    temp_file("yolo/data.yaml", "names: [cat, cat]");
    refused("yolo:%?set=train", "yolo", "data.yaml: a name appears twice");
}

static void yolo_by_set(void)
{
    temp_file("flow/train/images/a.jpg", "x");
    temp_file("flow/train/labels/a.txt", "0 .5 .5 .2 .2 .1 .4 2\n");
    temp_file("flow/valid/images/b.jpg", "x");
    temp_file("flow/valid/labels/b.txt", "");
    temp_file("flow/data.yaml", "train: ../train/images\nval: ../valid/images\nnames: [a]\nkpt_shape: [1, 3]");
    static const char *const names[] = {"yolo:%?set=train", "flow", "yolo:%?set=train",
                                        "flow/data.yaml",   "%",    "flow/train"};
    for (int i = 0; i < 6; i += 2) {
        struct source *s = open_fields(names[i], names[i + 1], NULL);
        CHECK_EQ(source_n_classes(s), 1);
        reads(s, 0);
        CHECK_STR(values(s, "keypoints"), "0.1 0.4 2");
        CHECK(cell(s, "keypoints")->ndim == 3);
        source_close(s);
    }
    struct source *s = open_fields("yolo:%?set=val", "flow/data.yaml", NULL);
    reads(s, 0);
    CHECK_EQ(cell(s, "keypoints")->shape[0], 0);
    source_close(s);
}

/* ------------------------------------------------------------------ masks */

static void masks(void)
{
    temp_file("pairs/images/a.jpg", "x");
    temp_file("pairs/images/b/c.jpg", "x");
    temp_file("pairs/images/d.jpg", "x");
    temp_file("pairs/masks/a.png", "mask a");
    temp_file("pairs/masks/b/c_mask.png", "mask c");
    struct source *s = open_fields("%", "pairs", NULL);
    char text[256];
    CHECK_STR(source_kind(s), "images and masks");
    source_fields_text(s, text, sizeof text);
    CHECK_STR(text, "image:image, mask:mask");
    CHECK_EQ(source_count(s), 3);
    reads(s, 0);
    CHECK_STR(values(s, "mask"), "mask a");
    reads(s, 1);
    CHECK_STR(values(s, "mask"), "mask c");
    is_bad(s, 2, "there is no mask with its name in ");
    unlink(temp_path("pairs/masks/a.png"));
    is_bad(s, 0, "its mask a.png no longer exists");
    source_close(s);
    temp_file("pairs/masks/a.png", "mask a");
    temp_file("pairs/masks/a.jpg", "mask a");
    refused("%", "pairs", "there are two masks named a.");
    refused("pairs:%?masks=nowhere", "pairs", "cannot be opened");
    temp_dir("pairs/none");
    refused("pairs:%?masks=none", "pairs", "none of its 3 images has a mask; the mask of a.jpg should be a.png below ");
}

static void mask_sets(void)
{
    temp_file("seg/images/train/a.jpg", "x");
    temp_file("seg/masks/train/a.png", "1");
    temp_file("seg/images/val/b.jpg", "x");
    temp_file("seg/masks/val/b.png", "2");
    refused("%", "seg", "it has several sets (train, val)");
    struct source *s = open_fields("pairs:%?set=val", "seg", NULL);
    CHECK_EQ(source_count(s), 1);
    reads(s, 0);
    CHECK_STR(values(s, "mask"), "2");
    source_close(s);
    temp_file("sub/train/images/a.jpg", "x");
    temp_file("sub/train/masks/a.png", "3");
    s = open_fields("%", "sub", NULL);
    reads(s, 0);
    CHECK_STR(values(s, "mask"), "3");
    source_close(s);
}

static void cityscapes(void)
{
    temp_file("city/leftImg8bit/val/ulm/ulm_1_leftImg8bit.png", "x");
    temp_file("city/gtFine/val/ulm/ulm_1_gtFine_labelIds.png", "ids");
    temp_file("city/gtFine/val/ulm/ulm_1_gtFine_instanceIds.png", "instances");
    struct source *s = open_fields("%", "city", NULL);
    CHECK_STR(source_kind(s), "Cityscapes");
    reads(s, 0);
    CHECK_STR(values(s, "mask"), "ids");
    source_close(s);
    s = open_fields("cityscapes:%?target=instanceIds", "city", NULL);
    reads(s, 0);
    CHECK_STR(values(s, "mask"), "instances");
    source_close(s);
    refused("cityscapes:%?target=color", "city", "none of its 1 images has a mask");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {T(voc),   T(bad_voc),   T(yolo),      T(yolo_by_set),
                                             T(masks), T(mask_sets), T(cityscapes)};
    temp_begin();
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    reading_done(&reading);
    temp_end();
    return rc;
}
