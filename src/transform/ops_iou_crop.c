/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_iou_crop.c -- RandomIoUCrop, whose crop depends on the boxes of the image.
 */
#include <math.h>

#include "base/error.h"
#include "transform/drawing.h"
#include "transform/follow.h"

enum { IOU_MIN_SCALE, IOU_MAX_SCALE, IOU_MIN_RATIO, IOU_MAX_RATIO, IOU_OPTIONS, IOU_TRIALS };

/* torchvision tries forever; this many options, each with its trials, are enough for any image that has a crop. */
enum { ROUNDS = 1000 };

static const struct arg_type arg_aspect = {"a number above 0", .low = 1e-3, .high = 1e3, .counts = ARG_COUNT(1)};
static const struct arg_type arg_overlaps = {"up to 15 overlaps of at least 0; 1 or more keeps the image unchanged",
                                             .high = 2, .counts = 0xfffe};
static const struct arg_type arg_trials = {"a whole number from 1 to 1000", .low = 1, .high = 1000,
                                           .counts = ARG_COUNT(1), .whole = true};

static int check_iou_crop(struct flow *f, const struct op *o)
{
    if (o->arg[IOU_MIN_SCALE].v[0] > o->arg[IOU_MAX_SCALE].v[0])
        return text_error(f->text, o->column, "RandomIoUCrop: min_scale is above max_scale");
    if (o->arg[IOU_MIN_RATIO].v[0] > o->arg[IOU_MAX_RATIO].v[0])
        return text_error(f->text, o->column, "RandomIoUCrop: min_aspect_ratio is above max_aspect_ratio");
    f->w = f->h = 0;
    return STK_OK;
}

/* A box as it is at this point, after the steps so far. */
static bool box_now(const struct drawing *g, int i, double box[4])
{
    for (int k = 0; k < 4; k++)
        box[k] = (double)g->draw->boxes->at[i][k];
    return follow_box(g->job, g->draw->boxes->whole, box);
}

static double overlap(const double box[4], struct rect c)
{
    const double w = fmin(box[2], c.x + c.w) - fmax(box[0], c.x), h = fmin(box[3], c.y + c.h) - fmax(box[1], c.y);
    const double both = fmax(w, 0.0) * fmax(h, 0.0);
    return both / ((box[2] - box[0]) * (box[3] - box[1]) + (double)c.w * c.h - both);
}

/* Whether the crop contains the middle of a box, and overlaps such a box enough. */
static bool suits(const struct drawing *g, struct rect c, double least)
{
    for (int i = 0; i < g->draw->boxes->n; i++) {
        double box[4];
        if (!box_now(g, i, box))
            continue;
        const double x = 0.5 * (box[0] + box[2]), y = 0.5 * (box[1] + box[3]);
        if (c.x < x && x < c.x + c.w && c.y < y && y < c.y + c.h && overlap(box, c) >= least)
            return true;
    }
    return false;
}

static bool try_crop(const struct drawing *g, const struct op *o, struct rng *r, struct rect *c)
{
    const double low = o->arg[IOU_MIN_SCALE].v[0], high = o->arg[IOU_MAX_SCALE].v[0];
    const int32_t w = (int32_t)(g->w * rng_between(r, low, high)), h = (int32_t)(g->h * rng_between(r, low, high));
    if (w < 1 || h < 1 || (double)w / h < o->arg[IOU_MIN_RATIO].v[0] || (double)w / h > o->arg[IOU_MAX_RATIO].v[0])
        return false;
    const int32_t x = (int32_t)((g->w - w) * rng_double(r)), y = (int32_t)((g->h - h) * rng_double(r));
    *c = (struct rect){x, y, w, h};
    return true;
}

static int draw_iou_crop(struct drawing *g, const struct op *o)
{
    const struct arg *options = &o->arg[IOU_OPTIONS];
    struct rng r = drawing_rng(g, o);
    if (!g->draw->boxes)
        return error_set(g->e, STK_EDATA, "transform", "RandomIoUCrop: the sample has no boxes, which this op needs");
    for (int round = 0; round < ROUNDS; round++) {
        const double least = options->v[rng_below(&r, (uint64_t)options->n)];
        if (least >= 1.0) {
            drawing_note_bool(g, "applied", false);
            return STK_OK;
        }
        for (int i = 0; i < (int)o->arg[IOU_TRIALS].v[0]; i++) {
            struct rect c;
            if (!try_crop(g, o, &r, &c) || !suits(g, c, least))
                continue;
            drawing_note_bool(g, "applied", true);
            drawing_note_crop(g, c);
            drawing_crop(g, o, c)->drops = true;
            return STK_OK;
        }
    }
    return drawing_refuse(g, o, "and no crop overlaps a box enough; add 1 to sampler_options to leave such images");
}

const struct spec ops_iou_crop[] = {
    {"RandomIoUCrop",
     OP_MOVES | OP_RANDOM | OP_BOXES,
     {{"min_scale", &arg_share, "0.3"},
      {"max_scale", &arg_share, "1"},
      {"min_aspect_ratio", &arg_aspect, "0.5"},
      {"max_aspect_ratio", &arg_aspect, "2"},
      {"sampler_options", &arg_overlaps, "(0, 0.1, 0.3, 0.5, 0.7, 0.9, 1)"},
      {"trials", &arg_trials, "40"}},
     check_iou_crop,
     draw_iou_crop},
    {0},
};
