/* SPDX-License-Identifier: Apache-2.0 */
/*
 * point.h -- steps that change pixels one by one: tables, grey, saturation, hue, order of channels.
 *
 * Consecutive tables become one. Some tables depend on the pixels of the whole image (its mean, range or histogram),
 * which the stage before gathers from the lines that it makes.
 */
#ifndef POINT_H
#define POINT_H

#include "transform/kernel.h"
#include "transform/plan.h"

struct room;

enum gathers { GATHERS_NONE, GATHERS_GREY, GATHERS_RANGE, GATHERS_COUNTS };

struct gather {
    enum gathers what;
    uint64_t pixels, grey; /* grey: the sum of the grey values of all pixels */
    struct kernel_range range;
    uint32_t counts[4][3][256]; /* added up in points_begin */
};

/* Which property of the whole image a step depends on. */
enum gathers step_gathers(const struct step *s);
/* Whether a step changes pixels one by one. */
bool step_is_point(const struct step *s);

void gather_init(struct gather *g, enum gathers what);
void gather_lines(const struct kernels *k, struct gather *g, const struct image *lines);

/* One step, or several tables in a row. */
struct point {
    const struct step *s;
    int n;                 /* count of steps */
    bool same;             /* tables: the same for all channels */
    uint8_t (*table)[256]; /* tables: one for every channel */
};

struct points {
    int n;
    struct point *p;
};

/* Groups n steps into points and takes memory for their tables. p has room for n. */
struct points points_lay(struct room *r, struct point *p, const struct step *s, int n);
/* Computes the tables. g: about the image before the first step; NULL if no step depends on it. */
void points_begin(const struct points *p, struct gather *g);
/* dst may be src, unless the point changes the count of channels. */
void point_lines(const struct kernels *k, const struct point *p, const struct image *dst, const struct image *src);

#endif
