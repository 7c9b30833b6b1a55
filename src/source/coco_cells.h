/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_cells.h -- the columns of annotations in COCO's format.
 */
#ifndef COCO_CELLS_H
#define COCO_CELLS_H

#include "source/coco_index.h"
#include "source/columns.h"
#include "source/source_ops.h"

enum coco_column {
    COCO_IMAGE,
    COCO_BOXES,
    COCO_LABELS,
    COCO_AREA,
    COCO_ISCROWD,
    COCO_KEYPOINTS,
    COCO_CAPTIONS,
    COCO_IMAGE_ID,
    COCO_MASKS,
    COCO_CATEGORY_ID,
    COCO_ID,
    COCO_COLUMNS
};

struct coco {
    int fd;
    char *path; /* as typed */
    struct coco_index x;
    int64_t *labels; /* of each category; -1: it is not among the given classes */
    struct columns columns;
    enum coco_column whats[COCO_COLUMNS]; /* of each of them */
};

/* Fills the cells of all fields but the image: a files_extra.read. */
int coco_cells_read(const void *state, const struct source *s, struct reading *r, int64_t i, stk_error *e);

#endif
