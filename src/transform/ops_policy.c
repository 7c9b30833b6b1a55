/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_policy.c -- torchvision's AutoAugment, RandAugment and TrivialAugmentWide.
 *
 * They choose among the same augmentations and differ in how strong these are. Magnitudes are torchvision's, to the
 * last bit of single precision.
 */
#include "transform/ops_policy.h"

#include <math.h>
#include <string.h>

#include "transform/ops_color.h"

static const char *const names[AUGMENTS] = {"Identity",  "ShearX",     "ShearY",       "TranslateX", "TranslateY",
                                            "Rotate",    "Brightness", "Color",        "Contrast",   "Sharpness",
                                            "Posterize", "Solarize",   "AutoContrast", "Equalize",   "Invert"};

static const struct augment_space usual = {0.3, 30, 0.9, 150.0 / 331.0, 0, 8, 4};
static const struct augment_space wide = {0.99, 135, 0.99, 0, 32, 8, 6};

/* torch.linspace(start, end, n)[i] */
static double linspace(double start, double end, int n, int i)
{
    const float a = (float)start, b = (float)end, step = n > 1 ? (b - a) / (float)(n - 1) : 0.0f;
    return i < n / 2 || n == 1 ? (double)(float)((double)a + (double)step * i)
                               : (double)(float)((double)b - (double)step * (n - 1 - i));
}

/* The magnitude of level i of n, without its sign. */
static double magnitude(const struct drawing *g, const struct augment_space *s, enum augment a, int n, int i)
{
    switch (a) {
    case SHEAR_X:
    case SHEAR_Y:
        return linspace(0, s->shear, n, i);
    case TRANSLATE_X:
        return linspace(0, s->share > 0 ? s->share * g->w : s->pixels, n, i);
    case TRANSLATE_Y:
        return linspace(0, s->share > 0 ? s->share * g->h : s->pixels, n, i);
    case ROTATE:
        return linspace(0, s->rotate, n, i);
    case BRIGHTNESS:
    case COLOR:
    case CONTRAST:
    case SHARPNESS:
        return linspace(0, s->enhance, n, i);
    case POSTERIZE:
        return n > 1 ? drawing_round((double)((float)s->bits - (float)i / (float)((n - 1) / (double)s->fewer)))
                     : s->bits;
    case SOLARIZE:
        return linspace(1, 0, n, i);
    default:
        return 0;
    }
}

static bool is_signed(enum augment a)
{
    return a >= SHEAR_X && a <= SHARPNESS;
}

/* A shift by whole pixels is a crop, whatever the interpolation. */
static void translate(struct drawing *g, struct ops_warp how, int32_t x, int32_t y)
{
    struct step *s = drawing_step(g, STEP_CROP, g->w, g->h, g->channels);
    s->x = -x;
    s->y = -y;
    s->pad_mode = PAD_CONSTANT;
    memcpy(s->fill, how.fill, sizeof s->fill);
    s->mask_fill = how.mask_fill;
}

static void shear(struct drawing *g, struct ops_warp how, enum augment a, double m)
{
    static const double corner[2] = {0, 0};
    struct warp_turn t = {.scale = 1};
    t.shear[a == SHEAR_Y] = atan(m) * (180.0 / 3.141592653589793);
    t.center = corner;
    ops_warp_affine(g, how, &t);
}

static void apply(struct drawing *g, struct ops_warp how, enum augment a, double m)
{
    static const enum step_table tables[] = {
        [AUTOCONTRAST] = TABLE_AUTOCONTRAST, [EQUALIZE] = TABLE_EQUALIZE, [INVERT] = TABLE_INVERT};
    drawing_note_object(g);
    drawing_note_text(g, "op", names[a]);
    drawing_note_number(g, "magnitude", m);
    drawing_note_object_end(g);
    if (a == ROTATE)
        ops_warp_rotate(g, how, m, false, NULL);
    else if (a == SHEAR_X || a == SHEAR_Y)
        shear(g, how, a, m);
    else if (a == TRANSLATE_X)
        translate(g, how, (int32_t)m, 0);
    else if (a == TRANSLATE_Y)
        translate(g, how, 0, (int32_t)m);
    else if (a == BRIGHTNESS)
        ops_color_brightness(g, 1.0 + m);
    else if (a == COLOR)
        ops_color_saturation(g, 1.0 + m);
    else if (a == CONTRAST)
        ops_color_contrast(g, 1.0 + m);
    else if (a == SHARPNESS)
        ops_color_sharpness(g, 1.0 + m);
    else if (a == POSTERIZE)
        ops_color_table(g, TABLE_POSTERIZE, m);
    else if (a == SOLARIZE)
        ops_color_table(g, TABLE_SOLARIZE, 255.0 * m);
    else if (a != IDENTITY)
        ops_color_table(g, tables[a], 0);
}

void ops_policy_augment(struct drawing *g, struct ops_warp how, const struct augment_space *s, struct rng *r,
                        enum augment a, int n, int i)
{
    const double m = magnitude(g, s, a, n, i);
    apply(g, how, a, is_signed(a) && rng_chance(r, 0.5) ? -m : m);
}

int ops_policy_check(struct flow *f, const struct op *o)
{
    return flow_check_fill(f, o);
}

/* ------------------------------------------------------------------ RandAugment, TrivialAugmentWide */

static const struct arg_type arg_num_ops = {"a whole number from 0 to 16", .high = 16, .counts = ARG_COUNT(1),
                                            .whole = true};
static const struct arg_type arg_magnitude = {"a whole number of at least 0", .high = 1e6, .counts = ARG_COUNT(1),
                                              .whole = true};
static const struct arg_type arg_bins = {"a whole number of at least 2", .low = 2, .high = 1e6, .counts = ARG_COUNT(1),
                                         .whole = true};

enum { RAND_OPS, RAND_MAGNITUDE, RAND_BINS };

static int check_rand(struct flow *f, const struct op *o)
{
    if (o->arg[RAND_MAGNITUDE].v[0] >= o->arg[RAND_BINS].v[0])
        return text_error(f->text, o->column, "RandAugment: magnitude %d must be less than num_magnitude_bins %d",
                          (int)o->arg[RAND_MAGNITUDE].v[0], (int)o->arg[RAND_BINS].v[0]);
    return flow_check_fill(f, o);
}

static int draw_rand(struct drawing *g, const struct op *o)
{
    const int n = (int)o->arg[RAND_OPS].v[0], bins = (int)o->arg[RAND_BINS].v[0];
    struct rng r = drawing_rng(g, o);
    drawing_note_open(g, "ops");
    for (int i = 0; i < n; i++) {
        const enum augment a = (enum augment)rng_below(&r, INVERT);
        ops_policy_augment(g, ops_warp_of(o), &usual, &r, a, bins, (int)o->arg[RAND_MAGNITUDE].v[0]);
    }
    drawing_note_close(g);
    return STK_OK;
}

static int draw_trivial(struct drawing *g, const struct op *o)
{
    const int bins = (int)o->arg[0].v[0];
    struct rng r = drawing_rng(g, o);
    const enum augment a = (enum augment)rng_below(&r, INVERT);
    const int level = (int)rng_below(&r, (uint64_t)bins);
    drawing_note_open(g, "ops");
    ops_policy_augment(g, ops_warp_of(o), &wide, &r, a, bins, level);
    drawing_note_close(g);
    return STK_OK;
}

/* ------------------------------------------------------------------ AutoAugment */

struct choice {
    enum augment a;
    double p;
    int level;
};

enum { POLICIES = 25 };
static const char *const policy_names[] = {"imagenet", "cifar10", "svhn"};
static const struct arg_type arg_policy = {"imagenet, cifar10 or svhn", .words = policy_names, .n_words = 3};

static const struct choice policies[3][POLICIES][2] = {
    {
        {{POSTERIZE, 0.4, 8}, {ROTATE, 0.6, 9}},  {{SOLARIZE, 0.6, 5}, {AUTOCONTRAST, 0.6, 0}},
        {{EQUALIZE, 0.8, 0}, {EQUALIZE, 0.6, 0}}, {{POSTERIZE, 0.6, 7}, {POSTERIZE, 0.6, 6}},
        {{EQUALIZE, 0.4, 0}, {SOLARIZE, 0.2, 4}}, {{EQUALIZE, 0.4, 0}, {ROTATE, 0.8, 8}},
        {{SOLARIZE, 0.6, 3}, {EQUALIZE, 0.6, 0}}, {{POSTERIZE, 0.8, 5}, {EQUALIZE, 1.0, 0}},
        {{ROTATE, 0.2, 3}, {SOLARIZE, 0.6, 8}},   {{EQUALIZE, 0.6, 0}, {POSTERIZE, 0.4, 6}},
        {{ROTATE, 0.8, 8}, {COLOR, 0.4, 0}},      {{ROTATE, 0.4, 9}, {EQUALIZE, 0.6, 0}},
        {{EQUALIZE, 0.0, 0}, {EQUALIZE, 0.8, 0}}, {{INVERT, 0.6, 0}, {EQUALIZE, 1.0, 0}},
        {{COLOR, 0.6, 4}, {CONTRAST, 1.0, 8}},    {{ROTATE, 0.8, 8}, {COLOR, 1.0, 2}},
        {{COLOR, 0.8, 8}, {SOLARIZE, 0.8, 7}},    {{SHARPNESS, 0.4, 7}, {INVERT, 0.6, 0}},
        {{SHEAR_X, 0.6, 5}, {EQUALIZE, 1.0, 0}},  {{COLOR, 0.4, 0}, {EQUALIZE, 0.6, 0}},
        {{EQUALIZE, 0.4, 0}, {SOLARIZE, 0.2, 4}}, {{SOLARIZE, 0.6, 5}, {AUTOCONTRAST, 0.6, 0}},
        {{INVERT, 0.6, 0}, {EQUALIZE, 1.0, 0}},   {{COLOR, 0.6, 4}, {CONTRAST, 1.0, 8}},
        {{EQUALIZE, 0.8, 0}, {EQUALIZE, 0.6, 0}},
    },
    {
        {{INVERT, 0.1, 0}, {CONTRAST, 0.2, 6}},          {{ROTATE, 0.7, 2}, {TRANSLATE_X, 0.3, 9}},
        {{SHARPNESS, 0.8, 1}, {SHARPNESS, 0.9, 3}},      {{SHEAR_Y, 0.5, 8}, {TRANSLATE_Y, 0.7, 9}},
        {{AUTOCONTRAST, 0.5, 0}, {EQUALIZE, 0.9, 0}},    {{SHEAR_Y, 0.2, 7}, {POSTERIZE, 0.3, 7}},
        {{COLOR, 0.4, 3}, {BRIGHTNESS, 0.6, 7}},         {{SHARPNESS, 0.3, 9}, {BRIGHTNESS, 0.7, 9}},
        {{EQUALIZE, 0.6, 0}, {EQUALIZE, 0.5, 0}},        {{CONTRAST, 0.6, 7}, {SHARPNESS, 0.6, 5}},
        {{COLOR, 0.7, 7}, {TRANSLATE_X, 0.5, 8}},        {{EQUALIZE, 0.3, 0}, {AUTOCONTRAST, 0.4, 0}},
        {{TRANSLATE_Y, 0.4, 3}, {SHARPNESS, 0.2, 6}},    {{BRIGHTNESS, 0.9, 6}, {COLOR, 0.2, 8}},
        {{SOLARIZE, 0.5, 2}, {INVERT, 0.0, 0}},          {{EQUALIZE, 0.2, 0}, {AUTOCONTRAST, 0.6, 0}},
        {{EQUALIZE, 0.2, 0}, {EQUALIZE, 0.6, 0}},        {{COLOR, 0.9, 9}, {EQUALIZE, 0.6, 0}},
        {{AUTOCONTRAST, 0.8, 0}, {SOLARIZE, 0.2, 8}},    {{BRIGHTNESS, 0.1, 3}, {COLOR, 0.7, 0}},
        {{SOLARIZE, 0.4, 5}, {AUTOCONTRAST, 0.9, 0}},    {{TRANSLATE_Y, 0.9, 9}, {TRANSLATE_Y, 0.7, 9}},
        {{AUTOCONTRAST, 0.9, 0}, {SOLARIZE, 0.8, 3}},    {{EQUALIZE, 0.8, 0}, {INVERT, 0.1, 0}},
        {{TRANSLATE_Y, 0.7, 9}, {AUTOCONTRAST, 0.9, 0}},
    },
    {
        {{SHEAR_X, 0.9, 4}, {INVERT, 0.2, 0}},       {{SHEAR_Y, 0.9, 8}, {INVERT, 0.7, 0}},
        {{EQUALIZE, 0.6, 0}, {SOLARIZE, 0.6, 6}},    {{INVERT, 0.9, 0}, {EQUALIZE, 0.6, 0}},
        {{EQUALIZE, 0.6, 0}, {ROTATE, 0.9, 3}},      {{SHEAR_X, 0.9, 4}, {AUTOCONTRAST, 0.8, 0}},
        {{SHEAR_Y, 0.9, 8}, {INVERT, 0.4, 0}},       {{SHEAR_Y, 0.9, 5}, {SOLARIZE, 0.2, 6}},
        {{INVERT, 0.9, 0}, {AUTOCONTRAST, 0.8, 0}},  {{EQUALIZE, 0.6, 0}, {ROTATE, 0.9, 3}},
        {{SHEAR_X, 0.9, 4}, {SOLARIZE, 0.3, 3}},     {{SHEAR_Y, 0.8, 8}, {INVERT, 0.7, 0}},
        {{EQUALIZE, 0.9, 0}, {TRANSLATE_Y, 0.6, 6}}, {{INVERT, 0.9, 0}, {EQUALIZE, 0.6, 0}},
        {{CONTRAST, 0.3, 3}, {ROTATE, 0.8, 4}},      {{INVERT, 0.8, 0}, {TRANSLATE_Y, 0.0, 2}},
        {{SHEAR_Y, 0.7, 6}, {SOLARIZE, 0.4, 8}},     {{INVERT, 0.6, 0}, {ROTATE, 0.8, 4}},
        {{SHEAR_Y, 0.3, 7}, {TRANSLATE_X, 0.9, 3}},  {{SHEAR_X, 0.1, 6}, {INVERT, 0.6, 0}},
        {{SOLARIZE, 0.7, 2}, {TRANSLATE_Y, 0.6, 7}}, {{SHEAR_Y, 0.8, 4}, {INVERT, 0.8, 0}},
        {{SHEAR_X, 0.7, 9}, {TRANSLATE_Y, 0.8, 3}},  {{SHEAR_Y, 0.8, 5}, {AUTOCONTRAST, 0.7, 0}},
        {{SHEAR_X, 0.7, 2}, {INVERT, 0.1, 0}},
    },
};

static int draw_auto(struct drawing *g, const struct op *o)
{
    struct rng r = drawing_rng(g, o);
    const struct choice *c = policies[(int)o->arg[0].v[0]][rng_below(&r, POLICIES)];
    drawing_note_open(g, "ops");
    for (int i = 0; i < 2; i++)
        if (rng_chance(&r, c[i].p))
            ops_policy_augment(g, ops_warp_of(o), &usual, &r, c[i].a, 10, c[i].level);
    drawing_note_close(g);
    return STK_OK;
}

const struct spec ops_policy[] = {
    {"AutoAugment",
     OP_RANDOM | OP_POLICY,
     {{"policy", &arg_policy, "imagenet"}, {"interpolation", &arg_warp_filter, "nearest"}, {"fill", &arg_fill, "0"}},
     ops_policy_check,
     draw_auto},
    {"RandAugment",
     OP_RANDOM | OP_POLICY,
     {{"num_ops", &arg_num_ops, "2"},
      {"magnitude", &arg_magnitude, "9"},
      {"num_magnitude_bins", &arg_bins, "31"},
      {"interpolation", &arg_warp_filter, "nearest"},
      {"fill", &arg_fill, "0"}},
     check_rand,
     draw_rand},
    {"TrivialAugmentWide",
     OP_RANDOM | OP_POLICY,
     {{"num_magnitude_bins", &arg_bins, "31"},
      {"interpolation", &arg_warp_filter, "nearest"},
      {"fill", &arg_fill, "0"}},
     ops_policy_check,
     draw_trivial},
    {0},
};
