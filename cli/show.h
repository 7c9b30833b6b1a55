/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.h -- what the two kinds of sheets share: loading pixels to show, and writing the file.
 */
#ifndef SHOW_H
#define SHOW_H

#include "args.h"
#include "grid.h"
#include "stoker.h"

/* The images of a batch: uint8, NHWC. */
struct show_view {
    stk_batch *batch;
    struct sheet_image first; /* the others follow in memory, with the same size */
    int64_t n;
    const int64_t *labels, *samples; /* labels: NULL if there are none */
    const float *soft;               /* labels of mixed images: n_soft for each; NULL: not mixed */
    int64_t n_soft;
    int copies;   /* images of a sample, which are one below the other in `first` */
    uint8_t *own; /* bytes made from floats */
};

enum { SHOW_MAX_DRAWS = 16 };

/* Opens a loader with the options of the command, but uint8, NHWC and without ops that produce floats. */
int show_open(const struct args *a, stk_options o, stk_loader **l, stk_error *e);
int show_next(stk_loader *l, struct show_view *v, stk_error *e);
void show_release(struct show_view *v);
/* The image of a batch, or that of its first view. */
const stk_array *show_image(const stk_batch *b);

/* The caption of an image: its class, its label, or its file name. */
void show_name(const stk_loader *l, const struct show_view *v, int64_t row, char *buf, size_t n);
int show_write(const struct args *a, const struct sheet *s, size_t *bytes, stk_error *e);
int show_no_memory(stk_error *e, const char *what);

/* The length of the first op of a pipeline, up to the next bar outside brackets. */
size_t show_op_length(const char *ops);
/* Whether the first op produces floats, which cannot be shown. */
int show_makes_floats(const char *ops);
int show_mixes(const char *ops); /* whether there is a MixUp or CutMix */
/* The options that load the sample of --index alone. */
stk_options show_only(const struct args *a);
int show_check_index(const struct args *a, stk_error *e);

/* show_marks.c: what belongs to the image of a row; 0 if there is nothing. */
int show_marks(const struct show_view *v, int64_t row, struct marks *m);
void show_collect(const struct show_view *v, struct marks_seen *seen); /* of the first row, for a legend */
int show_has_boxes(const stk_batch *b);
const char *show_label(void *loader, int64_t label); /* the name of a class, or NULL */

/* show_one.c: one sample, as it is stored and as training sees it. Returns an END_*. */
int show_one(struct args *a);

/* show_draws.c: one sample under several draws, op by op. Returns an END_*. */
int show_draws(struct args *a);

#endif
