/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_args.h -- the table of ops and their arguments, for ops.c and ops_write.c.
 */
#ifndef OPS_ARGS_H
#define OPS_ARGS_H

#include "transform/ops.h"
#include "transform/ops_text.h"

struct reader {
    struct text text;
    const struct spec *spec;   /* the op that is being read */
    const struct param *param; /* and its argument */
};

enum { PARAMS = 5 };

struct param {
    const char *name;
    int (*set)(struct reader *r, struct op *o, const struct value *v);
};

struct spec {
    const char *name;
    int required; /* count of leading arguments without a default */
    struct param params[PARAMS];
};

extern const struct spec op_specs[OP_KINDS];
/* By enum filter, then nearest_exact, which is what Pillow's nearest does; by enum pad_mode. */
extern const char *const op_filters[FILTER_COUNT + 1], *const op_pad_modes[PAD_MODES];
void op_defaults(struct op *o);

#endif
