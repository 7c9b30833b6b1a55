/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_type.c -- ops that only say which type and scale the result has. The plan reads them; they draw nothing.
 */
#include <string.h>

#include "transform/ops_spec.h"

/* ------------------------------------------------------------------ Normalize */

enum { MEAN, STD };

/* The statistics of ImageNet, and those that CLIP was trained with. */
static const char *const preset_names[] = {"imagenet", "clip", "half"};
static const struct {
    int n;
    double mean[3], std[3];
} presets[] = {
    {3, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
    {3, {0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}},
    {1, {0.5}, {0.5}},
};

static int set_mean(struct reader *r, struct op *o, int i, const struct value *v)
{
    struct arg *mean = &o->arg[i], *std = &o->arg[STD];
    std->n = 0;
    if (v->kind != VALUE_WORD)
        return arg_store(r, o, i, v);
    const int k = arg_word(r, v, preset_names, 3, "imagenet, clip, half, or one mean per channel");
    if (k < 0)
        return STK_EUSAGE;
    mean->n = std->n = presets[k].n;
    memcpy(mean->v, presets[k].mean, sizeof presets[k].mean);
    memcpy(std->v, presets[k].std, sizeof presets[k].std);
    return STK_OK;
}

static const struct arg_type arg_mean = {"one mean per channel, or imagenet, clip or half", .low = -1e6, .high = 1e6,
                                         .counts = ARG_COUNT(1) | ARG_COUNT(3), .set = set_mean};
static const struct arg_type arg_std = {"one standard deviation per channel, above 0", .low = 1e-6, .high = 1e6,
                                        .counts = ARG_COUNT(1) | ARG_COUNT(3)};

static int check_normalize(struct flow *f, const struct op *o)
{
    const int n_mean = o->arg[MEAN].n, n_std = o->arg[STD].n;
    if (f->dtype == STK_UINT8)
        return text_error(f->text, o->column,
                          "Normalize gives floats, but the dtype is uint8: leave it out, or ask for "
                          "float32, float16 or bfloat16");
    if (n_std == 0)
        return text_error(f->text, o->column, "Normalize: std is missing");
    if ((n_mean != 1 && n_mean != f->channels) || (n_std != 1 && n_std != f->channels))
        return text_error(f->text, o->column, "Normalize has values for %d channels, but the image has %d here",
                          n_mean != 1 ? n_mean : n_std, f->channels);
    f->ops->normalize = o;
    return STK_OK;
}

/* ------------------------------------------------------------------ ToTensor, ToDtype */

static int check_to_tensor(struct flow *f, const struct op *o)
{
    if (f->dtype == STK_UINT8)
        return text_error(f->text, o->column,
                          "ToTensor gives floats from 0 to 1, but the dtype is uint8: leave it out, or "
                          "ask for float32, float16 or bfloat16");
    if (!f->floats)
        f->floats = o;
    return STK_OK;
}

enum { DTYPE, SCALE };
static const char *const dtype_words[] = {"float32", "float16", "bfloat16", "uint8", "float", "half"};
static const stk_dtype dtypes[] = {STK_FLOAT32, STK_FLOAT16, STK_BFLOAT16, STK_UINT8};

/* "float" and "half" are torch's names for the first two. */
static int set_dtype(struct reader *r, struct op *o, int i, const struct value *v)
{
    const int rc = arg_store(r, o, i, v);
    if (rc == STK_OK && o->arg[i].v[0] >= 4)
        o->arg[i].v[0] -= 4;
    return rc;
}

static const struct arg_type arg_dtype = {"float32, float16, bfloat16 or uint8", .words = dtype_words, .n_words = 6,
                                          .set = set_dtype};

static int check_to_dtype(struct flow *f, const struct op *o)
{
    const stk_dtype dtype = dtypes[(int)o->arg[DTYPE].v[0]];
    if (dtype == STK_UINT8 && f->floats)
        return text_error(f->text, o->column,
                          "ToDtype(uint8) comes after %s: floats cannot become bytes again; remove one of them",
                          op_name(f->floats));
    if (dtype == STK_UINT8) {
        f->bytes = o;
        return STK_OK;
    }
    if (dtype != f->dtype)
        return text_error(f->text, o->column, "ToDtype(%s), but the dtype of the loader is %s: make them equal",
                          dtype_name(dtype), dtype_name(f->dtype));
    if (!f->floats) {
        f->floats = o;
        f->ops->unit = o->arg[SCALE].v[0] != 0 ? UNIT_TIMES : UNIT_KEEP;
    }
    return STK_OK;
}

const struct spec ops_type[] = {
    {"Normalize",
     OP_TYPES,
     {{"mean", &arg_mean, "imagenet"}, {"std", &arg_std, ""}, {"inplace", &arg_ignored, "False"}},
     .check = check_normalize},
    {"ToTensor", OP_TYPES, {{0}}, .check = check_to_tensor},
    {"ToImage", OP_TYPES | OP_TENSOR, {{0}}, NULL, NULL},
    {"PILToTensor", OP_TYPES | OP_TENSOR, {{0}}, NULL, NULL},
    {"ToDtype", OP_TYPES, {{"dtype", &arg_dtype, NULL}, {"scale", &arg_bool, "False"}}, .check = check_to_dtype},
    {0},
};
