/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_scale.c -- ops that resize by a random factor, or put the image on a larger canvas. All leave the size open.
 */
#include "transform/drawing.h"

static int check_open(struct flow *f, const struct op *o)
{
    f->w = f->h = 0;
    return flow_check_fill(f, o);
}

static int resize_to(struct drawing *g, const struct op *o, double w, double h)
{
    if (w < 1 || h < 1 || w > OPS_FAR || h > OPS_FAR)
        return drawing_refuse(g, o, "and one side would become 0 or too long");
    drawing_note_size(g, (int32_t)w, (int32_t)h);
    drawing_resize(g, o, (int32_t)w, (int32_t)h);
    return STK_OK;
}

static int32_t shorter(const struct drawing *g)
{
    return g->w < g->h ? g->w : g->h;
}

static int32_t longer(const struct drawing *g)
{
    return g->w > g->h ? g->w : g->h;
}

/* ------------------------------------------------------------------ RandomZoomOut */

enum { ZOOM_FILL, ZOOM_SIDES };

static const struct arg_type arg_sides = {"(min, max) factor of the size, from 1 to 1000", .low = 1, .high = 1000,
                                          .counts = ARG_COUNT(2), .ascending = true};

static int draw_zoom_out(struct drawing *g, const struct op *o)
{
    struct rng r = drawing_rng(g, o);
    if (!drawing_chance(g, o, &r))
        return STK_OK;
    const double factor = rng_between(&r, o->arg[ZOOM_SIDES].v[0], o->arg[ZOOM_SIDES].v[1]);
    if (g->w * factor > OPS_FAR || g->h * factor > OPS_FAR)
        return drawing_refuse(g, o, "which is too large for this op");
    const int32_t w = (int32_t)(g->w * factor), h = (int32_t)(g->h * factor);
    const int32_t left = (int32_t)((w - g->w) * rng_double(&r)), top = (int32_t)((h - g->h) * rng_double(&r));
    drawing_note_ints(g, "padding", (const int32_t[]){left, top, w - g->w - left, h - g->h - top}, 4);
    drawing_crop(g, o, (struct rect){-left, -top, w, h});
    return STK_OK;
}

/* ------------------------------------------------------------------ ScaleJitter */

enum { JITTER_TARGET, JITTER_RANGE };

static const struct arg_type arg_target = {"two whole numbers from 1 to 65536", .low = 1, .high = OPS_SIDE,
                                           .counts = ARG_COUNT(2), .whole = true};
static const struct arg_type arg_range = {"(min, max) factor, above 0", .low = 1e-6, .high = 1000,
                                          .counts = ARG_COUNT(2), .ascending = true};

/* torchvision divides the second number by the height. */
static int draw_scale_jitter(struct drawing *g, const struct op *o)
{
    const double *target = o->arg[JITTER_TARGET].v, *range = o->arg[JITTER_RANGE].v;
    struct rng r = drawing_rng(g, o);
    const double down = target[1] / g->h, across = target[0] / g->w;
    const double factor = (down < across ? down : across) * rng_between(&r, range[0], range[1]);
    return resize_to(g, o, g->w * factor, g->h * factor);
}

/* ------------------------------------------------------------------ RandomShortestSize */

enum { SHORTEST_MIN, SHORTEST_MAX };

static const struct arg_type arg_min_sizes = {"whole numbers from 1 to 65536, up to 15 of them", .low = 1,
                                              .high = OPS_SIDE, .counts = 0xfffe, .whole = true};
static const struct arg_type arg_max_or_none = {"a whole number from 1 to 65536, or None",
                                                .low = 1,
                                                .high = OPS_SIDE,
                                                .counts = ARG_COUNT(1),
                                                .whole = true,
                                                .none = true};

static int draw_shortest_size(struct drawing *g, const struct op *o)
{
    const struct arg *sizes = &o->arg[SHORTEST_MIN], *max = &o->arg[SHORTEST_MAX];
    struct rng r = drawing_rng(g, o);
    double factor = sizes->v[rng_below(&r, (uint64_t)sizes->n)] / shorter(g);
    if (max->n && max->v[0] / longer(g) < factor)
        factor = max->v[0] / longer(g);
    return resize_to(g, o, g->w * factor, g->h * factor);
}

/* ------------------------------------------------------------------ RandomResize */

enum { RANDOM_RESIZE_MIN, RANDOM_RESIZE_MAX };

static const struct arg_type arg_side = {"a whole number from 1 to 65536", .low = 1, .high = OPS_SIDE,
                                         .counts = ARG_COUNT(1), .whole = true};

static int check_random_resize(struct flow *f, const struct op *o)
{
    const double least = o->arg[RANDOM_RESIZE_MIN].v[0], most = o->arg[RANDOM_RESIZE_MAX].v[0];
    if (most <= least)
        return text_error(f->text, o->column, "RandomResize: max_size %d must be larger than min_size %d", (int)most,
                          (int)least);
    return check_open(f, o);
}

/* max_size itself is never drawn, as in torchvision. */
static int draw_random_resize(struct drawing *g, const struct op *o)
{
    const double least = o->arg[RANDOM_RESIZE_MIN].v[0], most = o->arg[RANDOM_RESIZE_MAX].v[0];
    struct rng r = drawing_rng(g, o);
    const double low = least + (double)rng_below(&r, (uint64_t)(most - least)), high = low * longer(g) / shorter(g);
    return g->w <= g->h ? resize_to(g, o, low, high) : resize_to(g, o, high, low);
}

const struct spec ops_scale[] = {
    {"RandomZoomOut",
     OP_MOVES | OP_BY_P,
     {{"fill", &arg_fill, "0"},
      {"side_range", &arg_sides, "(1, 4)"},
      {"p", &arg_p, "0.5"},
      {"mask_fill", &arg_mask_fill, "None"}},
     check_open,
     draw_zoom_out},
    {"ScaleJitter",
     OP_RANDOM,
     {{"target_size", &arg_target, NULL},
      {"scale_range", &arg_range, "(0.1, 2)"},
      {"interpolation", &arg_filter, "bilinear"},
      {"antialias", &arg_antialias, "True"}},
     check_open,
     draw_scale_jitter},
    {"RandomShortestSize",
     OP_RANDOM,
     {{"min_size", &arg_min_sizes, NULL},
      {"max_size", &arg_max_or_none, "None"},
      {"interpolation", &arg_filter, "bilinear"},
      {"antialias", &arg_antialias, "True"}},
     check_open,
     draw_shortest_size},
    {"RandomResize",
     OP_RANDOM,
     {{"min_size", &arg_side, NULL},
      {"max_size", &arg_side, NULL},
      {"interpolation", &arg_filter, "bilinear"},
      {"antialias", &arg_antialias, "True"}},
     check_random_resize,
     draw_random_resize},
    {0},
};
