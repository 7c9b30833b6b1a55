/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_point.h -- where points and boxes of an image go in a step, for what belongs to the image.
 *
 * Coordinates are pixels from the corner of the image: the middle of the first pixel is (0.5, 0.5).
 */
#ifndef STEP_POINT_H
#define STEP_POINT_H

#include "transform/plan.h"

/* Maps a point of the step's whole input to its whole output, where it may be outside. Returns false if it goes
 * nowhere. Steps that do not move pixels leave it. */
bool step_point(const struct step *s, double *x, double *y);
/* The same for a box (left, top, right, bottom): the smallest box that contains its corners. It is not clamped. */
bool step_box(const struct step *s, double box[4]);

#endif
