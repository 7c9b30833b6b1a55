/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resample.h -- which input pixels make an output pixel, and with which weights: Pillow's, bit for bit.
 *
 * A resize is one axis across and one down. Each output is a sum over neighbouring inputs, its taps, in fixed point
 * with RESAMPLE_BITS after the binary point. The weights follow from the whole geometry, so computing only a part of
 * the output does not change its bits.
 */
#ifndef RESAMPLE_H
#define RESAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum filter {
    FILTER_NEAREST,
    FILTER_BOX,
    FILTER_BILINEAR,
    FILTER_HAMMING,
    FILTER_BICUBIC,
    FILTER_LANCZOS,
    FILTER_COUNT
};

enum { RESAMPLE_BITS = 22, TAPS_ROUND = 16 };

struct axis {
    enum filter filter;
    bool plain;                           /* without antialias; bilinear and bicubic only */
    int32_t in, out;                      /* pixels of the whole image */
    double start, scale, support, shrink; /* start: position in the input of the first output */
    int bits;                             /* of the weights, after the binary point */
};

/* A part of an axis: n pixels from lo. */
struct reach {
    int32_t lo, n;
};

/*
 * Weights for a part of the output. Output i is the sum over t < 4 * groups of weight[t] times the input first[i] + t,
 * from the start of the available input. Every output has the same count of taps, so some weights are 0. first[i] + 4 *
 * groups <= rows, unless there are fewer rows than that.
 */
struct taps {
    int32_t n;      /* outputs */
    int32_t groups; /* of four taps */
    int32_t rows;   /* available inputs */
    int32_t *first; /* n, rounded up to TAPS_ROUND so that kernels may read more */
    int32_t *c;     /* as many times groups * 4 weights, in the order that the kernels need */
};

struct axis resample_axis(enum filter f, bool antialias, int32_t in, int32_t out);
/* The same from a part of the input, `size` pixels from `start` on, which may be fractions; with antialias. */
struct axis resample_axis_box(enum filter f, int32_t in, double start, double size, int32_t out);
/* The inputs that a part of the output needs: at least one. */
struct reach resample_needs(const struct axis *a, struct reach out);
/* The count of groups of four taps that is enough for every output of this part. */
int32_t resample_groups(const struct axis *a, struct reach out);
/* Fills t->first and t->c; t->groups must be set. `in` is what resample_needs returned, or more. `weights` has room
 * for 4 * groups. reverse: the last output comes first. */
void resample_fill(struct taps *t, const struct axis *a, struct reach out, struct reach in, bool reverse,
                   double *weights);

#endif
