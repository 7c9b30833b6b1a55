/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_color.c -- ops that change colours.
 */
#include "transform/ops_color.h"

/* ------------------------------------------------------------------ steps */

void ops_color_table(struct drawing *g, enum step_table table, double amount)
{
    struct step *s = drawing_step(g, STEP_TABLE, g->w, g->h, g->channels);
    s->table = (int8_t)table;
    s->amount = amount;
}

static void add_grey(struct drawing *g, int channels)
{
    drawing_step(g, STEP_GREY, g->w, g->h, channels);
}

void ops_color_brightness(struct drawing *g, double factor)
{
    ops_color_table(g, TABLE_SCALE, factor);
}

void ops_color_contrast(struct drawing *g, double factor)
{
    ops_color_table(g, TABLE_CONTRAST, factor);
}

/* A grey image has no colour to change. */
void ops_color_saturation(struct drawing *g, double factor)
{
    if (g->channels == 3)
        drawing_step(g, STEP_MIX, g->w, g->h, 3)->amount = factor;
}

void ops_color_hue(struct drawing *g, double factor)
{
    if (g->channels != 3)
        return;
    struct step *s = drawing_step(g, STEP_HUE, g->w, g->h, 3);
    s->tensor = g->tensor;
    s->amount = s->tensor ? factor : (int)(factor * 255);
}

void ops_color_sharpness(struct drawing *g, double factor)
{
    drawing_step(g, STEP_SHARPEN, g->w, g->h, g->channels)->amount = factor;
}

/* ------------------------------------------------------------------ Grayscale, RandomGrayscale, RGB */

static int set_channels(struct reader *r, struct op *o, int i, const struct value *v)
{
    const int rc = arg_store(r, o, i, v);
    return rc == STK_OK && o->arg[i].v[0] == 2 ? arg_bad(r, v, "1 or 3") : rc;
}

static const struct arg_type arg_channels = {"1 or 3",      .low = 1,           .high = 3, .counts = ARG_COUNT(1),
                                             .whole = true, .set = set_channels};

static int check_grey(struct flow *f, const struct op *o)
{
    f->channels = (int)o->arg[0].v[0];
    return STK_OK;
}

static int draw_grey(struct drawing *g, const struct op *o)
{
    add_grey(g, (int)o->arg[0].v[0]);
    return STK_OK;
}

static int draw_random_grey(struct drawing *g, const struct op *o)
{
    struct rng r = drawing_rng(g, o);
    if (drawing_chance(g, o, &r) && g->channels == 3)
        add_grey(g, 3);
    return STK_OK;
}

static int check_rgb(struct flow *f, const struct op *o)
{
    (void)o;
    f->channels = 3;
    return STK_OK;
}

static int draw_rgb(struct drawing *g, const struct op *o)
{
    (void)o;
    if (g->channels == 1)
        add_grey(g, 3);
    return STK_OK;
}

/* ------------------------------------------------------------------ tables with a probability */

/* The first argument is the amount; if it is the probability, there is none. */
static int chance_table(struct drawing *g, const struct op *o, enum step_table table)
{
    struct rng r = drawing_rng(g, o);
    if (drawing_chance(g, o, &r))
        ops_color_table(g, table, o->arg[0].v[0]);
    return STK_OK;
}

static int draw_invert(struct drawing *g, const struct op *o)
{
    return chance_table(g, o, TABLE_INVERT);
}

static int draw_posterize(struct drawing *g, const struct op *o)
{
    return chance_table(g, o, TABLE_POSTERIZE);
}

static int draw_solarize(struct drawing *g, const struct op *o)
{
    return chance_table(g, o, TABLE_SOLARIZE);
}

static int draw_autocontrast(struct drawing *g, const struct op *o)
{
    return chance_table(g, o, TABLE_AUTOCONTRAST);
}

static int draw_equalize(struct drawing *g, const struct op *o)
{
    return chance_table(g, o, TABLE_EQUALIZE);
}

static const struct arg_type arg_bits = {"a whole number of bits from 1 to 8", .low = 1, .high = 8,
                                         .counts = ARG_COUNT(1), .whole = true};
static const struct arg_type arg_threshold = {"a threshold from 0 to 256", .high = 256, .counts = ARG_COUNT(1)};

/* ------------------------------------------------------------------ ColorJitter */

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, FACTORS };

static const char *const factor_names[FACTORS] = {"brightness_factor", "contrast_factor", "saturation_factor",
                                                  "hue_factor"};

/* One number x means from 1 - x to 1 + x, for the hue from -x to x. None: there is nothing to change. */
static int set_jitter(struct reader *r, struct op *o, int i, const struct value *v)
{
    struct arg *a = &o->arg[i];
    const double middle = i == HUE ? 0 : 1;
    const int rc = arg_store(r, o, i, v);
    if (rc == STK_OK && a->n == 1) {
        const double x = a->v[0], low = middle - x;
        if (x < 0)
            return arg_bad(r, v, o->spec->params[i].type->expected);
        a->n = 2;
        a->v[0] = i == HUE || low > 0 ? low : 0;
        a->v[1] = middle + x;
    }
    if (rc == STK_OK && a->n == 2 && a->v[0] == middle && a->v[1] == middle)
        a->n = 0;
    return rc;
}

static const struct arg_type arg_jitter = {"a number of at least 0, (min, max), or None",
                                           .high = 1e6,
                                           .counts = ARG_COUNT(1) | ARG_COUNT(2),
                                           .ascending = true,
                                           .none = true,
                                           .set = set_jitter};
static const struct arg_type arg_jitter_hue = {"a number from 0 to 0.5, (min, max) from -0.5 to 0.5, or None",
                                               .low = -0.5,
                                               .high = 0.5,
                                               .counts = ARG_COUNT(1) | ARG_COUNT(2),
                                               .ascending = true,
                                               .none = true,
                                               .set = set_jitter};

static void adjust(struct drawing *g, int what, double factor)
{
    static void (*const by[FACTORS])(struct drawing * g, double factor) = {ops_color_brightness, ops_color_contrast,
                                                                           ops_color_saturation, ops_color_hue};
    by[what](g, factor);
}

static int draw_jitter(struct drawing *g, const struct op *o)
{
    int32_t order[FACTORS];
    double factor[FACTORS];
    struct rng r = drawing_rng(g, o);
    drawing_shuffle(&r, order, FACTORS);
    drawing_note_ints(g, "fn_idx", order, FACTORS);
    for (int i = 0; i < FACTORS; i++)
        if (o->arg[i].n > 0) {
            factor[i] = rng_between(&r, o->arg[i].v[0], o->arg[i].v[1]);
            drawing_note_number(g, factor_names[i], factor[i]);
        }
    for (int i = 0; i < FACTORS; i++)
        if (o->arg[order[i]].n > 0)
            adjust(g, order[i], factor[order[i]]);
    return STK_OK;
}

/* ------------------------------------------------------------------ RandomPhotometricDistort, RandomChannelPermutation
 */

static const struct arg_type arg_factors = {"(min, max), at least 0", .high = 1e6, .counts = ARG_COUNT(2),
                                            .ascending = true};
static const struct arg_type arg_hues = {"(min, max) from -0.5 to 0.5", .low = -0.5, .high = 0.5,
                                         .counts = ARG_COUNT(2), .ascending = true};

static void draw_order(struct drawing *g, struct rng *r, const char *name)
{
    int32_t order[3];
    drawing_shuffle(r, order, g->channels);
    drawing_note_ints(g, name, order, g->channels);
    if (g->channels != 3)
        return;
    struct step *s = drawing_step(g, STEP_PERMUTE, g->w, g->h, 3);
    for (int i = 0; i < 3; i++)
        s->order[i] = (uint8_t)order[i];
}

static int draw_distort(struct drawing *g, const struct op *o)
{
    const double p = op_arg(o, &arg_p)->v[0];
    bool yes[FACTORS];
    double factor[FACTORS];
    struct rng r = drawing_rng(g, o);
    for (int i = 0; i < FACTORS; i++) {
        yes[i] = rng_chance(&r, p);
        factor[i] = rng_between(&r, o->arg[i].v[0], o->arg[i].v[1]);
        if (yes[i])
            drawing_note_number(g, factor_names[i], factor[i]);
    }
    const bool before = rng_chance(&r, 0.5);
    drawing_note_bool(g, "contrast_before", before);
    const int order[] = {BRIGHTNESS, before ? CONTRAST : SATURATION, before ? SATURATION : HUE,
                         before ? HUE : CONTRAST};
    for (int i = 0; i < FACTORS; i++)
        if (yes[order[i]])
            adjust(g, order[i], factor[order[i]]);
    if (rng_chance(&r, p))
        draw_order(g, &r, "channel_permutation");
    return STK_OK;
}

static int draw_permutation(struct drawing *g, const struct op *o)
{
    struct rng r = drawing_rng(g, o);
    draw_order(g, &r, "permutation");
    return STK_OK;
}

/* ------------------------------------------------------------------ RandomAdjustSharpness */

static const struct arg_type arg_sharpness = {"a factor of at least 0", .high = 1e6, .counts = ARG_COUNT(1)};

static int draw_sharpness(struct drawing *g, const struct op *o)
{
    struct rng r = drawing_rng(g, o);
    if (drawing_chance(g, o, &r))
        ops_color_sharpness(g, o->arg[0].v[0]);
    return STK_OK;
}

const struct spec ops_color[] = {
    {"ColorJitter",
     OP_RANDOM,
     {{"brightness", &arg_jitter, "None"},
      {"contrast", &arg_jitter, "None"},
      {"saturation", &arg_jitter, "None"},
      {"hue", &arg_jitter_hue, "None"}},
     NULL,
     draw_jitter},
    {"RandomPhotometricDistort",
     OP_RANDOM,
     {{"brightness", &arg_factors, "(0.875, 1.125)"},
      {"contrast", &arg_factors, "(0.5, 1.5)"},
      {"saturation", &arg_factors, "(0.5, 1.5)"},
      {"hue", &arg_hues, "(-0.05, 0.05)"},
      {"p", &arg_p, "0.5"}},
     NULL,
     draw_distort},
    {"RandomChannelPermutation", OP_RANDOM, {{0}}, NULL, draw_permutation},
    {"RandomAdjustSharpness",
     OP_BY_P,
     {{"sharpness_factor", &arg_sharpness, NULL}, {"p", &arg_p, "0.5"}},
     NULL,
     draw_sharpness},
    {"Grayscale", 0, {{"num_output_channels", &arg_channels, "1"}}, check_grey, draw_grey},
    {"RandomGrayscale", OP_BY_P, {{"p", &arg_p, "0.1"}}, NULL, draw_random_grey},
    {"RGB", 0, {{0}}, check_rgb, draw_rgb},
    {"RandomInvert", OP_BY_P, {{"p", &arg_p, "0.5"}}, NULL, draw_invert},
    {"RandomPosterize", OP_BY_P, {{"bits", &arg_bits, NULL}, {"p", &arg_p, "0.5"}}, NULL, draw_posterize},
    {"RandomSolarize", OP_BY_P, {{"threshold", &arg_threshold, NULL}, {"p", &arg_p, "0.5"}}, NULL, draw_solarize},
    {"RandomAutocontrast", OP_BY_P, {{"p", &arg_p, "0.5"}}, NULL, draw_autocontrast},
    {"RandomEqualize", OP_BY_P, {{"p", &arg_p, "0.5"}}, NULL, draw_equalize},
    {0},
};
