/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drawing.h -- what the draw function of an op works with: the image at this point, random numbers, steps, and notes of
 * what was drawn.
 */
#ifndef DRAWING_H
#define DRAWING_H

#include "base/rng.h"
#include "transform/ops_spec.h"
#include "transform/plan.h"

struct json;

struct drawing {
    const struct ops *ops; /* all of them */
    const struct draw *draw;
    struct job *job;
    int32_t w, h; /* of the image at this point */
    int channels;
    bool tensor;        /* torchvision has a tensor here, not a Pillow image */
    bool full;          /* more steps than a job has room for */
    struct json *notes; /* NULL: nothing is noted */
    stk_error *e;
};

/* Draws an op and all in its arguments. */
int drawing_op(struct drawing *g, const struct op *o);

/* The random numbers of the op. */
struct rng drawing_rng(const struct drawing *g, const struct op *o);
/* Whether an op with the argument p is applied, which is noted as "applied". */
bool drawing_chance(struct drawing *g, const struct op *o, struct rng *r);

/* The numbers from 0 to n - 1 in random order. */
void drawing_shuffle(struct rng *r, int32_t *order, int n);

/* Adds a step that makes an image of w x h with channels; the image at this point becomes its result. */
struct step *drawing_step(struct drawing *g, enum step_kind kind, int32_t w, int32_t h, int channels);
/* Adds a step that leaves the image alone. */
struct step *drawing_mark(struct drawing *g, enum step_kind kind);
/* Adds a crop, which pads where it is outside of the image, with the op's fill and padding_mode. Returns its
 * step, or one that only clamps boxes, if the crop is the whole image. */
struct step *drawing_crop(struct drawing *g, const struct op *o, struct rect c);
/* Adds a resize with the op's interpolation and antialias. */
void drawing_resize(struct drawing *g, const struct op *o, int32_t w, int32_t h);
/* The op's fill, for every channel; black if it has none. */
void drawing_fill(const struct op *o, uint8_t fill[3]);
/* The fill of masks: the op's mask_fill, a fill of one number, or 0, since three numbers are a colour. */
uint8_t drawing_mask_fill(const struct op *o);

/* Notes what was drawn. */
void drawing_note_int(struct drawing *g, const char *name, int64_t v);
void drawing_note_number(struct drawing *g, const char *name, double v);
void drawing_note_seed(struct drawing *g, const char *name, uint64_t v);
void drawing_note_text(struct drawing *g, const char *name, const char *v);
void drawing_note_bool(struct drawing *g, const char *name, bool v);
void drawing_note_ints(struct drawing *g, const char *name, const int32_t *v, int n);
void drawing_note_numbers(struct drawing *g, const char *name, const double *v, int n);
void drawing_note_size(struct drawing *g, int32_t w, int32_t h);
void drawing_note_crop(struct drawing *g, struct rect c);
/* Starts and ends a list. */
void drawing_note_open(struct drawing *g, const char *name);
void drawing_note_close(struct drawing *g);
/* The same for an object in a list. */
void drawing_note_object(struct drawing *g);
void drawing_note_object_end(struct drawing *g);

/* Fails because of the size of the image: "OP: the image has W x H pixels here, WHY". */
int drawing_refuse(const struct drawing *g, const struct op *o, const char *why);

/* Python's round: halves to even. */
int32_t drawing_round(double x);

#endif
