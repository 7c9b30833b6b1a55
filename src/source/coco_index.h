/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_index.h -- the index of an annotation file in COCO's format: the offsets of the annotations of each image. Their
 * values are parsed when a sample is read.
 *
 *     coco_index_read(&x, fd, ignore, e)
 *     x.annotations[x.starts[i]] ... x.annotations[x.starts[i + 1] - 1] are those of image i, in the file's order
 */
#ifndef COCO_INDEX_H
#define COCO_INDEX_H

#include "base/names.h"
#include "source/image_paths.h"
#include "stoker.h"

/* Where the text of an annotation is. */
struct coco_text {
    int64_t at; /* in the file */
    uint32_t bytes;
};

struct coco_index {
    struct image_paths paths; /* of the images, as the file has them */
    int64_t n;                /* images, ordered by their ids */
    int64_t *ids;
    int32_t (*sizes)[2]; /* width and height; 0: unknown */
    uint64_t *starts;    /* n + 1 */
    struct coco_text *annotations;
    int64_t n_annotations;
    int64_t n_categories; /* ordered by their ids */
    int64_t *categories;
    struct names classes; /* their names; one that is not the first of its name gets its id: "person (3)" */
    bool has_boxes, has_captions;
    int64_t keypoints; /* of one annotation; 0: none */
    uint64_t hash;     /* of the file */
};

/* Reads the whole file. ignore_dangling: skip annotations of images that the file does not list. */
int coco_index_read(struct coco_index *x, int fd, bool ignore_dangling, stk_error *e);
/* The index of a category; -1: there is none. */
int64_t coco_index_category(const struct coco_index *x, int64_t id);
void coco_index_done(struct coco_index *x); /* accepts zeroed memory; may be called twice */

#endif
