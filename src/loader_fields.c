/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_fields.c -- the fields of a batch: those of the source, index, position and valid, and offsets or lengths of
 * ragged fields.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "loader.h"

static struct field small_field(const char *name, stk_dtype type)
{
    struct field f = {
        .kind = FIELD_TENSOR, .dtype = type, .bytes = dtype_bytes(type), .what = STK_TENSOR, .column = -1};
    snprintf(f.name, sizeof f.name, "%s", name);
    return f;
}

/* If the caller's op makes another shape or type, its result is the field, and the image is made separately. */
static int result_field(struct stk_loader *l, struct field *f, stk_error *e)
{
    if (!l->op.run || !l->op.result)
        return STK_OK;
    if (f->kind == FIELD_OPEN)
        return error_set(e, STK_EUSAGE, "open",
                         "an op that changes the shape or dtype of its row needs images of one size; end ops with "
                         "CenterCrop(224), or give Resize both sides: Resize((224, 224))");
    l->made = (stk_array){.name = "image", .dtype = f->dtype, .ndim = f->ndim, .device = 1, .shape = l->made_shape};
    memcpy(l->made_shape, f->shape, sizeof l->made_shape);
    l->made_bytes = f->bytes;
    return field_of(f, l->op.result, e);
}

static int add_beside(struct field *fields, int *n, const struct field *of, const char *suffix, stk_error *e)
{
    if (*n >= FIELD_MAX)
        return error_set(e, STK_EUSAGE, "open", "too many ragged fields; choose fewer with fields");
    struct field *f = &fields[(*n)++];
    *f = small_field("", STK_INT64);
    f->copies = of->copies;
    const int length = snprintf(f->name, sizeof f->name, "%.*s.%s", FIELD_NAME - 1, of->name, suffix);
    return length > 0 ? STK_OK : STK_EBUG;
}

static void set_vector(struct field *f, int n)
{
    f->ndim = 1;
    f->shape[0] = n;
    f->bytes = (size_t)n * sizeof(int64_t);
}

void loader_fields_frame(const struct stk_loader *l, struct field *f, int frame)
{
    f->kind = FIELD_RAGGED;
    f->frame = frame;
    f->pad = l->options.sizes == STK_SIZES_PAD;
    f->bytes = dtype_bytes(f->dtype);
    f->shape[frame - 1] = f->shape[frame] = -1;
}

/* Adds offsets or lengths, and shapes, of ragged fields. */
static int lay_beside(struct field *fields, int *n, stk_error *e)
{
    const int all = *n;
    for (int i = 0; i < all; i++) {
        if (fields[i].kind != FIELD_RAGGED)
            continue;
        fields[i].beside = *n;
        if (fields[i].frame && fields[i].pad) {
            const int failed = add_beside(fields, n, &fields[i], "sizes", e);
            if (failed)
                return failed;
            set_vector(&fields[*n - 1], 2);
            continue;
        }
        int rc = add_beside(fields, n, &fields[i], fields[i].pad ? "lengths" : "offsets", e);
        if (rc != STK_OK)
            return rc;
        if (!fields[i].pad)
            fields[*n - 1].kind = FIELD_OFFSETS;
        if (!field_is_flat(&fields[i]))
            continue;
        rc = add_beside(fields, n, &fields[i], "shapes", e);
        if (rc != STK_OK)
            return rc;
        set_vector(&fields[*n - 1], fields[i].ndim);
    }
    return STK_OK;
}

/* There are ops but no images: names the columns, and how to declare one as images. */
static int no_images(const struct source *s, stk_error *e)
{
    char names[400] = "", hint[192] = "";
    const char *first = NULL;
    size_t len = 0;
    for (int i = 0; i < source_n_fields(s) && len < sizeof names; i++) {
        const struct field *f = source_field(s, i);
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", i ? ", " : "", f->name);
        if (!first && (f->what == STK_BYTES || f->what == STK_JSON || f->what == STK_TEXT))
            first = f->name;
    }
    if (first)
        snprintf(hint, sizeof hint, "; fields=\"%s:image\" reads %s as images", first, first);
    return error_set(e, STK_EUSAGE, "open",
                     "ops need images, and this source has none; its columns: %s%s; an array of images has type uint8 "
                     "and shape samples x rows x columns x 3",
                     names, hint);
}

/* Without images there can be no ops, unless fields left the images out: then the ops are not run. */
static int lay_none(struct stk_loader *l, stk_error *e)
{
    const bool left_out = source_has_image(l->source);
    if (l->op.result)
        return error_set(e, STK_EUSAGE, "open", "an op that changes the shape or dtype of its row needs images, but %s",
                         left_out ? "fields leaves them out; add the image" : "this source has none");
    l->ops_unused = l->options.ops && l->options.ops[0];
    return l->ops_unused && !left_out ? no_images(l->source, e) : STK_OK;
}

/* Rows of different sizes are joined only when all of them exist, so ops on finished rows cannot be combined with
 * them. */
static int check_sizes(const struct stk_loader *l, stk_error *e)
{
    const char *other = l->copies > 1                    ? "several views"
                        : l->op.run                      ? "a function that changes rows"
                        : plan_soft_classes(l->plan) > 0 ? "MixUp and CutMix"
                                                         : NULL;
    return other
               ? error_set(
                     e, STK_EUSAGE, "open",
                     "sizes=pad and sizes=list cannot be combined with %s, which needs images of one size: end the ops "
                     "with CenterCrop(224), and leave sizes out",
                     other)
               : STK_OK;
}

/* Makes the views of the image field. */
static int lay_image(struct stk_loader *l, struct field *fields, int *n, stk_error *e)
{
    struct field *f = &fields[l->image];
    const stk_options *o = &l->options;
    struct plan_options p = {
        .ops = o->ops, .dtype = o->dtype, .layout = o->layout, .fidelity = o->fidelity, .cpu = o->cpu};
    if (f->kind == FIELD_PIXELS) {
        p.fixed_h = (int32_t)f->shape[0];
        p.fixed_w = (int32_t)f->shape[1];
    }
    p.bytes = l->device.bytes && o->sizes == STK_SIZES_SAME; /* padding is in the type of the result */
    p.open = f->kind == FIELD_ENCODED && (o->batch_size == 1 || o->sizes != STK_SIZES_SAME);
    p.classes = source_n_classes(l->source);
    const int rc = loader_views_open(l, &p, fields, n, e);
    if (rc != STK_OK)
        return rc;
    l->device.bytes = plan_makes_bytes(l->plan);
    if (o->sizes != STK_SIZES_SAME)
        return check_sizes(l, e);
    if (l->copies == 1)
        return result_field(l, f, e);
    if (l->op.run)
        return error_set(e, STK_EUSAGE, "open",
                         "a function cannot be combined with several views; use ops in each view");
    for (int i = 0; i < l->n_views; i++)
        if (plan_soft_classes(l->views[i].plan) > 0)
            return error_set(e, STK_EUSAGE, "open", "MixUp and CutMix need a single image per sample, not views");
    return STK_OK;
}

/* MixUp and CutMix make the label a row of floats. */
static int lay_soft_label(struct stk_loader *l, struct field *fields, int n, stk_error *e)
{
    const int64_t classes = plan_soft_classes(l->plan);
    for (int i = 0; i < n; i++)
        if (source_is_label(&fields[i]) && fields[i].ndim == 0)
            l->soft = i;
    if (l->soft < 0)
        return error_set(e, STK_EUSAGE, "open", "MixUp and CutMix need labels, but the batches have none");
    if (l->made_bytes > 0)
        return error_set(e, STK_EUSAGE, "open",
                         "MixUp and CutMix cannot come after an op that changes the shape or dtype of its row");
    struct field *f = &fields[l->soft];
    f->kind = FIELD_TENSOR;
    f->dtype = STK_FLOAT32;
    f->what = STK_TENSOR;
    f->ndim = 1;
    f->shape[0] = classes;
    f->bytes = (size_t)classes * sizeof(float);
    l->spare_bytes = plan_blend_spare(l->plan, l->options.batch_size);
    return STK_OK;
}

int loader_fields(struct stk_loader *l, struct field *fields, int *n, stk_error *e)
{
    *n = source_n_fields(l->source);
    if (*n + OWN_FIELDS > FIELD_MAX)
        return error_set(e, STK_EUSAGE, "open",
                         "the source has %d fields, but at most %d are supported; choose fewer with fields", *n,
                         FIELD_MAX - OWN_FIELDS);
    l->image = -1;
    l->reads = source_reads_fields(l->source);
    for (int i = 0; i < *n; i++) {
        fields[i] = *source_field(l->source, i);
        if (fields[i].kind == FIELD_ENCODED || fields[i].kind == FIELD_PIXELS)
            l->image = i;
    }
    l->soft = -1;
    int rc = l->image >= 0 ? lay_image(l, fields, n, e) : lay_none(l, e);
    if (rc == STK_OK)
        rc = loader_follow_open(l, fields, n, e);
    if (rc == STK_OK && l->plan && plan_soft_classes(l->plan) > 0)
        rc = lay_soft_label(l, fields, *n, e);
    if (rc != STK_OK)
        return rc;
    l->index = *n;
    fields[(*n)++] = small_field("index", STK_INT64);
    l->position = *n;
    fields[(*n)++] = small_field("position", STK_INT64);
    l->valid = *n;
    fields[(*n)++] = small_field("valid", STK_BOOL);
    return lay_beside(fields, n, e);
}
