/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sheet.c -- the raster of a contact sheet.
 */
#include "sheet.h"

#include <math.h>
#include <stdlib.h>

enum { ROUND = 5 }; /* radius of the corners, pixels */

int sheet_init(struct sheet *s, int w, int h, struct sheet_colour paper)
{
    *s = (struct sheet){.w = w, .h = h};
    s->px = malloc((size_t)w * (size_t)h * 3);
    if (!s->px)
        return -1;
    for (size_t i = 0; i < (size_t)w * (size_t)h; i++) {
        s->px[3 * i] = paper.r;
        s->px[3 * i + 1] = paper.g;
        s->px[3 * i + 2] = paper.b;
    }
    return 0;
}

void sheet_done(struct sheet *s)
{
    free(s->px);
    s->px = NULL;
}

static uint8_t toward(uint8_t from, uint8_t to, float cover)
{
    return (uint8_t)((float)from + ((float)to - (float)from) * cover + 0.5f);
}

void sheet_dot(struct sheet *s, int x, int y, struct sheet_colour c, float cover)
{
    if (x < 0 || y < 0 || x >= s->w || y >= s->h)
        return;
    uint8_t *p = s->px + ((size_t)y * (size_t)s->w + (size_t)x) * 3;
    p[0] = toward(p[0], c.r, cover);
    p[1] = toward(p[1], c.g, cover);
    p[2] = toward(p[2], c.b, cover);
}

/* The mean of the source pixels under one pixel of the result; the nearest one if the image is enlarged. */
static struct sheet_colour mean_under(const struct sheet_image *image, int x0, int x1, int y0, int y1)
{
    const size_t step = (size_t)image->channels, green = step == 3 ? 1 : 0, blue = step == 3 ? 2 : 0;
    uint32_t sum[3] = {0};
    for (int y = y0; y < y1; y++) {
        const uint8_t *p = image->px + ((size_t)y * (size_t)image->w + (size_t)x0) * step;
        for (int x = x0; x < x1; x++, p += step) {
            sum[0] += p[0];
            sum[1] += p[green];
            sum[2] += p[blue];
        }
    }
    const uint32_t n = (uint32_t)(x1 - x0) * (uint32_t)(y1 - y0);
    return (struct sheet_colour){(uint8_t)((sum[0] + n / 2) / n), (uint8_t)((sum[1] + n / 2) / n),
                                 (uint8_t)((sum[2] + n / 2) / n)};
}

/* The start of the i-th of n parts of a length. */
static int part(int i, int n, int length)
{
    return (int)((int64_t)i * length / n);
}

static int part_end(int i, int n, int length)
{
    const int start = part(i, n, length), end = part(i + 1, n, length);
    return end > start ? end : start + 1;
}

static void round_corners(struct sheet *s, int x, int y, int w, int h, struct sheet_colour paper)
{
    for (int j = 0; j < ROUND; j++) {
        for (int i = 0; i < ROUND; i++) {
            const float dx = (float)(ROUND - i) - 0.5f, dy = (float)(ROUND - j) - 0.5f;
            const float out = sqrtf(dx * dx + dy * dy) - (float)ROUND + 0.5f;
            const float cover = out < 0 ? 0 : out > 1 ? 1 : out;
            sheet_dot(s, x + i, y + j, paper, cover);
            sheet_dot(s, x + w - 1 - i, y + j, paper, cover);
            sheet_dot(s, x + i, y + h - 1 - j, paper, cover);
            sheet_dot(s, x + w - 1 - i, y + h - 1 - j, paper, cover);
        }
    }
}

/* Draws a hairline, so that the edge of a white image is visible on white paper. */
static void hairline(struct sheet *s, int x, int y, int w, int h)
{
    const struct sheet_colour grey = {120, 122, 126};
    const float cover = 0.22f;
    for (int i = 0; i < w; i++) {
        sheet_dot(s, x + i, y, grey, cover);
        sheet_dot(s, x + i, y + h - 1, grey, cover);
    }
    for (int j = 1; j + 1 < h; j++) {
        sheet_dot(s, x, y + j, grey, cover);
        sheet_dot(s, x + w - 1, y + j, grey, cover);
    }
}

void sheet_draw(struct sheet *s, int x, int y, int w, int h, const struct sheet_image *image, struct sheet_colour paper)
{
    for (int j = 0; j < h; j++) {
        const int y0 = part(j, h, image->h), y1 = part_end(j, h, image->h);
        for (int i = 0; i < w; i++) {
            const struct sheet_colour c = mean_under(image, part(i, w, image->w), part_end(i, w, image->w), y0, y1);
            sheet_dot(s, x + i, y + j, c, 1);
        }
    }
    hairline(s, x, y, w, h);
    round_corners(s, x, y, w, h, paper);
}
