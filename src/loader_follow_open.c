/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_follow_open.c -- describes the fields that follow the image, and checks that they can.
 *
 * A field follows every view. In the view image its name stays; in a view with another name, or of several images, it
 * is NAME.FIELD. A field may have a pipeline of its own (mask: Resize(64)): its ops come after those of the view, and
 * draw nothing, so that the field always fits the image.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loader.h"

/* The size of masks is that of the image, or as their own ops say. */
static void describe_mask(const struct stk_loader *l, const struct view *v, const struct plan *p, struct field *f)
{
    const bool small = f->what == STK_BYTES || f->dtype == STK_UINT8 || f->dtype == STK_BOOL;
    const bool open = plan_is_open(p);
    int64_t w, h;
    plan_size(p, &w, &h);
    f->dtype = f->mask_dtype ? f->mask_dtype : small ? STK_UINT8 : STK_INT32;
    f->what = STK_MASK;
    f->kind = open ? FIELD_OPEN : FIELD_TENSOR;
    f->ndim = 0;
    if (v->copies > 1)
        f->shape[f->ndim++] = v->copies;
    f->shape[f->ndim++] = h;
    f->shape[f->ndim++] = w;
    f->bytes = dtype_bytes(f->dtype) * (open ? 1 : (size_t)h * (size_t)w * (size_t)v->copies);
    f->pad = false;
    if (l->options.sizes != STK_SIZES_SAME && open)
        loader_fields_frame(l, f, 1);
}

static void describe_masks(const struct plan *p, struct field *f)
{
    f->what = STK_MASKS;
    if (plan_is_open(p))
        return;
    plan_size(p, &f->shape[2], &f->shape[1]);
    f->bytes = (size_t)f->shape[1] * (size_t)f->shape[2];
}

static void describe(const struct stk_loader *l, const struct view *v, int i, struct field *f)
{
    const struct plan *p = v->followers[i].own ? v->followers[i].own : v->plan; /* gives the field its size */
    if (f->follow != FOLLOW_MASK)
        f->copies = v->copies;
    if (f->follow == FOLLOW_BOXES) {
        bool relative[2];
        f->box_format = plan_box_format(p, plan_box_format(v->plan, f->box_format, &relative[0]), &relative[1]);
        f->relative = relative[0] || relative[1];
        f->what = STK_BOXES;
    } else if (f->follow == FOLLOW_POINTS)
        f->what = STK_POINTS;
    else if (f->follow == FOLLOW_MASK)
        describe_mask(l, v, p, f);
    else if (f->follow == FOLLOW_MASKS)
        describe_masks(p, f);
}

/* ------------------------------------------------------------------ ops of their own */

static int check_own(const struct field *f, const struct plan *own, stk_error *e)
{
    const char *op = plan_not_own(own);
    if (!op && f->follow != FOLLOW_BOXES)
        op = plan_needs_boxes(own);
    if (!op && f->follow != FOLLOW_POINTS)
        op = plan_needs_points(own);
    if (op)
        return error_set(
            e, STK_EUSAGE, "ops",
            "ops: %s: %s is not possible here: %s goes through the ops of the image, with the same random "
            "numbers, and then through ops of its own that draw nothing, such as Resize, CenterCrop and Pad",
            f->name, op, f->name);
    return STK_OK;
}

static int open_own(const struct stk_loader *l, struct view *v, int i, stk_error *e)
{
    const struct field *f = source_field(l->source, i);
    const stk_options *o = &l->options;
    int64_t w, h;
    if (!l->follow.ops[i])
        return STK_OK;
    if (f->follow == FOLLOW_EACH)
        return error_set(e, STK_EUSAGE, "ops",
                         "ops: %s has numbers for each box, which ops do not change; leave its pipeline out", f->name);
    plan_size(v->plan, &w, &h);
    const struct plan_options p = {.ops = l->follow.ops[i],
                                   .dtype = STK_FLOAT32,
                                   .layout = o->layout,
                                   .cpu = o->cpu,
                                   .open = plan_is_open(v->plan),
                                   .fixed_w = (int32_t)w,
                                   .fixed_h = (int32_t)h};
    const int rc = plan_new(&v->followers[i].own, &p, e);
    return rc == STK_OK ? check_own(f, v->followers[i].own, e) : rc;
}

/* ------------------------------------------------------------------ opening */

static int check_ops(const struct stk_loader *l, const struct view *v, bool points, stk_error *e)
{
    const char *op = plan_not_followed(v->plan);
    if (l->follow.n > 0 && op)
        return error_set(e, STK_EUSAGE, "open",
                         "%s cannot be combined with masks, boxes and keypoints; remove it from the ops, or leave them "
                         "out of fields",
                         op);
    op = plan_needs_boxes(v->plan);
    if (op && l->follow.boxes < 0)
        return error_set(e, STK_EUSAGE, "open",
                         "%s needs boxes, and the samples have none; declare a column as boxes: "
                         "fields=\"image, bbox:boxes(xywh)\"",
                         op);
    op = plan_needs_points(v->plan);
    if (op && !points)
        return error_set(e, STK_EUSAGE, "open",
                         "%s needs keypoints, and the samples have none; declare a column as keypoints: "
                         "fields=\"image, points:keypoints(17,3)\"",
                         op);
    return STK_OK;
}

/* Without an image to follow, these fields are as the source has them. */
static int describe_alone(const struct field *fields, int n, stk_error *e)
{
    for (int i = 0; i < n; i++)
        if (fields[i].follow == FOLLOW_MASK)
            return error_set(e, STK_EUSAGE, "open", "the mask %s belongs to an image: add the image to fields",
                             fields[i].name);
    return STK_OK;
}

/* Sets the name of a field in a view. Other fields must not have names that start with that of the view. */
static int name_in_view(const struct stk_loader *l, const struct view *v, int i, struct field *f, stk_error *e)
{
    const char *own = source_field(l->source, i)->name;
    const size_t n = strlen(v->name);
    if (v->copies == 1 && strcmp(v->name, "image") == 0)
        return STK_OK;
    for (int k = 0; k < source_n_fields(l->source); k++) {
        const char *other = source_field(l->source, k)->name;
        if (strncmp(other, v->name, n) == 0 && other[n] == '.')
            return error_set(e, STK_EUSAGE, "open", "the source has a field %s; give the view %s another name", other,
                             v->name);
    }
    return snprintf(f->name, sizeof f->name, "%s.%s", v->name, own) < FIELD_NAME
               ? STK_OK
               : error_set(e, STK_EUSAGE, "open", "the name %s.%s is too long; use a shorter name for the view",
                           v->name, own);
}

/* Field i of the source, in view v. */
static int open_follower(struct stk_loader *l, struct view *v, int i, struct field *fields, int *n, stk_error *e)
{
    int to = i;
    if (v != l->views) {
        if (*n + OWN_FIELDS >= FIELD_MAX)
            return error_set(e, STK_EUSAGE, "open", "too many fields; choose fewer with fields, or use fewer views");
        to = (*n)++;
        fields[to] = *source_field(l->source, i);
    }
    v->followers[i].to = to;
    int rc = open_own(l, v, i, e);
    if (rc != STK_OK)
        return rc;
    describe(l, v, i, &fields[to]);
    if (fields[to].pad && fields[to].copies > 1)
        return error_set(e, STK_EUSAGE, "open", "%s cannot be padded, since there are %d views named %s; remove pad",
                         fields[to].name, v->copies, v->name);
    return name_in_view(l, v, i, &fields[to], e);
}

int loader_follow_open(struct stk_loader *l, struct field *fields, int *n, stk_error *e)
{
    const int all = source_n_fields(l->source);
    bool points = false;
    l->follow.boxes = -1;
    if (l->image < 0)
        return describe_alone(fields, all, e);
    for (int i = 0; i < all; i++) {
        const struct field *f = source_field(l->source, i);
        l->follow.n += f->follow != FOLLOW_NONE;
        l->follow.own |= l->follow.ops[i] != NULL;
        points |= f->follow == FOLLOW_POINTS;
        if (f->follow == FOLLOW_BOXES && l->follow.boxes >= 0)
            return error_set(e, STK_EUSAGE, "open", "%s and %s are both boxes; only one field can have this kind",
                             fields[l->follow.boxes].name, f->name);
        if (f->follow == FOLLOW_BOXES)
            l->follow.boxes = i;
    }
    for (struct view *v = l->views; v < l->views + l->n_views; v++) {
        int rc = check_ops(l, v, points, e);
        for (int i = 0; i < all && rc == STK_OK; i++)
            if (source_field(l->source, i)->follow != FOLLOW_NONE)
                rc = open_follower(l, v, i, fields, n, e);
        if (rc != STK_OK)
            return rc;
    }
    return STK_OK;
}

void loader_follow_close(struct stk_loader *l)
{
    for (int i = 0; i < FIELD_MAX; i++) {
        free(l->follow.ops[i]);
        for (int k = 0; k < l->n_views; k++)
            plan_free(l->views[k].followers[i].own);
    }
}
