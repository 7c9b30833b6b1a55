/* SPDX-License-Identifier: Apache-2.0 */
/*
 * font.h -- text on a sheet: a typeface of strokes, smooth at any size.
 */
#ifndef FONT_H
#define FONT_H

#include <stddef.h>

#include "sheet.h"

/* cap is the height of a capital letter in pixels; y is the baseline. */
void font_draw(struct sheet *s, float x, float y, const char *text, float cap, float weight, struct sheet_colour c);
float font_width(const char *text, float cap);
/* Copies the text, and cuts it with an ellipsis if it is wider than `width`. */
void font_fit(const char *text, float cap, float width, char *buf, size_t n);

#endif
