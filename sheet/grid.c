/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.c -- the layout of contact sheets.
 */
#include "grid.h"

#include <stdint.h>
#include <string.h>

#include "font.h"

const struct sheet_colour grid_paper = {250, 250, 248};
static const struct sheet_colour ink = {32, 34, 38}, soft = {104, 108, 116};
static const float title_cap = 16, under_cap = 10, caption_cap = 10, footnote_cap = 8;

void grid_head(struct sheet *s, const char *title, const char *under)
{
    const float width = (float)(s->w - 2 * GRID_MARGIN), y = GRID_MARGIN + title_cap;
    char cut[1024];
    font_fit(title, title_cap, width, cut, sizeof cut);
    font_draw(s, GRID_MARGIN, y, cut, title_cap, 2.3f, ink);
    font_fit(under, under_cap, width, cut, sizeof cut);
    font_draw(s, GRID_MARGIN, y + 26, cut, under_cap, 1.2f, soft);
}

void grid_caption(struct sheet *s, int x, int y, int width, const char *text)
{
    char cut[256];
    font_fit(text, caption_cap, (float)width, cut, sizeof cut);
    font_draw(s, (float)x + 1, (float)y + 17, cut, caption_cap, 1.3f, ink);
}

/* The width of the first n bytes as a footnote, which are copied to the line. */
static float width_of(const char *text, size_t n, char *line)
{
    memcpy(line, text, n);
    line[n] = 0;
    return font_width(line, footnote_cap);
}

void grid_footnote(struct sheet *s, int x, int y, int width, const char *text)
{
    char line[256];
    size_t n = strlen(text);
    while (n > 0 && (n >= sizeof line || width_of(text, n, line) > (float)width)) {
        for (n--; n > 0 && text[n - 1] != ' '; n--)
            ;
    }
    width_of(text, n, line);
    font_draw(s, (float)x + 1, (float)y + 15, line, footnote_cap, 1.1f, soft);
    font_fit(text + n, footnote_cap, (float)width, line, sizeof line);
    font_draw(s, (float)x + 1, (float)y + 15 + GRID_FOOTNOTE_LINE, line, footnote_cap, 1.1f, soft);
}

void grid_fit(int w, int h, int *to_w, int *to_h)
{
    const int longer = w > h ? w : h;
    if (longer > GRID_SIDE + GRID_SIDE / 4) {
        *to_w = (int)((int64_t)w * GRID_SIDE / longer);
        *to_h = (int)((int64_t)h * GRID_SIDE / longer);
    } else {
        const int times =
            longer * 2 <= GRID_SIDE ? GRID_SIDE / longer : 1; /* an integer factor, so that pixels stay square */
        *to_w = w * times;
        *to_h = h * times;
    }
    *to_w = *to_w < 1 ? 1 : *to_w;
    *to_h = *to_h < 1 ? 1 : *to_h;
}

int grid_draw(struct sheet *s, const struct grid *g)
{
    int w, h;
    const int rows = (g->n + g->columns - 1) / g->columns;
    struct marks_seen seen = {0};
    grid_fit(g->first.w, g->first.h, &w, &h);
    for (int i = 0; g->marks && i < g->n; i++)
        marks_collect(&seen, &g->marks[i], g->first.w, g->first.h);
    const int wide = 2 * GRID_MARGIN + g->columns * (w + GRID_GAP) - GRID_GAP;
    const int high = 2 * GRID_MARGIN + GRID_HEAD + rows * (h + GRID_CAPTION + GRID_GAP) - GRID_GAP;
    const int room = (wide < 480 ? 480 : wide) - 2 * GRID_MARGIN;
    const int legend = marks_legend(NULL, 0, 0, room, &seen, g->name, g->user) * MARKS_LEGEND;
    if (sheet_init(s, room + 2 * GRID_MARGIN, high + (legend ? legend + GRID_GAP : 0), grid_paper))
        return -1;
    grid_head(s, g->title, g->under);
    struct sheet_image image = g->first;
    const size_t bytes = (size_t)image.w * (size_t)image.h * (size_t)image.channels;
    for (int i = 0; i < g->n; i++, image.px += bytes) {
        const int x = GRID_MARGIN + i % g->columns * (w + GRID_GAP);
        const int y = GRID_MARGIN + GRID_HEAD + i / g->columns * (h + GRID_CAPTION + GRID_GAP);
        sheet_draw(s, x, y, w, h, &image, grid_paper);
        if (g->marks)
            marks_draw(s, x, y, w, h, image.w, image.h, &g->marks[i], g->name, g->user);
        grid_caption(s, x, y + h, w, g->captions[i]);
    }
    marks_legend(s, GRID_MARGIN, high - GRID_MARGIN + GRID_GAP, room, &seen, g->name, g->user);
    return 0;
}
