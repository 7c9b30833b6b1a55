/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.h -- boxes, keypoints and masks through the steps of plan_follow, as torchvision's v2 functions take them.
 *
 * Crops, paddings and maps clamp boxes to the image. Coordinates of boxes are pixels from the corner of the image;
 * those of points are from the middle of the first pixel if they are mirrored, as in torchvision. Masks are never
 * interpolated: each pixel is one pixel of the image before, or the fill.
 */
#ifndef FOLLOW_H
#define FOLLOW_H

#include "base/arena.h"
#include "transform/plan.h"

/* Maps a point of the step's whole input to its whole output, where it may be outside. Returns false if it goes
 * nowhere. Steps that do not move pixels leave it. The middle of the first pixel is (0.5, 0.5). */
bool follow_step_point(const struct step *s, double *x, double *y);
/* The same for a box (left, top, right, bottom): the smallest box that contains its corners. It is not clamped. */
bool follow_step_box(const struct step *s, double box[4]);

/* A box (left, top, right, bottom) through all steps. whole: all boxes of the image are whole numbers. false:
 * SanitizeBoundingBoxes removes it. */
bool follow_box(const struct job *j, bool whole, double box[4]);
/* A point (x, y) through all steps. false: SanitizeKeyPoints removes it. */
bool follow_point(const struct job *j, double at[2]);

/* One number for each pixel of the whole image: 8 bits, or int32. */
struct mask {
    const void *px;
    size_t stride; /* bytes from row to row */
    int32_t w, h;
    size_t element; /* 1 or 4 bytes */
};

struct follow_masks;

/* Bytes of arena that follow_masks_begin takes for masks with this element; 0: overflow. */
size_t follow_masks_scratch(const struct plan *p, const struct job *j, int32_t w, int32_t h, size_t element);
/* Prepares for masks of w x h. NULL: the arena has no room. */
struct follow_masks *follow_masks_begin(const struct plan *p, const struct job *j, int32_t w, int32_t h, size_t element,
                                        struct arena *a);
/* Writes the mask after the steps, job.w x job.h numbers of type t (uint8, int32, int64). false: a number does not fit;
 * *value is that number. */
bool follow_mask(struct follow_masks *f, const struct mask *in, stk_dtype t, void *out, int32_t *value);

#endif
