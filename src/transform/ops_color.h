/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_color.h -- adds changes of colour to a job, for the ops of this family and for policies.
 */
#ifndef OPS_COLOR_H
#define OPS_COLOR_H

#include "transform/drawing.h"

/* Factors are Pillow's: 1 changes nothing. */
void ops_color_brightness(struct drawing *g, double factor);
void ops_color_contrast(struct drawing *g, double factor);
void ops_color_saturation(struct drawing *g, double factor);
void ops_color_sharpness(struct drawing *g, double factor);
/* From -0.5 to 0.5 turns. */
void ops_color_hue(struct drawing *g, double turns);
/* amount: what the table needs, if anything. */
void ops_color_table(struct drawing *g, enum step_table table, double amount);

#endif
