/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.c -- masks, boxes and keypoints over an image.
 *
 * A mask is a tint with a firm edge, so that the image stays visible below it. Value 0 is the background and stays
 * clear; 255 is ignored in training and becomes grey. Boxes and points have a dark rim, which keeps them visible on
 * any image.
 */
#include "marks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "font.h"

static const struct sheet_colour rim = {20, 22, 26}, white = {255, 255, 255}, ink = {32, 34, 38};
static const float tag_cap = 8, legend_cap = 9;

/* Colours that differ in hue and lightness, so that neighbours in the list are easy to tell apart. */
static const struct sheet_colour palette[] = {
    {230, 72, 56},  {52, 120, 230}, {46, 168, 84},  {240, 164, 32}, {150, 84, 214}, {24, 180, 190},
    {232, 90, 160}, {132, 170, 28}, {166, 104, 54}, {86, 98, 220},  {214, 60, 110}, {20, 140, 116},
};

struct sheet_colour marks_colour(int64_t value)
{
    enum { N = sizeof palette / sizeof palette[0] };
    return palette[(uint64_t)value % N];
}

/* ------------------------------------------------------------------ masks */

static int64_t value_at(const struct marks *m, int iw, int x, int y)
{
    const size_t i = (size_t)y * (size_t)iw + (size_t)x;
    uint16_t word;
    int32_t number;
    if (m->mask_bytes == 1)
        return m->mask[i];
    if (m->mask_bytes == 2) {
        memcpy(&word, m->mask + 2 * i, sizeof word);
        return word;
    }
    memcpy(&number, m->mask + 4 * i, sizeof number);
    return number < 0 ? MARKS_IGNORED : number;
}

static int place(int i, int n, int length)
{
    return (int)((int64_t)(2 * i + 1) * length / (2 * n));
}

static void tint(struct sheet *s, int x, int y, int w, int h, int iw, int ih, const struct marks *m)
{
    for (int j = 0; j < h; j++) {
        for (int i = 0; i < w; i++) {
            const int at_x = place(i, w, iw), at_y = place(j, h, ih);
            const int64_t v = value_at(m, iw, at_x, at_y);
            const int64_t right = i + 1 < w ? value_at(m, iw, place(i + 1, w, iw), at_y) : v;
            const int64_t below = j + 1 < h ? value_at(m, iw, at_x, place(j + 1, h, ih)) : v;
            const int edge = right != v || below != v;
            const int64_t shown = v ? v : edge ? (right ? right : below) : 0;
            const struct sheet_colour grey = {170, 172, 176};
            if (v || edge)
                sheet_dot(s, x + i, y + j, shown == MARKS_IGNORED ? grey : marks_colour(shown), edge ? 1.0f : 0.42f);
        }
    }
}

/* The mask of one box, in the colour of its label. */
static void tint_one(struct sheet *s, const int at[4], int iw, int ih, const uint8_t *mask, struct sheet_colour c)
{
    for (int j = 0; j < at[3]; j++) {
        for (int i = 0; i < at[2]; i++) {
            const uint8_t *line = mask + (size_t)place(j, at[3], ih) * (size_t)iw;
            const int in = line[place(i, at[2], iw)] != 0;
            const int right = i + 1 < at[2] ? line[place(i + 1, at[2], iw)] != 0 : in;
            const int below =
                j + 1 < at[3] ? mask[(size_t)place(j + 1, at[3], ih) * (size_t)iw + (size_t)place(i, at[2], iw)] != 0
                              : in;
            if (in || right || below)
                sheet_dot(s, at[0] + i, at[1] + j, c, in && right && below ? 0.42f : 1.0f);
        }
    }
}

/* ------------------------------------------------------------------ boxes */

static float clip(float v, float low, float high)
{
    return v < low ? low : v > high ? high : v;
}

/* A frame inside the box, `thick` pixels wide. */
static void frame(struct sheet *s, int x0, int y0, int x1, int y1, int thick, struct sheet_colour c, float cover)
{
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            if (x < x0 + thick || x >= x1 - thick || y < y0 + thick || y >= y1 - thick)
                sheet_dot(s, x, y, c, cover);
}

static void tag(struct sheet *s, int x, int y, int width, const char *text, struct sheet_colour c)
{
    enum { HIGH = 15, SIDE = 4 };
    char cut[64];
    font_fit(text, tag_cap, (float)(width - 2 * SIDE), cut, sizeof cut);
    const int w = (int)ceilf(font_width(cut, tag_cap)) + 2 * SIDE;
    for (int j = 0; j < HIGH; j++)
        for (int i = 0; i < w; i++)
            sheet_dot(s, x + i, y + j, c, 0.92f);
    font_draw(s, (float)(x + SIDE), (float)y + 11.5f, cut, tag_cap, 1.3f, white);
}

static void draw_box(struct sheet *s, const int at[4], const float *box, const float scale[2], int64_t label,
                     const char *name)
{
    const int x0 = at[0] + (int)lroundf(clip(box[0] * scale[0], 0, (float)at[2]));
    const int y0 = at[1] + (int)lroundf(clip(box[1] * scale[1], 0, (float)at[3]));
    const int x1 = at[0] + (int)lroundf(clip(box[2] * scale[0], 0, (float)at[2]));
    const int y1 = at[1] + (int)lroundf(clip(box[3] * scale[1], 0, (float)at[3]));
    const struct sheet_colour c = marks_colour(label < 0 ? 0 : label);
    char number[32];
    frame(s, x0 - 1, y0 - 1, x1 + 1, y1 + 1, 1, rim, 0.45f);
    frame(s, x0, y0, x1, y1, 2, c, 1);
    if (label < 0)
        return;
    snprintf(number, sizeof number, "%lld", (long long)label);
    const int room = at[0] + at[2] - x0;
    if (room > 24)
        tag(s, x0, y0 - at[1] >= 15 ? y0 - 15 : y0, room, name ? name : number, c);
}

/* ------------------------------------------------------------------ keypoints */

static void disc(struct sheet *s, float x, float y, float radius, struct sheet_colour c)
{
    for (int j = (int)(y - radius - 1); j <= (int)(y + radius + 1); j++)
        for (int i = (int)(x - radius - 1); i <= (int)(x + radius + 1); i++)
            sheet_dot(s, i, j, c, clip(radius + 0.5f - hypotf((float)i - x, (float)j - y), 0, 1));
}

static void draw_points(struct sheet *s, const int at[4], const struct marks *m, const float scale[2])
{
    for (int i = 0; i < m->n_points; i++) {
        const float *p = m->points + (size_t)i * (size_t)m->point_numbers;
        const float x = p[0] * scale[0], y = p[1] * scale[1];
        if ((m->point_numbers > 2 && p[2] <= 0) || !(x >= 0 && y >= 0 && x < (float)at[2] && y < (float)at[3]))
            continue;
        disc(s, (float)at[0] + x, (float)at[1] + y, 4.2f, rim);
        disc(s, (float)at[0] + x, (float)at[1] + y, 3.2f, white);
        disc(s, (float)at[0] + x, (float)at[1] + y, 2.2f, marks_colour(i));
    }
}

void marks_draw(struct sheet *s, int x, int y, int w, int h, int iw, int ih, const struct marks *m, marks_name *name,
                void *user)
{
    const int at[4] = {x, y, w, h};
    const float scale[2] = {(float)w / (float)iw, (float)h / (float)ih};
    if (m->mask)
        tint(s, x, y, w, h, iw, ih, m);
    for (int i = 0; i < m->n_each; i++)
        tint_one(s, at, iw, ih, m->each + (size_t)i * (size_t)iw * (size_t)ih,
                 marks_colour(m->labels ? m->labels[i] : i));
    for (int i = 0; i < m->n_boxes; i++) {
        const int64_t label = m->labels ? m->labels[i] : -1;
        draw_box(s, at, m->boxes + 4 * (size_t)i, scale, label, name && label >= 0 ? name(user, label) : NULL);
    }
    if (m->points)
        draw_points(s, at, m, scale);
}

/* ------------------------------------------------------------------ legend */

static void see(struct marks_seen *seen, int64_t value)
{
    int i = 0;
    while (i < seen->n && seen->value[i] < value)
        i++;
    if ((i < seen->n && seen->value[i] == value) || seen->n == MARKS_MOST)
        return;
    memmove(seen->value + i + 1, seen->value + i, (size_t)(seen->n - i) * sizeof seen->value[0]);
    seen->value[i] = value;
    seen->n++;
}

void marks_collect(struct marks_seen *seen, const struct marks *m, int iw, int ih)
{
    int64_t last = 0;
    for (int y = 0; m->mask && y < ih; y++) {
        for (int x = 0; x < iw; x++) {
            const int64_t v = value_at(m, iw, x, y);
            if (v && v != last)
                see(seen, v);
            last = v;
        }
    }
    for (int i = 0; m->labels && i < (m->n_boxes > m->n_each ? m->n_boxes : m->n_each); i++)
        see(seen, m->labels[i]);
}

int marks_legend(struct sheet *s, int x, int y, int width, const struct marks_seen *seen, marks_name *name, void *user)
{
    enum { SWATCH = 11, SPACE = 18 };
    int at = 0, lines = seen->n > 0;
    for (int i = 0; i < seen->n; i++) {
        char number[32], cut[64];
        const int64_t v = seen->value[i];
        const char *words = name ? name(user, v) : NULL;
        snprintf(number, sizeof number, "%lld", (long long)v);
        font_fit(words ? words : v == MARKS_IGNORED ? "ignored" : number, legend_cap, 180, cut, sizeof cut);
        const int w = SWATCH + 6 + (int)ceilf(font_width(cut, legend_cap)) + SPACE;
        if (at > 0 && at + w > width) {
            at = 0;
            lines++;
        }
        const struct sheet_colour grey = {170, 172, 176}, c = v == MARKS_IGNORED ? grey : marks_colour(v);
        const int top = y + (lines - 1) * MARKS_LEGEND;
        for (int j = 0; s && j < SWATCH; j++)
            for (int k = 0; k < SWATCH; k++)
                sheet_dot(s, x + at + k, top + j, c, 1);
        if (s)
            font_draw(s, (float)(x + at + SWATCH + 6), (float)(top + SWATCH) - 1, cut, legend_cap, 1.2f, ink);
        at += w;
    }
    return lines;
}
