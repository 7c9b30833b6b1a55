/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_drawn.c -- what was drawn for a sample, in the terms of torchvision's functions.
 *
 *     "ops": [{"op": "RandomResizedCrop", "top": 3, "left": 5, "height": 100, "width": 90, "size": [224, 224]},
 *             {"op": "RandomHorizontalFlip", "flip": true}, {"op": "Normalize"}]
 *
 * Sizes are height and width; paddings are left, top, right and bottom. The crop of RandomCrop is in the padded image.
 * That of CenterCrop is in the image before it: if it pads, top and left are negative.
 */
#include "base/json.h"
#include "transform/plan_inner.h"

static void put_crop(struct json *j, struct rect c)
{
    json_int(j, "top", c.y);
    json_int(j, "left", c.x);
    json_int(j, "height", c.h);
    json_int(j, "width", c.w);
}

static void put_list(struct json *j, const char *key, const int32_t *v, int n)
{
    json_open(j, key, '[');
    for (int i = 0; i < n; i++)
        json_int(j, NULL, v[i]);
    json_close(j, ']');
}

static void put_op(struct json *j, const struct op *o, const struct drawn *d)
{
    const int32_t border[4] = {o->pad.left, o->pad.top, o->pad.right, o->pad.bottom}, size[2] = {d->h, d->w};
    const struct rect padded = {d->crop.x + d->padding[0], d->crop.y + d->padding[1], d->crop.w, d->crop.h};
    json_open(j, NULL, '{');
    json_text(j, "op", op_name(o->kind));
    switch (o->kind) {
    case OP_RESIZE:
        put_list(j, "size", size, 2);
        break;
    case OP_CENTER_CROP:
        put_crop(j, d->crop);
        break;
    case OP_RANDOM_CROP:
        put_list(j, "padding", d->padding, 4);
        put_crop(j, padded);
        break;
    case OP_RANDOM_RESIZED_CROP:
        put_crop(j, d->crop);
        put_list(j, "size", size, 2);
        break;
    case OP_PAD:
        put_list(j, "padding", border, 4);
        break;
    case OP_FLIP_X:
    case OP_FLIP_Y:
        json_bool(j, "flip", d->flip);
        break;
    default:
        break; /* nothing depends on the image */
    }
    json_close(j, '}');
}

int plan_drawn(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct json *j, stk_error *e)
{
    struct drawn drawn[OPS_MAX];
    struct job job;
    const int rc = plan_steps(p, d, w, h, &job, drawn, e);
    if (rc)
        return rc;
    json_open(j, "ops", '[');
    for (int i = 0; i < p->ops.n; i++)
        put_op(j, &p->ops.op[i], &drawn[i]);
    json_close(j, ']');
    return STK_OK;
}
