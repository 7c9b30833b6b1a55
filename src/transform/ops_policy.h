/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_policy.h -- torchvision's augmentations with their magnitudes, for its policies.
 */
#ifndef OPS_POLICY_H
#define OPS_POLICY_H

#include "transform/ops_warp.h"

enum augment {
    IDENTITY,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    ROTATE,
    BRIGHTNESS,
    COLOR,
    CONTRAST,
    SHARPNESS,
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE,
    INVERT,
    AUGMENTS
};

/* The strongest magnitudes of a policy. */
struct augment_space {
    double shear, rotate, enhance;
    double share;    /* translate: of the image; 0: pixels */
    double pixels;   /* translate */
    int bits, fewer; /* posterize: from bits to bits - fewer */
};

/* Draws the sign and applies the augmentation at level i of n. */
void ops_policy_augment(struct drawing *g, struct ops_warp how, const struct augment_space *s, struct rng *r,
                        enum augment a, int n, int i);
/* For a policy that has only `fill` to check. */
int ops_policy_check(struct flow *f, const struct op *o);

#endif
