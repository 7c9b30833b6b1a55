/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sheet.h -- a raster to draw images and text on.
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

/* An image to draw. */
struct sheet_image {
    const uint8_t *px;
    int w, h, channels; /* 1: grey, 3: RGB */
};

int sheet_init(struct sheet *s, int w, int h, struct sheet_colour paper); /* 0, or -1: no memory */
void sheet_done(struct sheet *s);
/* Blends one pixel with a colour by `cover`, from 0 to 1. Ignores pixels outside the sheet. */
void sheet_dot(struct sheet *s, int x, int y, struct sheet_colour c, float cover);
/* Draws an image, resized to w x h, with round corners in the colour of the paper. */
void sheet_draw(struct sheet *s, int x, int y, int w, int h, const struct sheet_image *image,
                struct sheet_colour paper);

#endif
