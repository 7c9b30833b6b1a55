/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_warp.h -- adds rotations and other maps to a job, for the ops of this family and for policies.
 */
#ifndef OPS_WARP_H
#define OPS_WARP_H

#include "transform/drawing.h"
#include "transform/warp.h"

/* The interpolation that Pillow has for maps: nearest, bilinear or bicubic. */
extern const struct arg_type arg_warp_filter;

/* How pixels are sampled. */
struct ops_warp {
    enum filter filter;
    uint8_t fill[3], mask_fill;
    bool filled; /* torchvision has a fill, even if it is 0 */
};
struct ops_warp ops_warp_of(const struct op *o);

/* torchvision's rotate, counterclockwise; center: (x, y), or NULL for the middle. */
void ops_warp_rotate(struct drawing *g, struct ops_warp how, double degrees, bool expand, const double *center);
/* torchvision's affine. */
void ops_warp_affine(struct drawing *g, struct ops_warp how, const struct warp_turn *t);
/* Pillow's transform with AFFINE and this matrix. */
void ops_warp_matrix(struct drawing *g, struct ops_warp how, const double m[6]);

#endif
