/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth_scene.c -- the scenes around the objects: meadow, sea, table, leaves, pebbles, lamps, town.
 *
 * The scene is independent of the class. All detail comes from the canvas's three fields of noise
 * (rough, soft, fine), read in different ways, so that a scene costs little more than its pixels.
 */
#include "synth.h"

#include <math.h>

typedef struct synth_colour colour;

static size_t row_at(const struct synth_canvas *c, int y)
{
    return (size_t)y * (size_t)c->w;
}

/* ------------------------------------------------------------------ sky and land */

struct sky {
    colour top, bottom, cloud;
    float cover, wispy;
};

static struct sky draw_sky(struct synth_rng *r)
{
    static const struct sky kinds[] = {
        {{0.22f, 0.44f, 0.80f}, {0.72f, 0.84f, 0.95f}, {0.97f, 0.97f, 0.98f}, 0, 0},
        {{0.40f, 0.57f, 0.80f}, {0.86f, 0.88f, 0.90f}, {0.95f, 0.94f, 0.93f}, 0, 0},
        {{0.24f, 0.24f, 0.42f}, {0.96f, 0.62f, 0.38f}, {0.75f, 0.45f, 0.42f}, 0, 0},
        {{0.60f, 0.63f, 0.67f}, {0.82f, 0.83f, 0.84f}, {0.74f, 0.75f, 0.77f}, 0, 0},
        {{0.10f, 0.14f, 0.28f}, {0.38f, 0.40f, 0.52f}, {0.26f, 0.28f, 0.38f}, 0, 0},
    };
    struct sky s = kinds[synth_pick(r, (int)(sizeof kinds / sizeof kinds[0]))];
    s.top = synth_jitter(r, s.top, 0.05f);
    s.bottom = synth_jitter(r, s.bottom, 0.05f);
    s.cover = synth_uniform(r, -0.35f, 0.35f);
    s.wispy = synth_uniform(r, 0.15f, 0.6f);
    return s;
}

static void paint_sky(struct synth_canvas *c, const struct sky *s, int y_end)
{
    for (int y = 0; y < y_end; y++) {
        const float t = (float)y / (float)(y_end > 1 ? y_end : 1);
        const colour clear = synth_mix(s->top, s->bottom, t * (2 - t));
        for (int x = 0; x < c->w; x++) {
            const size_t at = row_at(c, y) + (size_t)x;
            const float n = c->soft[at] + s->wispy * 0.4f * c->rough[at];
            const float cloud = synth_step(-0.1f, s->wispy, n - s->cover) * 0.9f;
            const colour lit = synth_light(s->cloud, 1 + 0.16f * c->rough[at] - 0.12f * n);
            synth_put(c, at, synth_mix(clear, lit, cloud));
        }
    }
}

/* Hills behind each other; the far ones take the colour of the air. */
static void paint_hills(struct synth_canvas *c, struct synth_rng *r, const struct sky *s, colour land, int horizon)
{
    const int n = 1 + synth_pick(r, 3);
    for (int k = 0; k < n; k++) {
        const float near = (float)(k + 1) / (float)(n + 1), tall = synth_uniform(r, 0.05f, 0.22f) * (float)c->h;
        const size_t line = row_at(c, synth_pick(r, c->h));
        const colour tone = synth_mix(s->bottom, synth_light(land, 0.6f), 0.25f + 0.7f * near);
        for (int x = 0; x < c->w; x++) {
            const float ridge = c->soft[line + (size_t)x] + 0.12f * c->rough[line + (size_t)x];
            const float top = (float)horizon - tall * (1.1f - near * 0.7f + ridge);
            for (int y = top < 0 ? 0 : (int)top; y < horizon; y++) {
                const size_t at = row_at(c, y) + (size_t)x;
                const float edge = synth_clamp((float)y + 1 - top, 0, 1);
                const float light = 1 + near * (0.35f * c->rough[at] + 0.15f * c->fine[at]);
                synth_blend(c, at, synth_light(tone, light), edge);
            }
        }
    }
}

static const colour lands[] = {{0.28f, 0.42f, 0.14f}, {0.45f, 0.46f, 0.20f}, {0.70f, 0.58f, 0.40f},
                               {0.42f, 0.36f, 0.30f}, {0.84f, 0.86f, 0.90f}, {0.20f, 0.33f, 0.18f},
                               {0.58f, 0.50f, 0.28f}};

static void paint_ground(struct synth_canvas *c, struct synth_rng *r, colour land, int horizon)
{
    const float coarse = synth_uniform(r, 0.2f, 0.55f), patch = synth_uniform(r, 0.1f, 0.4f);
    const colour other = synth_jitter(r, synth_light(land, synth_uniform(r, 0.5f, 0.9f)), 0.12f);
    for (int y = horizon; y < c->h; y++) {
        const float depth = (float)(y - horizon) / (float)(c->h - horizon);
        for (int x = 0; x < c->w; x++) {
            const size_t at = row_at(c, y) + (size_t)x;
            const float mix = synth_step(-0.4f, 0.6f, c->soft[at] + 0.5f * c->rough[at]);
            const float light =
                0.95f - 0.2f * depth + coarse * (0.4f + 0.6f * depth) * (c->rough[at] + 1.1f * c->fine[at]);
            synth_put(c, at, synth_light(synth_mix(land, other, mix * patch * 2), light));
        }
    }
}

static void meadow(struct synth_canvas *c, struct synth_rng *r)
{
    const struct sky s = draw_sky(r);
    const int horizon = (int)((float)c->h * synth_uniform(r, 0.3f, 0.65f));
    const colour land = synth_jitter(r, lands[synth_pick(r, (int)(sizeof lands / sizeof lands[0]))], 0.07f);
    paint_sky(c, &s, horizon);
    paint_hills(c, r, &s, land, horizon);
    paint_ground(c, r, land, horizon);
}

/* Water is the noise squeezed upright, the more the nearer the horizon. */
static void paint_water(struct synth_canvas *c, struct synth_rng *r, const struct sky *s, int horizon)
{
    const colour deep = synth_jitter(r, (colour){0.05f, 0.22f, 0.30f}, 0.06f);
    const float chop = synth_uniform(r, 0.25f, 0.7f);
    for (int y = horizon; y < c->h; y++) {
        const float depth = (float)(y - horizon + 1) / (float)(c->h - horizon);
        const colour base = synth_mix(s->bottom, deep, synth_step(0, 1.1f, sqrtf(depth)));
        const size_t squeezed = row_at(c, (int)((float)y * (5 - 2.5f * depth)) % c->h);
        const size_t slow = row_at(c, (y * 3) % c->h);
        for (int x = 0; x < c->w; x++) {
            const float wave = c->soft[slow + (size_t)x] + c->rough[squeezed + (size_t)x];
            const float glint = synth_step(0.55f, 1.1f, wave) * 0.45f;
            const size_t at = row_at(c, y) + (size_t)x;
            const colour seen = synth_light(base, 1 + chop * (0.3f + 0.7f * depth) * wave * 0.6f + 0.1f * c->fine[at]);
            synth_put(c, at, synth_mix(seen, s->bottom, glint));
        }
    }
}

static void sea(struct synth_canvas *c, struct synth_rng *r)
{
    const struct sky s = draw_sky(r);
    const int horizon = (int)((float)c->h * synth_uniform(r, 0.25f, 0.6f));
    paint_sky(c, &s, horizon);
    if (synth_chance(r, 40))
        paint_hills(c, r, &s, (colour){0.25f, 0.30f, 0.25f}, horizon);
    paint_water(c, r, &s, horizon);
}

/* ------------------------------------------------------------------ indoors */

static float triangle_wave(float x)
{
    const float f = x - (float)(int)x;
    return f < 0.5f ? f * 2 : 2 - f * 2;
}

static void paint_wall(struct synth_canvas *c, struct synth_rng *r, int y_end)
{
    static const colour paints[] = {{0.80f, 0.76f, 0.68f}, {0.62f, 0.68f, 0.70f}, {0.46f, 0.52f, 0.46f},
                                    {0.72f, 0.55f, 0.46f}, {0.30f, 0.32f, 0.40f}, {0.86f, 0.85f, 0.82f}};
    const colour paint = synth_jitter(r, paints[synth_pick(r, (int)(sizeof paints / sizeof paints[0]))], 0.08f);
    const float from_left = synth_uniform(r, -0.35f, 0.35f), stripes = synth_chance(r, 30) ? 0.12f : 0;
    const float per_stripe = synth_uniform(r, 0.02f, 0.06f);
    for (int y = 0; y < y_end; y++) {
        for (int x = 0; x < c->w; x++) {
            const size_t at = row_at(c, y) + (size_t)x;
            const float side = (float)x / (float)c->w - 0.5f;
            const float stripe = stripes * synth_step(0.4f, 0.6f, triangle_wave((float)x * per_stripe));
            synth_put(c, at,
                      synth_light(paint, 0.9f + from_left * side + 0.14f * c->soft[at] + 0.09f * c->fine[at] - stripe));
        }
    }
}

static void paint_frames(struct synth_canvas *c, struct synth_rng *r, int y_end)
{
    const int n = synth_pick(r, 3);
    for (int k = 0; k < n; k++) {
        const int w = c->w / 8 + synth_pick(r, c->w / 5), h = y_end / 4 + synth_pick(r, y_end / 3 + 1);
        const int x0 = synth_pick(r, c->w - w), y0 = synth_pick(r, y_end / 2 + 1);
        const colour inside = synth_jitter(r, (colour){0.5f, 0.5f, 0.5f}, 0.35f),
                     rim = synth_jitter(r, (colour){0.25f, 0.18f, 0.12f}, 0.1f);
        for (int y = y0; y < y0 + h && y < y_end; y++) {
            for (int x = x0; x < x0 + w; x++) {
                const int border = x < x0 + 5 || y < y0 + 5 || x >= x0 + w - 5 || y >= y0 + h - 5;
                const size_t at = row_at(c, y) + (size_t)x;
                synth_put(c, at, border ? rim : synth_light(inside, 1 + 0.5f * c->soft[at] + 0.2f * c->rough[at]));
            }
        }
    }
}

static void paint_boards(struct synth_canvas *c, struct synth_rng *r, int y_start)
{
    const colour wood = synth_jitter(r, (colour){0.52f, 0.36f, 0.22f}, 0.14f);
    const float rings = synth_uniform(r, 5, 14), gloss = synth_uniform(r, 0, 0.25f);
    for (int y = y_start; y < c->h; y++) {
        const float depth = (float)(y - y_start) / (float)(c->h - y_start);
        const size_t slow = row_at(c, (y * 2) % c->h);
        for (int x = 0; x < c->w; x++) {
            const size_t at = row_at(c, y) + (size_t)x;
            const float grain = triangle_wave(64 + c->soft[slow + (size_t)x / 3] * rings + depth * 3);
            const float light = 0.78f + 0.25f * depth + 0.22f * grain + 0.2f * c->fine[at] + 0.16f * c->rough[at];
            synth_put(c, at, synth_mix(synth_light(wood, light), (colour){0.9f, 0.9f, 0.88f}, gloss * (1 - depth)));
        }
    }
}

static void table(struct synth_canvas *c, struct synth_rng *r)
{
    const int edge = (int)((float)c->h * synth_uniform(r, 0.45f, 0.7f));
    paint_wall(c, r, edge);
    paint_frames(c, r, edge);
    paint_boards(c, r, edge);
}

/* ------------------------------------------------------------------ many small things */

static void paint_floor(struct synth_canvas *c, colour base, float contrast)
{
    for (int y = 0; y < c->h; y++) {
        for (int x = 0; x < c->w; x++) {
            const size_t at = row_at(c, y) + (size_t)x;
            synth_put(c, at, synth_light(base, 0.8f + contrast * (c->soft[at] + 0.6f * c->rough[at])));
        }
    }
}

static struct synth_blob anywhere(const struct synth_canvas *c, struct synth_rng *r)
{
    struct synth_blob b = {.alpha = 1};
    b.x = (float)c->w * synth_uniform(r, -0.05f, 1.05f);
    b.y = (float)c->h * synth_uniform(r, -0.05f, 1.05f);
    b.sin_a = synth_uniform(r, -1, 1);
    b.cos_a = sqrtf(1 - b.sin_a * b.sin_a) * (synth_chance(r, 50) ? 1.0f : -1.0f);
    return b;
}

static void grain_over(struct synth_canvas *c, float amount)
{
    const size_t n = (size_t)c->w * (size_t)c->h;
    for (size_t i = 0; i < n; i++) {
        const float k = 1 + amount * (c->rough[i] + 0.6f * c->fine[i]);
        c->r[i] *= k;
        c->g[i] *= k;
        c->b[i] *= k;
    }
}

static void leaves(struct synth_canvas *c, struct synth_rng *r)
{
    static const colour greens[] = {{0.30f, 0.48f, 0.14f},
                                    {0.48f, 0.55f, 0.16f},
                                    {0.16f, 0.38f, 0.20f},
                                    {0.62f, 0.42f, 0.14f},
                                    {0.40f, 0.52f, 0.30f}};
    const colour green = greens[synth_pick(r, (int)(sizeof greens / sizeof greens[0]))];
    const float side = (float)(c->w < c->h ? c->w : c->h), size = side * synth_uniform(r, 0.05f, 0.11f);
    paint_floor(c, synth_light(green, 0.35f), 0.3f);
    const int n = 150;
    for (int i = 0; i < n; i++) {
        const float front = (float)i / (float)n;
        struct synth_blob b = anywhere(c, r);
        b.long_r = size * synth_uniform(r, 0.7f, 1.3f);
        b.short_r = b.long_r * synth_uniform(r, 0.25f, 0.5f);
        b.edge = 1 + 5 * (1 - front) * (1 - front);
        b.shade = synth_uniform(r, 0.2f, 0.7f);
        b.colour = synth_light(synth_jitter(r, green, 0.12f), 0.45f + 0.75f * front);
        synth_blob(c, &b);
    }
    grain_over(c, synth_uniform(r, 0.2f, 0.5f));
}

static void pebbles(struct synth_canvas *c, struct synth_rng *r)
{
    const float side = (float)(c->w < c->h ? c->w : c->h), size = side * synth_uniform(r, 0.03f, 0.08f);
    const colour stone = synth_jitter(r, (colour){0.50f, 0.47f, 0.43f}, 0.12f);
    paint_floor(c, synth_light(stone, 0.4f), 0.3f);
    const int n = 220;
    for (int i = 0; i < n; i++) {
        struct synth_blob b = anywhere(c, r);
        b.long_r = size * synth_uniform(r, 0.5f, 1.4f);
        b.short_r = b.long_r * synth_uniform(r, 0.6f, 0.9f);
        b.edge = 1.3f;
        b.shade = synth_uniform(r, 0.4f, 0.8f);
        b.sin_a *= 0.4f;
        b.cos_a = sqrtf(1 - b.sin_a * b.sin_a);
        b.colour = synth_jitter(r, stone, 0.05f);
        b.colour = synth_light(b.colour, synth_uniform(r, 0.6f, 1.4f));
        synth_blob(c, &b);
    }
    grain_over(c, synth_uniform(r, 0.25f, 0.6f));
}

static void lamps(struct synth_canvas *c, struct synth_rng *r)
{
    const float side = (float)(c->w < c->h ? c->w : c->h);
    const colour glow = synth_jitter(r, (colour){0.95f, 0.75f, 0.45f}, 0.2f);
    paint_floor(c, synth_jitter(r, (colour){0.14f, 0.14f, 0.20f}, 0.08f), 0.35f);
    const int n = 20 + synth_pick(r, 40);
    for (int i = 0; i < n; i++) {
        struct synth_blob b = anywhere(c, r);
        b.y *= 0.8f;
        b.long_r = b.short_r = side * synth_uniform(r, 0.03f, 0.10f);
        b.edge = synth_uniform(r, 2, 8);
        b.colour = synth_jitter(r, glow, 0.25f);
        b.alpha = synth_uniform(r, 0.15f, 0.6f);
        synth_blob(c, &b);
    }
    paint_ground(c, r, synth_jitter(r, (colour){0.25f, 0.22f, 0.22f}, 0.08f), (int)((float)c->h * 0.72f));
}

/* ------------------------------------------------------------------ town */

struct house {
    int x0, x1, top, bottom;
    colour wall, window;
    int pitch_x, pitch_y;
};

static void paint_house(struct synth_canvas *c, const struct house *b)
{
    for (int y = b->top < 0 ? 0 : b->top; y < b->bottom; y++) {
        for (int x = b->x0 < 0 ? 0 : b->x0; x < b->x1 && x < c->w; x++) {
            const size_t at = row_at(c, y) + (size_t)x;
            const int u = (x - b->x0) % b->pitch_x, v = (y - b->top) % b->pitch_y;
            const int pane = u * 3 > b->pitch_x && v * 5 > b->pitch_y * 2 && y + b->pitch_y < b->bottom;
            const colour base = pane ? b->window : b->wall;
            synth_put(c, at, synth_light(base, 1 + 0.14f * c->soft[at] + (pane ? 0.35f : 0.16f) * c->rough[at]));
        }
    }
}

static void town(struct synth_canvas *c, struct synth_rng *r)
{
    const struct sky s = draw_sky(r);
    const int street = (int)((float)c->h * synth_uniform(r, 0.6f, 0.78f));
    paint_sky(c, &s, street);
    for (int x = -10; x < c->w;) {
        struct house b = {.x0 = x, .bottom = street};
        b.x1 = x + c->w / 10 + synth_pick(r, c->w / 5);
        b.top = (int)((float)street * synth_uniform(r, 0.1f, 0.7f));
        b.wall = synth_jitter(r, (colour){0.52f, 0.46f, 0.42f}, 0.18f);
        b.window = synth_jitter(r, (colour){0.22f, 0.25f, 0.30f}, 0.1f);
        b.pitch_x = 9 + synth_pick(r, 14);
        b.pitch_y = 12 + synth_pick(r, 14);
        paint_house(c, &b);
        x = b.x1;
    }
    paint_ground(c, r, synth_jitter(r, (colour){0.40f, 0.40f, 0.41f}, 0.06f), street);
}

typedef void scene_fn(struct synth_canvas *c, struct synth_rng *r);
static scene_fn *const scenes[] = {meadow, sea, table, leaves, pebbles, lamps, town, meadow, table, leaves};

void synth_scene(struct synth_canvas *c, struct synth_rng *r)
{
    scenes[synth_pick(r, (int)(sizeof scenes / sizeof scenes[0]))](c, r);
}
