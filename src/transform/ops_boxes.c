/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_boxes.c -- ops on boxes and keypoints, which leave the image alone; and what a plan says about them.
 */
#include "transform/drawing.h"
#include "transform/plan_inner.h"

static const struct arg_type arg_least = {"a number above 0", .low = 1e-6, .high = 1e9, .counts = ARG_COUNT(1)};

static int draw_sanitize_boxes(struct drawing *g, const struct op *o)
{
    struct step *s = drawing_mark(g, STEP_SANITIZE_BOXES);
    s->least.size = o->arg[0].v[0];
    s->least.area = o->arg[1].v[0];
    s->least.visible = o->arg[2].v[0];
    return STK_OK;
}

static int draw_clamp_boxes(struct drawing *g, const struct op *o)
{
    (void)o;
    drawing_mark(g, STEP_CLAMP_BOXES);
    return STK_OK;
}

static int draw_whole_boxes(struct drawing *g, const struct op *o)
{
    (void)o;
    drawing_mark(g, STEP_WHOLE_BOXES);
    return STK_OK;
}

static int draw_clamp_points(struct drawing *g, const struct op *o)
{
    (void)o;
    drawing_mark(g, STEP_CLAMP_POINTS);
    return STK_OK;
}

static int draw_sanitize_points(struct drawing *g, const struct op *o)
{
    (void)o;
    drawing_mark(g, STEP_SANITIZE_POINTS);
    return STK_OK;
}

/* By enum box_format. */
static const char *const formats[] = {"XYXY", "XYWH", "CXCYWH", "xyxy", "xywh", "cxcywh"};
enum { FORMATS = 3 };

static int set_format(struct reader *r, struct op *o, int i, const struct value *v)
{
    const int rc = arg_store(r, o, i, v);
    if (rc == STK_OK && o->arg[i].v[0] >= FORMATS)
        o->arg[i].v[0] -= FORMATS;
    return rc;
}

static const struct arg_type arg_format = {"XYXY, XYWH or CXCYWH", .words = formats, .n_words = 2 * FORMATS,
                                           .set = set_format};

const struct spec ops_boxes[] = {
    {"SanitizeBoundingBoxes",
     OP_BOXES,
     {{"min_size", &arg_least, "1"}, {"min_area", &arg_least, "1"}, {"min_visibility", &arg_share, "0"}},
     .draw = draw_sanitize_boxes},
    {"ClampBoundingBoxes", OP_BOXES, {{0}}, .draw = draw_clamp_boxes},
    {"WholeBoundingBoxes", OP_BOXES, {{0}}, .draw = draw_whole_boxes},
    {"ConvertBoundingBoxFormat",
     OP_BOXES | OP_TYPES,
     {{"format", &arg_format, NULL}, {"relative", &arg_bool, "False"}},
     NULL,
     NULL},
    {"ClampKeyPoints", OP_POINTS, {{0}}, .draw = draw_clamp_points},
    {"SanitizeKeyPoints", OP_POINTS, {{0}}, .draw = draw_sanitize_points},
    {0},
};

/* ------------------------------------------------------------------ plans */

static const char *op_with(const struct plan *p, unsigned flags)
{
    for (const struct op *o = p->ops.op; o < p->ops.op + p->ops.n; o++) /* also those in arguments */
        if ((o->spec->flags & flags) == flags)
            return op_name(o);
    return NULL;
}

const char *plan_needs_boxes(const struct plan *p)
{
    return op_with(p, OP_BOXES);
}

const char *plan_needs_points(const struct plan *p)
{
    return op_with(p, OP_POINTS);
}

const char *plan_not_followed(const struct plan *p)
{
    return op_with(p, OP_ALONE);
}

enum box_format plan_box_format(const struct plan *p, enum box_format own, bool *relative)
{
    *relative = false;
    for (const struct op *o = p->ops.op; o < p->ops.op + p->ops.n; o += o->span)
        if (o->spec->params[0].type == &arg_format) {
            own = (enum box_format)o->arg[0].v[0];
            *relative = o->arg[1].v[0] != 0;
        }
    return own;
}
