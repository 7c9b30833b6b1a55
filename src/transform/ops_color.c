/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_color.c -- ops that change colours.
 */
#include "transform/drawing.h"

/* ------------------------------------------------------------------ steps */

static void add_table(struct drawing *g, enum step_table table, double amount)
{
    struct step *s = drawing_step(g, STEP_TABLE, g->w, g->h, g->channels);
    s->table = (int8_t)table;
    s->amount = amount;
}

static void add_grey(struct drawing *g, int channels)
{
    drawing_step(g, STEP_GREY, g->w, g->h, channels);
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
        add_table(g, table, o->arg[0].v[0]);
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

const struct spec ops_color[] = {
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
