/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_augmix.c -- AugMix: the image is mixed with chains of augmentations of it.
 */
#include "transform/ops_augmix.h"

#include <math.h>

#include "transform/ops_policy.h"

void ops_augmix_weights(struct rng *r, double alpha, double *out, int n)
{
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) {
        out[i] = rng_log_gamma(r, alpha);
        most = out[i] > most ? out[i] : most;
    }
    for (int i = 0; i < n; i++)
        sum += out[i] = exp(out[i] - most);
    for (int i = 0; i < n; i++)
        out[i] /= sum;
}

int ops_augmix_depth(struct rng *r, int depth)
{
    const int random = 1 + (int)rng_below(r, 3);
    return depth > 0 ? depth : random;
}

void ops_augmix_fork(struct drawing *g, double weight)
{
    drawing_step(g, STEP_FORK, g->w, g->h, g->channels)->mix.weight = (float)weight;
}

struct step *ops_augmix_add(struct drawing *g, double weight, bool last)
{
    struct step *s = drawing_step(g, STEP_ADD, g->w, g->h, g->channels);
    s->mix.weight = (float)weight;
    s->mix.last = last;
    return s;
}

enum { SEVERITY, WIDTH, DEPTH, ALPHA, ALL_OPS };

static const struct arg_type arg_severity = {"a whole number from 1 to 10", .low = 1, .high = 10,
                                             .counts = ARG_COUNT(1), .whole = true};
static const struct arg_type arg_width = {"a whole number from 1 to 8", .low = 1, .high = AUGMIX_WIDTH,
                                          .counts = ARG_COUNT(1), .whole = true};
static const struct arg_type arg_depth = {"a whole number up to 8; below 1: from 1 to 3, at random", .low = -1,
                                          .high = AUGMIX_DEPTH, .counts = ARG_COUNT(1), .whole = true};
static const struct arg_type arg_alpha = {"a number above 0", .low = 1e-3, .high = 1e6, .counts = ARG_COUNT(1)};

static void draw_chain(struct drawing *g, const struct op *o, struct rng *r)
{
    static const struct augment_space space = {0.3, 30, 0.9, 1.0 / 3.0, 0, 4, 4};
    static const enum augment all[] = {SHEAR_X,      SHEAR_Y,  TRANSLATE_X, TRANSLATE_Y, ROTATE,   POSTERIZE, SOLARIZE,
                                       AUTOCONTRAST, EQUALIZE, BRIGHTNESS,  COLOR,       CONTRAST, SHARPNESS};
    const uint64_t n = o->arg[ALL_OPS].v[0] != 0 ? 13 : 9;
    const int depth = ops_augmix_depth(r, (int)o->arg[DEPTH].v[0]);
    drawing_note_open(g, NULL);
    for (int i = 0; i < depth; i++) {
        const enum augment a = all[rng_below(r, n)];
        ops_policy_augment(g, ops_warp_of(o), &space, r, a, 10, (int)rng_below(r, (uint64_t)o->arg[SEVERITY].v[0]));
    }
    drawing_note_close(g);
}

static int draw_augmix(struct drawing *g, const struct op *o)
{
    const int width = (int)o->arg[WIDTH].v[0];
    double m[2], weights[AUGMIX_WIDTH];
    struct rng r = drawing_rng(g, o);
    ops_augmix_weights(&r, o->arg[ALPHA].v[0], m, 2);
    ops_augmix_weights(&r, o->arg[ALPHA].v[0], weights, width);
    for (int i = 0; i < width; i++)
        weights[i] = (double)((float)weights[i] * (float)m[1]);
    drawing_note_number(g, "weight", (double)(float)m[0]);
    drawing_note_numbers(g, "weights", weights, width);
    drawing_note_open(g, "chains");
    ops_augmix_fork(g, m[0]);
    for (int i = 0; i < width; i++) {
        draw_chain(g, o, &r);
        ops_augmix_add(g, weights[i], i == width - 1);
    }
    drawing_note_close(g);
    return STK_OK;
}

const struct spec ops_augmix[] = {
    {"AugMix",
     OP_RANDOM | OP_ALONE | OP_POLICY,
     {{"severity", &arg_severity, "3"},
      {"mixture_width", &arg_width, "3"},
      {"chain_depth", &arg_depth, "-1"},
      {"alpha", &arg_alpha, "1"},
      {"all_ops", &arg_bool, "True"},
      {"interpolation", &arg_warp_filter, "bilinear"},
      {"fill", &arg_fill, "0"}},
     ops_policy_check,
     draw_augmix},
    {0},
};
