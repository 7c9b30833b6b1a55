/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c -- makes a plan: everything that does not depend on the image.
 */
#include "transform/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "transform/levels.h"
#include "transform/ops_spec.h"
#include "transform/plan_inner.h"

enum { HEAD_VERSION = 2 }; /* of the bits that ops make; increment it when they change */

/* Smaller rows are better left in the CPU's caches. */
enum { STREAM_BYTES = 256 << 10 };

static enum store_dtype store_dtype_of(stk_dtype t)
{
    switch (t) {
    case STK_UINT8:
        return STORE_U8;
    case STK_FLOAT16:
        return STORE_F16;
    case STK_BFLOAT16:
        return STORE_BF16;
    default:
        return STORE_F32;
    }
}

static void choose_store(struct plan *p, stk_dtype dtype)
{
    const enum store_dtype d = store_dtype_of(dtype);
    const enum store_shape s = p->ops.channels == 1    ? STORE_SINGLE
                               : p->layout == STK_NHWC ? STORE_INTERLEAVED
                                                       : STORE_PLANAR;
    levels_init(&p->levels, &p->ops, d);
    if (p->bytes) {
        p->store = p->kernels.store[s][STORE_U8];
        return;
    }
    if (!levels_exact(&p->levels, &p->kernels, s, d)) { /* unusual means or standard deviations: use the tables */
        struct kernels c;
        kernels_c(&c);
        p->store = c.store[s][d];
        return;
    }
    p->store = p->kernels.store[s][d];
    if (p->row_bytes >= STREAM_BYTES && plan_pitch(p, p->ops.w) % STREAM_ALIGN == 0)
        p->stream = p->kernels.stream[s][d];
}

static int check_options(const struct plan_options *o, stk_error *e)
{
    if (o->dtype != STK_FLOAT32 && o->dtype != STK_FLOAT16 && o->dtype != STK_BFLOAT16 && o->dtype != STK_UINT8)
        return error_set(e, STK_EUSAGE, "ops",
                         "the dtype of images is %s; it must be float32, float16, bfloat16 or uint8",
                         dtype_name(o->dtype));
    if (o->layout != STK_NCHW && o->layout != STK_NHWC)
        return error_set(e, STK_EUSAGE, "ops", "the layout is unknown; it must be NCHW or NHWC");
    return STK_OK;
}

/* Ops that combine rows need images of one size, and to know how many classes there are. */
static int check_blend(struct ops *ops, int64_t classes, stk_error *e)
{
    struct blend *b = &ops->blend;
    if (b->mixup <= 0 && b->cutmix <= 0)
        return STK_OK;
    if (ops->w == 0)
        return error_set(e, STK_EUSAGE, "ops",
                         "MixUp and CutMix need images of one size: put CenterCrop(224) or another crop before them");
    if (b->classes == 0)
        b->classes = classes;
    return b->classes > 0 ? STK_OK
                          : error_set(e, STK_EUSAGE, "ops",
                                      "MixUp and CutMix need num_classes, since the source does not know its classes");
}

/* The index of the first op that draws. */
static int first_random(const struct ops *ops)
{
    int i = 0;
    while (i < ops->n && !op_draws(&ops->op[i]))
        i += ops->op[i].span;
    return i;
}

/* The end of the head. RandomIoUCrop draws by the boxes of the original image, so with it there is no head. */
static int head_of(const struct ops *ops)
{
    for (const struct op *o = ops->op; o < ops->op + ops->n; o++) /* also those in arguments */
        if (o->spec->flags & OP_BOXES && op_draws(o))
            return 0;
    return first_random(ops);
}

int plan_new(struct plan **out, const struct plan_options *o, stk_error *e)
{
    int rc = check_options(o, e);
    if (rc)
        return rc;
    struct plan *p = calloc(1, sizeof *p);
    if (!p)
        return error_nomem(e, "ops", sizeof *p);
    rc = ops_read(&p->ops, o->ops, o->dtype, o->open ? OPS_OPEN : o->fixed_w, o->fixed_h, e);
    if (rc == STK_OK)
        rc = check_blend(&p->ops, o->classes, e);
    if (rc) {
        plan_free(p);
        return rc;
    }
    /* Erasing and combining rows work on floats. */
    const bool several = o->several || p->ops.crops > 1;
    p->bytes = o->bytes && !p->ops.erases && p->ops.blend.classes == 0 && !several;
    p->layout = p->bytes ? STK_NHWC : o->layout;
    p->dtype = o->dtype;
    p->draft = o->fidelity == STK_DRAFT && !several;
    p->head = several ? 0 : head_of(&p->ops);
    p->element = p->bytes ? 1 : dtype_bytes(o->dtype);
    p->row_bytes = (size_t)p->ops.w * (size_t)p->ops.h * (size_t)p->ops.channels * p->element;
    kernels_fill(&p->kernels, o->cpu);
    choose_store(p, o->dtype);
    p->blend = p->kernels.blend[store_dtype_of(o->dtype)];
    ops_write(&p->ops, p->text, sizeof p->text);
    *out = p;
    return STK_OK;
}

void plan_free(struct plan *p)
{
    free(p);
}

static void put_shape(const struct plan *p, int32_t w, int32_t h, int64_t shape[3])
{
    const bool last = p->layout == STK_NHWC;
    shape[last ? 2 : 0] = p->ops.channels;
    shape[last ? 0 : 1] = h;
    shape[last ? 1 : 2] = w;
}

void plan_shape(const struct plan *p, int64_t shape[3])
{
    put_shape(p, p->ops.w, p->ops.h, shape);
}

void plan_size(const struct plan *p, int64_t *w, int64_t *h)
{
    *w = p->ops.w;
    *h = p->ops.h;
}

int plan_crops(const struct plan *p)
{
    return p->ops.crops ? p->ops.crops : 1;
}

bool plan_is_open(const struct plan *p)
{
    return p->ops.w == 0;
}

size_t plan_job_shape(const struct plan *p, const struct job *j, int64_t shape[3])
{
    put_shape(p, j->w, j->h, shape);
    return (size_t)j->w * (size_t)j->h * (size_t)p->ops.channels * p->element;
}

bool plan_makes_bytes(const struct plan *p)
{
    return p->bytes;
}

size_t plan_row_bytes(const struct plan *p)
{
    return p->row_bytes;
}

const void *plan_tables(const struct plan *p, stk_dtype t)
{
    return t == STK_UINT8 ? NULL : t == STK_FLOAT32 ? (const void *)p->levels.f32 : (const void *)p->levels.half;
}

const char *plan_text(const struct plan *p)
{
    return p->text;
}

bool plan_settled(const struct plan *p)
{
    return p->head == p->ops.n;
}

const char *plan_random(const struct plan *p)
{
    const int i = first_random(&p->ops);
    return i == p->ops.n ? NULL : op_name(&p->ops.op[i]);
}

int plan_head_channels(const struct plan *p)
{
    int channels = 3;
    for (const struct op *o = p->ops.op; o < p->ops.op + p->head; o += o->span)
        channels = o->channels;
    return channels;
}

uint64_t plan_head_text(const struct plan *p, char *buf, size_t n)
{
    char text[OPS_TEXT] = "";
    struct text_out to = {.buf = text, .n = sizeof text};
    for (const struct op *o = p->ops.op; o < p->ops.op + p->head; o += o->span)
        if (!(o->spec->flags & (OP_TYPES | OP_BATCH | OP_BOXES | OP_POINTS))) {
            text_put(&to, "%s", to.used ? " | " : "");
            op_write(&to, o);
        }
    snprintf(buf, n, "%s", text);
    return hash_bytes(text, strlen(text), HEAD_VERSION);
}
