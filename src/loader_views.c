/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_views.c -- several images from one: reads the names of the views, and draws and makes them.
 *
 *     text = pipeline { ";" pipeline } [ ";" ]        pipeline = [ name [ "*" count ] ":" ] ops
 *
 * Each pipeline gets a plan. Its text is the whole text with everything else replaced by spaces, so that errors report
 * the right column. The decoder is asked for the smallest rectangle that contains the crops of all views.
 */
#include "loader_views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/size.h"
#include "loader.h"
#include "transform/ops_text.h"

/* ------------------------------------------------------------------ names */

/* Reads "name:" or "name*count:", and leaves t at the ops. Without a name, the view is the image. */
static int read_name(struct text *t, struct view *v)
{
    const char *const before = t->at;
    char seen[WORD_BYTES + 2];
    struct value count = {.number = {1}};
    const bool named = text_name(t, v->name, sizeof v->name), many = named && text_take(t, '*');
    const int rc = many ? text_value(t, &count) : STK_OK;
    if (rc)
        return rc;
    if (many && (count.kind != VALUE_NUMBER || !count.whole[0] || count.number[0] < 1 || count.number[0] > VIEW_COPIES))
        return text_error(t, count.column, "found %s, expected a number of views from 1 to %d", count.source,
                          VIEW_COPIES);
    v->copies = (int)count.number[0];
    if (named && text_take(t, ':'))
        return STK_OK;
    if (many) {
        text_next(t, seen, sizeof seen);
        return text_error(t, text_column(t), "found %s, expected \":\" after %s*%d", seen, v->name, v->copies);
    }
    t->at = before; /* the name of an op */
    snprintf(v->name, sizeof v->name, "image");
    return STK_OK;
}

/* One pipeline of the text. */
struct pipeline {
    struct view view; /* its name and copies */
    int32_t column;
    int follower; /* the field of the source that it is for; -1: it is a view */
    const char *ops, *end;
};

static int check_name(const struct stk_loader *l, struct text *t, const struct pipeline *p)
{
    bool twice = p->follower >= 0 && l->follow.ops[p->follower];
    for (int i = 0; i < l->n_views; i++)
        twice |= strcmp(l->views[i].name, p->view.name) == 0;
    if (twice)
        return text_error(t, p->column, "two pipelines are named %s", p->view.name);
    if (p->follower >= 0 && p->view.copies > 1)
        return text_error(t, p->column, "%s is a field of the source, so *%d is not possible", p->view.name,
                          p->view.copies);
    for (int f = 0; f < source_n_fields(l->source) && p->follower < 0; f++)
        if (f != l->image && strcmp(source_field(l->source, f)->name, p->view.name) == 0)
            return text_error(t, p->column, "%s is a field of the source; give the view another name", p->view.name);
    return STK_OK;
}

/* Reads the next pipeline, and leaves t after it. */
static int read_pipeline(const struct stk_loader *l, struct text *t, struct pipeline *p)
{
    *p = (struct pipeline){.column = text_column(t), .follower = -1};
    const int rc = read_name(t, &p->view);
    if (rc != STK_OK)
        return rc;
    for (int f = 0; f < source_n_fields(l->source); f++)
        if (source_field(l->source, f)->follow && strcmp(source_field(l->source, f)->name, p->view.name) == 0)
            p->follower = f;
    p->ops = t->at;
    t->at = p->end = t->at + strcspn(t->at, ";");
    text_take(t, ';');
    text_column(t); /* skips spaces */
    return STK_OK;
}

/* The ops of a pipeline, with everything before them replaced by spaces. */
static char *text_of(const struct text *t, const struct pipeline *p)
{
    const size_t n = (size_t)(p->end - t->start), from = (size_t)(p->ops - t->start);
    char *const text = malloc(n + 1);
    if (!text)
        return NULL;
    memset(text, ' ', from);
    memcpy(text + from, p->ops, n - from);
    text[n] = 0;
    return text;
}

/* ------------------------------------------------------------------ open and close */

static void describe(const struct stk_loader *l, const struct view *v, struct field *f)
{
    const stk_dtype dtype = plan_makes_bytes(v->plan) ? STK_UINT8 : l->options.dtype;
    const int drawn = v->copies / v->crops;
    int many = 0;
    if (strcmp(v->name, "image") != 0) /* else it keeps the name that it has in the source, or that the user gave it */
        snprintf(f->name, sizeof f->name, "%s", v->name);
    f->dtype = dtype;
    if (drawn > 1)
        f->shape[many++] = drawn;
    if (v->crops > 1)
        f->shape[many++] = v->crops;
    f->ndim = 3 + many;
    plan_shape(v->plan, f->shape + many);
    f->kind = plan_is_open(v->plan) ? FIELD_OPEN : f->kind;
    f->bytes = plan_is_open(v->plan) ? dtype_bytes(dtype) : plan_row_bytes(v->plan) * (size_t)v->copies;
    if (l->options.sizes != STK_SIZES_SAME)
        loader_fields_frame(l, f, l->options.layout == STK_NHWC ? 1 : 2);
}

static int add_view(struct stk_loader *l, struct text *t, const struct pipeline *one, struct plan_options *p,
                    stk_error *e)
{
    struct view *v = &l->views[l->n_views];
    *v = one->view;
    const int rc = plan_new(&v->plan, p, e);
    if (rc != STK_OK)
        return rc;
    v->crops = plan_crops(v->plan);
    v->copies *= v->crops;
    v->key = strcmp(v->name, "image") == 0 ? 0 : hash_bytes(v->name, strlen(v->name), 1);
    l->n_views++;
    l->copies += v->copies;
    if (v->copies > 1 && plan_is_open(v->plan))
        return text_error(t, one->column, "several images of one sample must have one size: end with CenterCrop");
    return STK_OK;
}

static int add_pipeline(struct stk_loader *l, struct text *t, const struct pipeline *one, struct plan_options *p,
                        stk_error *e)
{
    int rc = check_name(l, t, one);
    if (rc == STK_OK && one->follower < 0 && l->n_views == VIEWS_MAX)
        rc = text_error(t, one->column, "more than %d pipelines", VIEWS_MAX);
    if (rc != STK_OK)
        return rc;
    char *const text = text_of(t, one);
    if (!text)
        return error_nomem(e, "ops", (size_t)(one->end - t->start));
    if (one->follower >= 0) {
        l->follow.ops[one->follower] = text; /* loader_follow_close() frees it */
        return STK_OK;
    }
    p->ops = text;
    rc = add_view(l, t, one, p, e);
    free(text);
    return rc;
}

/* Several views share only the image, so their ops have no common head, and their results must have one size. */
static int read_views(struct stk_loader *l, struct plan_options *p, stk_error *e)
{
    const char *const ops = p->ops ? p->ops : "";
    struct text t = {.start = ops, .at = ops, .e = e};
    struct pipeline one;
    int rc, views = 0;
    do {
        rc = read_pipeline(l, &t, &one);
        views += one.follower < 0 ? one.view.copies : 0;
    } while (rc == STK_OK && *t.at);
    p->several = views > 1;
    p->open = p->open && !p->several;
    t.at = ops;
    while (rc == STK_OK) {
        rc = read_pipeline(l, &t, &one);
        if (rc == STK_OK)
            rc = add_pipeline(l, &t, &one, p, e);
        if (!*t.at)
            break;
    }
    if (rc == STK_OK && views == 0) { /* only fields have ops */
        t.at = "";
        p->ops = "";
        rc = read_pipeline(l, &t, &one);
        rc = rc == STK_OK ? add_view(l, &t, &one, p, e) : rc;
    }
    if (rc == STK_OK && l->copies > VIEW_COPIES)
        rc = error_set(e, STK_EUSAGE, "ops", "ops: %d views in all, but at most %d are possible", l->copies,
                       VIEW_COPIES);
    return rc;
}

int loader_views_open(struct stk_loader *l, struct plan_options *p, struct field *fields, int *n, stk_error *e)
{
    const char *const ops = p->ops;
    int rc = read_views(l, p, e);
    p->ops = ops;
    if (rc != STK_OK)
        return rc;
    if (*n + l->n_views > FIELD_MAX)
        return error_set(e, STK_EUSAGE, "open", "too many fields; choose fewer with fields, or use fewer views");
    for (int i = 0; i < l->n_views; i++) {
        struct view *v = &l->views[i];
        v->field = i == 0 ? l->image : *n;
        if (i > 0)
            fields[(*n)++] = fields[l->image];
    }
    for (int i = l->n_views; i-- > 0;) /* the first one last: the others were copied from it */
        describe(l, &l->views[i], &fields[l->views[i].field]);
    l->plan = l->views[0].plan;
    return STK_OK;
}

void loader_views_close(struct stk_loader *l)
{
    for (int i = 0; i < l->n_views; i++)
        plan_free(l->views[i].plan);
}

/* ------------------------------------------------------------------ draw and run */

static struct rect enclose(struct rect a, struct rect b)
{
    const int32_t x = a.x < b.x ? a.x : b.x, y = a.y < b.y ? a.y : b.y;
    const int32_t right = a.x + a.w > b.x + b.w ? a.x + a.w : b.x + b.w;
    const int32_t bottom = a.y + a.h > b.y + b.h ? a.y + a.h : b.y + b.h;
    return (struct rect){x, y, right - x, bottom - y};
}

struct draw loader_views_key(const struct draw *d, const struct view *v, int copy)
{
    struct draw own = *d;
    own.view = v->key + (uint64_t)(copy / v->crops);
    own.crop = copy % v->crops;
    return own;
}

int loader_views_draw(const struct stk_loader *l, const struct draw *d, int32_t w, int32_t h, bool rest,
                      const struct head *head, struct job *jobs, struct want *want, stk_error *e)
{
    struct job alone;
    int at = 0;
    for (const struct view *v = l->views; v < l->views + l->n_views; v++)
        for (int copy = 0; copy < v->copies; copy++, at++) {
            struct job *j = jobs ? &jobs[at] : &alone;
            const struct draw own = loader_views_key(d, v, copy);
            const int rc = rest ? plan_draw_rest(v->plan, &own, w, h, j, e) : plan_draw(v->plan, &own, w, h, j, e);
            if (rc != STK_OK)
                return rc;
            if (head && l->copies == 1)
                plan_draft(v->plan, j, w, h, decode_shrink(head));
            const struct rect before = want->crop;
            *want = j->want;
            if (at > 0)
                want->crop = enclose(before, want->crop);
        }
    return STK_OK;
}

/* Views are made one after the other, in the same memory. */
size_t loader_views_scratch(const struct stk_loader *l, const struct job *jobs)
{
    size_t most = 0;
    for (const struct view *v = l->views; v < l->views + l->n_views; v++)
        for (int copy = 0; copy < v->copies; copy++) {
            const size_t one = plan_scratch(v->plan, jobs++);
            if (one == 0)
                return 0;
            most = one > most ? one : most;
        }
    return most;
}

/* Where a view goes. An image of open size gets its memory now that its size is known. */
static int row_of(struct stk_loader *l, struct worker *w, const struct view *v, const struct job *j, int64_t row,
                  uint8_t **to, stk_error *e)
{
    if (w->to->depot->fields[v->field].frame)
        return STK_OK;
    if (w->made)
        *to = w->made;
    else if (!plan_is_open(v->plan))
        *to = batch_row(w->to, v->field, row);
    else {
        int64_t shape[3];
        const size_t bytes = plan_job_shape(v->plan, j, shape);
        return batch_open_row(w->to, l->image, shape, bytes, to, e);
    }
    return STK_OK;
}

/* Makes an image of any size, as a ragged row. */
static int run_frame(struct worker *w, const struct view *v, const struct job *j, const struct image *im, int64_t row,
                     stk_error *e)
{
    struct ragged_row *to = batch_open_ragged(w->to, v->field, row);
    if (!to)
        return STK_OK; /* the whole batch will be refused */
    memset(to->shape, 0, sizeof to->shape);
    const size_t bytes = plan_job_shape(v->plan, j, to->shape);
    int rc = ragged_row_reserve(to, bytes) ? error_nomem(e, "transform", bytes) : STK_OK;
    if (rc == STK_OK)
        rc = plan_run(v->plan, j, im, &w->desk.arena, to->data, e);
    to->n = rc == STK_OK ? bytes : 0;
    batch_close_ragged(w->to, to);
    return rc;
}

int loader_views_run(struct stk_loader *l, struct worker *w, const struct image *pixels, struct rect crop, int64_t row,
                     stk_error *e)
{
    struct arena *a = &w->desk.arena;
    const struct job *j = w->jobs;
    const size_t used = a->used;
    for (const struct view *v = l->views; v < l->views + l->n_views; v++) {
        uint8_t *to = NULL;
        int rc = row_of(l, w, v, j, row, &to, e);
        for (int copy = 0; copy < v->copies && rc == STK_OK; copy++, j++) {
            struct rect part = j->want.crop;
            part.x -= crop.x;
            part.y -= crop.y;
            const struct image im = image_crop(pixels, part);
            rc = to ? plan_run(v->plan, j, &im, a, to, e) : run_frame(w, v, j, &im, row, e);
            to += to ? plan_row_bytes(v->plan) : 0;
            a->used = used;
        }
        if (rc != STK_OK)
            return rc;
    }
    return STK_OK;
}

int loader_views_drawn(const struct stk_loader *l, const struct draw *d, int32_t w, int32_t h, struct json *j,
                       stk_error *e)
{
    if (l->copies == 1)
        return plan_drawn(l->plan, d, w, h, j, e);
    int rc = STK_OK;
    json_open(j, "views", '[');
    for (const struct view *v = l->views; v < l->views + l->n_views; v++)
        for (int copy = 0; copy < v->copies && rc == STK_OK; copy++) {
            const struct draw own = loader_views_key(d, v, copy);
            json_open(j, NULL, '{');
            json_text(j, "view", v->name);
            json_int(j, "copy", copy);
            rc = plan_drawn(v->plan, &own, w, h, j, e);
            json_close(j, '}');
        }
    json_close(j, ']');
    return rc;
}
