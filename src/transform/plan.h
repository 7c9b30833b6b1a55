/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h -- ops become a plan; a plan and the size of an image become a job.
 *
 *     plan_new(&plan, "RandomResizedCrop(224) | RandomHorizontalFlip | Normalize", ...)
 *     plan_draw(plan, &draw, w, h, &job, e)      all random choices; job.want goes to the decoder
 *     plan_scratch(plan, &job)                   bytes of arena that plan_run takes
 *     plan_run(plan, &job, &image, arena, row, e)
 *
 * `image` holds exactly job.want.crop. plan_run writes all of the row, in the type and layout of the batch. A plan does
 * not change once it is made, and serves all threads.
 */
#ifndef PLAN_H
#define PLAN_H

#include "base/arena.h"
#include "base/sample.h"
#include "transform/elastic.h"
#include "transform/warp.h"

struct plan;
struct json;

struct plan_options {
    const char *ops;   /* NULL or "": none, which is possible if all images have one size */
    stk_dtype dtype;   /* of the result; never DEFAULT here */
    stk_layout layout; /* never DEFAULT here */
    stk_fidelity fidelity;
    stk_cpu cpu;              /* which kernels; never DEFAULT here */
    int32_t fixed_w, fixed_h; /* the size of all images, if ops may leave it open; 0: they differ */
    bool open;                /* they differ, and so may rows */
    bool several;             /* other plans work on the same image: it has no head, and is not decoded smaller */
    bool bytes; /* if possible, rows are bytes with interleaved channels; plan_tables and the layout are left to do */
    int64_t classes; /* of the source, for ops that make soft labels; 0: unknown */
};

enum { JOB_STEPS = 128 };

/* Steps are of two sorts. The first makes an image from another one. The second changes pixels one by one. stage.h has
 * the functions of every kind. */
enum step_kind {
    STEP_CROP,
    STEP_RESIZE,
    STEP_FLIP_X,
    STEP_FLIP_Y,
    STEP_SHARPEN,
    STEP_WARP,    /* through a map */
    STEP_BLUR,    /* Gaussian */
    STEP_BOX,     /* Pillow's blur */
    STEP_FORK,    /* keeps the image, for chains of steps that are mixed; each chain ends with STEP_ADD */
    STEP_ADD,     /* adds the result of a chain to the mixture, and goes back to the image that was kept */
    STEP_ELASTIC, /* along a random field */
    STEP_NOISE,   /* plus normal noise */
    STEP_JPEG,    /* saved and read again */

    STEP_GREY,    /* three channels to one, or three equal ones; one to three */
    STEP_TABLE,   /* a table of 256 values for every channel */
    STEP_MIX,     /* between grey and colour */
    STEP_HUE,     /* turns the hue */
    STEP_PERMUTE, /* of channels */

    STEP_CLAMP_BOXES, /* these leave the image alone, and are only in the job of plan_follow */
    STEP_CLAMP_POINTS,
    STEP_SANITIZE_BOXES,
    STEP_SANITIZE_POINTS,
    STEP_WHOLE_BOXES, /* boxes of whole numbers stay whole from here on */
    STEP_KINDS
};

/* How a table is made. The last ones depend on the pixels of the whole image. */
enum step_table {
    TABLE_SCALE, /* brightness */
    TABLE_POSTERIZE,
    TABLE_SOLARIZE,
    TABLE_SOLARIZE_ADD, /* adds to values below 128 */
    TABLE_INVERT,
    TABLE_CONTRAST,
    TABLE_AUTOCONTRAST,
    TABLE_EQUALIZE
};

enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_SYMMETRIC, PAD_MODES };

/*
 * One step of a job, with all random numbers drawn. It describes the whole image, so that its bits do not depend on
 * which part is computed. Of its input (in_w x in_h) the part `from` is available; of its output (w x h) the part
 * `need` is made.
 */
struct step {
    enum step_kind kind;
    int32_t in_w, in_h, w, h;
    struct rect from, need;
    int32_t x, y;        /* crop: position of the output in the input; it pads outside of the input */
    int8_t in, channels; /* of the input and of the output */
    int8_t filter;       /* resize: enum filter */
    int8_t antialias;    /* resize */
    int8_t pad_mode;     /* crop: enum pad_mode */
    int8_t table;        /* table: enum step_table */
    uint8_t fill[3];     /* crop */
    uint8_t mask_fill;   /* crop, warp, elastic: of masks */
    bool drops;          /* crop: boxes whose middle is outside become 0 */
    bool tensor;         /* hue: with torch's arithmetic instead of Pillow's */
    uint8_t order[3];    /* permute: the channel of the input for each of the output */
    union {
        struct warp warp;
        struct {
            int32_t size[2]; /* x, y; odd */
            double sigma;
        } blur;
        struct elastic elastic;
        struct {
            float weight; /* fork: of the image; add: of the chain */
            bool last;    /* add: the result is the mixture */
            bool blended; /* of the last: the mixture is rounded, then blended with the image by `share` */
            float share;
        } mix;
        int32_t quality; /* of a JPEG */
        struct {
            uint64_t seed;
            float mean, sigma;
            bool wrap; /* instead of ending at 0 and 255 */
        } noise;
        struct {
            double size, area, visible;
        } least;       /* sanitize boxes */
        double amount; /* table, mix, sharpen, box: the factor, sigma, count of bits or threshold; hue: what is added to
                          it, in Pillow's units or, for a tensor, in turns */
        struct {
            double x, y, w, h;
        } box; /* resize: the part of the input that is used; w is 0: all */
    };
};

enum { JOB_ERASES = 16 };

/* A rectangle of the finished row that is overwritten. */
struct erase {
    struct rect at;
    bool raw;       /* the value is as in the row: it is not to be normalised */
    bool noise;     /* a field of normal numbers (noise.h) in C, H, W order, from seed; not value */
    float value[3]; /* for every channel */
    uint64_t seed;
};

struct job {
    struct want want;
    int32_t w, h;     /* of the result */
    int in, channels; /* of the image, and of the result */
    bool plain;       /* the result is an image: 8-bit, interleaved, dense */
    int n_steps;
    struct step steps[JOB_STEPS];
    bool flip_x, flip_y; /* done last, while storing */
    int n_erases;
    struct erase erases[JOB_ERASES];
};

int plan_new(struct plan **out, const struct plan_options *o, stk_error *e);
void plan_free(struct plan *p); /* accepts NULL */

/* Shape of a row: C,H,W or H,W,C by layout. H, W and the bytes are 0 if rows differ (open). */
void plan_shape(const struct plan *p, int64_t shape[3]);
void plan_size(const struct plan *p, int64_t *w, int64_t *h); /* 0: rows differ */
size_t plan_row_bytes(const struct plan *p);
bool plan_is_open(const struct plan *p);
/* Images per image: draw.crop is below it. */
int plan_crops(const struct plan *p);
bool plan_makes_bytes(const struct plan *p); /* as plan_options.bytes asks */
/* Sets the shape of the row that a job makes; returns its bytes. */
size_t plan_job_shape(const struct plan *p, const struct job *j, int64_t shape[3]);
/* What each byte becomes in type t, as in struct levels: three tables of 256 numbers. NULL: bytes stay as they are. */
const void *plan_tables(const struct plan *p, stk_dtype t);
/* The ops as text with all defaults, for explain. Valid as long as the plan. */
const char *plan_text(const struct plan *p);

int plan_draw(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out, stk_error *e);
/* Writes what plan_draw draws: the array "ops", with an object for each op. */
int plan_drawn(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct json *j, stk_error *e);
/* The steps of plan_draw that concern what belongs to the image (follow.h), each on the whole image. */
int plan_follow(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out, stk_error *e);
/* The steps of `before`, then those of p, whose ops draw nothing, on its result. */
int plan_follow_own(const struct plan *p, const struct job *before, struct job *out, stk_error *e);
/* The name of an op that draws, or that does nothing to masks, boxes and points; NULL: none. */
const char *plan_not_own(const struct plan *p);
/* The name of an op that needs boxes, that needs points, or that nothing can follow; NULL: none. */
const char *plan_needs_boxes(const struct plan *p);
const char *plan_needs_points(const struct plan *p);
const char *plan_not_followed(const struct plan *p);
/* After the ops; relative: as shares of the width and height. */
enum box_format plan_box_format(const struct plan *p, enum box_format own, bool *relative);
/* If fidelity is draft and the image (w x h) is resized to less, changes the job so that the decoder returns it
 * smaller. `most` is the largest shrink that the decoder supports. */
void plan_draft(const struct plan *p, struct job *j, int32_t w, int32_t h, int most);
size_t plan_scratch(const struct plan *p, const struct job *j); /* 0 only on overflow */
int plan_run(const struct plan *p, const struct job *j, const struct image *in, struct arena *a, void *row,
             stk_error *e);

/*
 * For a device that does what a job says. One pass of a resize: for output i, an int32 at first + 4 * i, the index of
 * its first input, and `taps` weights of RESAMPLE_BITS at weights + 4 * taps * i. Weights beyond the input are 0.
 */
struct plan_pass {
    uint32_t first, weights; /* offsets in bytes */
    int32_t taps;            /* 0: there is no such pass */
};
struct plan_passes {
    struct plan_pass x, y;
    bool across_first; /* if there are both */
    size_t used;       /* bytes */
};
/* Writes the tables of a job that does nothing but crop, resize and mirror. `to` is aligned to 8. If there is a pass
 * across, it also mirrors (flip_x). Returns false for other jobs, or if they do not fit. */
bool plan_passes(const struct job *j, uint8_t *to, size_t room, struct plan_passes *out);

/*
 * The head: the ops before the first one that draws. They make the same image in every epoch, so it can be cached.
 * plan_run of the head's job makes that image (job.w x job.h x job.channels bytes). plan_run of the rest's job on that
 * image makes the same row, bit for bit, as plan_draw's job on the original.
 */
int plan_draw_head(const struct plan *p, int32_t w, int32_t h, struct job *out, stk_error *e);
int plan_draw_rest(const struct plan *p, const struct draw *d, int32_t w, int32_t h, struct job *out, stk_error *e);
bool plan_settled(const struct plan *p);       /* no op draws: only type and layout are left for the rest */
const char *plan_random(const struct plan *p); /* the name of the first op that draws; NULL: none */
int plan_head_channels(const struct plan *p);
/* Writes the ops of the head that change pixels, as text; "": none, the image as decoded. Returns a hash of the
 * text. */
uint64_t plan_head_text(const struct plan *p, char *buf, size_t n);

/*
 * Ops that combine the rows of a finished batch: MixUp and CutMix. Labels are then rows of floats, one per class.
 */
int64_t plan_soft_classes(const struct plan *p); /* 0: there are no such ops, and labels stay integers */
/* The row of a label, from 0 to the number of classes - 1, before rows are combined. */
void plan_soft_label(const struct plan *p, int64_t label, float *row);
/* Combines n rows in place; only rows whose valid[i] is not 0 take part. d->sample is the position of the first row.
 * The draws depend on the position of the first row that takes part.
 * `spare` has plan_blend_spare(p, n) bytes, aligned to 64. */
size_t plan_blend_spare(const struct plan *p, int64_t n);
void plan_blend(const struct plan *p, const struct draw *d, uint8_t *image, float *label, const uint8_t *valid,
                int64_t n, void *spare);
/* Writes members of an object: how row i of the n rows that take part is combined. d->sample is the position of the
 * first of them. */
void plan_blend_drawn(const struct plan *p, const struct draw *d, int64_t i, int64_t n, struct json *j);

#endif
