/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic.h -- moves every pixel along a smooth random field, as torchvision's elastic.
 *
 * The field is uniform noise from -1 to 1, blurred, times alpha / 2 pixels; one for each direction. It is made line by
 * line: a ring of lines of noise for the pass down, then the pass across.
 */
#ifndef ELASTIC_H
#define ELASTIC_H

#include "base/sample.h"
#include "transform/resample.h"

enum { ELASTIC_SIGMA = 60 }; /* the largest */

struct kernels;

struct elastic {
    uint64_t seed;
    double alpha[2], sigma[2]; /* x, y; sigma 0: no blur */
    enum filter filter;        /* nearest, bilinear or bicubic */
    int32_t w, h;
    uint8_t fill[3];
};

/* Pixels on either side that the blurs reach: the image must be larger. */
int32_t elastic_reach(const struct elastic *e);
struct rect elastic_needs(const struct elastic *e, struct rect need);
size_t elastic_room(const struct elastic *e, struct rect need); /* bytes; SIZE_MAX on overflow */
void elastic_begin(const struct elastic *e, struct rect need, void *room);
/* Writes line y of the part `need`. Lines must be made in order. `in` is the part `from` of the image. */
void elastic_line(const struct kernels *k, const struct elastic *e, const struct image *in, struct rect from, int32_t y,
                  void *room, uint8_t *dst);

/* Where a point goes: it moves against the shift of the pixel that it is in, as in torchvision. */
void elastic_point(const struct elastic *e, double *x, double *y);

/* For masks: writes the indices of the pixels that line y of the whole image takes, -1 outside of the image. */
void elastic_indices(const struct kernels *k, const struct elastic *e, int32_t y, void *room, int32_t *x_of,
                     int32_t *y_of);

/* For the table of kernels. */
void elastic_gauss_c(float *dst, const float *const *rows, size_t n, const float *weight, int32_t half, float scale);
void elastic_linear3_c(uint8_t *dst, const uint8_t *px, size_t stride, const float *x, const float *y, int32_t n);

#endif
