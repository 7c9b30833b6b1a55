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
#include "transform/resample.h"

/* OPS_SIDE limits what may be asked for, OPS_FAR what an image may become between ops. */
enum { OPS_MAX = 16, OPS_TEXT = 4096, OPS_SIDE = 65536, OPS_FAR = 1 << 24 };

enum op_kind {
    OP_RESIZE,
    OP_CENTER_CROP,
    OP_RANDOM_CROP,
    OP_RANDOM_RESIZED_CROP,
    OP_PAD,
    OP_FLIP_X,
    OP_FLIP_Y,
    OP_GREY,
    OP_NORMALIZE,
    OP_TO_TENSOR,
    OP_TO_IMAGE,
    OP_PIL_TO_TENSOR,
    OP_TO_DTYPE,
    OP_KINDS
};

enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_SYMMETRIC, PAD_MODES };

struct op {
    enum op_kind kind;
    int nth;          /* count of earlier ops with this name */
    int32_t column;   /* of its name in the text, from 1 */
    int32_t w, h;     /* size; for Resize, w is 0 if h is the length of the shorter side */
    int32_t max_size; /* 0: none */
    enum filter filter;
    bool antialias;
    struct {
        int32_t left, top, right, bottom;
    } pad;
    bool pad_if_needed;
    enum pad_mode pad_mode;
    int n_fill;
    uint8_t fill[3];
    double scale[2], ratio[2], p;
    int channels; /* of Grayscale */
    int n_mean, n_std;
    double mean[3], std[3];
    stk_dtype dtype; /* of ToDtype */
    bool scaled;
};

/* How bytes become floats, before Normalize. */
enum unit {
    UNIT_DIVIDE, /* v / 255, as ToTensor does */
    UNIT_TIMES,  /* v * (1 / 255), as ToDtype(scale=True) does */
    UNIT_KEEP    /* v, as ToDtype does without scale */
};

struct ops {
    int n;
    struct op op[OPS_MAX];
    int32_t w, h, channels; /* of the result */
    enum unit unit;
    int normalize; /* index of the op; -1: none */
};

/* For w: images differ in size, and so may results. ops->w and ops->h are then 0, unless the ops fix them. */
enum { OPS_OPEN = -1 };
/* dtype is that of the result. w and h are the size of every image; 0 if images differ but results must not; or
 * OPS_OPEN. */
int ops_read(struct ops *out, const char *text, stk_dtype dtype, int32_t w, int32_t h, stk_error *e);
/* Writes the ops with all defaults filled in, as text that ops_read reads back to the same ops; n is at least
 * OPS_TEXT. */
void ops_write(const struct ops *ops, char *buf, size_t n);

/* Size of the result of a Resize. Returns false if a side becomes 0 or more than OPS_FAR. */
bool op_resized(const struct op *o, int32_t w, int32_t h, int32_t *out_w, int32_t *out_h);
const char *op_name(enum op_kind k);

#endif
