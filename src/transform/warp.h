/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warp.h -- an image through an affine or a perspective map: Pillow's Image.transform and Image.rotate, bit for bit.
 *
 *     warp_affine(&w, ...) or warp_rotate or warp_perspective     the map, for a whole image
 *     from = warp_needs(&w, need)                                 the part of the input that a part of the output takes
 *     warp_begin(&w, table)                                       table: warp_table(&w) bytes
 *     warp_line(kernels, &source, x, y, n, dst)                   n pixels of an output line
 *
 * The map says where an output pixel comes from: the point (x, y) of the output, in pixels from its corner, takes
 * ((a0 x + a1 y + a2) / d, (a3 x + a4 y + a5) / d) with d = a6 x + a7 y + 1. Points of the input go the other way:
 * warp_point() maps them, for boxes and keypoints.
 */
#ifndef WARP_H
#define WARP_H

#include "base/sample.h"
#include "transform/resample.h"

struct kernels;

/* How Pillow finds the pixels; each has its own rounding. */
enum warp_way {
    WARP_SCALE, /* nearest, axes stay parallel: running sums for columns and rows */
    WARP_FIXED, /* nearest: fixed point, 16 bits after the binary point */
    WARP_SUM,   /* nearest, far away: running sums */
    WARP_POINT  /* every output pixel by itself */
};

struct warp {
    double a[8];
    bool perspective;
    bool expanded;      /* the output contains the whole turned input */
    bool tensor;        /* with torch's arithmetic instead of Pillow's (grid.h); not bicubic */
    bool filled;        /* tensor: torchvision was given a fill, even if it is 0 */
    enum filter filter; /* nearest, bilinear or bicubic */
    enum warp_way way;
    int32_t in_w, in_h, w, h; /* of the whole input and output */
    uint8_t fill[3];          /* where the input has no pixel */
};

/* A warp with the pixels it takes. */
struct warp_source {
    const struct warp *warp;
    const void *table; /* of warp_begin */
    struct image in;   /* the part `from` of the input */
    struct rect from;
};

/* Rotates counterclockwise by degrees, as Image.rotate; center: (x, y), or NULL for the middle. expand: the output
 * contains the whole input. Returns false if a rotation changes nothing. */
bool warp_rotate(struct warp *w, int32_t in_w, int32_t in_h, enum filter filter, double degrees, bool expand,
                 const double *center);

/* Pillow's transform with AFFINE. */
void warp_matrix(struct warp *w, int32_t in_w, int32_t in_h, enum filter filter, const double m[6]);

/* torchvision's affine: clockwise degrees, translation in pixels, shear in degrees. */
struct warp_turn {
    double degrees, translate[2], scale, shear[2];
    const double *center; /* (x, y); NULL: the middle */
};
void warp_affine(struct warp *w, int32_t in_w, int32_t in_h, enum filter filter, const struct warp_turn *t);

/* The corners of the image (top left, top right, bottom right, bottom left) move to `to`, as torchvision's perspective,
 * with its coefficients in single precision. Returns false if no map does that. */
bool warp_perspective(struct warp *w, int32_t in_w, int32_t in_h, enum filter filter, const int32_t to[4][2]);

/* Call it once the map, filter and fill are set, before the rest. */
void warp_choose(struct warp *w);
struct rect warp_needs(const struct warp *w, struct rect need);
size_t warp_table(const struct warp *w); /* bytes; SIZE_MAX on overflow */
void warp_begin(const struct warp *w, void *table);
void warp_line(const struct kernels *k, const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst);

/* Where a point of the input goes. Returns false if it goes nowhere. */
bool warp_point(const struct warp *w, double *x, double *y);

/* For kernels: one pixel, bilinear or bicubic, by the definition. */
void warp_pixel(const struct warp_source *s, int32_t x, int32_t y, uint8_t *dst);
/* The same for n pixels. */
/* The definition of the kernel nearest3. */
void warp_nearest3_c(uint8_t *dst, const uint8_t *px, size_t stride, const int32_t at[2], const int32_t step[2],
                     int32_t n);
void warp_pixels_c(const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst);
/* n pixels of the fill. */
void warp_fill(const struct warp_source *s, int32_t n, uint8_t *dst);

#endif
