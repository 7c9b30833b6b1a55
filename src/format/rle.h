/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle.h -- masks as COCO stores them: run lengths and polygons, with the pixels that pycocotools makes of them.
 *
 *     struct rle_mask m = {.px = zeros, .w = 640, .h = 480};
 *     problem = rle_polygon(&m, xy, n, &scratch);         adds a polygon
 *     problem = rle_run(&m, 17), ..., rle_end(&m);        or all runs, down the columns, starting with zeros
 *     problem = rle_string(&m, "fWc0", 4);                or all runs, compressed
 *
 * Functions return NULL, or what is wrong.
 */
#ifndef RLE_H
#define RLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct rle_mask {
    uint8_t *px; /* row by row; what is inside becomes 1 */
    int32_t w, h;
    uint64_t at;  /* pixels that runs have covered */
    bool inside;  /* whether the next run is inside */
    size_t steps; /* of polygons, whose sum is limited */
};

extern const char RLE_NO_MEMORY[]; /* what rle_polygon() returns then */
const char *rle_polygon(struct rle_mask *m, const double *xy, size_t n_points, struct buf *scratch);
const char *rle_run(struct rle_mask *m, uint64_t n);
const char *rle_end(const struct rle_mask *m);
const char *rle_string(struct rle_mask *m, const char *text, size_t n);

#endif
