/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_voc.c -- any bytes as an annotation of Pascal VOC, as labels of YOLO, with and without keypoints, and as a
 * data.yaml. The first byte chooses.
 */
#include <math.h>
#include <string.h>

#include "format/voc.h"
#include "format/yolo.h"
#include "fuzz.h"

static void read_voc(const char *p, size_t n)
{
    char *copy = malloc(n + 1); /* the text is changed */
    require(copy != NULL);
    memcpy(copy, p, n);
    struct voc v = {.p = copy, .end = copy + n};
    struct voc_object o;
    while (voc_next(&v, &o)) {
        require(o.name.n > 0 && o.name.p >= copy && o.name.p + o.name.n <= copy + n);
        require(o.box[0] <= o.box[2] && o.box[1] <= o.box[3]);
    }
    require(v.problem || v.ended);
    free(copy);
}

static void read_labels(const char *p, size_t n, struct yolo_shape shape)
{
    struct yolo y = {.p = p, .end = p + n, .shape = shape};
    struct yolo_object o;
    float points[6];
    int64_t line = 0;
    while (yolo_next(&y, &o, shape.points ? points : NULL)) {
        require(y.line > line && o.label >= 0);
        for (int i = 0; i < 4; i++)
            require(isfinite(o.box[i]));
        line = y.line;
    }
    require(y.problem || y.p == y.end);
}

static void read_yaml(const char *p, size_t n)
{
    char *copy = calloc(1, n + 64); /* a 0 follows the text */
    struct yolo_yaml y;
    require(copy != NULL);
    memcpy(copy, p, n);
    yolo_yaml_read(&y, copy, n);
    require(memchr(y.path, 0, sizeof y.path) && memchr(y.train, 0, sizeof y.train));
    yolo_yaml_done(&y);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data + 1;
    if (size == 0)
        return 0;
    switch (data[0] % 4) {
    case 0:
        read_voc(p, size - 1);
        break;
    case 1:
        read_labels(p, size - 1, (struct yolo_shape){0});
        break;
    case 2:
        read_labels(p, size - 1, (struct yolo_shape){2, 3});
        break;
    default:
        read_yaml(p, size - 1);
    }
    return 0;
}
