/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth_class.c -- the classes of synthetic images: a colour, a shape, a pattern.
 *
 * Classes fill a square of colours and shapes. So neither colour nor shape alone determines the class,
 * and a network has to learn both.
 */
#include "synth.h"

#include <stdio.h>

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

static const char *const shapes[SYNTH_SHAPES] = {"disc",    "ring",   "star", "cross", "box",     "cone",
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
    snprintf(buf, n, "%s%s_%s", patterns[c.pattern], colours[c.colour].name, shapes[c.shape]);
}

struct synth_colour synth_class_colour(struct synth_class c)
{
    return colours[c.colour].rgb;
}
