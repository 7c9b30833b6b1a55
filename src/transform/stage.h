/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h -- how each kind of step is done.
 *
 * A step of the first sort makes an image from an image. It has functions:
 *
 *     needs     which part of its input the part `need` of its output takes
 *     lay       takes scratch memory
 *     begin     fills tables, before the first line
 *     lines     makes some lines of the part `need`
 *
 * A step of the second sort, a point step, changes pixels one by one. Point steps are done on lines that have just been
 * made, while these are in the CPU's caches (point.h).
 */
#ifndef STAGE_H
#define STAGE_H

#include "transform/kernel.h"
#include "transform/plan.h"
#include "transform/point.h"

enum { STAGE_LINES = 16 }; /* in the buffers at a time */

/* Memory, or its cost. */
struct room {
    struct arena *arena; /* NULL: count only */
    size_t total;
    bool failed;
    struct stage_mix *mix; /* of the last fork */
};

void *room_take(struct room *r, size_t bytes);
/* Lines start at cache lines. */
struct image room_image(struct room *r, int32_t w, int32_t h, int32_t channels);

/* One step of the first sort with its memory, and the point steps that follow it. */
struct stage {
    const struct step *s; /* NULL: none, only point steps on the input */
    struct rect part;     /* that the point steps of such a stage take of the input */
    struct image in, out; /* out: not in the last stage */
    bool in_place;        /* out is the same memory as in */
    bool mirrored;        /* also mirrors, left to right; only if the kind can */
    struct points points; /* done on its lines */
    enum gathers gathers; /* from its lines, after the point steps, for the next stage */
    union {
        struct {
            bool across, down, across_first; /* its passes */
            struct taps x, y;
            double *weights;
            struct image between; /* between the passes */
        } resize;
        void *memory; /* of other kinds */
    };
};

struct step_functions {
    struct rect (*needs)(const struct step *s);               /* NULL: the same part */
    void (*lay)(struct room *r, struct stage *st);            /* NULL: nothing */
    void (*begin)(const struct kernels *k, struct stage *st); /* NULL: nothing */
    /* Makes lines y to y + n of the part `need`; n is at most STAGE_LINES. NULL: a point step. */
    void (*lines)(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride);
    /* Mirrored input gives mirrored output, bit for bit. Otherwise flips stay before it. */
    bool symmetric;
};

extern const struct step_functions step_functions[STEP_KINDS];

static inline uint8_t *image_line(const struct image *im, int32_t y)
{
    return im->px + (size_t)y * im->stride;
}

/* The part of its input that a step needs. */
struct rect step_needs(const struct step *s);
/* Whether a resize can mirror at no cost. */
bool stage_mirrors(const struct stage *st);

/* The index of the pixel at i of n, where i may be outside; -1: the fill. */
int32_t stage_pad_index(int32_t i, int32_t n, enum pad_mode mode);

/* The functions of kinds that have a file of their own. */
struct rect resize_needs(const struct step *s);
void resize_lay(struct room *r, struct stage *st);
void resize_begin(const struct kernels *k, struct stage *st);
void resize_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride);

struct rect warp_step_needs(const struct step *s);
void warp_step_lay(struct room *r, struct stage *st);
void warp_step_begin(const struct kernels *k, struct stage *st);
void warp_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride);

struct rect blur_step_needs(const struct step *s);
void blur_step_lay(struct room *r, struct stage *st);
void blur_step_begin(const struct kernels *k, struct stage *st);
void blur_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride);

struct rect elastic_step_needs(const struct step *s);
void elastic_step_lay(struct room *r, struct stage *st);
void elastic_step_begin(const struct kernels *k, struct stage *st);
void elastic_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride);

struct rect jpeg_step_needs(const struct step *s);
void jpeg_step_lay(struct room *r, struct stage *st);
void jpeg_step_begin(const struct kernels *k, struct stage *st);
void jpeg_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride);

struct rect mix_step_needs(const struct step *s);
void fork_step_lay(struct room *r, struct stage *st);
void fork_step_begin(const struct kernels *k, struct stage *st);
void fork_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride);
void add_step_lay(struct room *r, struct stage *st);
void add_step_begin(const struct kernels *k, struct stage *st);
void add_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride);

struct rect box_step_needs(const struct step *s);
void box_step_lay(struct room *r, struct stage *st);
void box_step_begin(const struct kernels *k, struct stage *st);
void box_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride);

void noise_step_lay(struct room *r, struct stage *st);
void noise_step_lines(const struct kernels *k, struct stage *st, int32_t y, int32_t n, uint8_t *dst, size_t stride);

#endif
