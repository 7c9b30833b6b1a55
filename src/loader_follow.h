/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_follow.h -- the fields that follow the image through its ops: masks, boxes, keypoints, and numbers for each
 * box.
 */
#ifndef LOADER_FOLLOW_H
#define LOADER_FOLLOW_H

#include "desk.h"

struct stk_loader;
struct stk_batch;
struct worker;

struct loader_follow {
    int n;                  /* fields that follow; 0: none, or there are no images */
    int boxes;              /* the field of the boxes; -1: none */
    enum box_format format; /* of the boxes in batches */
};

/* What one thread knows of the sample under way. */
struct following {
    struct job *job;       /* of plan_follow; NULL: nothing follows */
    int32_t w, h;          /* of the image before the ops */
    struct ragged_row raw; /* numbers as they were read */
    float (*at)[4];        /* the boxes before the ops, with room for n_most */
    uint8_t *keep;         /* whether each box stays, once they are made */
    int64_t n_most;
    struct boxes boxes;
};

/* Checks that the ops can be followed, and describes the fields. */
int loader_follow_open(struct stk_loader *l, struct field *fields, int n, stk_error *e);
int following_init(struct following *f, const struct stk_loader *l, stk_error *e);
void following_done(struct following *f); /* accepts a zeroed one */
size_t following_held(const struct following *f);
/* After a sample: frees more than an eighth of the share. */
void following_trim(struct following *f, const struct budget *b);

/* Before the ops are drawn: takes the boxes of the sample, which was read, whose image has w x h pixels. */
int loader_follow_begin(struct stk_loader *l, struct worker *w, int64_t sample, int32_t wide, int32_t high,
                        stk_error *e);
/* Once the image is made: draws the steps to follow, and makes all these fields of a row. */
int loader_follow_make(struct stk_loader *l, struct worker *w, const struct draw *d, struct stk_batch *b, int64_t row,
                       stk_error *e);

/* ------------------------------------------------------------------ between loader_follow*.c */

/* One field of a row under way. */
struct making_row {
    struct stk_loader *l;
    struct worker *w;
    struct stk_batch *b;
    int64_t sample, row;
    int f;
    const struct field *of; /* in the source */
};

const struct cell *following_cell(const struct making_row *m);
/* Fails unless there is one entry for each box, or there are no boxes. */
int following_check_count(const struct making_row *m, int64_t n, stk_error *e);
int following_mask(const struct making_row *m, stk_error *e);
int following_masks(const struct making_row *m, struct ragged_row *to, stk_error *e);

#endif
