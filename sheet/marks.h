/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.h -- what belongs to an image, drawn over it: a mask as a tint, boxes with labels, and keypoints; and a legend.
 */
#ifndef MARKS_H
#define MARKS_H

#include "sheet.h"

/* Coordinates are in pixels of the image. Every pointer may be NULL. */
struct marks {
    const uint8_t *mask; /* one value for each pixel, mask_bytes each */
    int mask_bytes;      /* 1: uint8; 2: uint16; 4: int32, where negative values are ignored */
    const uint8_t *each; /* n_each masks, one for each box, of 1 byte for each pixel: 0 or not */
    int n_each;
    const float *boxes; /* left, top, right, bottom */
    int n_boxes;
    const int64_t *labels; /* one for each box, or for each mask */
    const float *points;   /* point_numbers each: x, y, and perhaps whether the point is there */
    int n_points, point_numbers;
};

/* The name of a label, or NULL. */
typedef const char *marks_name(void *user, int64_t label);

/* Draws marks over an image of iw x ih pixels that sheet_draw drew at (x, y) with w x h pixels. */
void marks_draw(struct sheet *s, int x, int y, int w, int h, int iw, int ih, const struct marks *m, marks_name *name,
                void *user);

enum { MARKS_MOST = 64, MARKS_IGNORED = 255, MARKS_LEGEND = 22 };

/* Which labels and values of masks occur; the first MARKS_MOST of them, in ascending order. */
struct marks_seen {
    int64_t value[MARKS_MOST];
    int n;
};

void marks_collect(struct marks_seen *seen, const struct marks *m, int iw, int ih);
/* Lines of the legend, each MARKS_LEGEND high; draws nothing if s is NULL. */
int marks_legend(struct sheet *s, int x, int y, int width, const struct marks_seen *seen, marks_name *name, void *user);

/* The colour of a label or a value. */
struct sheet_colour marks_colour(int64_t value);

#endif
