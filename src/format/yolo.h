/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yolo.h -- YOLO's label files, a line for every object, and the data.yaml next to them.
 *
 *     0 0.5 0.5 0.2 0.3                a class and a box: centre, width and height, as shares of the image
 *     0 0.1 0.1 0.4 0.1 0.4 0.6        a class and a polygon of 3 points or more
 *     0 0.5 0.5 0.2 0.3 0.4 0.4 2      a class, a box and keypoints, if data.yaml has a kpt_shape
 */
#ifndef YOLO_H
#define YOLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/names.h"

struct yolo_shape {
    int64_t points, dims; /* of the keypoints of an object; 0, 0: none */
};

struct yolo_object {
    int64_t label;
    float box[4]; /* of a polygon: the box around it */
};

struct yolo {
    const char *p, *end;
    struct yolo_shape shape;
    const char *problem; /* NULL: none */
    int64_t line;        /* of the object, or of the problem */
};

/* The next object; false: there are no more, or there is a problem. points gets its keypoints; it may be NULL. */
bool yolo_next(struct yolo *y, struct yolo_object *out, float *points);

/* What a data.yaml says; texts are "" if it does not. */
struct yolo_yaml {
    char path[1024], train[1024], val[1024], test[1024];
    struct names names;
    struct yolo_shape shape;
};

/* Returns NULL, or what is wrong. yolo_yaml_done() must be called in any case. */
const char *yolo_yaml_read(struct yolo_yaml *y, const char *text, size_t n);
void yolo_yaml_done(struct yolo_yaml *y);
extern const char YOLO_NO_MEMORY[];

#endif
