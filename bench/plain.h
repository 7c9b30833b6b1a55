/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain.h -- a sample on the plain path: reads the whole file, decodes the whole image with libjpeg-turbo, and runs the
 * kernels in plain C. Everything faster is compared with it.
 */
#ifndef PLAIN_H
#define PLAIN_H

#include "decode/decode.h"
#include "source/source.h"
#include "transform/plan.h"

enum plain_stage { PLAIN_READ, PLAIN_DECODE, PLAIN_TRANSFORM, PLAIN_STAGES };

struct plain {
    struct source *source;
    struct plan *plan;
    struct decoder *decoder;
    struct reading reading;
    struct arena arena;
    uint64_t ns[PLAIN_STAGES]; /* time spent, added up */
    int64_t read_bytes;
};

int plain_open(struct plain *p, const char *folder, const char *ops, stk_layout layout, stk_error *e);
void plain_close(struct plain *p); /* accepts a half-built one; may be called twice */

/* Reads, decodes and transforms one sample into a row. Its label is then in reading.label. */
int plain_row(struct plain *p, int64_t sample, uint64_t epoch, void *row, stk_error *e);

#endif
