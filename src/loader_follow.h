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
    int n;                /* fields that follow; 0: none, or there are no images */
    int boxes;            /* the field of the boxes; -1: none */
    char *ops[FIELD_MAX]; /* by field of the source: the text of its own pipeline; NULL: none */
    bool own;             /* there is such a pipeline */
};

/* What one thread knows of the sample under way. */
struct following {
    struct job *jobs;      /* of plan_follow, one per view and copy; NULL: nothing follows */
    struct job *own;       /* with the ops of the field under way; NULL: no field has any */
    int32_t w, h;          /* of the image before the ops */
    struct ragged_row raw; /* numbers as they were read */
    float (*at)[4];        /* the boxes before the ops, with room for n_most */
    uint8_t *keep;         /* whether each box stays, once they are made: n_most for each job */
    int64_t n_most;
    int copies;
    struct boxes boxes;
};

/* loader_follow_open.c: checks that the ops can be followed, and describes the fields. Those of the first view take the
 * place of the source's; those of further views are appended. */
int loader_follow_open(struct stk_loader *l, struct field *fields, int *n, stk_error *e);
void loader_follow_close(struct stk_loader *l);
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
    /* As following_go() sets them: */
    const struct view *v;
    int copy;              /* of the view */
    int to;                /* the field of the batch */
    int64_t at;            /* its ragged row */
    const struct job *job; /* all steps of the field */
    const uint8_t *keep;   /* of the boxes of this copy */
};

const struct cell *following_cell(const struct making_row *m);
/* Goes to copy k, counted over all views. */
int following_go(struct making_row *m, int k, stk_error *e);
/* Fails unless there is one entry for each box, or there are no boxes. */
int following_check_count(const struct making_row *m, int64_t n, stk_error *e);
/* Make a mask, or a mask for each box, in all copies. */
int following_mask(struct making_row *m, stk_error *e);
int following_masks(struct making_row *m, stk_error *e);

#endif
