/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth_object.c -- the classes (a colour, a shape, a pattern); objects with light and a shadow; plain ellipses.
 *
 * A shape is a signed distance d(x, y), negative inside, in a plane where the object has radius 1 and y
 * points down. The distance gives the soft edge. Its slope gives the curvature of the surface near the
 * edge, and so the light.
 */
#include "synth.h"

#include <math.h>
#include <stdio.h>

/* ------------------------------------------------------------------ classes */

/* Classes fill a square of colours and shapes. So neither colour nor shape alone determines the class, and a network
 * has to learn both. */
static const struct {
    const char *name;
    struct synth_colour rgb;
} colours[SYNTH_COLOURS] = {
    {"amber", {0.93f, 0.62f, 0.10f}},  {"teal", {0.05f, 0.55f, 0.55f}},    {"crimson", {0.80f, 0.09f, 0.18f}},
    {"violet", {0.50f, 0.24f, 0.78f}}, {"olive", {0.47f, 0.50f, 0.12f}},   {"azure", {0.14f, 0.47f, 0.90f}},
    {"coral", {0.95f, 0.45f, 0.36f}},  {"jade", {0.10f, 0.66f, 0.36f}},    {"ivory", {0.93f, 0.90f, 0.78f}},
    {"indigo", {0.20f, 0.17f, 0.52f}}, {"magenta", {0.85f, 0.16f, 0.60f}}, {"lemon", {0.95f, 0.88f, 0.22f}},
    {"slate", {0.38f, 0.44f, 0.52f}},  {"russet", {0.55f, 0.25f, 0.10f}},  {"mint", {0.58f, 0.88f, 0.70f}},
    {"ebony", {0.10f, 0.09f, 0.09f}},
};

static const char *const shape_names[SYNTH_SHAPES] = {"disc",    "ring",   "star", "cross", "box",     "cone",
                                                      "heart",   "flower", "moon", "pill",  "hexagon", "drop",
                                                      "diamond", "gear",   "leaf", "knot"};

static const char *const patterns[SYNTH_PATTERNS] = {"", "striped_", "dotted_", "checked_"};

/* The smallest side whose square is at least n, limited by the number of colours. */
static int side_of(int n)
{
    int side = 1;
    while (side < SYNTH_COLOURS && side * side < n)
        side++;
    return side;
}

struct synth_class synth_class_of(int k, int n_classes)
{
    const int side = side_of(n_classes);
    const int colour = k % side, row = k / side;
    return (struct synth_class){colour, (row + 3 * colour) % SYNTH_SHAPES, row / SYNTH_SHAPES};
}

void synth_class_name(struct synth_class c, char *buf, size_t n)
{
    snprintf(buf, n, "%s%s_%s", patterns[c.pattern], colours[c.colour].name, shape_names[c.shape]);
}

struct synth_colour synth_class_colour(struct synth_class c)
{
    return colours[c.colour].rgb;
}

/* ------------------------------------------------------------------ shapes */

static float length2(float x, float y)
{
    return sqrtf(x * x + y * y);
}

static float box(float x, float y, float half_w, float half_h)
{
    const float dx = fabsf(x) - half_w, dy = fabsf(y) - half_h;
    const float ox = dx > 0 ? dx : 0, oy = dy > 0 ? dy : 0;
    return length2(ox, oy) + (dx > dy ? (dx < 0 ? dx : 0) : (dy < 0 ? dy : 0));
}

/* cos(n * angle) of the direction (x, y), by powers of a complex number. */
static float cos_times(float x, float y, int n)
{
    const float r = length2(x, y);
    if (r < 1e-4f)
        return 0;
    const float c = x / r, s = y / r;
    float re = 1, im = 0;
    for (int i = 0; i < n; i++) {
        const float t = re * c - im * s;
        im = re * s + im * c;
        re = t;
    }
    return re;
}

static float disc(float x, float y)
{
    return length2(x, y) - 1;
}

static float ring(float x, float y)
{
    return fabsf(length2(x, y) - 0.71f) - 0.29f;
}

static float star(float x, float y)
{
    const float cx = 0.80901699f, sy = 0.58778525f;
    x = fabsf(x);
    float t = cx * x + sy * y; /* folded twice into one fifth */
    if (t > 0) {
        x -= 2 * t * cx;
        y -= 2 * t * sy;
    }
    t = -cx * x + sy * y;
    if (t > 0) {
        x += 2 * t * cx;
        y -= 2 * t * sy;
    }
    x = fabsf(x);
    const float bx = 0.47f * sy, by = 1 - 0.47f * cx, py = y + 1; /* the edge from the tip to the notch */
    const float h = synth_clamp((x * bx + py * by) / (bx * bx + by * by), 0, 1);
    const float d = length2(x - bx * h, py - by * h);
    return x * by - py * bx > 0 ? d : -d;
}

static float cross(float x, float y)
{
    const float a = box(x, y, 0.96f, 0.31f), b = box(x, y, 0.31f, 0.96f);
    return a < b ? a : b;
}

static float square(float x, float y)
{
    return box(x, y, 0.68f, 0.68f) - 0.1f;
}

static float cone(float x, float y)
{
    const float side = fabsf(x) * 0.894f - (y + 1) * 0.447f, foot = y - 0.85f;
    return side > foot ? side : foot;
}

static float heart(float x, float y)
{
    const float up = 0.12f - y * 1.05f - 0.62f * sqrtf(fabsf(x));
    return (length2(x, up) - 0.88f) * 0.62f;
}

static float flower(float x, float y)
{
    return (length2(x, y) - 0.74f - 0.25f * cos_times(x, y, 6)) * 0.6f;
}

static float moon(float x, float y)
{
    const float full = disc(x, y), bite = 0.8f - length2(x - 0.46f, y + 0.12f);
    return full > bite ? full : bite;
}

static float pill(float x, float y)
{
    return length2(x - synth_clamp(x, -0.58f, 0.58f), y) - 0.42f;
}

static float hexagon(float x, float y)
{
    const float side = fabsf(x) * 0.8660254f + fabsf(y) * 0.5f, top = fabsf(y);
    return (side > top ? side : top) - 0.86f;
}

static float drop(float x, float y)
{
    const float belly = length2(x, y - 0.35f) - 0.65f;
    const float side = fabsf(x) * 0.8660254f - (y + 0.95f) * 0.5f, foot = y - 0.025f;
    const float tip = side > foot ? side : foot;
    return belly < tip ? belly : tip;
}

static float diamond(float x, float y)
{
    return (fabsf(x) * 1.35f + fabsf(y) - 1) * 0.595f;
}

static float gear(float x, float y)
{
    return (length2(x, y) - 0.82f - 0.13f * synth_clamp(cos_times(x, y, 9) * 3, -1, 1)) * 0.5f;
}

static float leaf(float x, float y)
{
    return length2(fabsf(x) + 0.62f, y) - 1.1766f;
}

static float knot(float x, float y)
{
    const float a = fabsf(length2(x - 0.38f, y) - 0.46f), b = fabsf(length2(x + 0.38f, y) - 0.46f);
    return (a < b ? a : b) - 0.16f;
}

typedef float shape_fn(float x, float y);
static shape_fn *const shapes[SYNTH_SHAPES] = {disc, ring, star,    cross, square,  cone, heart, flower,
                                               moon, pill, hexagon, drop,  diamond, gear, leaf,  knot};

/* ------------------------------------------------------------------ ellipses */

struct frame {
    int x0, y0, x1, y1;
};

/* The pixels of the canvas within `reach` of a place. */
static struct frame frame_of(const struct synth_canvas *c, float x, float y, float reach)
{
    const float far = (float)(c->w + c->h);
    reach = synth_clamp(reach, 0, far);
    x = synth_clamp(x, -far, far);
    y = synth_clamp(y, -far, far);
    struct frame f = {(int)(x - reach), (int)(y - reach), (int)(x + reach) + 2, (int)(y + reach) + 2};
    f.x0 = f.x0 < 0 ? 0 : f.x0;
    f.y0 = f.y0 < 0 ? 0 : f.y0;
    f.x1 = f.x1 > c->w ? c->w : f.x1;
    f.y1 = f.y1 > c->h ? c->h : f.y1;
    return f;
}

void synth_blob(struct synth_canvas *c, const struct synth_blob *b)
{
    const struct frame f = frame_of(c, b->x, b->y, b->long_r + b->edge);
    const float per_long = 1 / b->long_r, per_short = 1 / b->short_r, steep = b->short_r / b->edge;
    for (int y = f.y0; y < f.y1; y++) {
        for (int x = f.x0; x < f.x1; x++) {
            const float dx = (float)x - b->x, dy = (float)y - b->y;
            const float u = (dx * b->cos_a + dy * b->sin_a) * per_long, v = (dy * b->cos_a - dx * b->sin_a) * per_short;
            const float q = u * u + v * v;
            const float cover = synth_clamp((1 - q) * 0.5f * steep + 0.5f, 0, 1);
            if (cover <= 0)
                continue;
            const float light = 1 - b->shade * (0.35f + 0.5f * v + 0.3f * q);
            synth_blend(c, (size_t)y * (size_t)c->w + (size_t)x, synth_light(b->colour, light), cover * b->alpha);
        }
    }
}

/* ------------------------------------------------------------------ things */

struct thing {
    float x, y, radius, cos_a, sin_a;
    float squash; /* height over width */
    shape_fn *shape;
    int pattern;
    float pitch; /* of the pattern */
    struct synth_colour colour, second;
    float bevel, gloss, grain;
    float lx, ly, lz; /* where the light comes from */
    float blur;       /* softness of the edge, pixels */
};

static int on_pattern(const struct thing *t, float u, float v)
{
    const float a = u * t->pitch + 64, b = v * t->pitch + 64;
    const int i = (int)a, j = (int)b;
    const float fa = a - (float)i - 0.5f, fb = b - (float)j - 0.5f;
    switch (t->pattern) {
    case 1:
        return i & 1;
    case 2:
        return fa * fa + fb * fb < 0.09f;
    case 3:
        return (i + j) & 1;
    default:
        return 0;
    }
}

static void to_plane(const struct thing *t, float x, float y, float *u, float *v)
{
    const float dx = (x - t->x) / t->radius, dy = (y - t->y) / t->radius;
    *u = dx * t->cos_a + dy * t->sin_a;
    *v = (dy * t->cos_a - dx * t->sin_a) / t->squash;
}

/* Light on a surface that bends away near the edge; gx, gy is the slope of the distance. */
static struct synth_colour lit(const struct thing *t, struct synth_colour base, float d, float gx, float gy)
{
    const float bend = 1 - synth_clamp(-d / t->bevel, 0, 1);
    const float nx = synth_clamp(gx, -1, 1) * bend, ny = synth_clamp(gy, -1, 1) * bend;
    const float flat = 1 - nx * nx - ny * ny;
    const float nz = sqrtf(flat > 0.02f ? flat : 0.02f);
    const float facing = nx * t->lx + ny * t->ly + nz * t->lz;
    const float diffuse = facing > 0 ? facing : 0;
    float shine = diffuse * diffuse;
    shine *= shine;
    shine *= shine;
    shine *= shine * t->gloss;
    const float gain = 0.38f + 0.72f * diffuse;
    return (struct synth_colour){base.r * gain + shine, base.g * gain + shine, base.b * gain + shine};
}

static void fill_distances(const struct thing *t, struct frame f, float *d)
{
    for (int y = f.y0; y < f.y1; y++) {
        for (int x = f.x0; x < f.x1; x++) {
            float u, v;
            to_plane(t, (float)x, (float)y, &u, &v);
            *d++ = t->shape(u, v);
        }
    }
}

static void paint_thing(struct synth_canvas *c, const struct thing *t, float *d)
{
    const struct frame f = frame_of(c, t->x, t->y, t->radius * 1.15f + t->blur);
    if (f.x1 - f.x0 < 3 || f.y1 - f.y0 < 3)
        return;
    fill_distances(t, f, d);
    const int w = f.x1 - f.x0;
    const float slope = t->radius * 0.5f, sharp = t->radius / t->blur;
    for (int y = f.y0 + 1; y < f.y1 - 1; y++) {
        const float *row = d + (size_t)(y - f.y0) * (size_t)w;
        for (int x = f.x0 + 1; x < f.x1 - 1; x++) {
            const float *p = row + (x - f.x0);
            const float cover = synth_clamp(0.5f - p[0] * sharp, 0, 1);
            if (cover <= 0)
                continue;
            const size_t at = (size_t)y * (size_t)c->w + (size_t)x;
            float u, v;
            to_plane(t, (float)x, (float)y, &u, &v);
            const struct synth_colour base = on_pattern(t, u, v) ? t->second : t->colour;
            const float gx = (p[1] - p[-1]) * slope, gy = (p[w] - p[-w]) * slope;
            const struct synth_colour seen = lit(t, base, p[0], gx, gy);
            synth_blend(c, at, synth_light(seen, 1 + t->grain * (c->rough[at] + 0.5f * c->fine[at])), cover);
        }
    }
}

static void paint_shadow(struct synth_canvas *c, const struct thing *t, float depth)
{
    const struct synth_blob shadow = {.x = t->x - t->lx * t->radius * 0.5f,
                                      .y = t->y + t->radius * t->squash * 0.86f,
                                      .long_r = t->radius * 1.15f,
                                      .short_r = t->radius * 0.3f,
                                      .cos_a = 1,
                                      .sin_a = 0,
                                      .colour = {0.03f, 0.03f, 0.05f},
                                      .edge = t->radius * 0.34f,
                                      .alpha = depth};
    synth_blob(c, &shadow);
}

/* An object at a random place in the image. Its radius is between two shares of the short side. */
static struct thing place(const struct synth_canvas *c, struct synth_rng *r, float least, float most)
{
    const float side = (float)(c->w < c->h ? c->w : c->h);
    struct thing t = {.radius = side * synth_uniform(r, least, most)};
    t.pitch = synth_uniform(r, 3, 6); /* one draw per statement: within one, the compiler chooses the order */
    t.x = (float)c->w * synth_uniform(r, 0.2f, 0.8f);
    t.y = (float)c->h * synth_uniform(r, 0.3f, 0.75f);
    t.sin_a = synth_uniform(r, -0.45f, 0.45f);
    t.cos_a = sqrtf(1 - t.sin_a * t.sin_a);
    t.squash = synth_uniform(r, 0.8f, 1.1f);
    t.bevel = synth_uniform(r, 0.25f, 0.9f);
    t.gloss = synth_chance(r, 50) ? synth_uniform(r, 0.1f, 0.8f) : 0;
    t.grain = synth_uniform(r, 0.12f, 0.4f);
    t.lx = synth_uniform(r, -0.6f, 0.6f);
    t.ly = synth_uniform(r, -0.7f, -0.2f);
    t.lz = sqrtf(1 - t.lx * t.lx - t.ly * t.ly);
    t.blur = synth_chance(r, 70) ? synth_uniform(r, 1.0f, 1.8f) : synth_uniform(r, 2, 5);
    return t;
}

static const struct synth_colour dull[] = {
    {0.52f, 0.50f, 0.47f}, {0.36f, 0.31f, 0.27f}, {0.72f, 0.69f, 0.64f}, {0.26f, 0.27f, 0.29f}, {0.60f, 0.54f, 0.45f}};

static void paint_dull_things(struct synth_canvas *c, struct synth_rng *r, float *tmp)
{
    const int n = synth_pick(r, 4);
    for (int i = 0; i < n; i++) {
        struct thing t = place(c, r, 0.05f, 0.16f);
        t.shape = shapes[synth_pick(r, SYNTH_SHAPES)];
        t.colour = synth_jitter(r, dull[synth_pick(r, (int)(sizeof dull / sizeof dull[0]))], 0.08f);
        t.second = synth_light(t.colour, 0.7f);
        t.gloss *= 0.3f;
        paint_shadow(c, &t, 0.35f);
        paint_thing(c, &t, tmp);
    }
}

void synth_objects(struct synth_canvas *c, struct synth_rng *r, struct synth_class class, float *tmp)
{
    paint_dull_things(c, r, tmp);
    const int n = synth_chance(r, 80) ? 1 : 2;
    for (int i = 0; i < n; i++) {
        struct thing t = place(c, r, 0.17f / (float)n + 0.06f, 0.38f / (float)n + 0.03f);
        t.shape = shapes[class.shape];
        t.pattern = class.pattern;
        t.colour = synth_jitter(r, synth_class_colour(class), 0.09f);
        t.second = synth_mix(t.colour, (struct synth_colour){0.95f, 0.93f, 0.88f}, 0.65f);
        paint_shadow(c, &t, synth_uniform(r, 0.35f, 0.6f));
        paint_thing(c, &t, tmp);
    }
}
