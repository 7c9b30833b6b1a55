/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_out.h -- writes a tf.train.Example.
 *
 *     struct example_out x = {0};
 *     example_out_bytes(&x, "image/encoded", p, n);
 *     example_out_ints(&x, "image/height", &h, 1);
 *     example_out_end(&x, &out)                    the message, behind what out holds; 0, or -1: no memory
 *     example_out_done(&x);
 */
#ifndef EXAMPLE_OUT_H
#define EXAMPLE_OUT_H

#include <stdbool.h>

#include "base/buf.h"

struct example_out {
    struct buf features; /* entries of the map, one behind the other */
    bool failed;
};

void example_out_bytes(struct example_out *x, const char *name, const void *bytes, size_t n);
void example_out_ints(struct example_out *x, const char *name, const int64_t *values, size_t n);
void example_out_floats(struct example_out *x, const char *name, const float *values, size_t n);
int example_out_end(struct example_out *x, struct buf *out);
void example_out_done(struct example_out *x);

#endif
