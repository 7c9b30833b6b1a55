/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_write.c -- writes ops back as text, with every default.
 */
#include "base/number.h"
#include "base/text.h"
#include "transform/ops_args.h"

/* Writes a number, or several in brackets. */
static void put_numbers(struct text_out *o, const char *name, const double *v, int n)
{
    char text[NUMBER_BYTES];
    text_put(o, "%s=%s", name, n > 1 ? "(" : "");
    for (int i = 0; i < n; i++) {
        number_write(v[i], text);
        text_put(o, "%s%s", i ? ", " : "", text);
    }
    text_put(o, "%s", n > 1 ? ")" : "");
}

static const char *yes(bool b)
{
    return b ? "True" : "False";
}

static void put_filter(struct text_out *o, const struct op *op)
{
    text_put(o, ", interpolation=%s", op_filters[op->filter]);
}

static void put_padding(struct text_out *o, const struct op *op)
{
    text_put(o, "padding=(%d, %d, %d, %d)", op->pad.left, op->pad.top, op->pad.right, op->pad.bottom);
}

static void put_fill(struct text_out *o, const struct op *op)
{
    if (op->n_fill == 3)
        text_put(o, ", fill=(%d, %d, %d)", op->fill[0], op->fill[1], op->fill[2]);
    else
        text_put(o, ", fill=%d", op->fill[0]);
    text_put(o, ", padding_mode=%s", op_pad_modes[op->pad_mode]);
}

static void put_resize(struct text_out *o, const struct op *op)
{
    if (op->w)
        text_put(o, "size=(%d, %d)", op->h, op->w);
    else
        text_put(o, "size=%d", op->h);
    put_filter(o, op);
    if (op->max_size)
        text_put(o, ", max_size=%d", op->max_size);
    else
        text_put(o, ", max_size=None");
    text_put(o, ", antialias=%s", yes(op->antialias));
}

static void put_random_crop(struct text_out *o, const struct op *op)
{
    text_put(o, "size=(%d, %d), ", op->h, op->w);
    put_padding(o, op);
    text_put(o, ", pad_if_needed=%s", yes(op->pad_if_needed));
    put_fill(o, op);
}

static void put_random_resized_crop(struct text_out *o, const struct op *op)
{
    text_put(o, "size=(%d, %d), ", op->h, op->w);
    put_numbers(o, "scale", op->scale, 2);
    put_numbers(o, ", ratio", op->ratio, 2);
    put_filter(o, op);
    text_put(o, ", antialias=%s", yes(op->antialias));
}

static void put_arguments(struct text_out *o, const struct op *op)
{
    switch (op->kind) {
    case OP_RESIZE:
        put_resize(o, op);
        break;
    case OP_CENTER_CROP:
        text_put(o, "size=(%d, %d)", op->h, op->w);
        break;
    case OP_RANDOM_CROP:
        put_random_crop(o, op);
        break;
    case OP_RANDOM_RESIZED_CROP:
        put_random_resized_crop(o, op);
        break;
    case OP_PAD:
        put_padding(o, op);
        put_fill(o, op);
        break;
    case OP_FLIP_X:
    case OP_FLIP_Y:
        put_numbers(o, "p", &op->p, 1);
        break;
    case OP_GREY:
        text_put(o, "num_output_channels=%d", op->channels);
        break;
    case OP_NORMALIZE:
        put_numbers(o, "mean", op->mean, op->n_mean);
        put_numbers(o, ", std", op->std, op->n_std);
        break;
    case OP_TO_DTYPE:
        text_put(o, "dtype=%s, scale=%s", dtype_name(op->dtype), yes(op->scaled));
        break;
    default:
        break;
    }
}

void ops_write(const struct ops *ops, char *buf, size_t n)
{
    struct text_out o = {.buf = buf, .n = n};
    buf[0] = 0;
    for (int i = 0; i < ops->n; i++) {
        const struct op *op = &ops->op[i];
        const bool bare = op->kind >= OP_TO_TENSOR && op->kind <= OP_PIL_TO_TENSOR;
        text_put(&o, "%s%s%s", i ? " | " : "", op_name(op->kind), bare ? "" : "(");
        put_arguments(&o, op);
        text_put(&o, "%s", bare ? "" : ")");
    }
}
