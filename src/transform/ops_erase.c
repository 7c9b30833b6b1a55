/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_erase.c -- RandomErasing, which works on the finished row.
 */
#include <math.h>

#include "transform/drawing.h"
#include "transform/noise.h"

enum { P, SCALE, RATIO, VALUE, INPLACE, COUNT };
enum { PER_PIXEL, PER_CHANNEL }; /* words for VALUE: normal numbers */

static const struct arg_type arg_scale = {"(min, max) share of the area, from 0 to 1", .high = 1,
                                          .counts = ARG_COUNT(2), .ascending = true};
static const struct arg_type arg_ratio = {"(min, max) ratio of height to width, such as (0.3, 3.3)", .low = 0.001,
                                          .high = 1000, .counts = ARG_COUNT(2), .ascending = true};
static const char *const values[] = {"random", "color"};
static const struct arg_type arg_value = {"a number, one per channel, random or color", .low = -1e6,     .high = 1e6,
                                          .counts = ARG_COUNT(1) | ARG_COUNT(3),        .words = values, .n_words = 2};

/* One number, or from the first to the second. */
static int set_count(struct reader *r, struct op *o, int i, const struct value *v)
{
    const int rc = arg_store(r, o, i, v);
    if (rc == STK_OK)
        o->arg[i].v[1] = o->arg[i].v[o->arg[i].n - 1];
    o->arg[i].n = 2;
    return rc;
}

static const struct arg_type arg_count = {"a whole number from 1 to 8, or (min, max)",
                                          .low = 1,
                                          .high = 8,
                                          .counts = ARG_COUNT(1) | ARG_COUNT(2),
                                          .whole = true,
                                          .ascending = true,
                                          .set = set_count};

static int check_erasing(struct flow *f, const struct op *o)
{
    const struct arg *value = &o->arg[VALUE];
    if (value->n > 1 && value->n != f->channels)
        return text_error(f->text, o->column, "RandomErasing: value has %d numbers, but the image has %d channel here",
                          value->n, f->channels);
    if (f->dtype == STK_UINT8 && value->n < 0)
        return text_error(f->text, o->column,
                          "RandomErasing: value=%s gives floats, but the dtype is uint8: use a number, or ask for "
                          "float32, float16 or bfloat16",
                          values[(int)value->v[0]]);
    for (int i = 0; i < value->n && f->dtype == STK_UINT8; i++)
        if (value->v[i] < 0 || value->v[i] > 255)
            return text_error(f->text, o->column, "RandomErasing: value is not from 0 to 255, but the dtype is uint8");
    f->ops->erases = o;
    return STK_OK;
}

/* A random share of the area, with a random ratio of height to width. False: none of ten fits. */
static bool random_rect(const struct drawing *g, const struct op *o, struct rng *r, int count, struct rect *out)
{
    const double *scale = o->arg[SCALE].v, *ratio = o->arg[RATIO].v;
    const double area = (double)g->w * g->h / count, low = log(ratio[0]), high = log(ratio[1]);
    for (int i = 0; i < 10; i++) {
        const double target = area * rng_between(r, scale[0], scale[1]), shape = exp(rng_between(r, low, high));
        const double h = sqrt(target * shape), w = sqrt(target / shape);
        if (h > g->h || w > g->w)
            continue;
        const int32_t high_px = drawing_round(h), wide_px = drawing_round(w);
        if (high_px >= g->h || wide_px >= g->w)
            continue;
        const int32_t y = (int32_t)rng_below(r, (uint64_t)(g->h - high_px) + 1);
        const int32_t x = (int32_t)rng_below(r, (uint64_t)(g->w - wide_px) + 1);
        *out = (struct rect){x, y, wide_px, high_px};
        return true;
    }
    return false;
}

static void set_value(struct erase *e, const struct arg *value, struct rng *r)
{
    const bool word = value->n < 0;
    e->noise = word && value->v[0] == PER_PIXEL;
    e->seed = word ? rng_u64(r) : 0;
    if (word)
        noise_normal(e->value, e->seed, 0, 3);
    for (int i = 0; i < 3 && !word; i++)
        e->value[i] = (float)value->v[value->n == 3 ? i : 0];
}

static void note(struct drawing *g, const struct erase *e, bool color)
{
    const double v[3] = {e->value[0], e->value[1], e->value[2]};
    drawing_note_object(g);
    drawing_note_int(g, "i", e->at.y);
    drawing_note_int(g, "j", e->at.x);
    drawing_note_int(g, "h", e->at.h);
    drawing_note_int(g, "w", e->at.w);
    if (e->noise)
        drawing_note_seed(g, "seed", e->seed);
    else if (color)
        drawing_note_numbers(g, "v", v, g->channels);
    drawing_note_object_end(g);
}

static int draw_erasing(struct drawing *g, const struct op *o)
{
    const struct arg *value = &o->arg[VALUE];
    struct rng r = drawing_rng(g, o);
    const bool yes = drawing_chance(g, o, &r);
    const int least = (int)o->arg[COUNT].v[0], most = (int)o->arg[COUNT].v[1];
    const int count = least + (int)rng_below(&r, (uint64_t)(most - least) + 1);
    drawing_note_open(g, "regions");
    for (int i = 0; yes && i < count; i++) {
        struct erase e = {.raw = g->ops->normalize && o > g->ops->normalize};
        if (!random_rect(g, o, &r, count, &e.at))
            continue;
        set_value(&e, value, &r);
        note(g, &e, value->n < 0);
        g->full |= g->job->n_erases == JOB_ERASES;
        if (!g->full)
            g->job->erases[g->job->n_erases++] = e;
    }
    drawing_note_close(g);
    return STK_OK;
}

const struct spec ops_erase[] = {
    {"RandomErasing",
     OP_RANDOM | OP_MOVES | OP_LATE,
     {{"p", &arg_p, "0.5"},
      {"scale", &arg_scale, "(0.02, 0.33)"},
      {"ratio", &arg_ratio, "(0.3, 3.3)"},
      {"value", &arg_value, "0"},
      {"inplace", &arg_ignored, "False"},
      {"count", &arg_count, "1"}},
     check_erasing,
     draw_erasing},
    {0},
};
