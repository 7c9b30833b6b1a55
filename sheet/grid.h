/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.h -- the layout of contact sheets: a head, and images with captions.
 */
#ifndef GRID_H
#define GRID_H

#include "marks.h"
#include "sheet.h"

enum { GRID_MARGIN = 36, GRID_GAP = 14, GRID_CAPTION = 26, GRID_HEAD = 66, GRID_SIDE = 224, GRID_FOOTNOTE_LINE = 14 };

extern const struct sheet_colour grid_paper;

/* Images of one size, one after the other in memory. */
struct grid {
    const char *title, *under;
    struct sheet_image first;
    int n, columns;
    const char *const *captions;
    const struct marks *marks; /* one for each image; NULL: none */
    marks_name *name;          /* of labels and of values of masks; NULL: numbers */
    void *user;
};

int grid_draw(struct sheet *s, const struct grid *g); /* calls sheet_init(); returns 0, or -1: no memory */

/* The parts, for sheets with another layout. */
void grid_head(struct sheet *s, const char *title, const char *under);
void grid_caption(struct sheet *s, int x, int y, int width, const char *text);
void grid_footnote(struct sheet *s, int x, int y, int width, const char *text); /* small, in up to two lines */
/* The size at which to show an image: its longer side has about GRID_SIDE pixels. */
void grid_fit(int w, int h, int *to_w, int *to_h);

#endif
