/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.h -- what the two kinds of sheets share: the look, a loader of viewable pixels, the file.
 */
#ifndef SHOW_H
#define SHOW_H

#include "args.h"
#include "sheet.h"
#include "stoker.h"

enum { SHOW_MARGIN = 36, SHOW_GAP = 14, SHOW_CAPTION = 26, SHOW_HEAD = 66 };

extern const struct sheet_colour show_paper, show_ink, show_soft;

/* The pictures of a batch: uint8, NHWC. */
struct show_view {
    stk_batch *batch;
    struct sheet_image first; /* the others follow, of the same size */
    int64_t n;
    const int64_t *labels, *samples; /* labels: NULL where there are none */
};

/* Pixels to look at: the options of the command, but uint8, NHWC and without the ops that make floats. */
int show_open(const struct args *a, stk_options o, stk_loader **l, stk_error *e);
int show_next(stk_loader *l, struct show_view *v, stk_error *e);

/* The picture in a row. */
struct sheet_image show_image(const struct show_view *v, int64_t row);
/* What stands under a picture: its class, its label, or its file's name. */
void show_name(const stk_loader *l, const struct show_view *v, int64_t row, char *buf, size_t n);
void show_head(struct sheet *s, const char *title, const char *under);
void show_caption(struct sheet *s, int x, int y, int width, const char *text);
/* The size to show a picture at, so that it has about `side` pixels. */
void show_fit(int w, int h, int side, int *to_w, int *to_h);
int show_write(const struct args *a, const struct sheet *s, size_t *bytes, stk_error *e);
int show_no_memory(stk_error *e, const char *what);

/* show_one.c: one sample, as it is stored and as training sees it. An END_*. */
int show_one(struct args *a);

#endif
