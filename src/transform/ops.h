/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h -- the text form of ops, read and checked.
 *
 *     RandomResizedCrop(224, scale=(0.08, 1)) | RandomHorizontalFlip | Normalize
 *
 * Names, arguments, their order and defaults are torchvision's. What ops_read accepts needs no further checks: all
 * sizes are known and bounded, and types and channels agree.
 */
#ifndef OPS_H
#define OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sample.h"
#include "base/text.h"
#include "transform/blend.h"

/* OPS_SIDE limits what may be asked for, OPS_FAR what an image may become between ops. */
enum { OPS_MAX = 64, OPS_TEXT = 16384, OPS_SIDE = 65536, OPS_FAR = 1 << 24, OPS_ARGS = 9, ARG_NUMBERS = 16 };

/* The value of an argument. A word is its index in the type's list of words. */
struct arg {
    int n; /* count of numbers; 0: None; -1: a word, of a type that also has numbers */
    double v[ARG_NUMBERS];
};

struct op {
    const struct spec *spec;
    int nth;        /* count of earlier ops with this name */
    int span;       /* count of ops in the array: itself, and the ops in its arguments, which follow it */
    int32_t column; /* of its name in the text, from 1 */
    int channels;   /* of the image after it */
    bool tensor;    /* it follows ToImage or PILToTensor */
    char word[48];  /* the argument that is kept as text */
    struct arg arg[OPS_ARGS];
};

/* How bytes become floats, before Normalize. */
enum unit {
    UNIT_DIVIDE, /* v / 255, as ToTensor does */
    UNIT_TIMES,  /* v * (1 / 255), as ToDtype(scale=True) does */
    UNIT_KEEP    /* v, as ToDtype does without scale */
};

/* The ops that are not in arguments of others: for (o = ops->op; o < ops->op + ops->n; o += o->span) */
struct ops {
    int n;
    struct op op[OPS_MAX];
    int32_t w, h, channels; /* of the result */
    int crops;              /* images per image: 5 or 10 with FiveCrop or TenCrop, otherwise 0 */
    enum unit unit;
    const struct op *normalize; /* NULL: none */
    struct blend blend;
    const struct op *erases; /* an op that works on the finished row; NULL: none */
};

/* For w: images differ in size, and so may results. ops->w and ops->h are then 0, unless the ops fix them. */
enum { OPS_OPEN = -1 };
/* dtype is that of the result. w and h are the size of every image; 0 if images differ but results must not; or
 * OPS_OPEN. */
int ops_read(struct ops *out, const char *text, stk_dtype dtype, int32_t w, int32_t h, stk_error *e);
/* Writes the ops with all defaults filled in, as text that ops_read reads back to the same ops; n is at least
 * OPS_TEXT. */
void ops_write(const struct ops *ops, char *buf, size_t n);
/* Writes one op. */
void op_write(struct text_out *to, const struct op *o);

const char *op_name(const struct op *o);

#endif
