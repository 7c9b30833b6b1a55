/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timm_augment.c -- timm's augmentations. They are Pillow's, and their arguments are computed from a level as timm
 * does.
 */
#include "transform/timm_augment.h"

#include <math.h>
#include <string.h>

#include "transform/noise.h"
#include "transform/ops_color.h"
#include "transform/ops_warp.h"

static const char *const names[TIMM_AUGMENTS] = {"AutoContrast",
                                                 "Equalize",
                                                 "Invert",
                                                 "Rotate",
                                                 "Posterize",
                                                 "PosterizeIncreasing",
                                                 "PosterizeOriginal",
                                                 "Solarize",
                                                 "SolarizeIncreasing",
                                                 "SolarizeAdd",
                                                 "Color",
                                                 "ColorIncreasing",
                                                 "Contrast",
                                                 "ContrastIncreasing",
                                                 "Brightness",
                                                 "BrightnessIncreasing",
                                                 "Sharpness",
                                                 "SharpnessIncreasing",
                                                 "ShearX",
                                                 "ShearY",
                                                 "TranslateXRel",
                                                 "TranslateYRel",
                                                 "Desaturate",
                                                 "GaussianBlur",
                                                 "GaussianBlurRand"};

static enum filter draw_filter(int sampling, struct rng *r)
{
    static const enum filter by[] = {FILTER_NEAREST, FILTER_BILINEAR, FILTER_BICUBIC};
    return sampling < 3 ? by[sampling] : rng_chance(r, 0.5) ? FILTER_BILINEAR : FILTER_BICUBIC;
}

static double negate(struct rng *r, double v)
{
    return rng_chance(r, 0.5) ? -v : v;
}

/* The argument of the augmentation at a level from 0 to 10. */
static double argument(const struct timm_how *how, struct rng *r, enum timm_augment a, double level)
{
    const double share = level / 10.0;
    switch (a) {
    case TIMM_ROTATE:
        return negate(r, share * 30.0);
    case TIMM_POSTERIZE:
        return (int)(share * 4);
    case TIMM_POSTERIZE_INCREASING:
        return 4 - (int)(share * 4);
    case TIMM_POSTERIZE_ORIGINAL:
        return (int)(share * 4) + 4;
    case TIMM_SOLARIZE:
        return fmin(256, (int)(share * 256));
    case TIMM_SOLARIZE_INCREASING:
        return 256 - fmin(256, (int)(share * 256));
    case TIMM_SOLARIZE_ADD:
        return fmin(128, (int)(share * 110));
    case TIMM_COLOR:
    case TIMM_CONTRAST:
    case TIMM_BRIGHTNESS:
    case TIMM_SHARPNESS:
        return share * 1.8 + 0.1;
    case TIMM_COLOR_INCREASING:
    case TIMM_CONTRAST_INCREASING:
    case TIMM_BRIGHTNESS_INCREASING:
    case TIMM_SHARPNESS_INCREASING:
        return fmax(0.1, 1.0 + negate(r, share * 0.9));
    case TIMM_SHEAR_X:
    case TIMM_SHEAR_Y:
        return negate(r, share * 0.3);
    case TIMM_TRANSLATE_X_REL:
    case TIMM_TRANSLATE_Y_REL:
        return negate(r, share * how->translate);
    case TIMM_DESATURATE:
        return fmax(0.5, fmin(1.0, 0.5 + 0.5 * share));
    case TIMM_GAUSSIAN_BLUR:
        return fmax(0.1, fmin(2.0, 0.1 + (2.0 - 0.1) * share));
    case TIMM_GAUSSIAN_BLUR_RAND:
        return rng_between(r, 0.1, 2.0 * fmax(0.0, fmin(1.0, share)));
    default:
        return 0;
    }
}

static void warp(struct drawing *g, struct ops_warp how, enum timm_augment a, double v)
{
    double m[6] = {1, 0, 0, 0, 1, 0};
    if (a == TIMM_SHEAR_X)
        m[1] = v;
    else if (a == TIMM_SHEAR_Y)
        m[3] = v;
    else if (a == TIMM_TRANSLATE_X_REL)
        m[2] = v * g->w;
    else
        m[5] = v * g->h;
    ops_warp_matrix(g, how, m);
}

static void apply(struct drawing *g, struct ops_warp how, enum timm_augment a, double v)
{
    switch (a) {
    case TIMM_AUTOCONTRAST:
        ops_color_table(g, TABLE_AUTOCONTRAST, 0);
        break;
    case TIMM_EQUALIZE:
        ops_color_table(g, TABLE_EQUALIZE, 0);
        break;
    case TIMM_INVERT:
        ops_color_table(g, TABLE_INVERT, 0);
        break;
    case TIMM_ROTATE:
        ops_warp_rotate(g, how, v, false, NULL);
        break;
    case TIMM_POSTERIZE:
    case TIMM_POSTERIZE_INCREASING:
    case TIMM_POSTERIZE_ORIGINAL:
        ops_color_table(g, TABLE_POSTERIZE, v);
        break;
    case TIMM_SOLARIZE:
    case TIMM_SOLARIZE_INCREASING:
        ops_color_table(g, TABLE_SOLARIZE, v);
        break;
    case TIMM_SOLARIZE_ADD:
        ops_color_table(g, TABLE_SOLARIZE_ADD, v);
        break;
    case TIMM_COLOR:
    case TIMM_COLOR_INCREASING:
        ops_color_saturation(g, v);
        break;
    case TIMM_CONTRAST:
    case TIMM_CONTRAST_INCREASING:
        ops_color_contrast(g, v);
        break;
    case TIMM_BRIGHTNESS:
    case TIMM_BRIGHTNESS_INCREASING:
        ops_color_brightness(g, v);
        break;
    case TIMM_SHARPNESS:
    case TIMM_SHARPNESS_INCREASING:
        ops_color_sharpness(g, v);
        break;
    case TIMM_DESATURATE:
        ops_color_saturation(g, fmin(1.0, fmax(0.0, 1.0 - v)));
        break;
    case TIMM_GAUSSIAN_BLUR:
    case TIMM_GAUSSIAN_BLUR_RAND:
        drawing_step(g, STEP_BOX, g->w, g->h, g->channels)->amount = v;
        break;
    default:
        warp(g, how, a, v);
    }
}

/* A level around m, as mstd says: fixed, normal, or uniform up to m. */
static double draw_level(const struct timm_how *how, struct rng *r, double m)
{
    double level = m;
    if (how->mstd > 100) {
        level = rng_between(r, 0, m);
    } else if (how->mstd > 0) {
        float normal;
        noise_normal(&normal, rng_u64(r), 0, 1);
        level = m + how->mstd * (double)normal;
    }
    return fmax(0.0, fmin(level, how->mmax > 0 ? how->mmax : 10));
}

void timm_augment(struct drawing *g, const struct timm_how *how, struct rng *r, enum timm_augment a, double p, double m)
{
    static const char *const sampling[] = {
        [FILTER_NEAREST] = "nearest", [FILTER_BILINEAR] = "bilinear", [FILTER_BICUBIC] = "bicubic"};
    if (!rng_chance(r, p))
        return;
    const double v = argument(how, r, a, draw_level(how, r, m));
    struct ops_warp warped = {.filter = draw_filter(how->sampling, r)};
    memcpy(warped.fill, how->fill, sizeof warped.fill);
    drawing_note_object(g);
    drawing_note_text(g, "op", names[a]);
    drawing_note_number(g, "argument", v);
    drawing_note_text(g, "interpolation", sampling[warped.filter]);
    drawing_note_object_end(g);
    apply(g, warped, a, v);
}
