/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timm_augment.h -- timm's augmentations, for its policies.
 */
#ifndef TIMM_AUGMENT_H
#define TIMM_AUGMENT_H

#include "transform/drawing.h"

enum timm_augment {
    TIMM_AUTOCONTRAST,
    TIMM_EQUALIZE,
    TIMM_INVERT,
    TIMM_ROTATE,
    TIMM_POSTERIZE,
    TIMM_POSTERIZE_INCREASING,
    TIMM_POSTERIZE_ORIGINAL,
    TIMM_SOLARIZE,
    TIMM_SOLARIZE_INCREASING,
    TIMM_SOLARIZE_ADD,
    TIMM_COLOR,
    TIMM_COLOR_INCREASING,
    TIMM_CONTRAST,
    TIMM_CONTRAST_INCREASING,
    TIMM_BRIGHTNESS,
    TIMM_BRIGHTNESS_INCREASING,
    TIMM_SHARPNESS,
    TIMM_SHARPNESS_INCREASING,
    TIMM_SHEAR_X,
    TIMM_SHEAR_Y,
    TIMM_TRANSLATE_X_REL,
    TIMM_TRANSLATE_Y_REL,
    TIMM_DESATURATE,
    TIMM_GAUSSIAN_BLUR,
    TIMM_GAUSSIAN_BLUR_RAND,
    TIMM_AUGMENTS
};

/* What all augmentations of a policy share. */
struct timm_how {
    double mstd, mmax; /* of the level: its standard deviation (above 100: uniform), and its largest value */
    double translate;  /* the largest shift, as a share of the size */
    int sampling;      /* enum timm_sampling */
    uint8_t fill[3];
};

enum timm_sampling { TIMM_NEAREST, TIMM_BILINEAR, TIMM_BICUBIC, TIMM_RANDOM, TIMM_SAMPLINGS };

/* With probability p, draws a level around m and applies the augmentation. */
void timm_augment(struct drawing *g, const struct timm_how *how, struct rng *r, enum timm_augment a, double p,
                  double m);

#endif
