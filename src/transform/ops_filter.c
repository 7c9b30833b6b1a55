/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_filter.c -- ops that blur, distort along a random field, and add noise.
 */
#include "transform/blur.h"
#include "transform/ops_warp.h"

/* One number means the same twice. */
static int set_two(struct reader *r, struct op *o, int i, const struct value *v)
{
    const int rc = arg_store(r, o, i, v);
    struct arg *a = &o->arg[i];
    if (rc == STK_OK && a->n == 1) {
        a->v[1] = a->v[0];
        a->n = 2;
    }
    return rc;
}

/* ------------------------------------------------------------------ GaussianBlur */

enum { BLUR_SIZE, BLUR_SIGMA };

static const char odd_size[] = "an odd number from 1 to 511, or two: (horizontal, vertical)";

static int set_kernel_size(struct reader *r, struct op *o, int i, const struct value *v)
{
    const int rc = set_two(r, o, i, v);
    const struct arg *a = &o->arg[i];
    if (rc == STK_OK && ((int)a->v[0] % 2 == 0 || (int)a->v[1] % 2 == 0))
        return arg_bad(r, v, odd_size);
    return rc;
}

static const struct arg_type arg_kernel_size = {odd_size,          .low = 1,
                                                .high = BLUR_MOST, .counts = ARG_COUNT(1) | ARG_COUNT(2),
                                                .whole = true,     .set = set_kernel_size};
static const struct arg_type arg_sigma = {"a number above 0, or (min, max)",     .low = 1e-3,       .high = 1e4,
                                          .counts = ARG_COUNT(1) | ARG_COUNT(2), .ascending = true, .set = set_two};

static int draw_blur(struct drawing *g, const struct op *o)
{
    const struct arg *size = &o->arg[BLUR_SIZE], *sigma = &o->arg[BLUR_SIGMA];
    const int32_t across = (int32_t)size->v[0], down = (int32_t)size->v[1];
    struct rng r = drawing_rng(g, o);
    const double drawn = rng_between(&r, sigma->v[0], sigma->v[1]);
    if (across / 2 >= g->w || down / 2 >= g->h)
        return drawing_refuse(g, o, "but each side must be longer than half of kernel_size, because of reflection");
    drawing_note_number(g, "sigma", drawn);
    struct step *s = drawing_step(g, STEP_BLUR, g->w, g->h, g->channels);
    s->blur.size[0] = across;
    s->blur.size[1] = down;
    s->blur.sigma = drawn;
    return STK_OK;
}

/* ------------------------------------------------------------------ PillowBlur */

static const struct arg_type arg_radius = {"a number from 0 to 100, or (min, max)", .high = 100,
                                           .counts = ARG_COUNT(1) | ARG_COUNT(2), .ascending = true, .set = set_two};

/* As DINO's scripts and timm draw the radius of Pillow's GaussianBlur. */
static int draw_pillow_blur(struct drawing *g, const struct op *o)
{
    struct rng r = drawing_rng(g, o);
    if (!drawing_chance(g, o, &r))
        return STK_OK;
    const double radius = rng_between(&r, o->arg[0].v[0], o->arg[0].v[1]);
    drawing_note_number(g, "radius", radius);
    drawing_step(g, STEP_BOX, g->w, g->h, g->channels)->amount = radius;
    return STK_OK;
}

/* ------------------------------------------------------------------ ElasticTransform */

enum { ELASTIC_ALPHA_ARG, ELASTIC_SIGMA_ARG };

static const struct arg_type arg_alpha = {"a number from 0 to 100000, or two: (x, y)", .high = 1e5,
                                          .counts = ARG_COUNT(1) | ARG_COUNT(2), .set = set_two};
static const struct arg_type arg_smooth = {"a number from 0 to 60, or two: (x, y)", .high = ELASTIC_SIGMA,
                                           .counts = ARG_COUNT(1) | ARG_COUNT(2), .set = set_two};

static int check_elastic(struct flow *f, const struct op *o)
{
    const double *sigma = o->arg[ELASTIC_SIGMA_ARG].v;
    if ((sigma[0] > 0) != (sigma[1] > 0))
        return text_error(f->text, o->column,
                          "ElasticTransform: sigma has one 0; it needs two numbers above 0, or two 0");
    return flow_check_fill(f, o);
}

static int draw_elastic(struct drawing *g, const struct op *o)
{
    const double *alpha = o->arg[ELASTIC_ALPHA_ARG].v, *sigma = o->arg[ELASTIC_SIGMA_ARG].v;
    struct rng r = drawing_rng(g, o);
    const struct ops_warp how = ops_warp_of(o);
    const struct elastic e = {.seed = rng_u64(&r) >> 1, /* fits a signed number */
                              .alpha = {alpha[0], alpha[1]},
                              .sigma = {sigma[0], sigma[1]},
                              .filter = how.filter,
                              .w = g->w,
                              .h = g->h,
                              .fill = {how.fill[0], how.fill[1], how.fill[2]}};
    if (elastic_reach(&e) >= g->w || elastic_reach(&e) >= g->h)
        return drawing_refuse(g, o, "but each side must be longer than 4 times sigma, because of reflection");
    drawing_note_int(g, "seed", (int64_t)e.seed);
    struct step *s = drawing_step(g, STEP_ELASTIC, g->w, g->h, g->channels);
    s->elastic = e;
    s->mask_fill = how.mask_fill;
    return STK_OK;
}

/* ------------------------------------------------------------------ GaussianNoise */

enum { NOISE_MEAN, NOISE_SIGMA, NOISE_CLIP };

static const struct arg_type arg_mean = {"a number from -10 to 10", .low = -10, .high = 10, .counts = ARG_COUNT(1)};
static const struct arg_type arg_deviation = {"a number from 0 to 10", .high = 10, .counts = ARG_COUNT(1)};

static int draw_noise(struct drawing *g, const struct op *o)
{
    struct rng r = drawing_rng(g, o);
    const uint64_t seed = rng_u64(&r) >> 1;
    drawing_note_int(g, "seed", (int64_t)seed);
    struct step *s = drawing_step(g, STEP_NOISE, g->w, g->h, g->channels);
    s->noise.seed = seed;
    s->noise.mean = (float)(o->arg[NOISE_MEAN].v[0] * 255.0);
    s->noise.sigma = (float)(o->arg[NOISE_SIGMA].v[0] * 255.0);
    s->noise.wrap = o->arg[NOISE_CLIP].v[0] == 0;
    return STK_OK;
}

/* ------------------------------------------------------------------ JPEG */

enum { JPEG_SIDE = 65500 }; /* libjpeg's limit */

static const struct arg_type arg_quality = {"a whole number from 1 to 100, or (min, max)",
                                            .low = 1,
                                            .high = 100,
                                            .counts = ARG_COUNT(1) | ARG_COUNT(2),
                                            .whole = true,
                                            .ascending = true,
                                            .set = set_two};

static int draw_jpeg(struct drawing *g, const struct op *o)
{
    const double least = o->arg[0].v[0], most = o->arg[0].v[1];
    struct rng r = drawing_rng(g, o);
    const int32_t quality = (int32_t)(least + (double)rng_below(&r, (uint64_t)(most - least) + 1));
    if (g->w > JPEG_SIDE || g->h > JPEG_SIDE)
        return drawing_refuse(g, o, "but a JPEG has at most 65500 on a side");
    drawing_note_int(g, "quality", quality);
    drawing_step(g, STEP_JPEG, g->w, g->h, g->channels)->quality = quality;
    return STK_OK;
}

const struct spec ops_filter[] = {
    {"GaussianBlur",
     OP_RANDOM,
     {{"kernel_size", &arg_kernel_size, NULL}, {"sigma", &arg_sigma, "(0.1, 2)"}},
     NULL,
     draw_blur},
    {"PillowBlur", OP_RANDOM, {{"radius", &arg_radius, "(0.1, 2)"}, {"p", &arg_p, "0.5"}}, NULL, draw_pillow_blur},
    {"ElasticTransform",
     OP_RANDOM,
     {{"alpha", &arg_alpha, "50"},
      {"sigma", &arg_smooth, "5"},
      {"interpolation", &arg_warp_filter, "bilinear"},
      {"fill", &arg_fill, "0"},
      {"mask_fill", &arg_mask_fill, "None"}},
     check_elastic,
     draw_elastic},
    {"JPEG", OP_RANDOM, {{"quality", &arg_quality, NULL}}, NULL, draw_jpeg},
    {"GaussianNoise",
     OP_RANDOM,
     {{"mean", &arg_mean, "0"}, {"sigma", &arg_deviation, "0.1"}, {"clip", &arg_bool, "True"}},
     NULL,
     draw_noise},
    {0},
};
