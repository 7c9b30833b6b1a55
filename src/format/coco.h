/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco.h -- the objects of an annotation file in COCO's format.
 *
 * Functions take the text of an object, as json_stream.h finds it, and return NULL or what is wrong with it. Texts are
 * as they are written; one with n == 0 is absent.
 */
#ifndef COCO_H
#define COCO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "format/rle.h"

struct coco_image {
    int64_t id;
    struct slice file_name; /* without escapes */
    int64_t w, h;           /* 0: unknown */
};

struct coco_category {
    int64_t id;
    struct slice name; /* without escapes */
    int64_t keypoints; /* how many points are named; 0: none */
};

struct coco_annotation {
    int64_t id, image_id, category_id;
    bool has_id, has_category;
    struct slice bbox, area, iscrowd, segmentation, keypoints, caption;
    bool panoptic; /* of COCO's panoptic format, which has masks in other files */
};

const char *coco_image(struct slice text, struct coco_image *out);
const char *coco_category(struct slice text, struct coco_category *out);
const char *coco_annotation(struct slice text, struct coco_annotation *out);

/* One number. */
const char *coco_number(struct slice text, double *out);
/* A flat array of numbers, appended to `to` as doubles. */
const char *coco_numbers(struct slice text, struct buf *to);
/* Left, top, width and height. */
const char *coco_box(struct slice text, double to[4]);
/* Draws a segmentation: polygons or run lengths. points and scratch are reused. COCO_NO_MEMORY is returned as such. */
const char *coco_mask(struct slice text, struct rle_mask *m, struct buf *points, struct buf *scratch);
extern const char COCO_NO_MEMORY[];

#endif
