/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_crop.c -- ops that resize, crop, pad and mirror.
 */
#include <math.h>

#include "transform/drawing.h"

static const char *const pad_modes[PAD_MODES] = {"constant", "edge", "reflect", "symmetric"};
const struct arg_type arg_pad_mode = {"constant, edge, reflect or symmetric", .words = pad_modes, .n_words = PAD_MODES};

/* ------------------------------------------------------------------ Resize */

enum { RESIZE_SIZE, RESIZE_FILTER, RESIZE_MAX };

static const struct arg_type arg_resize = {"a whole number from 1 to 65536, or two: (height, width)", .low = 1,
                                           .high = OPS_SIDE, .counts = ARG_COUNT(1) | ARG_COUNT(2), .whole = true};
static const struct arg_type arg_max_size = {"a whole number from 1 to 65536, or None",
                                             .low = 1,
                                             .high = OPS_SIDE,
                                             .counts = ARG_COUNT(1),
                                             .whole = true,
                                             .none = true};

/* Size of the result. Returns false if a side becomes 0 or more than OPS_FAR. */
static bool resized(const struct op *o, int32_t w, int32_t h, int32_t *out_w, int32_t *out_h)
{
    const struct arg *size = &o->arg[RESIZE_SIZE], *max = &o->arg[RESIZE_MAX];
    if (size->n == 2) {
        *out_h = (int32_t)size->v[0];
        *out_w = (int32_t)size->v[1];
        return true;
    }
    const bool tall = w <= h;
    const double few = tall ? w : h, many = tall ? h : w;
    double low = size->v[0], high = (double)(int64_t)(low * many / few);
    if (max->n && high > max->v[0]) {
        low = (double)(int64_t)(max->v[0] * low / high);
        high = max->v[0];
    }
    if (low < 1 || high > OPS_FAR)
        return false;
    *out_w = (int32_t)(tall ? low : high);
    *out_h = (int32_t)(tall ? high : low);
    return true;
}

static int check_resize(struct flow *f, const struct op *o)
{
    const struct arg *size = &o->arg[RESIZE_SIZE], *max = &o->arg[RESIZE_MAX];
    if (max->n && size->n == 2)
        return text_error(f->text, o->column, "Resize: max_size is allowed only if size is one number");
    if (max->n && max->v[0] <= size->v[0])
        return text_error(f->text, o->column, "Resize: max_size %d must be larger than size %d", (int)max->v[0],
                          (int)size->v[0]);
    if (size->n == 1 && f->w == 0)
        return STK_OK;
    if (!resized(o, f->w, f->h, &f->w, &f->h) || f->w > OPS_SIDE || f->h > OPS_SIDE)
        return text_error(f->text, o->column, "Resize: the longer side becomes more than %d", OPS_SIDE);
    return STK_OK;
}

static int draw_resize(struct drawing *g, const struct op *o)
{
    int32_t w, h;
    if (!resized(o, g->w, g->h, &w, &h))
        return drawing_refuse(g, o, "which is too long and narrow to resize");
    drawing_note_size(g, w, h);
    drawing_resize(g, o, w, h);
    return STK_OK;
}

/* ------------------------------------------------------------------ crops and padding */

static int check_crop(struct flow *f, const struct op *o)
{
    const struct arg *size = op_arg(o, &arg_size);
    f->h = (int32_t)size->v[0];
    f->w = (int32_t)size->v[1];
    return flow_check_fill(f, o);
}

/* Crops half of the excess on either side, or pads half of what is missing. */
static int32_t center(int32_t have, int32_t want)
{
    return want > have ? -((want - have) / 2) : drawing_round((have - want) / 2.0);
}

static int draw_center_crop(struct drawing *g, const struct op *o)
{
    const int32_t h = (int32_t)o->arg[0].v[0], w = (int32_t)o->arg[0].v[1];
    const struct rect c = {center(g->w, w), center(g->h, h), w, h};
    drawing_note_crop(g, c);
    drawing_crop(g, o, c);
    return STK_OK;
}

enum { FIVE_SIZE, FIVE_VERTICAL, FIVE = 5 };

static int check_crops(struct flow *f, const struct op *o, int crops)
{
    if (f->ops->crops)
        return text_error(f->text, o->column, "%s: the image is already several crops; use FiveCrop or TenCrop once",
                          op_name(o));
    if (f->inside)
        return text_error(f->text, o->column, "%s cannot be inside %s", op_name(o), op_name(f->inside));
    f->ops->crops = crops;
    return check_crop(f, o);
}

static int check_five_crop(struct flow *f, const struct op *o)
{
    return check_crops(f, o, FIVE);
}

static int check_ten_crop(struct flow *f, const struct op *o)
{
    return check_crops(f, o, 2 * FIVE);
}

/* The corners, line by line, then the middle. */
static int draw_five_crop(struct drawing *g, const struct op *o)
{
    const int32_t h = (int32_t)o->arg[FIVE_SIZE].v[0], w = (int32_t)o->arg[FIVE_SIZE].v[1];
    const int which = g->draw->crop % FIVE;
    if (w > g->w || h > g->h)
        return drawing_refuse(g, o, "fewer than the crop");
    struct rect c = {which % 2 ? g->w - w : 0, which / 2 ? g->h - h : 0, w, h};
    if (which == FIVE - 1) {
        c.x = center(g->w, w);
        c.y = center(g->h, h);
    }
    drawing_note_crop(g, c);
    drawing_crop(g, o, c);
    return STK_OK;
}

/* The same again of the mirrored image. */
static int draw_ten_crop(struct drawing *g, const struct op *o)
{
    const bool flip = g->draw->crop >= FIVE;
    drawing_note_bool(g, "flip", flip);
    if (flip)
        drawing_step(g, o->arg[FIVE_VERTICAL].v[0] != 0 ? STEP_FLIP_Y : STEP_FLIP_X, g->w, g->h, g->channels);
    return draw_five_crop(g, o);
}

/* As left, top, right, bottom. */
static int set_padding(struct reader *r, struct op *o, int i, const struct value *v)
{
    const int rc = arg_store(r, o, i, v);
    struct arg *a = &o->arg[i];
    const double all[4] = {a->v[0], a->v[a->n > 1], a->v[a->n == 4 ? 2 : 0], a->n ? a->v[a->n - 1] : 0};
    for (int k = 0; k < 4; k++)
        a->v[k] = a->n ? all[k] : 0;
    a->n = 4;
    return rc;
}

static const struct arg_type arg_padding = {
    "whole numbers from 0 to 65536: one, (horizontal, vertical) or (left, top, right, bottom)", .high = OPS_SIDE,
    .counts = ARG_COUNT(1) | ARG_COUNT(2) | ARG_COUNT(4), .whole = true, .set = set_padding};
static const struct arg_type arg_padding_or_none = {
    "whole numbers from 0 to 65536: one, (horizontal, vertical) or (left, top, right, bottom); or None",
    .high = OPS_SIDE,
    .counts = ARG_COUNT(1) | ARG_COUNT(2) | ARG_COUNT(4),
    .whole = true,
    .none = true,
    .set = set_padding};

struct border {
    int32_t left, top, right, bottom;
};

static struct border border_of(const struct arg *a)
{
    return (struct border){(int32_t)a->v[0], (int32_t)a->v[1], (int32_t)a->v[2], (int32_t)a->v[3]};
}

static int check_pad(struct flow *f, const struct op *o)
{
    const struct border b = border_of(&o->arg[0]);
    if (f->w == 0)
        return flow_check_fill(f, o);
    f->w += b.left + b.right;
    f->h += b.top + b.bottom;
    if (f->w > OPS_SIDE || f->h > OPS_SIDE)
        return text_error(f->text, o->column, "Pad: a side becomes more than %d", OPS_SIDE);
    return flow_check_fill(f, o);
}

static int check_border(const struct drawing *g, const struct op *o, struct border b)
{
    const int32_t across = b.left > b.right ? b.left : b.right, down = b.top > b.bottom ? b.top : b.bottom;
    if (op_arg(o, &arg_pad_mode)->v[0] == PAD_REFLECT && (across >= g->w || down >= g->h))
        return drawing_refuse(g, o, "but padding_mode=reflect needs more pixels than it pads; use edge or symmetric");
    if ((int64_t)g->w + b.left + b.right > OPS_FAR || (int64_t)g->h + b.top + b.bottom > OPS_FAR)
        return drawing_refuse(g, o, "which is too large to pad");
    return STK_OK;
}

static void note_border(struct drawing *g, struct border b)
{
    drawing_note_ints(g, "padding", (const int32_t[]){b.left, b.top, b.right, b.bottom}, 4);
}

static int draw_pad(struct drawing *g, const struct op *o)
{
    const struct border b = border_of(&o->arg[0]);
    const int rc = check_border(g, o, b);
    note_border(g, b);
    if (rc == STK_OK)
        drawing_crop(g, o, (struct rect){-b.left, -b.top, g->w + b.left + b.right, g->h + b.top + b.bottom});
    return rc;
}

/* Pads at the right and at the bottom, as in torchvision's reference scripts for segmentation. */
static int check_pad_if_smaller(struct flow *f, const struct op *o)
{
    const int32_t h = (int32_t)o->arg[0].v[0], w = (int32_t)o->arg[0].v[1];
    if (f->w > 0) {
        f->w = f->w < w ? w : f->w;
        f->h = f->h < h ? h : f->h;
    }
    return flow_check_fill(f, o);
}

static int draw_pad_if_smaller(struct drawing *g, const struct op *o)
{
    const int32_t high = (int32_t)o->arg[0].v[0], wide = (int32_t)o->arg[0].v[1];
    const int32_t right = wide > g->w ? wide - g->w : 0, bottom = high > g->h ? high - g->h : 0;
    note_border(g, (struct border){.right = right, .bottom = bottom});
    if (right > 0 || bottom > 0)
        drawing_crop(g, o, (struct rect){0, 0, g->w + right, g->h + bottom});
    return STK_OK;
}

enum { CROP_SIZE, CROP_PADDING, CROP_IF_NEEDED };

static int draw_random_crop(struct drawing *g, const struct op *o)
{
    const int32_t high = (int32_t)o->arg[CROP_SIZE].v[0], wide = (int32_t)o->arg[CROP_SIZE].v[1];
    struct border b = border_of(&o->arg[CROP_PADDING]);
    const int32_t lack_w = wide - (g->w + b.left + b.right), lack_h = high - (g->h + b.top + b.bottom);
    if (o->arg[CROP_IF_NEEDED].v[0] == 0 && (lack_w > 0 || lack_h > 0))
        return drawing_refuse(g, o, "fewer than the crop; use pad_if_needed=True to pad it");
    if (lack_w > 0) {
        b.left += lack_w;
        b.right += lack_w;
    }
    if (lack_h > 0) {
        b.top += lack_h;
        b.bottom += lack_h;
    }
    const int rc = check_border(g, o, b);
    if (rc)
        return rc;
    struct rng r = drawing_rng(g, o);
    const int32_t y = (int32_t)rng_below(&r, (uint64_t)(g->h + b.top + b.bottom - high) + 1);
    const int32_t x = (int32_t)rng_below(&r, (uint64_t)(g->w + b.left + b.right - wide) + 1);
    note_border(g, b);
    drawing_note_crop(g, (struct rect){x, y, wide, high});
    drawing_crop(g, o, (struct rect){x - b.left, y - b.top, wide, high});
    return STK_OK;
}

/* ------------------------------------------------------------------ RandomResizedCrop */

enum { RRC_SIZE, RRC_SCALE, RRC_RATIO };

static const struct arg_type arg_scale = {"(min, max) share of the area, such as (0.08, 1)", .high = 1000,
                                          .counts = ARG_COUNT(2), .ascending = true};
static const struct arg_type arg_ratio = {"(min, max) ratio of width to height, such as (3/4, 4/3)", .low = 0.001,
                                          .high = 1000, .counts = ARG_COUNT(2), .ascending = true};

/* The central crop whose aspect ratio is nearest to the wanted ones. */
static struct rect middle(const struct drawing *g, const double ratio[2])
{
    const double have = (double)g->w / g->h;
    int32_t w = g->w, h = g->h;
    if (have < ratio[0])
        h = drawing_round(w / ratio[0]);
    else if (have > ratio[1])
        w = drawing_round(h * ratio[1]);
    w = w < 1 ? 1 : w;
    h = h < 1 ? 1 : h;
    return (struct rect){(g->w - w) / 2, (g->h - h) / 2, w, h};
}

/* A random share of the area with a random aspect ratio. If it does not fit, draws again, at most ten times. */
static struct rect random_rect(const struct drawing *g, const struct op *o)
{
    const double *scale = o->arg[RRC_SCALE].v, *ratio = o->arg[RRC_RATIO].v;
    const double area = (double)g->w * g->h, low = log(ratio[0]), high = log(ratio[1]);
    struct rng r = drawing_rng(g, o);
    for (int i = 0; i < 10; i++) {
        const double target = area * rng_between(&r, scale[0], scale[1]);
        const double shape = exp(rng_between(&r, low, high));
        const double w = sqrt(target * shape), h = sqrt(target / shape);
        if (w > g->w + 1.0 || h > g->h + 1.0)
            continue;
        const struct rect c = {0, 0, drawing_round(w), drawing_round(h)};
        if (c.w < 1 || c.w > g->w || c.h < 1 || c.h > g->h)
            continue;
        const int32_t y = (int32_t)rng_below(&r, (uint64_t)(g->h - c.h) + 1);
        const int32_t x = (int32_t)rng_below(&r, (uint64_t)(g->w - c.w) + 1);
        return (struct rect){x, y, c.w, c.h};
    }
    return middle(g, ratio);
}

static int draw_random_resized_crop(struct drawing *g, const struct op *o)
{
    const int32_t h = (int32_t)o->arg[RRC_SIZE].v[0], w = (int32_t)o->arg[RRC_SIZE].v[1];
    const struct rect c = random_rect(g, o);
    drawing_note_crop(g, c);
    drawing_note_size(g, w, h);
    drawing_crop(g, o, c);
    drawing_resize(g, o, w, h);
    return STK_OK;
}

/* ------------------------------------------------------------------ flips */

static int flip(struct drawing *g, const struct op *o, enum step_kind kind)
{
    struct rng r = drawing_rng(g, o);
    const bool yes = rng_chance(&r, o->arg[0].v[0]);
    drawing_note_bool(g, "flip", yes);
    if (yes)
        drawing_step(g, kind, g->w, g->h, g->channels);
    return STK_OK;
}

static int draw_flip_x(struct drawing *g, const struct op *o)
{
    return flip(g, o, STEP_FLIP_X);
}

static int draw_flip_y(struct drawing *g, const struct op *o)
{
    return flip(g, o, STEP_FLIP_Y);
}

const struct spec ops_crop[] = {
    {"Resize",
     0,
     {{"size", &arg_resize, NULL},
      {"interpolation", &arg_filter, "bilinear"},
      {"max_size", &arg_max_size, "None"},
      {"antialias", &arg_antialias, "True"}},
     check_resize,
     draw_resize},
    {"CenterCrop", OP_MOVES, {{"size", &arg_size, NULL}}, check_crop, draw_center_crop},
    {"FiveCrop", OP_MOVES | OP_ALONE, {{"size", &arg_size, NULL}}, check_five_crop, draw_five_crop},
    {"TenCrop",
     OP_MOVES | OP_ALONE,
     {{"size", &arg_size, NULL}, {"vertical_flip", &arg_bool, "False"}},
     check_ten_crop,
     draw_ten_crop},
    {"RandomCrop",
     OP_MOVES | OP_RANDOM,
     {{"size", &arg_size, NULL},
      {"padding", &arg_padding_or_none, "None"},
      {"pad_if_needed", &arg_bool, "False"},
      {"fill", &arg_fill, "0"},
      {"padding_mode", &arg_pad_mode, "constant"},
      {"mask_fill", &arg_mask_fill, "None"}},
     check_crop,
     draw_random_crop},
    {"RandomResizedCrop",
     OP_RANDOM,
     {{"size", &arg_size, NULL},
      {"scale", &arg_scale, "(0.08, 1)"},
      {"ratio", &arg_ratio, "(3/4, 4/3)"},
      {"interpolation", &arg_filter, "bilinear"},
      {"antialias", &arg_antialias, "True"}},
     check_crop,
     draw_random_resized_crop},
    {"Pad",
     OP_MOVES,
     {{"padding", &arg_padding, NULL},
      {"fill", &arg_fill, "0"},
      {"padding_mode", &arg_pad_mode, "constant"},
      {"mask_fill", &arg_mask_fill, "None"}},
     check_pad,
     draw_pad},
    {"PadIfSmaller",
     OP_MOVES,
     {{"size", &arg_size, NULL}, {"fill", &arg_fill, "0"}, {"mask_fill", &arg_mask_fill, "None"}},
     check_pad_if_smaller,
     draw_pad_if_smaller},
    {"RandomHorizontalFlip", OP_MOVES | OP_BY_P, {{"p", &arg_p, "0.5"}}, NULL, draw_flip_x},
    {"RandomVerticalFlip", OP_MOVES | OP_BY_P, {{"p", &arg_p, "0.5"}}, NULL, draw_flip_y},
    {0},
};
