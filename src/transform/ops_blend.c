/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_blend.c -- MixUp and CutMix as torchvision has them, and timm's Mixup, which is both. They come last, alone or as
 * RandomChoice([MixUp, CutMix]) or RandomApply([MixUp]).
 */
#include <string.h>

#include "transform/ops_spec.h"

enum { CLASSES_MOST = 1 << 20 };

static const struct arg_type arg_alpha = {"a number from 0 to 1000", .high = 1000, .counts = ARG_COUNT(1)};
static const struct arg_type arg_classes = {"a whole number from 2 to 1048576, or None for that of the source",
                                            .low = 2,
                                            .high = CLASSES_MOST,
                                            .counts = ARG_COUNT(1),
                                            .whole = true,
                                            .none = true};
static const struct arg_type arg_minmax = {"two shares of the image's side from 0 to 1, in ascending order, or None",
                                           .high = 1, .counts = ARG_COUNT(2), .ascending = true, .none = true};
static const char *const modes[] = {"batch", "pair", "elem"}; /* by enum blend_mode */
static const struct arg_type arg_mode = {"batch, pair or elem", .words = modes, .n_words = 3};

static int check_floats(const struct flow *f, const struct op *o)
{
    if (f->dtype != STK_UINT8)
        return STK_OK;
    return text_error(f->text, o->column,
                      "%s adds images, which needs floats, but the dtype is uint8: ask for "
                      "float32, float16 or bfloat16",
                      op_name(o));
}

/* The probability of each op inside RandomChoice; RandomApply has one p. */
static double chance_of(const struct op *outer, const struct op *o)
{
    const struct arg *p = &outer->arg[1];
    double sum = 0, own = 0;
    int i = 0;
    for (const struct op *c = outer + 1; c < outer + outer->span; c += c->span, i++) {
        const double weight = i < p->n ? p->v[i] : 1;
        sum += weight;
        own += c == o ? weight : 0;
    }
    return sum > 0 ? own / sum : 0;
}

/* torchvision's ops. */
static int check_blend(struct flow *f, const struct op *o, double *alpha)
{
    struct blend *b = &f->ops->blend;
    const double classes = o->arg[1].n ? o->arg[1].v[0] : 0;
    if (f->inside && strcmp(op_name(f->inside), "RandomChoice") != 0 && strcmp(op_name(f->inside), "RandomApply") != 0)
        return text_error(f->text, o->column, "%s cannot be inside %s", op_name(o), op_name(f->inside));
    if (o->arg[0].v[0] <= 0)
        return text_error(f->text, o->column, "%s: alpha must be above 0", op_name(o));
    if (f->blends && strcmp(op_name(f->inside), "RandomChoice") != 0)
        return text_error(f->text, o->column, "%s: use it once; RandomChoice([MixUp, CutMix]) draws one of two",
                          op_name(o));
    if (*alpha > 0 || (f->blends && b->classes != (int64_t)classes))
        return text_error(f->text, o->column, "%s: use it once, with the same num_classes as the other op", op_name(o));
    *alpha = o->arg[0].v[0];
    b->classes = (int64_t)classes;
    b->p = f->inside && strcmp(op_name(f->inside), "RandomApply") == 0 ? op_arg(f->inside, &arg_p)->v[0] : 1;
    b->correct = true;
    f->blends = o;
    return STK_OK;
}

static int check_mixup(struct flow *f, const struct op *o)
{
    const int rc = check_floats(f, o);
    return rc ? rc : check_blend(f, o, &f->ops->blend.mixup);
}

static int check_cutmix(struct flow *f, const struct op *o)
{
    struct blend *b = &f->ops->blend;
    const int rc = check_blend(f, o, &b->cutmix);
    if (rc == STK_OK && f->inside && strcmp(op_name(f->inside), "RandomChoice") == 0)
        b->cutmix_p = chance_of(f->inside, o);
    return rc;
}

enum { MIXUP, CUTMIX, MINMAX, PROB, SWITCH, MODE, CORRECT, SMOOTHING, CLASSES };

static int check_timm(struct flow *f, const struct op *o)
{
    struct blend *b = &f->ops->blend;
    const struct arg *a = o->arg;
    if (f->inside)
        return text_error(f->text, o->column, "Mixup cannot be inside %s: it has prob", op_name(f->inside));
    *b = (struct blend){.mixup = a[MIXUP].v[0],
                        .cutmix = a[MINMAX].n ? 1 : a[CUTMIX].v[0], /* as in timm */
                        .box_min = a[MINMAX].n ? a[MINMAX].v[0] : 0,
                        .box_max = a[MINMAX].n ? a[MINMAX].v[1] : 0,
                        .p = a[PROB].v[0],
                        .cutmix_p = a[SWITCH].v[0],
                        .mode = (enum blend_mode)a[MODE].v[0],
                        .correct = a[CORRECT].v[0] != 0,
                        .smoothing = a[SMOOTHING].v[0],
                        .classes = a[CLASSES].n ? (int64_t)a[CLASSES].v[0] : 0,
                        .timm = true};
    if (b->mixup <= 0 && b->cutmix <= 0)
        return text_error(f->text, o->column, "Mixup: mixup_alpha or cutmix_alpha must be above 0");
    if (a[MINMAX].n && b->box_max <= 0)
        return text_error(f->text, o->column, "Mixup: the second number of cutmix_minmax must be above 0");
    f->blends = o;
    return b->mixup > 0 ? check_floats(f, o) : STK_OK;
}

const struct spec ops_blend[] = {
    {"MixUp",
     OP_BATCH | OP_ALONE,
     {{"alpha", &arg_alpha, "1"}, {"num_classes", &arg_classes, "None"}},
     .check = check_mixup},
    {"CutMix",
     OP_BATCH | OP_ALONE,
     {{"alpha", &arg_alpha, "1"}, {"num_classes", &arg_classes, "None"}},
     .check = check_cutmix},
    {"Mixup",
     OP_BATCH | OP_ALONE,
     {{"mixup_alpha", &arg_alpha, "1"},
      {"cutmix_alpha", &arg_alpha, "0"},
      {"cutmix_minmax", &arg_minmax, "None"},
      {"prob", &arg_share, "1"},
      {"switch_prob", &arg_share, "0.5"},
      {"mode", &arg_mode, "batch"},
      {"correct_lam", &arg_bool, "True"},
      {"label_smoothing", &arg_share, "0.1"},
      {"num_classes", &arg_classes, "1000"}},
     .check = check_timm},
    {0},
};
