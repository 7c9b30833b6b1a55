/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_spec.h -- what is known about an op: its name, its arguments, and functions that check and draw it.
 *
 * A family of ops is one file ops_*.c with an array of specs. ops.c lists the families. To add an op, add a spec to the
 * array of its family.
 */
#ifndef OPS_SPEC_H
#define OPS_SPEC_H

#include "transform/ops.h"
#include "transform/ops_text.h"

struct drawing;
struct reader;

/* ------------------------------------------------------------------ arguments */

/* A type of argument: either words, or numbers between low and high. */
struct arg_type {
    const char *expected; /* for messages: "expected ..." */
    double low, high;
    unsigned counts; /* bit n: n numbers are allowed */
    bool whole;      /* only whole numbers */
    bool ascending;  /* each number is at least the one before */
    bool none;       /* None is allowed */
    bool text;       /* kept as text, in op->word; at most one argument of an op */
    bool ignored;    /* accepted, without effect */
    int n_words;
    const char *const *words;
    /* Sets o->arg[i]; NULL: the value is checked and stored as described above. */
    int (*set)(struct reader *r, struct op *o, int i, const struct value *v);
};

#define ARG_COUNT(n) (1u << (n))

extern const struct arg_type arg_size, arg_filter, arg_antialias, arg_bool, arg_fill, arg_pad_mode, arg_p, arg_share,
    arg_ignored, arg_mask_fill, arg_ops;

/* The words of arg_filter, by enum filter; the last is an alias. */
extern const char *const arg_filters[];

struct param {
    const char *name;
    const struct arg_type *type;
    const char *preset; /* the default, as text; NULL: the argument is required; "": another argument sets it */
};

/* Reports "OP: ARGUMENT: found X, expected ...". */
int arg_bad(struct reader *r, const struct value *v, const char *expected);
/* Stores a value as its type describes, ignoring its type's set. */
int arg_store(struct reader *r, struct op *o, int i, const struct value *v);
/* The index of the word; -1: none matches, and the error is set. */
int arg_word(struct reader *r, const struct value *v, const char *const *words, int n, const char *expected);

/* The argument of this type; NULL: the op has none. */
const struct arg *op_arg(const struct op *o, const struct arg_type *t);

/* ------------------------------------------------------------------ checking */

/* The image between two ops. */
struct flow {
    struct ops *ops;
    struct text *text;
    stk_dtype dtype; /* of the result */
    int32_t w, h;    /* 0: open */
    int channels;
    const struct op *floats; /* the op that converts bytes to floats; NULL: none yet */
    const struct op *bytes;  /* the op that asks for bytes; NULL: none yet */
    const struct op *inside; /* the op that has the current one as an argument; NULL: none */
    const struct op *blends; /* the op that combines rows; NULL: none yet */
};

/* Checks an op that is an argument of another. */
int flow_op(struct flow *f, const struct op *o);
int flow_check_fill(const struct flow *f, const struct op *o);

/* ------------------------------------------------------------------ ops */

enum op_flags {
    OP_MOVES = 1,  /* only moves pixels, if its fill is 0: the same on floats as on bytes */
    OP_TYPES = 2,  /* changes no pixels, only their type */
    OP_RANDOM = 4, /* its effect depends on a draw */
    OP_BY_P = 8,   /* its effect depends on a draw unless its argument p is 0 or 1 */
    OP_BATCH = 16, /* combines the rows of a finished batch; see blend.h */
    OP_BOXES = 32,
    OP_POINTS = 64,  /* these work on boxes or points, and leave the image alone unless OP_RANDOM is set */
    OP_ALONE = 128,  /* masks, boxes and points cannot follow it */
    OP_TENSOR = 256, /* makes a tensor: torchvision computes the ops after it with torch, not with Pillow */
    OP_POLICY = 512, /* its fill of 0 is torchvision's None */
    OP_LATE = 1024,  /* works on the finished row: only such ops and ops of types may follow it */
};

struct spec {
    const char *name; /* NULL: the end of the family */
    unsigned flags;
    struct param params[OPS_ARGS];
    /* Checks the op in its place, and sets the size, channels and type of the image after it. NULL: all stay. */
    int (*check)(struct flow *f, const struct op *o);
    /* Draws what is random, adds steps to the job, and notes what was drawn. NULL: no steps. */
    int (*draw)(struct drawing *g, const struct op *o);
};

extern const struct spec ops_crop[], ops_type[], ops_color[], ops_choice[], ops_warp[], ops_scale[], ops_filter[],
    ops_iou_crop[], ops_boxes[], ops_blend[], ops_erase[], ops_policy[], ops_timm[], ops_augmix[];

/* Whether the effect of an op depends on a draw. */
bool op_draws(const struct op *o);
/* Whether an op, or every op in its arguments, combines the rows of a batch. */
bool op_blends(const struct op *o);

/* ------------------------------------------------------------------ reading and checking, for ops.c */

struct reader {
    struct text text;
    const struct spec *spec;   /* the op that is being read */
    const struct param *param; /* and its argument */
};

int arg_set(struct reader *r, struct op *o, int i, const struct value *v);
void op_defaults(struct op *o);
/* Sets size, channels and unit of *ops. On entry, its size is that of every image; 0 if they differ. */
int ops_check(struct ops *ops, struct text *t, stk_dtype dtype, bool open);

#endif
