/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth_image.c -- one synthetic image: its size, its scene, its objects, the camera.
 *
 * Sizes, qualities and chroma follow what is seen in ImageNet: most long sides are `size` itself at
 * 4:3 or 3:2, some are anything; seven in eight are 4:4:4, most qualities are high, a few are
 * progressive, a few grey.
 */
#include "synth.h"

#include <math.h>
#include <stdlib.h>

enum { SMALLEST = 32 };

struct synth_painter {
    struct synth_canvas canvas;
    float *memory, *tmp;
    uint8_t *pixels;
    size_t room; /* pixels that every plane has room for */
};

/* ------------------------------------------------------------------ size */

static void choose_size(struct synth_rng *r, int size, int *w, int *h)
{
    float length = (float)size, ratio = 1;
    if (synth_chance(r, 70)) {
        static const float ratios[] = {0.75f, 0.75f, 0.75f, 0.6667f, 0.6667f, 1};
        ratio = ratios[synth_pick(r, (int)(sizeof ratios / sizeof ratios[0]))];
    } else {
        length *= synth_uniform(r, 0.55f, 1.2f);
        ratio = synth_uniform(r, 0.5f, 1);
    }
    const int along = (int)length, across = (int)(length * ratio);
    const int upright = synth_chance(r, 25);
    *w = upright ? across : along;
    *h = upright ? along : across;
    *w = *w < SMALLEST ? SMALLEST : *w;
    *h = *h < SMALLEST ? SMALLEST : *h;
}

/* ------------------------------------------------------------------ camera */

struct camera {
    float gain, contrast, warm, vignette, soft, grain;
};

static struct camera draw_camera(struct synth_rng *r)
{
    struct camera k = {.gain = synth_uniform(r, 0.9f, 1.25f)};
    k.contrast = synth_uniform(r, 0, 0.6f);
    k.warm = synth_uniform(r, -0.07f, 0.07f);
    k.vignette = synth_chance(r, 60) ? synth_uniform(r, 0.05f, 0.4f) : 0;
    k.soft = synth_uniform(r, 0, 0.6f);
    k.grain = synth_uniform(r, 0.012f, 0.07f);
    return k;
}

/* A weak blur with weights 1 2 1, first along the rows, then down the columns. */
static void soften(float *plane, float *above, int w, int h, float amount)
{
    const float side = 0.25f * amount, middle = 1 - 2 * side;
    for (int y = 0; y < h; y++) {
        float *row = plane + (size_t)y * (size_t)w;
        float left = row[0];
        for (int x = 0; x + 1 < w; x++) {
            const float here = row[x];
            row[x] = middle * here + side * (left + row[x + 1]);
            left = here;
        }
        for (int x = 0; x < w && y == 0; x++)
            above[x] = row[x];
    }
    for (int y = 0; y + 1 < h; y++) {
        float *row = plane + (size_t)y * (size_t)w;
        for (int x = 0; x < w; x++) {
            const float here = row[x];
            row[x] = middle * here + side * (above[x] + row[x + w]);
            above[x] = here;
        }
    }
}

static uint8_t to_byte(float v)
{
    const float scaled = v * 255 + 0.5f;
    return (uint8_t)(scaled < 0 ? 0 : scaled > 255 ? 255 : scaled);
}

/* Bends the middle tones up and down around one half. */
static float tone(float v, float contrast)
{
    v = synth_clamp(v, 0, 1);
    const float bent = v * v * (3 - 2 * v);
    return v + (bent - v) * contrast;
}

static void develop_row(const struct synth_canvas *c, const struct camera *k, struct synth_rng *r, int y, uint8_t *out)
{
    const float v = 2 * (float)y / (float)c->h - 1, red = k->gain * (1 + k->warm), blue = k->gain * (1 - k->warm);
    uint64_t bits = 0;
    for (int x = 0; x < c->w; x++) {
        const size_t at = (size_t)y * (size_t)c->w + (size_t)x;
        const float u = 2 * (float)x / (float)c->w - 1;
        const float light = 1 - k->vignette * (u * u + v * v) * 0.5f;
        if (x % 2 == 0)
            bits = synth_next(r);
        /* Two sums of two bytes: nearly the bell of a sensor's noise, stronger in grey than in colour. */
        const float grey = (float)((int)(bits & 0xff) + (int)(bits >> 8 & 0xff) - 255) * (1.0f / 255) * k->grain;
        const float tint = (float)((int)(bits >> 16 & 0xff) - (int)(bits >> 24 & 0xff)) * (1.0f / 510) * k->grain;
        bits >>= 32;
        out[3 * x] = to_byte(tone(c->r[at] * red * light, k->contrast) + grey + tint);
        out[3 * x + 1] = to_byte(tone(c->g[at] * k->gain * light, k->contrast) + grey);
        out[3 * x + 2] = to_byte(tone(c->b[at] * blue * light, k->contrast) + grey - tint);
    }
}

static void develop(struct synth_painter *p, struct synth_rng *r)
{
    struct synth_canvas *c = &p->canvas;
    const struct camera k = draw_camera(r);
    float *const planes[] = {c->r, c->g, c->b};
    for (int i = 0; i < 3; i++)
        soften(planes[i], p->tmp, c->w, c->h, k.soft);
    for (int y = 0; y < c->h; y++)
        develop_row(c, &k, r, y, p->pixels + (size_t)y * (size_t)c->w * 3);
}

static void to_grey(uint8_t *pixels, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pixels[i] = (uint8_t)((pixels[3 * i] * 77 + pixels[3 * i + 1] * 150 + pixels[3 * i + 2] * 29 + 128) >> 8);
}

/* ------------------------------------------------------------------ painter */

struct synth_painter *synth_painter_new(int size)
{
    struct synth_painter *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    const size_t side = (size_t)(size + size / 5 + SMALLEST); /* no side is longer */
    p->room = side * side;
    p->memory = malloc(p->room * 7 * sizeof *p->memory);
    p->pixels = malloc(p->room * 3);
    if (!p->memory || !p->pixels) {
        synth_painter_free(p);
        return NULL;
    }
    float **const planes[] = {&p->canvas.r,    &p->canvas.g,    &p->canvas.b, &p->canvas.rough,
                              &p->canvas.soft, &p->canvas.fine, &p->tmp};
    for (size_t i = 0; i < sizeof planes / sizeof planes[0]; i++)
        *planes[i] = p->memory + i * p->room;
    return p;
}

void synth_painter_free(struct synth_painter *p)
{
    if (!p)
        return;
    free(p->memory);
    free(p->pixels);
    free(p);
}

static void draw_noise(struct synth_painter *p, struct synth_rng *r)
{
    struct synth_canvas *c = &p->canvas;
    const float rough = synth_uniform(r, 0.62f, 0.85f), soft = synth_uniform(r, 0.42f, 0.55f);
    const float fine = synth_uniform(r, 0.8f, 1.0f);
    const int blurred = synth_chance(r, 30);
    synth_fractal(r, c->rough, p->tmp, c->w, c->h, rough, blurred);
    synth_fractal(r, c->soft, p->tmp, c->w, c->h, soft, 2);
    synth_fractal(r, c->fine, p->tmp, c->w, c->h, fine, 0);
}

void synth_paint(struct synth_painter *p, const struct synth_spec *s, struct synth_image *out)
{
    struct synth_rng r = synth_rng_init(s->seed, (uint64_t)s->index);
    struct synth_canvas *c = &p->canvas;
    choose_size(&r, s->size, &c->w, &c->h);
    *out = (struct synth_image){.width = c->w, .height = c->h, .channels = 3, .pixels = p->pixels};
    out->quality = synth_chance(&r, 76) ? 96 : 75 + synth_pick(&r, 21);
    out->subsample = synth_chance(&r, 12);
    out->progressive = synth_chance(&r, 2);
    const int grey = synth_chance(&r, 1);

    draw_noise(p, &r);
    synth_scene(c, &r);
    synth_objects(c, &r, synth_class_of((int)(s->index % s->n_classes), s->n_classes), p->tmp);
    develop(p, &r);
    if (grey) {
        to_grey(p->pixels, (size_t)c->w * (size_t)c->h);
        out->channels = 1;
    }
}
