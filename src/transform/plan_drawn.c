/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_drawn.c -- what was drawn for a sample, in the terms of torchvision's functions.
 *
 *     [{"op": "RandomResizedCrop", "top": 3, "left": 5, "height": 100, "width": 90, "size": [224, 224]},
 *      {"op": "RandomHorizontalFlip", "flip": true}, {"op": "Normalize"}]
 *
 * Sizes are height and width; paddings are left, top, right and bottom. The crop of RandomCrop is in the padded image.
 * That of CenterCrop is in the image before it: if it pads, top and left are negative.
 */
#include "base/text.h"
#include "transform/plan_inner.h"

static void put_crop(struct text_out *t, struct rect c)
{
    text_put(t, ", \"top\": %d, \"left\": %d, \"height\": %d, \"width\": %d", (int)c.y, (int)c.x, (int)c.h, (int)c.w);
}

static void put_padding(struct text_out *t, const int32_t p[4])
{
    text_put(t, ", \"padding\": [%d, %d, %d, %d]", (int)p[0], (int)p[1], (int)p[2], (int)p[3]);
}

static void put_size(struct text_out *t, const struct drawn *d)
{
    text_put(t, ", \"size\": [%d, %d]", (int)d->h, (int)d->w);
}

static void put_random_crop(struct text_out *t, const struct drawn *d)
{
    struct rect c = d->crop;
    c.x += d->padding[0];
    c.y += d->padding[1];
    put_padding(t, d->padding);
    put_crop(t, c);
}

static void put_op(struct text_out *t, const struct op *o, const struct drawn *d)
{
    const int32_t border[4] = {o->pad.left, o->pad.top, o->pad.right, o->pad.bottom};
    text_put(t, "{\"op\": \"%s\"", op_name(o->kind));
    switch (o->kind) {
    case OP_RESIZE:
        put_size(t, d);
        break;
    case OP_CENTER_CROP:
        put_crop(t, d->crop);
        break;
    case OP_RANDOM_CROP:
        put_random_crop(t, d);
        break;
    case OP_RANDOM_RESIZED_CROP:
        put_crop(t, d->crop);
        put_size(t, d);
        break;
    case OP_PAD:
        put_padding(t, border);
        break;
    case OP_FLIP_X:
    case OP_FLIP_Y:
        text_put(t, ", \"flip\": %s", d->flip ? "true" : "false");
        break;
    default:
        break; /* nothing depends on the image */
    }
    text_put(t, "}");
}

int plan_drawn(const struct plan *p, const struct draw *d, int32_t w, int32_t h, char buf[PLAN_DRAWN], stk_error *e)
{
    struct drawn drawn[OPS_MAX];
    struct job job;
    const int rc = plan_steps(p, d, w, h, &job, drawn, e);
    if (rc)
        return rc;
    struct text_out t = {.buf = buf, .n = PLAN_DRAWN};
    text_put(&t, "[");
    for (int i = 0; i < p->ops.n; i++) {
        text_put(&t, "%s", i ? ", " : "");
        put_op(&t, &p->ops.op[i], &drawn[i]);
    }
    text_put(&t, "]");
    return STK_OK;
}
