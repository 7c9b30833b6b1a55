/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_annotated_failures.c -- every allocation and every read fails once, the n-th one after the other, while sources
 * with annotations are opened and read. Each run ends with all samples or with an error in words.
 */
#include <stdbool.h>

#include "source/source.h"
#include "support/failing.h"
#include "support/temp_tree.h"
#include "test.h"

static const char *const sources[][2] = {
    {"coco/ann_val.json", "image, boxes, labels, area, iscrowd, masks, keypoints, id, category_id, image_id"},
    {"voc", "image, boxes, labels, difficult, truncated, mask, instances, annotation"},
    {"yolo", "image, boxes, labels"},
    {"pairs", "image, mask"},
};

static void make_files(void)
{
    temp_file("coco/a.jpg", "x");
    temp_file(
        "coco/ann_val.json",
        "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\",\"width\":6,\"height\":4}],\"categories\":[{\"id\":3,"
        "\"name\":\"cat\"},{\"id\":4,\"name\":\"cat\"}],\"annotations\":[{\"id\":5,\"image_id\":1,\"category_id\":3,"
        "\"bbox\":[1,1,2,2],\"segmentation\":[[1,1,4,1,4,3]],\"keypoints\":[1,2,2]}]}");
    temp_file("voc/JPEGImages/a.jpg", "x");
    temp_file("voc/Annotations/a.xml", "<annotation><object><name>cat</name><bndbox><xmin>1</xmin><ymin>2</ymin>"
                                       "<xmax>3</xmax><ymax>4</ymax></bndbox></object></annotation>");
    temp_file("voc/SegmentationClass/a.png", "x");
    temp_file("voc/SegmentationObject/a.png", "x");
    temp_file("voc/ImageSets/Main/train.txt", "a\n");
    temp_file("yolo/images/train/a.jpg", "x");
    temp_file("yolo/labels/train/a.txt", "0 .5 .5 .1 .1\n");
    temp_file("yolo/data.yaml", "names: [cat]\n");
    temp_file("pairs/images/a.jpg", "x");
    temp_file("pairs/masks/a.png", "x");
}

/* Opens a source and reads all samples. */
static int read_all(const char *path, const char *fields, stk_error *e)
{
    struct source *s = NULL;
    struct reading r = {0};
    const struct source_options o = {.path = path, .fields = fields, .cache_dir = "off", .threads = 1};
    int rc = source_open(&s, &o, e);
    for (int64_t i = 0; rc == STK_OK && i < source_count(s); i++)
        rc = source_read(s, &r, i, e);
    reading_done(&r);
    source_close(s);
    return rc;
}

static void fail_each(const char *kind)
{
    enum { RUNS = 5000 };
    for (size_t k = 0; k < sizeof sources / sizeof sources[0]; k++) {
        char path[PATH_MAX];
        bool failed = true;
        snprintf(path, sizeof path, "%s", temp_path(sources[k][0]));
        for (int n = 0; n < RUNS && failed; n++) {
            stk_error e = {0};
            failing = kind;
            fail_in = n;
            const int rc = read_all(path, sources[k][1], &e);
            failed = fail_in < 0;
            failing = "";
            CHECK(rc == STK_OK || e.text[0] != 0);
            CHECK(failed || rc == STK_OK);
            if (rc != STK_OK && !failed)
                printf("%s: %s\n", sources[k][0], e.text);
        }
        CHECK(!failed);
    }
}

static void memory(void)
{
    fail_each("memory");
}

static void reads(void)
{
    fail_each("read");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {T(memory), T(reads)};
    temp_begin();
    make_files();
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    temp_end();
    return rc;
}
