/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth.h -- photo-like images made by arithmetic: what the synth_*.c files share.
 *
 * An image is a function of (seed, index, n_classes, size) only. It uses only the basic operations of
 * IEEE floats, in a fixed order, so that every machine and any number of threads give the same bytes.
 */
#ifndef SYNTH_H
#define SYNTH_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------ synth_noise.c */

struct synth_rng {
    uint64_t state;
};

struct synth_rng synth_rng_init(uint64_t seed, uint64_t stream);
uint64_t synth_next(struct synth_rng *r);
float synth_uniform(struct synth_rng *r, float lo, float hi);
int synth_pick(struct synth_rng *r, int n); /* 0 .. n-1 */
int synth_chance(struct synth_rng *r, int percent);

/* Fills w x h floats with fractal noise of about -1..1. rough is the amplitude of an octave relative to the
 * next coarser one (0.5 clouds, 0.8 gravel). The finest `smooth` octaves are left out. tmp has w x h floats, too. */
void synth_fractal(struct synth_rng *r, float *dst, float *tmp, int w, int h, float rough, int smooth);

/* ------------------------------------------------------------------ canvas */

struct synth_colour {
    float r, g, b;
};

/* Planes of w x h floats, 0 to 1, and three fields of noise to paint with. */
struct synth_canvas {
    int w, h;
    float *r, *g, *b;
    float *rough, *soft, *fine;
};

static inline float synth_clamp(float x, float lo, float hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* 0 below a, 1 above b, smooth between. */
static inline float synth_step(float a, float b, float x)
{
    const float t = synth_clamp((x - a) / (b - a), 0, 1);
    return t * t * (3 - 2 * t);
}

static inline struct synth_colour synth_mix(struct synth_colour a, struct synth_colour b, float t)
{
    return (struct synth_colour){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static inline struct synth_colour synth_light(struct synth_colour a, float gain)
{
    return (struct synth_colour){a.r * gain, a.g * gain, a.b * gain};
}

static inline void synth_put(struct synth_canvas *c, size_t at, struct synth_colour v)
{
    c->r[at] = v.r;
    c->g[at] = v.g;
    c->b[at] = v.b;
}

static inline void synth_blend(struct synth_canvas *c, size_t at, struct synth_colour v, float alpha)
{
    c->r[at] += (v.r - c->r[at]) * alpha;
    c->g[at] += (v.g - c->g[at]) * alpha;
    c->b[at] += (v.b - c->b[at]) * alpha;
}

struct synth_colour synth_jitter(struct synth_rng *r, struct synth_colour c, float by);

/* ------------------------------------------------------------------ synth_class.c */

enum {
    SYNTH_COLOURS = 16,
    SYNTH_SHAPES = 16,
    SYNTH_PATTERNS = 4,
    SYNTH_MAX_CLASSES = SYNTH_COLOURS * SYNTH_SHAPES * SYNTH_PATTERNS
};

struct synth_class {
    int colour, shape, pattern;
};

struct synth_class synth_class_of(int k, int n_classes);
void synth_class_name(struct synth_class c, char *buf, size_t n); /* "amber_disc", "striped_teal_star" */
struct synth_colour synth_class_colour(struct synth_class c);

/* ------------------------------------------------------------------ synth_scene.c, synth_object.c */

void synth_scene(struct synth_canvas *c, struct synth_rng *r);
/* Draws the object of the class with its shadow, among objects of no class. tmp has w x h floats. */
void synth_objects(struct synth_canvas *c, struct synth_rng *r, struct synth_class class, float *tmp);
/* An ellipse with light on it: a leaf, a pebble, a lamp out of focus. */
struct synth_blob {
    float x, y, long_r, short_r, cos_a, sin_a;
    struct synth_colour colour;
    float edge;  /* softness of the edge, pixels */
    float shade; /* how much darker the far side is */
    float alpha;
};
void synth_blob(struct synth_canvas *c, const struct synth_blob *b);

/* ------------------------------------------------------------------ synth_image.c */

struct synth_spec {
    uint64_t seed;
    int64_t index;
    int n_classes;
    int size; /* of the long side, on average */
};

struct synth_image {
    int width, height, channels;
    uint8_t *pixels; /* owned by the painter; valid until its next image */
    int quality, subsample, progressive;
};

struct synth_painter;
struct synth_painter *synth_painter_new(int size); /* NULL: no memory */
void synth_painter_free(struct synth_painter *p);
void synth_paint(struct synth_painter *p, const struct synth_spec *s, struct synth_image *out);

#endif
