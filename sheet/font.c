/* SPDX-License-Identifier: Apache-2.0 */
/*
 * font.c -- a typeface of our own, made of strokes.
 *
 * A glyph is a few strokes of one weight with round ends. In its text, "x,y" is a point, "~x,y" pulls the
 * curve between its neighbours towards itself, ";" lifts the pen. Capitals stand between y = 0 and
 * y = 8, small letters begin at 2.7, tails end at 10.6. A pixel is as dark as it is near the
 * nearest stroke.
 */
#include "font.h"

#include <math.h>
#include <string.h>

enum { FIRST = 32, LAST = 126, DOT = LAST + 1, ELLIPSIS, UNKNOWN, N_GLYPHS = UNKNOWN + 1 - FIRST };
enum { MAX_LINES = 128, CURVE_STEPS = 8 };

struct glyph {
    float width;
    const char *strokes;
};

static const float cap_units = 8, spacing = 1.9f;

#define RING "0,5.35 ~0,2.7 2.1,2.7 ~4.2,2.7 4.2,5.35 ~4.2,8 2.1,8 ~0,8 0,5.35"

static const struct glyph glyphs[N_GLYPHS] = {
    {1.7f, ""},                                                            /* space */
    {0, "0,0 0,5.5;0,7.9 0,8"},                                            /* ! */
    {1.8f, "0,0 0,2.2;1.8,0 1.8,2.2"},                                     /* " */
    {4.6f, "1.5,0.6 0.9,7.4;3.7,0.6 3.1,7.4;0,2.7 4.6,2.7;0,5.3 4.6,5.3"}, /* # */
    {4.8f, "4.6,1.5 ~4,0 2.4,0 ~0.2,0 0.2,2 ~0.2,3.6 2.4,4 ~4.8,4.4 4.8,6 ~4.8,8 2.4,8 ~0.6,8 0,6.4;2.4,-1 2.4,9"},
    {5.6f, "4.9,0.3 0.7,7.7;0,1.5 ~0,0 1.2,0 ~2.4,0 2.4,1.5 ~2.4,3 1.2,3 ~0,3 0,1.5;"
           "3.2,6.5 ~3.2,5 4.4,5 ~5.6,5 5.6,6.5 ~5.6,8 4.4,8 ~3.2,8 3.2,6.5"}, /* % */
    {5.2f, "5.2,8 1.4,3.2 ~0.4,1.9 1,0.7 ~1.5,0 2.3,0 ~3.8,0 3.8,1.6 ~3.8,2.8 1.9,3.9 ~0,5 0,6.2 ~0,8 2,8 "
           "~4.3,8 5,4.6"},                                               /* & */
    {0, "0,0 0,2.2"},                                                     /* ' */
    {1.7f, "1.7,-0.9 ~0,1.4 0,4.1 ~0,6.9 1.7,9.2"},                       /* ( */
    {1.7f, "0,-0.9 ~1.7,1.4 1.7,4.1 ~1.7,6.9 0,9.2"},                     /* ) */
    {3.4f, "1.7,0 1.7,3.8;0.1,0.9 3.3,2.9;3.3,0.9 0.1,2.9"},              /* * */
    {4.4f, "2.2,2.2 2.2,6.6;0,4.4 4.4,4.4"},                              /* + */
    {0.5f, "0.5,7.8 0,9.4"},                                              /* , */
    {2.6f, "0,4.9 2.6,4.9"},                                              /* - */
    {0, "0,7.9 0,8"},                                                     /* . */
    {3.4f, "0,9 3.4,-0.7"},                                               /* / */
    {4.6f, "0,4 ~0,0 2.3,0 ~4.6,0 4.6,4 ~4.6,8 2.3,8 ~0,8 0,4"},          /* 0 */
    {4.6f, "0.8,1.6 2.8,0 2.8,8"},                                        /* 1 */
    {4.6f, "0.2,2 ~0.4,0 2.4,0 ~4.5,0 4.5,2.1 ~4.5,3.4 3,4.9 0,8 4.6,8"}, /* 2 */
    {4.6f, "0.3,1.5 ~0.8,0 2.3,0 ~4.3,0 4.3,2 ~4.3,3.8 2,3.8;2,3.8 ~4.6,3.8 4.6,5.9 ~4.6,8 2.3,8 ~0.5,8 0,6.4"},
    {4.6f, "3.5,8 3.5,0 0,5.6 4.7,5.6"}, /* 4 */
    {4.6f, "4.2,0 0.7,0 0.4,3.7 ~1.2,3 2.3,3 ~4.6,3 4.6,5.5 ~4.6,8 2.2,8 ~0.5,8 0,6.6"},
    {4.6f, "4.2,1 ~3.6,0 2.5,0 ~0,0 0,5 ~0,8 2.3,8 ~4.6,8 4.6,5.5 ~4.6,3 2.3,3 ~0.2,3 0,5.4"},
    {4.6f, "0,0 4.6,0 1.6,8"}, /* 7 */
    {4.6f, "2.3,3.7 ~0.3,3.7 0.3,1.9 ~0.3,0 2.3,0 ~4.3,0 4.3,1.9 ~4.3,3.7 2.3,3.7 ~0,3.7 0,5.9 ~0,8 2.3,8 "
           "~4.6,8 4.6,5.9 ~4.6,3.7 2.3,3.7"}, /* 8 */
    {4.6f, "0.4,7 ~1,8 2.1,8 ~4.6,8 4.6,3 ~4.6,0 2.3,0 ~0,0 0,2.5 ~0,5 2.3,5 ~4.4,5 4.6,2.6"},
    {0, "0,3.4 0,3.5;0,7.9 0,8"},                                                 /* : */
    {0.5f, "0.5,3.4 0.5,3.5;0.5,7.8 0,9.4"},                                      /* ; */
    {3.8f, "3.8,1.8 0,4.5 3.8,7.2"},                                              /* < */
    {4.2f, "0,3.3 4.2,3.3;0,5.7 4.2,5.7"},                                        /* = */
    {3.8f, "0,1.8 3.8,4.5 0,7.2"},                                                /* > */
    {4, "0.1,1.7 ~0.5,0 2.1,0 ~4,0 4,1.9 ~4,3.1 2.9,3.9 ~2,4.6 2,5.7;2,7.9 2,8"}, /* ? */
    {7, "4.9,2.9 4.9,4.8 ~4.9,5.9 5.9,5.9 ~7,5.9 7,4.1 ~7,0.6 3.6,0.6 ~0,0.6 0,4.5 ~0,8.6 3.8,8.6 ~5,8.6 5.9,8;"
        "4.9,4.3 ~4.9,2.6 3.4,2.6 ~2,2.6 2,4.3 ~2,6 3.4,6 ~4.9,6 4.9,4.3"}, /* @ */
    {5.6f, "0,8 2.8,0 5.6,8;1,5.2 4.6,5.2"},                                /* A */
    {4.9f, "0,8 0,0 2.6,0 ~4.5,0 4.5,2 ~4.5,3.9 2.6,3.9 0,3.9;2.6,3.9 ~4.9,3.9 4.9,6 ~4.9,8 2.6,8 0,8"},
    {5.2f, "5.2,1.6 ~4.4,0 2.8,0 ~0,0 0,4 ~0,8 2.8,8 ~4.4,8 5.2,6.4"},                 /* C */
    {5.3f, "0,0 0,8 2,8 ~5.3,8 5.3,4 ~5.3,0 2,0 0,0"},                                 /* D */
    {4.3f, "4.3,0 0,0 0,8 4.3,8;0,3.9 3.8,3.9"},                                       /* E */
    {4.1f, "4.1,0 0,0 0,8;0,4 3.6,4"},                                                 /* F */
    {5.4f, "5.2,1.6 ~4.4,0 2.8,0 ~0,0 0,4 ~0,8 2.8,8 ~5.4,8 5.4,5.4 5.4,4.4 3.2,4.4"}, /* G */
    {5.2f, "0,0 0,8;5.2,0 5.2,8;0,4 5.2,4"},                                           /* H */
    {0, "0,0 0,8"},                                                                    /* I */
    {3.6f, "3.6,0 3.6,5.8 ~3.6,8 1.8,8 ~0.2,8 0,6.3"},                                 /* J */
    {5, "0,0 0,8;4.8,0 0,4.9;1.8,3.3 5,8"},                                            /* K */
    {4.1f, "0,0 0,8 4.1,8"},                                                           /* L */
    {6.4f, "0,8 0,0 3.2,5 6.4,0 6.4,8"},                                               /* M */
    {5.2f, "0,8 0,0 5.2,8 5.2,0"},                                                     /* N */
    {5.8f, "0,4 ~0,0 2.9,0 ~5.8,0 5.8,4 ~5.8,8 2.9,8 ~0,8 0,4"},                       /* O */
    {4.8f, "0,8 0,0 2.6,0 ~4.8,0 4.8,2.3 ~4.8,4.6 2.6,4.6 0,4.6"},                     /* P */
    {5.8f, "0,4 ~0,0 2.9,0 ~5.8,0 5.8,4 ~5.8,8 2.9,8 ~0,8 0,4;3.6,6.2 5.9,8.7"},       /* Q */
    {4.9f, "0,8 0,0 2.6,0 ~4.8,0 4.8,2.3 ~4.8,4.6 2.6,4.6 0,4.6;2.6,4.6 4.9,8"},       /* R */
    {4.8f, "4.6,1.5 ~4,0 2.4,0 ~0.2,0 0.2,2 ~0.2,3.6 2.4,4 ~4.8,4.4 4.8,6 ~4.8,8 2.4,8 ~0.6,8 0,6.4"},
    {5, "0,0 5,0;2.5,0 2.5,8"},                      /* T */
    {5.2f, "0,0 0,5 ~0,8 2.6,8 ~5.2,8 5.2,5 5.2,0"}, /* U */
    {5.4f, "0,0 2.7,8 5.4,0"},                       /* V */
    {7.6f, "0,0 1.9,8 3.8,1.4 5.7,8 7.6,0"},         /* W */
    {5, "0,0 5,8;5,0 0,8"},                          /* X */
    {5.2f, "0,0 2.6,4.2 5.2,0;2.6,4.2 2.6,8"},       /* Y */
    {4.8f, "0,0 4.8,0 0,8 4.8,8"},                   /* Z */
    {1.5f, "1.5,-0.9 0,-0.9 0,9.2 1.5,9.2"},         /* [ */
    {3.4f, "0,-0.7 3.4,9"},                          /* \ */
    {1.5f, "0,-0.9 1.5,-0.9 1.5,9.2 0,9.2"},         /* ] */
    {3.8f, "0,3 1.9,0 3.8,3"},                       /* ^ */
    {4.4f, "0,9.2 4.4,9.2"},                         /* _ */
    {1, "0,0 1,1.4"},                                /* ` */
    {4, "0.4,3.8 ~1,2.7 2.2,2.7 ~4,2.7 4,4.6 4,8;4,5 2.2,5 ~0,5 0,6.5 ~0,8 1.7,8 ~3.4,8 4,6.4"},
    {4.2f, "0,0 0,8;" RING},                                                          /* b */
    {3.9f, "3.9,4 ~3.3,2.7 2.1,2.7 ~0,2.7 0,5.35 ~0,8 2.1,8 ~3.3,8 3.9,6.7"},         /* c */
    {4.2f, "4.2,0 4.2,8;" RING},                                                      /* d */
    {4.2f, "0,5.3 4.2,5.3 ~4.2,2.7 2.1,2.7 ~0,2.7 0,5.35 ~0,8 2.2,8 ~3.5,8 4.1,6.8"}, /* e */
    {2.7f, "2.7,0.1 ~1,-0.3 1,1.8 1,8;0,2.7 2.5,2.7"},                                /* f */
    {4.2f, "4.2,2.7 4.2,8.4 ~4.2,10.6 2.1,10.6 ~0.8,10.6 0.3,9.7;" RING},             /* g */
    {4, "0,0 0,8;0,5 ~0,2.7 2.1,2.7 ~4,2.7 4,4.9 4,8"},                               /* h */
    {0, "0,2.7 0,8;0,0.5 0,0.6"},                                                     /* i */
    {0.6f, "0.6,2.7 0.6,9 ~0.6,10.6 -0.8,10.5;0.6,0.5 0.6,0.6"},                      /* j */
    {3.8f, "0,0 0,8;3.6,2.7 0,5.9;1.3,4.8 3.8,8"},                                    /* k */
    {1, "0,0 0,6.8 ~0,8 1,8"},                                                        /* l */
    {6.6f, "0,2.7 0,8;0,4.8 ~0,2.7 1.7,2.7 ~3.3,2.7 3.3,4.6 3.3,8;3.3,4.8 ~3.3,2.7 5,2.7 ~6.6,2.7 6.6,4.6 6.6,8"},
    {4, "0,2.7 0,8;0,5 ~0,2.7 2.1,2.7 ~4,2.7 4,4.9 4,8"}, /* n */
    {4.2f, RING},                                         /* o */
    {4.2f, "0,2.7 0,10.6;" RING},                         /* p */
    {4.2f, "4.2,2.7 4.2,10.6;" RING},                     /* q */
    {2.4f, "0,2.7 0,8;0,5 ~0,2.7 2.4,2.8"},               /* r */
    {3.6f, "3.4,3.8 ~2.9,2.7 1.8,2.7 ~0.2,2.7 0.2,4 ~0.2,5.1 1.8,5.3 ~3.6,5.5 3.6,6.7 ~3.6,8 1.8,8 ~0.5,8 0,6.9"},
    {2.6f, "1,0.9 1,6.4 ~1,8 2.6,7.9;0,2.7 2.5,2.7"},     /* t */
    {4, "0,2.7 0,5.8 ~0,8 1.9,8 ~4,8 4,5.7;4,2.7 4,8"},   /* u */
    {4.2f, "0,2.7 2.1,8 4.2,2.7"},                        /* v */
    {6, "0,2.7 1.5,8 3,3.4 4.5,8 6,2.7"},                 /* w */
    {4, "0,2.7 4,8;4,2.7 0,8"},                           /* x */
    {4.2f, "0,2.7 2.1,8;4.2,2.7 2.1,8 ~1.2,10.6 0,10.5"}, /* y */
    {3.8f, "0,2.7 3.8,2.7 0,8 3.8,8"},                    /* z */
    {2, "2,-0.9 ~0.9,-0.9 0.9,1 0.9,2.7 ~0.9,4.1 0,4.1 ~0.9,4.1 0.9,5.5 0.9,7.4 ~0.9,9.2 2,9.2"},
    {0, "0,-0.9 0,9.2"}, /* | */
    {2, "0,-0.9 ~1.1,-0.9 1.1,1 1.1,2.7 ~1.1,4.1 2,4.1 ~1.1,4.1 1.1,5.5 1.1,7.4 ~1.1,9.2 0,9.2"},
    {4.6f, "0,5 ~0.2,3.9 1.2,3.9 ~1.9,3.9 2.4,4.4 ~2.9,5 3.5,5 ~4.5,5 4.6,3.8"}, /* ~ */
    {0, "0,4.4 0,4.5"},                                                          /* middle dot */
    {4, "0,7.9 0,8;2,7.9 2,8;4,7.9 4,8"},                                        /* ellipsis */
    {4, "0,0.4 4,0.4 4,8 0,8 0,0.4"},                                            /* anything else */
};

/* ------------------------------------------------------------------ characters */

/* Takes one character of UTF-8. Each byte of invalid text counts as one. */
static const struct glyph *next_glyph(const char **text)
{
    const unsigned char *s = (const unsigned char *)*text;
    size_t n = 1;
    if (s[0] >= 0xc0)
        while (n < 4 && (s[n] & 0xc0) == 0x80)
            n++;
    *text += n;
    if (s[0] >= FIRST && s[0] <= LAST)
        return &glyphs[s[0] - FIRST];
    if (n == 2 && s[0] == 0xc2 && s[1] == 0xb7)
        return &glyphs[DOT - FIRST];
    if (n == 3 && s[0] == 0xe2 && s[1] == 0x80 && s[2] == 0xa6)
        return &glyphs[ELLIPSIS - FIRST];
    return &glyphs[UNKNOWN - FIRST];
}

float font_width(const char *text, float cap)
{
    float width = 0;
    while (*text)
        width += next_glyph(&text)->width + spacing;
    return width > 0 ? (width - spacing) * cap / cap_units : 0;
}

void font_fit(const char *text, float cap, float width, char *buf, size_t n)
{
    static const char mark[] = "\xe2\x80\xa6";
    size_t len = strlen(text), cut = len < n - sizeof mark ? len : n - sizeof mark;
    memcpy(buf, text, cut);
    buf[cut] = 0;
    while (cut > 0 && (cut < len || font_width(buf, cap) > width)) {
        cut--;
        while (cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80)
            cut--;
        memcpy(buf + cut, mark, sizeof mark);
        len = cut;
    }
}

/* ------------------------------------------------------------------ strokes */

struct line {
    float x0, y0, x1, y1;
};

struct outline {
    struct line s[MAX_LINES];
    int n;
};

static float number(const char **p)
{
    const int negative = **p == '-';
    float v = 0, unit = 1;
    int point = 0;
    for (*p += negative; (**p >= '0' && **p <= '9') || **p == '.'; ++*p) {
        if (**p == '.') {
            point = 1;
            continue;
        }
        v = v * 10 + (float)(**p - '0');
        unit *= point ? 10.0f : 1.0f;
    }
    return (negative ? -v : v) / unit;
}

static void point(const char **p, float *x, float *y)
{
    *x = number(p);
    ++*p; /* the comma */
    *y = number(p);
}

static void add(struct outline *o, float x0, float y0, float x1, float y1)
{
    if (o->n < MAX_LINES)
        o->s[o->n++] = (struct line){x0, y0, x1, y1};
}

static void add_curve(struct outline *o, float x0, float y0, float cx, float cy, float x1, float y1)
{
    float px = x0, py = y0;
    for (int i = 1; i <= CURVE_STEPS; i++) {
        const float t = (float)i / CURVE_STEPS, u = 1 - t;
        const float x = u * u * x0 + 2 * u * t * cx + t * t * x1, y = u * u * y0 + 2 * u * t * cy + t * t * y1;
        add(o, px, py, x, y);
        px = x;
        py = y;
    }
}

static void trace(struct outline *o, const char *p)
{
    float x = 0, y = 0, cx, cy, nx, ny;
    int down = 0;
    o->n = 0;
    while (*p) {
        if (*p == ';' || *p == ' ') {
            down = down && *p == ' ';
            p++;
        } else if (*p == '~') {
            p++;
            point(&p, &cx, &cy);
            p += *p == ' ';
            point(&p, &nx, &ny);
            add_curve(o, x, y, cx, cy, nx, ny);
            x = nx;
            y = ny;
        } else {
            point(&p, &nx, &ny);
            if (down)
                add(o, x, y, nx, ny);
            x = nx;
            y = ny;
            down = 1;
        }
    }
}

static float distance_to(const struct line *s, float x, float y)
{
    const float dx = s->x1 - s->x0, dy = s->y1 - s->y0, length = dx * dx + dy * dy;
    float t = length > 0 ? ((x - s->x0) * dx + (y - s->y0) * dy) / length : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    const float ex = x - s->x0 - t * dx, ey = y - s->y0 - t * dy;
    return sqrtf(ex * ex + ey * ey);
}

struct pen {
    float x, y, scale, weight; /* where the glyph's (0, 8) is; pixels a unit; pixels */
    struct sheet_colour colour;
};

static void draw_glyph(struct sheet *s, const struct pen *pen, const struct glyph *g)
{
    struct outline o;
    trace(&o, g->strokes);
    if (o.n == 0)
        return;
    const float top = pen->y - cap_units * pen->scale, edge = pen->weight / 2 + 1;
    const int x0 = (int)(pen->x - pen->scale - edge), x1 = (int)(pen->x + g->width * pen->scale + edge) + 1;
    const int y0 = (int)(top - pen->scale - edge), y1 = (int)(top + 10.6f * pen->scale + edge) + 1;
    for (int y = y0; y <= y1; y++) {
        for (int x = x0; x <= x1; x++) {
            const float ux = ((float)x + 0.5f - pen->x) / pen->scale, uy = ((float)y + 0.5f - top) / pen->scale;
            float near = 1e9f;
            for (int i = 0; i < o.n; i++) {
                const float d = distance_to(&o.s[i], ux, uy);
                near = d < near ? d : near;
            }
            const float cover = pen->weight / 2 + 0.5f - near * pen->scale;
            if (cover > 0)
                sheet_dot(s, x, y, pen->colour, cover > 1 ? 1 : cover);
        }
    }
}

void font_draw(struct sheet *s, float x, float y, const char *text, float cap, float weight, struct sheet_colour c)
{
    struct pen pen = {.x = x, .y = y, .scale = cap / cap_units, .weight = weight, .colour = c};
    while (*text) {
        const struct glyph *g = next_glyph(&text);
        draw_glyph(s, &pen, g);
        pen.x += (g->width + spacing) * pen.scale;
    }
}
