/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_views.h -- the images that are made from one image: usually one, or several named views.
 *
 *     "RandomResizedCrop(224) | Normalize"                              one view, named image
 *     "global*2: RandomResizedCrop(224) ; local*8: RandomResizedCrop(96)"   ten views in two fields
 *
 * The image is read and decoded once for all views. Each view has draws of its own. A pipeline whose name is a field
 * that follows the image is not a view: loader_follow.c runs it.
 */
#ifndef LOADER_VIEWS_H
#define LOADER_VIEWS_H

#include "desk.h"
#include "transform/plan.h"

struct stk_loader;
struct worker;

enum { VIEWS_MAX = 16, VIEW_COPIES = 64 }; /* names; views in all */

/* A field that follows the image through a view. */
struct follower {
    int to;           /* the field of the batch */
    struct plan *own; /* further ops of its own; NULL: none */
};

/* A field of the batch that is made from the image. */
struct view {
    char name[FIELD_NAME];
    int copies;   /* images per row */
    int crops;    /* of them, one after the other, crops of the same image; the others are drawn separately */
    uint64_t key; /* of the draws of its first copy */
    struct plan *plan;
    int field;                            /* of the batch */
    struct follower followers[FIELD_MAX]; /* by field of the source */
};

/* Reads names and counts, makes the plans, and describes the fields: the first view is the field `image`, the others
 * are appended. p: the options that all plans share; its ops are those of the loader. */
int loader_views_open(struct stk_loader *l, struct plan_options *p, struct field *fields, int *n, stk_error *e);
void loader_views_close(struct stk_loader *l);

/* The key of the draws of one copy of a view. */
struct draw loader_views_key(const struct draw *d, const struct view *v, int copy);
/* Draws all views for an image of w x h pixels: the whole image, or its head's result if `rest` is set. Sets what they
 * need of it. head: of the file, if it may be decoded at a smaller size; else NULL. jobs: one per view; NULL: they are
 * not needed. */
int loader_views_draw(const struct stk_loader *l, const struct draw *d, int32_t w, int32_t h, bool rest,
                      const struct head *head, struct job *jobs, struct want *want, stk_error *e);
size_t loader_views_scratch(const struct stk_loader *l, const struct job *jobs); /* 0: overflow */
/* Makes all views. `pixels` is the part `crop` of the image. */
int loader_views_run(struct stk_loader *l, struct worker *w, const struct image *pixels, struct rect crop, int64_t row,
                     stk_error *e);
/* Writes what was drawn: the array "ops", or, if there are several views, the array "views". */
int loader_views_drawn(const struct stk_loader *l, const struct draw *d, int32_t w, int32_t h, struct json *j,
                       stk_error *e);

#endif
