/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_warp.c -- ops that rotate, shear and distort.
 */
#include "transform/ops_warp.h"

/* ------------------------------------------------------------------ arguments */

static int set_warp_filter(struct reader *r, struct op *o, int i, const struct value *v)
{
    const int rc = arg_filter.set(r, o, i, v);
    const double f = o->arg[i].v[0];
    return rc || f == FILTER_NEAREST || f == FILTER_BILINEAR || f == FILTER_BICUBIC
               ? rc
               : arg_bad(r, v, "nearest, bilinear or bicubic, which are all that Pillow has for this op");
}

const struct arg_type arg_warp_filter = {"nearest, nearest_exact, bilinear or bicubic", .words = arg_filters,
                                         .n_words = FILTER_COUNT + 1, .set = set_warp_filter};

/* One number x means from -x to x. */
static int set_angle(struct reader *r, struct op *o, int i, const struct value *v)
{
    const int rc = arg_store(r, o, i, v);
    struct arg *a = &o->arg[i];
    if (rc == STK_OK && a->n == 1 && a->v[0] < 0)
        return arg_bad(r, v, "a number of degrees that is not negative, or (min, max)");
    for (int k = 0; k + 1 < a->n; k += 2)
        if (rc == STK_OK && a->v[k] > a->v[k + 1])
            return arg_bad(r, v, "the smaller number first");
    if (rc == STK_OK && a->n == 1) {
        a->v[1] = a->v[0];
        a->v[0] = -a->v[0];
        a->n = 2;
    }
    return rc;
}

static const struct arg_type arg_degrees = {"degrees: one number, or (min, max)", .low = -1e6, .high = 1e6,
                                            .counts = ARG_COUNT(1) | ARG_COUNT(2), .set = set_angle};
static const struct arg_type arg_shear = {"degrees: one number, (min, max), (min x, max x, min y, max y), or None",
                                          .low = -1e6,
                                          .high = 1e6,
                                          .counts = ARG_COUNT(1) | ARG_COUNT(2) | ARG_COUNT(4),
                                          .none = true,
                                          .set = set_angle};
static const struct arg_type arg_center = {"(x, y) in pixels, or None", .low = -1e6, .high = 1e6,
                                           .counts = ARG_COUNT(2), .none = true};
static const struct arg_type arg_translate = {"(horizontal, vertical) as shares of the size, from 0 to 1, or None",
                                              .high = 1, .counts = ARG_COUNT(2), .none = true};
static const struct arg_type arg_factors = {"(min, max), above 0, or None", .low = 1e-6,       .high = 1e6,
                                            .counts = ARG_COUNT(2),         .ascending = true, .none = true};
static const struct arg_type arg_distortion = {"a number from 0 to 1", .high = 1, .counts = ARG_COUNT(1)};

/* ------------------------------------------------------------------ steps */

struct ops_warp ops_warp_of(const struct op *o)
{
    struct ops_warp how = {.filter = (enum filter)op_arg(o, &arg_warp_filter)->v[0]};
    drawing_fill(o, how.fill);
    how.mask_fill = drawing_mask_fill(o);
    how.filled = !(o->spec->flags & OP_POLICY) || how.fill[0] || how.fill[1] || how.fill[2];
    return how;
}

static void add(struct drawing *g, struct warp *w, const struct ops_warp *how)
{
    for (int i = 0; i < 3; i++)
        w->fill[i] = how->fill[i];
    w->tensor = g->tensor && how->filter != FILTER_BICUBIC;
    w->filled = how->filled;
    warp_choose(w);
    struct step *s = drawing_step(g, STEP_WARP, w->w, w->h, g->channels);
    s->warp = *w;
    s->mask_fill = how->mask_fill;
}

void ops_warp_rotate(struct drawing *g, struct ops_warp how, double degrees, bool expand, const double *center)
{
    struct warp w;
    if (warp_rotate(&w, g->w, g->h, how.filter, degrees, expand, center))
        add(g, &w, &how);
    else
        drawing_mark(g, STEP_CLAMP_BOXES);
}

void ops_warp_affine(struct drawing *g, struct ops_warp how, const struct warp_turn *t)
{
    struct warp w;
    warp_affine(&w, g->w, g->h, how.filter, t);
    add(g, &w, &how);
}

void ops_warp_matrix(struct drawing *g, struct ops_warp how, const double m[6])
{
    struct warp w;
    warp_matrix(&w, g->w, g->h, how.filter, m);
    add(g, &w, &how);
}

/* ------------------------------------------------------------------ RandomRotation */

enum { ROTATION_DEGREES, ROTATION_FILTER, ROTATION_EXPAND, ROTATION_CENTER };

static int check_rotation(struct flow *f, const struct op *o)
{
    if (o->arg[ROTATION_EXPAND].v[0] != 0)
        f->w = f->h = 0;
    return flow_check_fill(f, o);
}

static int draw_rotation(struct drawing *g, const struct op *o)
{
    const struct arg *degrees = &o->arg[ROTATION_DEGREES], *center = &o->arg[ROTATION_CENTER];
    struct rng r = drawing_rng(g, o);
    const double angle = rng_between(&r, degrees->v[0], degrees->v[1]);
    drawing_note_number(g, "angle", angle);
    ops_warp_rotate(g, ops_warp_of(o), angle, o->arg[ROTATION_EXPAND].v[0] != 0, center->n ? center->v : NULL);
    return STK_OK;
}

/* ------------------------------------------------------------------ RandomAffine */

static int check_fill(struct flow *f, const struct op *o)
{
    return flow_check_fill(f, o);
}

enum { AFFINE_DEGREES, AFFINE_TRANSLATE, AFFINE_SCALE, AFFINE_SHEAR, AFFINE_FILTER, AFFINE_FILL, AFFINE_CENTER };

static double draw_pixels(struct rng *r, double most)
{
    return drawing_round(rng_between(r, -most, most));
}

static int draw_affine(struct drawing *g, const struct op *o)
{
    const struct arg *degrees = &o->arg[AFFINE_DEGREES], *move = &o->arg[AFFINE_TRANSLATE];
    const struct arg *scale = &o->arg[AFFINE_SCALE], *shear = &o->arg[AFFINE_SHEAR], *center = &o->arg[AFFINE_CENTER];
    struct rng r = drawing_rng(g, o);
    struct warp_turn t = {.scale = 1.0, .center = center->n ? center->v : NULL};
    t.degrees = rng_between(&r, degrees->v[0], degrees->v[1]);
    if (move->n) {
        t.translate[0] = draw_pixels(&r, move->v[0] * g->w);
        t.translate[1] = draw_pixels(&r, move->v[1] * g->h);
    }
    if (scale->n)
        t.scale = rng_between(&r, scale->v[0], scale->v[1]);
    for (int i = 0; 2 * i < shear->n; i++)
        t.shear[i] = rng_between(&r, shear->v[2 * i], shear->v[2 * i + 1]);
    drawing_note_number(g, "angle", t.degrees);
    drawing_note_numbers(g, "translate", t.translate, 2);
    drawing_note_number(g, "scale", t.scale);
    drawing_note_numbers(g, "shear", t.shear, 2);
    ops_warp_affine(g, ops_warp_of(o), &t);
    return STK_OK;
}

/* ------------------------------------------------------------------ RandomPerspective */

enum { PERSPECTIVE_DISTORTION };

static int draw_perspective(struct drawing *g, const struct op *o)
{
    const struct ops_warp how = ops_warp_of(o);
    const double distortion = o->arg[PERSPECTIVE_DISTORTION].v[0];
    const int32_t across = (int32_t)(distortion * (g->w / 2)) + 1, down = (int32_t)(distortion * (g->h / 2)) + 1;
    struct rng r = drawing_rng(g, o);
    if (!drawing_chance(g, o, &r))
        return STK_OK;
    int32_t to[4][2];
    for (int i = 0; i < 4; i++) {
        const int32_t x = (int32_t)rng_below(&r, (uint64_t)across), y = (int32_t)rng_below(&r, (uint64_t)down);
        to[i][0] = i == 1 || i == 2 ? g->w - across + x : x;
        to[i][1] = i >= 2 ? g->h - down + y : y;
    }
    struct warp w;
    if (!warp_perspective(&w, g->w, g->h, how.filter, (const int32_t(*)[2])to))
        return drawing_refuse(g, o, "whose corners do not define a perspective; it needs at least 2 x 2");
    drawing_note_numbers(g, "coefficients", w.a, 8);
    add(g, &w, &how);
    return STK_OK;
}

const struct spec ops_warp[] = {
    {"RandomRotation",
     OP_RANDOM,
     {{"degrees", &arg_degrees, NULL},
      {"interpolation", &arg_warp_filter, "nearest"},
      {"expand", &arg_bool, "False"},
      {"center", &arg_center, "None"},
      {"fill", &arg_fill, "0"},
      {"mask_fill", &arg_mask_fill, "None"}},
     check_rotation,
     draw_rotation},
    {"RandomAffine",
     OP_RANDOM,
     {{"degrees", &arg_degrees, NULL},
      {"translate", &arg_translate, "None"},
      {"scale", &arg_factors, "None"},
      {"shear", &arg_shear, "None"},
      {"interpolation", &arg_warp_filter, "nearest"},
      {"fill", &arg_fill, "0"},
      {"center", &arg_center, "None"},
      {"mask_fill", &arg_mask_fill, "None"}},
     check_fill,
     draw_affine},
    {"RandomPerspective",
     OP_BY_P,
     {{"distortion_scale", &arg_distortion, "0.5"},
      {"p", &arg_p, "0.5"},
      {"interpolation", &arg_warp_filter, "bilinear"},
      {"fill", &arg_fill, "0"},
      {"mask_fill", &arg_mask_fill, "None"}},
     check_fill,
     draw_perspective},
    {0},
};
