/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_coco.c -- annotations in COCO's format: fields, order, folders of images, damaged files.
 */
#include "support/npy_files.h"

static struct reading reading;

static const char HEAD[] =
    "{\"images\":[{\"id\":9,\"file_name\":\"b.jpg\",\"width\":6,\"height\":4},"
    "{\"id\":2,\"file_name\":\"a.jpg\",\"width\":6,\"height\":4}],"
    "\"categories\":[{\"id\":18,\"name\":\"dog\"},{\"id\":1,\"name\":\"cat\"}],\"annotations\":[";

/* Writes ann/instances_val.json with these annotations. */
static void annotations(const char *text)
{
    char all[16384];
    snprintf(all, sizeof all, "%s%s]}", HEAD, text);
    temp_file("ann/instances_val.json", all);
}

static struct source *open_annotations(const char *fields)
{
    const struct source_options o = {.fields = fields};
    return open_named("%", "ann/instances_val.json", &o);
}

static const struct cell *cell(const struct source *s, const char *name)
{
    static const struct cell none;
    for (int f = 0; f < source_n_fields(s); f++)
        if (strcmp(source_field(s, f)->name, name) == 0)
            return &reading.cells[f];
    CHECK(!"no such field");
    return &none;
}

static double number(const struct source *s, const char *name, int k)
{
    const struct cell *c = cell(s, name);
    float f;
    int64_t i;
    if (c->dtype == STK_FLOAT32) {
        memcpy(&f, c->bytes + (size_t)k * sizeof f, sizeof f);
        return (double)f;
    }
    memcpy(&i, c->bytes + (size_t)k * sizeof i, sizeof i);
    return (double)i;
}

static void fields(void)
{
    temp_file("val/a.jpg", "x");
    temp_file("val/b.jpg", "x");
    annotations("{\"id\":5,\"image_id\":9,\"category_id\":18,\"bbox\":[1,1,3.5,2],\"area\":6.5,\"iscrowd\":0,"
                "\"segmentation\":[[1,1,4,1,4,3,1,3]]},"
                "{\"id\":6,\"image_id\":9,\"category_id\":1,\"bbox\":[0,0,1,1],\"iscrowd\":1,"
                "\"segmentation\":{\"size\":[4,6],\"counts\":\"52a0\"}}");
    struct source *s = open_annotations(NULL);
    CHECK(s != NULL);
    if (!s)
        return;
    CHECK_STR(source_kind(s), "COCO annotations");
    CHECK_EQ(source_count(s), 2);
    CHECK_EQ(source_n_classes(s), 2);
    CHECK_STR(source_class(s, 0), "cat");
    CHECK_STR(source_class(s, 1), "dog");
    char text[256];
    source_fields_text(s, text, sizeof text);
    CHECK_STR(text, "image:image, boxes:boxes(xywh), labels:each:int64, area:each:float32, iscrowd:each:int64, "
                    "image_id:int");
    source_key(s, 0, text, sizeof text); /* ordered by id */
    CHECK_STR(text, "a.jpg");
    CHECK_EQ(source_read(s, &reading, 0, &error), STK_OK);
    CHECK(cell(s, "boxes")->bytes && cell(s, "boxes")->shape[0] == 0 && cell(s, "boxes")->n == 0);
    CHECK_EQ(source_read(s, &reading, 1, &error), STK_OK);
    CHECK_EQ(cell(s, "boxes")->shape[0], 2);
    CHECK(number(s, "boxes", 2) == 3.5 && number(s, "area", 0) == 6.5 && number(s, "area", 1) == 1);
    CHECK(number(s, "labels", 0) == 1 && number(s, "labels", 1) == 0 && number(s, "iscrowd", 1) == 1);
    CHECK(number(s, "image_id", 0) == 9);
    source_close(s);
    s = open_annotations("image, masks, category_id, id");
    CHECK(s && source_read(s, &reading, 1, &error) == STK_OK);
    const struct cell *m = cell(s, "masks");
    CHECK(m->n == 48 && m->shape[0] == 2 && m->shape[1] == 4 && m->shape[2] == 6);
    CHECK(m->bytes[7] == 1 && m->bytes[6] == 0 && m->bytes[24 + 7] == 1 && m->bytes[24 + 8] == 0);
    CHECK(number(s, "category_id", 0) == 18 && number(s, "id", 1) == 6);
    source_close(s);
    static const char *const given[] = {"dog", "cat"};
    const struct source_options o = {.classes = given, .n_classes = 2};
    s = open_named("%", "ann/instances_val.json", &o);
    CHECK(s && source_read(s, &reading, 1, &error) == STK_OK && number(s, "labels", 0) == 0);
    source_close(s);
    const struct source_options other = {.classes = given, .n_classes = 1};
    s = open_named("%", "ann/instances_val.json", &other);
    CHECK(s && source_read(s, &reading, 1, &error) == STK_EDATA);
    CHECK_SAYS(error.text, "annotation 6 of ");
    CHECK_SAYS(error.text, "its category is not among the given classes");
    source_close(s);
}

/* Files with different categories: labels become indices of all of them. */
static void joined(void)
{
    char first[PATH_MAX], second[PATH_MAX];
    annotations("{\"id\":5,\"image_id\":9,\"category_id\":18,\"bbox\":[1,1,2,2]}");
    temp_file("ann/more_val.json",
              "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}],\"categories\":[{\"id\":1,\"name\":"
              "\"bee\"},{\"id\":2,\"name\":\"dog\"}],\"annotations\":[{\"id\":1,\"image_id\":1,"
              "\"category_id\":2,\"bbox\":[0,0,1,1]},{\"id\":2,\"image_id\":1,\"category_id\":1,"
              "\"bbox\":[0,0,1,1]}]}");
    snprintf(first, sizeof first, "%s", temp_path("ann/instances_val.json"));
    snprintf(second, sizeof second, "%s", temp_path("ann/more_val.json"));
    const char *paths[] = {first, second};
    struct source *s = NULL;
    const struct source_options o = {.paths = paths, .n_paths = 2, .cache_dir = "off"};
    CHECK_EQ(source_open(&s, &o, &error), STK_OK);
    CHECK_EQ(source_n_classes(s), 3);
    CHECK_STR(source_class(s, 0), "bee");
    CHECK_STR(source_class(s, 2), "dog");
    CHECK(source_read(s, &reading, 1, &error) == STK_OK && number(s, "labels", 0) == 2);
    CHECK(source_read(s, &reading, 2, &error) == STK_OK && number(s, "labels", 0) == 2 && number(s, "labels", 1) == 0);
    source_close(s);
    temp_file("voc/JPEGImages/a.jpg", "x");
    temp_file("voc/Annotations/a.xml", "<annotation/>");
    snprintf(second, sizeof second, "%s", temp_path("voc"));
    const struct source_options other = {.paths = paths, .n_paths = 2, .cache_dir = "off", .fields = "image, boxes"};
    CHECK_EQ(source_open(&s, &other, &error), STK_EUSAGE);
    CHECK_SAYS(error.text, "boxes:boxes(xyxy)");
}

static void keypoints_and_captions(void)
{
    temp_file("ann/kp_val.json",
              "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\",\"width\":6,\"height\":4}],"
              "\"categories\":[{\"id\":1,\"name\":\"person\",\"keypoints\":[\"nose\",\"ear\"]}],"
              "\"annotations\":[{\"id\":1,\"image_id\":1,\"category_id\":1,\"bbox\":[0,0,1,1],\"keypoints\":[1,2,2,3,"
              "4,1]},{\"id\":2,\"image_id\":1,\"category_id\":1,\"bbox\":[0,0,1,1]}]}");
    struct source *s = open_named("%", "ann/kp_val.json", NULL);
    CHECK(s && source_read(s, &reading, 0, &error) == STK_OK);
    const struct cell *c = cell(s, "keypoints");
    CHECK(c->ndim == 3 && c->shape[0] == 2 && c->shape[1] == 2 && c->shape[2] == 3);
    CHECK(number(s, "keypoints", 3) == 3 && number(s, "keypoints", 6) == 0);
    source_close(s);
    temp_file("ann/captions_val.json",
              "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"},{\"id\":2,\"file_name\":\"b.jpg\"}],"
              "\"annotations\":[{\"id\":1,\"image_id\":1,\"caption\":\"one\"},"
              "{\"id\":2,\"image_id\":1,\"caption\":\"\\\"two\\\"\"}]}");
    s = open_named("%", "ann/captions_val.json", NULL);
    CHECK(s && source_n_fields(s) == 3 && source_read(s, &reading, 0, &error) == STK_OK);
    c = cell(s, "captions");
    CHECK(c->n == 17 && memcmp(c->bytes, "[\"one\",\"\\\"two\\\"\"]", 17) == 0);
    CHECK_EQ(source_read(s, &reading, 1, &error), STK_OK);
    c = cell(s, "captions");
    CHECK(c->n == 2 && memcmp(c->bytes, "[]", 2) == 0);
    source_close(s);
}

static void refused_at_open(void)
{
    annotations("{\"id\":5,\"image_id\":3,\"category_id\":1,\"bbox\":[0,0,1,1]}");
    refused("%", "ann/instances_val.json", "annotation 5 refers to image 3, which the file does not list");
    struct source *s = open_named("coco:%?dangling=ignore", "ann/instances_val.json", NULL);
    CHECK(s && source_read(s, &reading, 0, &error) == STK_OK && cell(s, "boxes")->shape[0] == 0);
    source_close(s);
    refused("coco:%?dangling=no", "ann/instances_val.json", "the only value is ignore");
    annotations("");
    refused("coco:%?images=/nowhere", "ann/instances_val.json", "its images are not in /nowhere");
    annotations("{\"id\":5,\"image_id\":2,\"category_id\":7,\"bbox\":[0,0,1,1]}");
    refused("%", "ann/instances_val.json", "annotation 5 has the category 7");
    annotations("{\"id\":5,\"image_id\":2},{\"id\":5,\"image_id\":2}");
    refused("%", "ann/instances_val.json", "the annotation id 5 appears twice");
    annotations("{\"id\":5}");
    refused("%", "ann/instances_val.json", "(id 5): its image_id is missing or is not an integer");
    annotations("{\"id\":5,\"image_id\":2,\"segments_info\":[]}");
    refused("%", "ann/instances_val.json", "panoptic");
    temp_file("val/x.json", "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"},{\"id\":1,\"file_name\":\"b.jpg\"}]}");
    refused("%", "val/x.json", "the image id 1 appears twice");
    temp_file("val/x.json", "{\"images\":[]}");
    refused("%", "val/x.json", "its list of images is empty");
    temp_file("val/x.json", "{\"annotations\":[]}");
    refused("%", "val/x.json", "has no list \"images\"");
    temp_file("val/x.json", "{\"images\":[{\"id\":1,\"file_name\":\"gone.jpg\"}]}");
    refused("%", "val/x.json", "the first one is gone.jpg");
    temp_file("val/x.json", "{\"other\":[]}");
    refused("%", "val/x.json", "neither COCO annotations nor one object per line");
}

/* The sample is bad, and the error names the annotation. */
static void bad_annotation(const char *fields, const char *text, const char *words)
{
    char all[4096];
    snprintf(all, sizeof all,
             "{\"id\":5,\"image_id\":9,\"category_id\":1,%s},{\"id\":6,\"image_id\":2,\"category_id\":1,"
             "\"bbox\":[0,0,1,1],\"segmentation\":[[0,0,1,0,1,1]]}",
             text);
    annotations(all);
    struct source *s = open_annotations(fields);
    CHECK(s != NULL);
    if (!s)
        return;
    CHECK_EQ(source_read(s, &reading, 0, &error), STK_OK);
    CHECK_EQ(source_read(s, &reading, 1, &error), STK_EDATA);
    CHECK_SAYS(error.text, "annotation 5 of ");
    CHECK_SAYS(error.text, words);
    source_close(s);
}

static void bad_annotations(void)
{
    bad_annotation(NULL, "\"bbox\":[7,0,1,1]", "its bbox is outside the image");
    bad_annotation(NULL, "\"bbox\":[0,-3,1,1]", "its bbox is outside the image");
    bad_annotation(NULL, "\"bbox\":[0,NaN,1,1]", "not a finite number");
    bad_annotation(NULL, "\"area\":1", "it has no bbox");
    bad_annotation(NULL, "\"bbox\":[0,0,1,1],\"area\":\"x\"", "its area is not a finite number");
    bad_annotation(NULL, "\"bbox\":[0,0,1,1],\"iscrowd\":\"x\"", "its iscrowd is not a number");
    bad_annotation("masks", "\"bbox\":[0,0,1,1]", "it has no segmentation");
    bad_annotation("masks", "\"segmentation\":[]", "its segmentation is empty");
    bad_annotation("masks", "\"segmentation\":{\"size\":[4,6],\"counts\":\"5\"}",
                   "its runs are shorter than the image");
}

/* Every truncation is refused, or reads as what is there. */
static void truncated(void)
{
    annotations("{\"id\":5,\"image_id\":9,\"category_id\":18,\"bbox\":[1,1,3.5,2]}");
    char whole[16384];
    const int fd = open(temp_path("ann/instances_val.json"), O_RDONLY);
    const ssize_t n = read(fd, whole, sizeof whole);
    close(fd);
    for (ssize_t k = 0; k < n; k++) {
        temp_bytes("ann/cut_val.json", whole, (size_t)k);
        struct source *s = open_named("coco:%", "ann/cut_val.json", NULL);
        CHECK(s == NULL && error.text[0] != 0);
        source_close(s);
    }
}

static void changed_file(void)
{
    annotations("{\"id\":5,\"image_id\":9,\"category_id\":1,\"bbox\":[0,0,1,1]}");
    struct source *s = open_annotations(NULL);
    CHECK(s != NULL);
    annotations("{\"id\":5,\"image_id\":2,\"category_id\":1,\"bbox\":[0,0,1,1]}");
    CHECK_EQ(source_read(s, &reading, 1, &error), STK_EDATA);
    CHECK_SAYS(error.text, "changed while it was in use");
    temp_file("ann/instances_val.json", "{");
    CHECK_EQ(source_read(s, &reading, 1, &error), STK_EDATA);
    CHECK_SAYS(error.text, "changed while it was in use");
    source_close(s);
}

/* 100,000 boxes of one image can be read; as many masks cannot. */
static void many_boxes(void)
{
    enum { N = 100000 };
    struct buf all = {0};
    CHECK(buf_add_str(&all, HEAD) == 0);
    for (int i = 0; i < N; i++)
        CHECK(buf_printf(&all, "%s{\"id\":%d,\"image_id\":9,\"category_id\":1,\"bbox\":[0,0,1,%d]}", i ? "," : "", i,
                         i % 4) == 0);
    CHECK(buf_add_str(&all, "]}") == 0);
    temp_bytes("ann/instances_val.json", all.data, all.len);
    buf_done(&all);
    struct source *s = open_annotations(NULL);
    CHECK(s && source_read(s, &reading, 1, &error) == STK_OK);
    CHECK_EQ(cell(s, "boxes")->shape[0], N);
    CHECK(number(s, "boxes", 4 * (N - 1) + 3) == (N - 1) % 4);
    source_close(s);
    s = open_annotations("masks");
    CHECK(s && source_read(s, &reading, 1, &error) == STK_EDATA);
    CHECK_SAYS(error.text, "annotation 0 of ");
    source_close(s);
    temp_file("val/x.json", "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\",\"width\":30000,\"height\":30000}],"
                            "\"annotations\":[{\"image_id\":1},{\"image_id\":1}]}");
    const struct source_options masks = {.fields = "masks"};
    s = open_named("%", "val/x.json", &masks);
    CHECK(s && source_read(s, &reading, 0, &error) == STK_EDATA);
    CHECK_SAYS(error.text, "image 1 of ");
    CHECK_SAYS(error.text, "has 2 masks of 30000 x 30000, more than fit into 1 GiB");
    source_close(s);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {T(fields),          T(joined),          T(keypoints_and_captions),
                                             T(refused_at_open), T(bad_annotations), T(truncated),
                                             T(changed_file),    T(many_boxes)};
    temp_begin();
    const int rc = test_main(cases, (int)(sizeof cases / sizeof cases[0]), argc, argv);
    reading_done(&reading);
    temp_end();
    return rc;
}
