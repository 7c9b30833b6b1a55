/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_args.c -- the table of ops: their names, their arguments, and a setter for each argument. A setter accepts a
 * value or reports what it expected.
 */
#include "transform/ops_args.h"

#include <stdio.h>
#include <string.h>

const char *const op_filters[FILTER_COUNT + 1] = {"nearest", "box",     "bilinear",     "hamming",
                                                  "bicubic", "lanczos", "nearest_exact"};
const char *const op_pad_modes[PAD_MODES] = {"constant", "edge", "reflect", "symmetric"};

/* "RandomCrop: size: read X, expected a number" */
static int bad(struct reader *r, const struct value *v, const char *expected)
{
    return text_error(&r->text, v->column, "%s: %s: found %s, expected %s", r->spec->name, r->param->name, v->source,
                      expected);
}

static bool is_none(const struct value *v)
{
    return v->kind == VALUE_WORD && strcmp(v->word, "none") == 0;
}

static bool all_within(const struct value *v, double low, double high)
{
    for (int i = 0; i < v->n; i++)
        if (!(v->number[i] >= low && v->number[i] <= high))
            return false;
    return v->kind != VALUE_WORD;
}

static bool all_whole(const struct value *v)
{
    for (int i = 0; i < v->n; i++)
        if (!v->whole[i])
            return false;
    return v->kind != VALUE_WORD;
}

static bool is_one(const struct value *v)
{
    return v->kind != VALUE_WORD && v->n == 1;
}

static int set_sides(struct reader *r, struct op *o, const struct value *v)
{
    if (!all_whole(v) || !all_within(v, 1, OPS_SIDE) || v->n < 1 || v->n > 2)
        return bad(r, v, "a whole number from 1 to 65536, or two: (height, width)");
    o->h = (int32_t)v->number[0];
    o->w = (int32_t)v->number[v->n - 1];
    return STK_OK;
}

static int set_resize(struct reader *r, struct op *o, const struct value *v)
{
    const int rc = set_sides(r, o, v);
    if (rc == STK_OK && v->n == 1)
        o->w = 0;
    return rc;
}

static int set_max_size(struct reader *r, struct op *o, const struct value *v)
{
    o->max_size = 0;
    if (is_none(v))
        return STK_OK;
    if (!is_one(v) || !all_whole(v) || !all_within(v, 1, OPS_SIDE))
        return bad(r, v, "a whole number from 1 to 65536, or None");
    o->max_size = (int32_t)v->number[0];
    return STK_OK;
}

/* The index of the name; -1: none matches, and the error is set. */
static int choose(struct reader *r, const struct value *v, const char *const *names, int n, const char *expected)
{
    for (int i = 0; i < n; i++)
        if (v->kind == VALUE_WORD && strcmp(v->word, names[i]) == 0)
            return i;
    const char *near = v->kind == VALUE_WORD ? text_nearest(v->word, names, n) : NULL;
    char words[160];
    if (near)
        snprintf(words, sizeof words, "%s; did you mean %s?", expected, near);
    bad(r, v, near ? words : expected);
    return -1;
}

static int set_filter(struct reader *r, struct op *o, const struct value *v)
{
    /* By Pillow's numbers. */
    static const enum filter by_number[] = {FILTER_NEAREST, FILTER_LANCZOS, FILTER_BILINEAR,
                                            FILTER_BICUBIC, FILTER_BOX,     FILTER_HAMMING};
    if (is_one(v) && all_whole(v) && all_within(v, 0, 5)) {
        o->filter = by_number[(int)v->number[0]];
        return STK_OK;
    }
    const int i = choose(r, v, op_filters, FILTER_COUNT + 1,
                         "nearest, nearest_exact, box, bilinear, hamming, bicubic or lanczos");
    if (i < 0)
        return STK_EUSAGE;
    o->filter = i < FILTER_COUNT ? (enum filter)i : FILTER_NEAREST;
    return STK_OK;
}

static int read_bool(struct reader *r, const struct value *v, bool *out)
{
    static const char *const names[] = {"false", "true"};
    const int i = choose(r, v, names, 2, "True or False");
    *out = i == 1;
    return i < 0 ? STK_EUSAGE : STK_OK;
}

static int set_antialias(struct reader *r, struct op *o, const struct value *v)
{
    o->antialias = true; /* None: as for a PIL image */
    return is_none(v) ? STK_OK : read_bool(r, v, &o->antialias);
}

static int set_pad_if_needed(struct reader *r, struct op *o, const struct value *v)
{
    return read_bool(r, v, &o->pad_if_needed);
}

static int set_scaled(struct reader *r, struct op *o, const struct value *v)
{
    return read_bool(r, v, &o->scaled);
}

/* Accepted and ignored: memory is always reused as suits us. */
static int set_inplace(struct reader *r, struct op *o, const struct value *v)
{
    bool ignored;
    (void)o;
    return read_bool(r, v, &ignored);
}

static int set_padding(struct reader *r, struct op *o, const struct value *v)
{
    if (is_none(v) && o->kind == OP_RANDOM_CROP)
        return STK_OK;
    if (!all_whole(v) || !all_within(v, 0, OPS_SIDE) || (v->n != 1 && v->n != 2 && v->n != 4))
        return bad(r, v, "whole numbers from 0 to 65536: one, (across, down) or (left, top, right, bottom)");
    o->pad.left = (int32_t)v->number[0];
    o->pad.top = (int32_t)v->number[v->n > 1];
    o->pad.right = (int32_t)v->number[v->n == 4 ? 2 : 0];
    o->pad.bottom = (int32_t)v->number[v->n - 1];
    return STK_OK;
}

static int set_fill(struct reader *r, struct op *o, const struct value *v)
{
    if (!all_within(v, 0, 255) || (v->n != 1 && v->n != 3))
        return bad(r, v, "a number from 0 to 255, or three");
    o->n_fill = v->n;
    for (int i = 0; i < 3; i++)
        o->fill[i] = (uint8_t)v->number[v->n == 3 ? i : 0];
    return STK_OK;
}

static int set_pad_mode(struct reader *r, struct op *o, const struct value *v)
{
    const int i = choose(r, v, op_pad_modes, PAD_MODES, "constant, edge, reflect or symmetric");
    if (i < 0)
        return STK_EUSAGE;
    o->pad_mode = (enum pad_mode)i;
    return STK_OK;
}

static int set_range(struct reader *r, const struct value *v, double low, double high, double out[2],
                     const char *expected)
{
    if (v->kind != VALUE_LIST || v->n != 2 || !all_within(v, low, high) || v->number[0] > v->number[1])
        return bad(r, v, expected);
    out[0] = v->number[0];
    out[1] = v->number[1];
    return STK_OK;
}

static int set_scale(struct reader *r, struct op *o, const struct value *v)
{
    return set_range(r, v, 0.0, 1000.0, o->scale, "(least, most) share of the area, such as (0.08, 1)");
}

static int set_ratio(struct reader *r, struct op *o, const struct value *v)
{
    return set_range(r, v, 0.001, 1000.0, o->ratio, "(least, most) ratio of width to height, such as (3/4, 4/3)");
}

static int set_p(struct reader *r, struct op *o, const struct value *v)
{
    if (!is_one(v) || !all_within(v, 0, 1))
        return bad(r, v, "a probability from 0 to 1");
    o->p = v->number[0];
    return STK_OK;
}

static int set_channels(struct reader *r, struct op *o, const struct value *v)
{
    if (!is_one(v) || !all_whole(v) || (v->number[0] != 1 && v->number[0] != 3))
        return bad(r, v, "1 or 3");
    o->channels = (int)v->number[0];
    return STK_OK;
}

/* The statistics of ImageNet, and those that CLIP was trained with. */
static const struct {
    const char *name;
    int n;
    double mean[3], std[3];
} presets[] = {
    {"imagenet", 3, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
    {"clip", 3, {0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}},
    {"half", 1, {0.5}, {0.5}},
};

static void use_preset(struct op *o, int i)
{
    o->n_mean = o->n_std = presets[i].n;
    memcpy(o->mean, presets[i].mean, sizeof o->mean);
    memcpy(o->std, presets[i].std, sizeof o->std);
}

static int set_mean(struct reader *r, struct op *o, const struct value *v)
{
    static const char *const names[] = {"imagenet", "clip", "half"};
    if (v->kind == VALUE_WORD) {
        const int i = choose(r, v, names, 3, "imagenet, clip, half, or one mean per channel");
        if (i >= 0)
            use_preset(o, i);
        return i < 0 ? STK_EUSAGE : STK_OK;
    }
    if (!all_within(v, -1e6, 1e6) || (v->n != 1 && v->n != 3))
        return bad(r, v, "one mean per channel, or imagenet, clip or half");
    o->n_mean = v->n;
    o->n_std = 0;
    memcpy(o->mean, v->number, sizeof o->mean);
    return STK_OK;
}

static int set_std(struct reader *r, struct op *o, const struct value *v)
{
    if (!all_within(v, 1e-6, 1e6) || (v->n != 1 && v->n != 3))
        return bad(r, v, "one standard deviation per channel, above 0");
    o->n_std = v->n;
    memcpy(o->std, v->number, sizeof o->std);
    return STK_OK;
}

static int set_dtype(struct reader *r, struct op *o, const struct value *v)
{
    static const char *const names[] = {"float32", "float16", "bfloat16", "uint8", "float", "half"};
    static const stk_dtype types[] = {STK_FLOAT32, STK_FLOAT16, STK_BFLOAT16, STK_UINT8, STK_FLOAT32, STK_FLOAT16};
    const int i = choose(r, v, names, 6, "float32, float16, bfloat16 or uint8");
    if (i < 0)
        return STK_EUSAGE;
    o->dtype = types[i];
    return STK_OK;
}

const struct spec op_specs[OP_KINDS] = {
    [OP_RESIZE] = {"Resize",
                   1,
                   {{"size", set_resize},
                    {"interpolation", set_filter},
                    {"max_size", set_max_size},
                    {"antialias", set_antialias}}},
    [OP_CENTER_CROP] = {"CenterCrop", 1, {{"size", set_sides}}},
    [OP_RANDOM_CROP] = {"RandomCrop",
                        1,
                        {{"size", set_sides},
                         {"padding", set_padding},
                         {"pad_if_needed", set_pad_if_needed},
                         {"fill", set_fill},
                         {"padding_mode", set_pad_mode}}},
    [OP_RANDOM_RESIZED_CROP] = {"RandomResizedCrop",
                                1,
                                {{"size", set_sides},
                                 {"scale", set_scale},
                                 {"ratio", set_ratio},
                                 {"interpolation", set_filter},
                                 {"antialias", set_antialias}}},
    [OP_PAD] = {"Pad", 1, {{"padding", set_padding}, {"fill", set_fill}, {"padding_mode", set_pad_mode}}},
    [OP_FLIP_X] = {"RandomHorizontalFlip", 0, {{"p", set_p}}},
    [OP_FLIP_Y] = {"RandomVerticalFlip", 0, {{"p", set_p}}},
    [OP_GREY] = {"Grayscale", 0, {{"num_output_channels", set_channels}}},
    [OP_NORMALIZE] = {"Normalize", 0, {{"mean", set_mean}, {"std", set_std}, {"inplace", set_inplace}}},
    [OP_TO_TENSOR] = {"ToTensor", 0, {{0}}},
    [OP_TO_IMAGE] = {"ToImage", 0, {{0}}},
    [OP_PIL_TO_TENSOR] = {"PILToTensor", 0, {{0}}},
    [OP_TO_DTYPE] = {"ToDtype", 1, {{"dtype", set_dtype}, {"scale", set_scaled}}},
};

void op_defaults(struct op *o)
{
    o->filter = FILTER_BILINEAR;
    o->antialias = true;
    o->n_fill = 1;
    o->scale[0] = 0.08;
    o->scale[1] = 1.0;
    o->ratio[0] = 3.0 / 4.0;
    o->ratio[1] = 4.0 / 3.0;
    o->p = 0.5;
    o->channels = 1;
    use_preset(o, 0);
}
