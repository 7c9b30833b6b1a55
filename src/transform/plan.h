/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h -- the text of the ops becomes a plan; a plan and a picture's size become a job.
 *
 *     plan_new(&plan, "RandomResizedCrop(224) | RandomHorizontalFlip | Normalize", ...)
 *     plan_draw(plan, &draw, w, h, &job, e)      all random choices; job.want goes to the decoder
 *     plan_scratch(plan, &job)                   arena bytes plan_run will take
 *     plan_run(plan, &job, &image, arena, row, e)
 *
 * image holds exactly job.want.crop of the picture. The row is written whole: pixels, type,
 * layout. A plan is read-only once made and serves all threads.
 */
#ifndef PLAN_H
#define PLAN_H

#include "base/arena.h"
#include "base/sample.h"

struct plan;

struct plan_options {
    const char *ops;   /* NULL or "": none, which is possible for pictures of one size */
    stk_dtype dtype;   /* of the result; never DEFAULT here */
    stk_layout layout; /* never DEFAULT here */
    stk_fidelity fidelity;
    stk_cpu cpu;              /* which kernels; never DEFAULT here */
    int32_t fixed_w, fixed_h; /* the size of all pictures, where ops may leave it open; 0: they differ */
    bool open;                /* they differ, and rows may differ, too */
};

enum { JOB_STEPS = 32 };

enum step_kind { STEP_CROP, STEP_RESIZE, STEP_FLIP_X, STEP_FLIP_Y, STEP_GREY };

/*
 * One step of a job, all numbers drawn. It is described for the whole picture, so that its bits do
 * not depend on which part of it is computed: of its input (in_w x in_h) the part `from` is at hand, of its
 * output (w x h) the part `need` is made.
 */
struct step {
    enum step_kind kind;
    int32_t in_w, in_h, w, h;
    struct rect from, need;
    int32_t x, y;  /* crop: where the output lies in the input; outside of it, it pads */
    int8_t filter; /* resize: enum filter */
    int8_t antialias;
    int8_t pad_mode; /* crop: enum pad_mode */
    int8_t channels; /* of the output */
    uint8_t fill[3];
    double box_x, box_y, box_w, box_h; /* resize: the part of the input that it takes; box_w is 0: all */
};

struct job {
    struct want want;
    int32_t w, h;     /* of the result */
    int in, channels; /* of the picture, of the result */
    bool plain;       /* the result is a picture: 8-bit, interleaved, dense */
    int n_steps;
    struct step steps[JOB_STEPS];
    bool flip_x, flip_y; /* at the very end, while storing */
};

int plan_new(struct plan **out, const struct plan_options *o, stk_error *e);
void plan_free(struct plan *p); /* also NULL */

/* Shape of a row: C,H,W or H,W,C by layout. H and W are 0, and so are the bytes, where rows differ (open). */
void plan_shape(const struct plan *p, int64_t shape[3]);
size_t plan_row_bytes(const struct plan *p);
bool plan_is_open(const struct plan *p);
/* The shape of the row that a job makes, and its bytes. */
size_t plan_job_shape(const struct plan *p, const struct job *j, int64_t shape[3]);
/* The ops in their one text form, all defaults filled in, for explain. Lives with the plan. */
const char *plan_text(const struct plan *p);

int plan_draw(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out, stk_error *e);
/* What plan_draw draws, as a JSON list with an object for each op; PLAN_DRAWN bytes are enough. */
enum { PLAN_DRAWN = 3840 };
int plan_drawn(const struct plan *p, const struct draw *d, int32_t w, int32_t h, char buf[PLAN_DRAWN], stk_error *e);
/* Where fidelity is draft: has a decoder that can shrink the picture (w x h) by up to `most` deliver it smaller, when
 * it is resized to less anyway. Else nothing changes. */
void plan_draft(const struct plan *p, struct job *j, int32_t w, int32_t h, int most);
size_t plan_scratch(const struct plan *p, const struct job *j); /* 0 only when it overflows */
int plan_run(const struct plan *p, const struct job *j, const struct image *in, struct arena *a, void *row,
             stk_error *e);

/*
 * The ops before the first that draws make the same picture in every epoch: it can be kept. What plan_run makes of the
 * head's job is that picture (job.w x job.h x job.channels bytes), and of the rest's job and that picture the same row
 * as plan_draw's does of the original, bit for bit.
 */
int plan_draw_head(const struct plan *p, int32_t w, int32_t h, struct job *out, stk_error *e);
int plan_draw_rest(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out, stk_error *e);
bool plan_settled(const struct plan *p);       /* no op draws: nothing is left for the rest but type and layout */
const char *plan_random(const struct plan *p); /* the name of the first op that draws; NULL: none does */
int plan_head_channels(const struct plan *p);
/* The ops of the head that touch pixels, in their text form; "": none, the picture as decoded. Returns a hash of it. */
uint64_t plan_head_text(const struct plan *p, char *buf, size_t n);

#endif
