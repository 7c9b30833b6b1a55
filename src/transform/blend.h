/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blend.h -- how MixUp and CutMix combine every row of a finished batch with another row of it.
 *
 * torchvision's ops combine row i with row i - 1, and the first row with the last. timm's Mixup combines row i with row
 * n - 1 - i.
 */
#ifndef BLEND_H
#define BLEND_H

#include <stdbool.h>
#include <stdint.h>

enum blend_mode {
    BLEND_BATCH, /* one draw for all rows */
    BLEND_PAIR,  /* one draw for rows i and n - 1 - i */
    BLEND_ELEM,  /* one draw per row */
};

struct blend {
    double mixup, cutmix;    /* the alphas of Beta(alpha, alpha); 0: never */
    double p;                /* of combining rows at all */
    double cutmix_p;         /* of CutMix, if both are possible */
    double box_min, box_max; /* sides of CutMix's box as shares of the image's sides; 0: they follow from lambda */
    double smoothing;        /* of labels */
    int64_t classes;         /* 0: not given */
    enum blend_mode mode;
    bool timm;    /* pairs, boxes and rounding as in timm, not as in torchvision */
    bool correct; /* lambda becomes the share of the image that is outside the box, after clipping */
};

#endif
