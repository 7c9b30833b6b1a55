/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sheet.h -- a raster to put pictures and words on.
 */
#ifndef SHEET_H
#define SHEET_H

#include <stddef.h>
#include <stdint.h>

struct sheet_colour {
    uint8_t r, g, b;
};

struct sheet {
    int w, h;
    uint8_t *px; /* RGB */
};

/* Pixels to put on it. */
struct sheet_image {
    const uint8_t *px;
    int w, h, channels; /* 1: grey, 3: RGB */
};

int sheet_init(struct sheet *s, int w, int h, struct sheet_colour paper); /* 0, or -1: no memory */
void sheet_done(struct sheet *s);
/* One pixel, covered by the share `cover` of 0 to 1; outside of the sheet: nothing. */
void sheet_dot(struct sheet *s, int x, int y, struct sheet_colour c, float cover);
/* A picture, resized to w x h, with round corners of the paper's colour. */
void sheet_picture(struct sheet *s, int x, int y, int w, int h, const struct sheet_image *image,
                   struct sheet_colour paper);

#endif
