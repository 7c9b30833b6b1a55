/* SPDX-License-Identifier: Apache-2.0 */
/*
 * point.c -- steps that change pixels one by one: as Pillow does them, and hue also as torch does.
 */
#include "transform/point.h"

#include <math.h>
#include <string.h>

#include "transform/stage.h"

enum gathers step_gathers(const struct step *s)
{
    if (s->kind != STEP_TABLE)
        return GATHERS_NONE;
    switch (s->table) {
    case TABLE_CONTRAST:
        return GATHERS_GREY;
    case TABLE_AUTOCONTRAST:
        return GATHERS_RANGE;
    case TABLE_EQUALIZE:
        return GATHERS_COUNTS;
    default:
        return GATHERS_NONE;
    }
}

bool step_is_point(const struct step *s)
{
    return !step_functions[s->kind].lines;
}

/* ------------------------------------------------------------------ the whole image */

void gather_init(struct gather *g, enum gathers what)
{
    g->what = what;
    g->pixels = g->grey = 0;
    memset(g->range.low, 255, sizeof g->range.low);
    memset(g->range.high, 0, sizeof g->range.high);
    if (what == GATHERS_COUNTS)
        memset(g->counts, 0, sizeof g->counts);
}

/* Neighbours are often equal, and counting one value twice in a row is slow: so they count in different tables. */
static void count_line(struct gather *g, const uint8_t *px, int32_t w, int channels)
{
    const size_t n = (size_t)w * (size_t)channels, step = 4 * (size_t)channels;
    size_t i = 0;
    if (channels == 3)
        for (; i + step <= n; i += step)
            for (int k = 0; k < 4; k++) {
                g->counts[k][0][px[i + 3 * (size_t)k]]++;
                g->counts[k][1][px[i + 3 * (size_t)k + 1]]++;
                g->counts[k][2][px[i + 3 * (size_t)k + 2]]++;
            }
    for (; i < n; i++)
        g->counts[i / (size_t)channels % 4][i % (size_t)channels][px[i]]++;
}

/* Adds the tables. */
static void gather_end(struct gather *g)
{
    for (int k = 1; k < 4 && g->what == GATHERS_COUNTS; k++)
        for (int i = 0; i < 3 * 256; i++)
            g->counts[0][i / 256][i % 256] += g->counts[k][i / 256][i % 256];
    if (g->what == GATHERS_COUNTS)
        memset(g->counts[1], 0, 3 * sizeof g->counts[1]);
}

static uint64_t sum_greys(const struct kernels *k, const uint8_t *px, int32_t w)
{
    enum { SOME = 1024 };
    uint8_t grey[SOME + IMAGE_SLACK];
    uint64_t sum = 0;
    for (int32_t n; w > 0; w -= n, px += 3 * (size_t)n) {
        n = w < SOME ? w : SOME;
        k->grey(grey, px, n);
        sum += k->sum(grey, (size_t)n);
    }
    return sum;
}

void gather_lines(const struct kernels *k, struct gather *g, const struct image *lines)
{
    for (int32_t y = 0; y < lines->h; y++) {
        const uint8_t *px = image_line(lines, y);
        if (g->what == GATHERS_COUNTS)
            count_line(g, px, lines->w, lines->channels);
        else if (g->what == GATHERS_RANGE)
            k->range(&g->range, px, (size_t)lines->w * (size_t)lines->channels);
        else
            g->grey += lines->channels == 3 ? sum_greys(k, px, lines->w) : k->sum(px, (size_t)lines->w);
    }
    g->pixels += (uint64_t)lines->w * (uint64_t)lines->h;
}

/* ------------------------------------------------------------------ tables */

/* Pillow's blend: between two values, or beyond the second. */
static uint8_t blend(int from, int to, float alpha)
{
    const float v = (float)from + alpha * (float)(to - from);
    return (uint8_t)(v <= 0.0f ? 0 : v >= 255.0f ? 255 : v);
}

static int clip(int v)
{
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

static void contrast(const struct gather *g, float factor, uint8_t t[256])
{
    const int mean = (int)((double)g->grey / (double)g->pixels + 0.5);
    for (int v = 0; v < 256; v++)
        t[v] = blend(mean, v, factor);
}

static void autocontrast(const struct gather *g, int ch, int channels, uint8_t t[256])
{
    int low = 255, high = 0;
    for (int i = ch; i < RANGE_RUN; i += channels) {
        low = g->range.low[i] < low ? g->range.low[i] : low;
        high = g->range.high[i] > high ? g->range.high[i] : high;
    }
    const double scale = 255.0 / (high - low), offset = -low * scale;
    for (int v = 0; v < 256; v++)
        t[v] = (uint8_t)(high <= low ? v : clip((int)(v * scale + offset)));
}

static void equalize(const uint32_t counts[256], uint64_t pixels, uint8_t t[256])
{
    int last = 255;
    while (last > 0 && counts[last] == 0)
        last--;
    const uint64_t step = (pixels - counts[last]) / 255; /* 0 also if there is only one level */
    uint64_t n = step / 2;
    for (int v = 0; v < 256; v++) {
        t[v] = (uint8_t)(step == 0 ? v : clip((int)(n / step)));
        n += counts[v];
    }
}

/* The table of one step for one channel. */
static void table_of(const struct step *s, const struct gather *g, int ch, uint8_t t[256])
{
    const int amount = (int)s->amount;
    switch ((enum step_table)s->table) {
    case TABLE_CONTRAST:
        contrast(g, (float)s->amount, t);
        return;
    case TABLE_AUTOCONTRAST:
        autocontrast(g, ch, s->channels, t);
        return;
    case TABLE_EQUALIZE:
        equalize(g->counts[0][ch], g->pixels, t);
        return;
    case TABLE_SCALE:
        for (int v = 0; v < 256; v++)
            t[v] = blend(0, v, (float)s->amount);
        return;
    case TABLE_POSTERIZE:
        for (int v = 0; v < 256; v++)
            t[v] = (uint8_t)(v & ~((1 << (8 - amount)) - 1));
        return;
    case TABLE_SOLARIZE:
        for (int v = 0; v < 256; v++)
            t[v] = (uint8_t)(v < s->amount ? v : 255 - v);
        return;
    case TABLE_SOLARIZE_ADD:
        for (int v = 0; v < 256; v++)
            t[v] = (uint8_t)(v < 128 ? clip(v + amount) : v);
        return;
    case TABLE_INVERT:
        for (int v = 0; v < 256; v++)
            t[v] = (uint8_t)(255 - v);
        return;
    }
}

static bool per_channel(const struct step *s)
{
    return s->channels > 1 && (s->table == TABLE_AUTOCONTRAST || s->table == TABLE_EQUALIZE);
}

struct points points_lay(struct room *r, struct point *p, const struct step *s, int n)
{
    struct points all = {.p = p};
    for (int i = 0; i < n; i++) {
        struct point *last = all.n > 0 ? &p[all.n - 1] : NULL;
        if (last && s[i].kind == STEP_TABLE && last->s->kind == STEP_TABLE) {
            last->n++;
            last->same &= !per_channel(&s[i]);
            continue;
        }
        p[all.n] = (struct point){.s = &s[i], .n = 1, .same = !per_channel(&s[i])};
        if (s[i].kind == STEP_TABLE)
            p[all.n].table = room_take(r, sizeof(uint8_t[3][256]));
        all.n++;
    }
    return all;
}

static void compose(const struct point *p, const struct gather *g, int ch)
{
    uint8_t *table = p->table[ch], next[256];
    table_of(p->s, g, ch, table);
    for (int i = 1; i < p->n; i++) {
        table_of(p->s + i, g, ch, next);
        for (int v = 0; v < 256; v++)
            table[v] = next[table[v]];
    }
}

void points_begin(const struct points *p, struct gather *g)
{
    if (g && p->n > 0 && step_gathers(p->p[0].s) != GATHERS_NONE)
        gather_end(g);
    for (int i = 0; i < p->n; i++)
        if (p->p[i].table)
            for (int ch = 0; ch < (p->p[i].same ? 1 : 3); ch++)
                compose(&p->p[i], g, ch);
}

/* ------------------------------------------------------------------ hue on tensors */

/* torchvision's adjust_hue on tensors of bytes, operation by operation, in single precision. The kernel `hue` does it
 * as Pillow does, with 256 hues. */

static float unit(float v)
{
    return v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
}

/* fmodf(v, 1) for v below 2, without a call. */
static float fraction(float v)
{
    return v >= 1.0f ? v - 1.0f : v;
}

static float larger(float a, float b)
{
    return a > b ? a : b;
}

static float smaller(float a, float b)
{
    return a < b ? a : b;
}

/* The hue, in turns from 0 to 1. */
static float hue_of(const float *rgb, float most, float range)
{
    const float rc = (most - rgb[0]) / range, gc = (most - rgb[1]) / range, bc = (most - rgb[2]) / range;
    float h;
    if (rgb[0] == most)
        h = bc - gc;
    else if (rgb[1] == most)
        h = rc + 2.0f - bc;
    else
        h = gc + 4.0f - rc;
    return fraction(h * (1.0f / 6.0f) + 1.0f);
}

static void turn_pixel(uint8_t *dst, const uint8_t *src, float turn)
{
    /* Which of value, p, q and t is red, green and blue, by the sixth of the circle. */
    static const uint8_t chosen[6][3] = {{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
    const float rgb[3] = {(float)src[0] / 255.0f, (float)src[1] / 255.0f, (float)src[2] / 255.0f};
    const float most = larger(rgb[0], larger(rgb[1], rgb[2])), least = smaller(rgb[0], smaller(rgb[1], rgb[2]));
    const float range = most - least, s = range > 0.0f ? range / most : 0.0f;
    float h = fraction((range > 0.0f ? hue_of(rgb, most, range) : 0.0f) + turn);
    h = h < 0.0f ? h + 1.0f : h;
    const float six = h * 6.0f, whole = (float)(int)six, sf = s * (six - whole), rest = 1.0f - s;
    const float vpqt[4] = {most, unit(rest * most), unit((1.0f - sf) * most), unit((sf + rest) * most)};
    for (int ch = 0; ch < 3; ch++)
        dst[ch] = (uint8_t)(vpqt[chosen[(int)whole % 6][ch]] * (256.0f - 1e-3f));
}

/* turn: from -0.5 to 0.5. */
static void hue_line(uint8_t *dst, const uint8_t *src, int32_t n, float turn)
{
    for (int32_t i = 0; i < n; i++)
        turn_pixel(dst + 3 * i, src + 3 * i, turn);
}

/* ------------------------------------------------------------------ lines */

static void grey_line(const struct kernels *k, uint8_t *dst, const uint8_t *src, int32_t w, int from, int to)
{
    if (from == 3 && to == 3)
        k->grey3(dst, src, w);
    else if (from == 3)
        k->grey(dst, src, w);
    else
        for (int32_t x = 0; x < w; x++)
            memset(dst + (size_t)x * (size_t)to, src[x], (size_t)to);
}

static void point_line(const struct kernels *k, const struct point *p, uint8_t *dst, const uint8_t *src, int32_t w)
{
    const struct step *s = p->s;
    if (s->kind == STEP_GREY)
        grey_line(k, dst, src, w, s->in, s->channels);
    else if (s->kind == STEP_HUE && s->tensor)
        hue_line(dst, src, w, (float)s->amount);
    else if (s->kind == STEP_HUE)
        k->hue(dst, src, w, (uint8_t)(int)s->amount);
    else if (s->kind == STEP_PERMUTE)
        k->permute(dst, src, w, s->order);
    else if (p->n == 1 && s->table == TABLE_INVERT)
        k->invert(dst, src, (size_t)w * (size_t)s->channels);
    else if (p->same)
        k->table1(dst, src, (size_t)w * (size_t)s->channels, p->table[0]);
    else
        k->table3(dst, src, w, (const uint8_t(*)[256])p->table);
}

void point_lines(const struct kernels *k, const struct point *p, const struct image *dst, const struct image *src)
{
    if (p->s->kind == STEP_MIX) {
        k->mix(dst->px, dst->stride, src->px, src->stride, src->w, dst->h, (float)p->s->amount);
        return;
    }
    const size_t bytes = (size_t)src->w * (size_t)src->channels;
    const bool whole = src->stride == bytes && dst->stride == bytes && p->s->in == p->s->channels;
    if (whole && src->w <= INT32_MAX / STAGE_LINES) { /* one long line */
        point_line(k, p, dst->px, src->px, src->w * dst->h);
        return;
    }
    for (int32_t y = 0; y < dst->h; y++)
        point_line(k, p, image_line(dst, y), image_line(src, y), src->w);
}
