/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_follow.c -- makes the fields that follow the image.
 *
 *     read -> boxes -> draw -> image -> the same draws again, for the followers -> boxes -> masks, points, each
 *
 * Boxes are read before the ops are drawn, because the draws of RandomIoUCrop depend on them. They are transformed
 * first: if SanitizeBoundingBoxes removes a box, its masks, keypoints and numbers are removed as well.
 *
 * Coordinates are those of the upright image, or of the image as stored if EXIF is ignored.
 */
#include "loader_follow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loader.h"
#include "source/field.h"
#include "transform/follow.h"

static const char stage[] = "transform";

/* ------------------------------------------------------------------ memory */

int following_init(struct following *f, const struct stk_loader *l, stk_error *e)
{
    *f = (struct following){0};
    if (l->follow.n == 0)
        return STK_OK;
    f->copies = l->copies;
    f->jobs = calloc((size_t)l->copies, sizeof *f->jobs);
    f->own = l->follow.own ? calloc(1, sizeof *f->own) : NULL;
    return f->jobs && (f->own || !l->follow.own) ? STK_OK
                                                 : error_nomem(e, "open", ((size_t)l->copies + 1) * sizeof *f->jobs);
}

void following_done(struct following *f)
{
    ragged_row_done(&f->raw);
    free(f->jobs);
    free(f->own);
    free(f->at);
    free(f->keep);
    *f = (struct following){0};
}

void following_trim(struct following *f, const struct budget *b)
{
    if (b && f->raw.cap > b->share / 8)
        ragged_row_done(&f->raw);
}

size_t following_held(const struct following *f)
{
    return f->raw.cap + (size_t)f->n_most * (sizeof *f->at + (size_t)f->copies);
}

/* ------------------------------------------------------------------ boxes before the ops */

static int reserve_boxes(struct following *f, int64_t n, stk_error *e)
{
    if (n <= f->n_most)
        return STK_OK;
    const int64_t most = n + n / 4 + 16;
    const size_t bytes = (size_t)most * sizeof *f->at;
    void *at = realloc(f->at, bytes), *keep = realloc(f->keep, (size_t)most * (size_t)f->copies);
    f->at = at ? at : f->at;
    f->keep = keep ? keep : f->keep;
    if (!at || !keep)
        return error_nomem(e, stage, bytes);
    f->n_most = most;
    return STK_OK;
}

/* To left, top, right and bottom. */
static void box_to_corners(enum box_format format, const float in[4], double box[4])
{
    const double x = (double)in[0], y = (double)in[1], w = (double)in[2], h = (double)in[3];
    const bool middle = format == BOX_CXCYWH;
    box[0] = middle ? x - 0.5 * w : x;
    box[1] = middle ? y - 0.5 * h : y;
    box[2] = format == BOX_XYXY ? w : box[0] + w;
    box[3] = format == BOX_XYXY ? h : box[1] + h;
}

static void box_from_corners(enum box_format format, const double box[4], float out[4])
{
    const double w = box[2] - box[0], h = box[3] - box[1];
    const bool middle = format == BOX_CXCYWH;
    out[0] = (float)(middle ? 0.5 * (box[0] + box[2]) : box[0]);
    out[1] = (float)(middle ? 0.5 * (box[1] + box[3]) : box[1]);
    out[2] = (float)(format == BOX_XYXY ? box[2] : w);
    out[3] = (float)(format == BOX_XYXY ? box[3] : h);
}

static int take_box(struct following *f, const struct field *of, int64_t i, const float in[4], stk_error *e)
{
    double box[4];
    box_to_corners(of->box_format, in, box);
    for (int k = 0; k < 4; k++) {
        box[k] *= !of->relative ? 1.0 : k % 2 ? f->h : f->w;
        f->at[i][k] = (float)box[k];
        if (!isfinite(f->at[i][k]))
            return error_set(e, STK_EDATA, stage, "%s: box %lld has a number that is not finite", of->name,
                             (long long)i);
    }
    if (f->at[i][2] < f->at[i][0] || f->at[i][3] < f->at[i][1])
        return error_set(e, STK_EDATA, stage,
                         "%s: box %lld goes from (%g, %g) to (%g, %g), so its size is negative; its format is taken as "
                         "%s; fields can set another: %s:boxes(%s)",
                         of->name, (long long)i, (double)f->at[i][0], (double)f->at[i][1], (double)f->at[i][2],
                         (double)f->at[i][3],
                         of->box_format == BOX_XYXY   ? "xyxy"
                         : of->box_format == BOX_XYWH ? "xywh"
                                                      : "cxcywh",
                         of->name, of->box_format == BOX_XYXY ? "xywh" : "xyxy");
    if (f->at[i][0] > (float)f->w || f->at[i][1] > (float)f->h || f->at[i][2] < 0.0f || f->at[i][3] < 0.0f)
        return error_set(e, STK_EDATA, stage,
                         "%s: box %lld goes from (%g, %g) to (%g, %g), outside the image of %d x %d pixels", of->name,
                         (long long)i, (double)f->at[i][0], (double)f->at[i][1], (double)f->at[i][2],
                         (double)f->at[i][3], (int)f->w, (int)f->h);
    return STK_OK;
}

int loader_follow_begin(struct stk_loader *l, struct worker *w, int64_t sample, int32_t wide, int32_t high,
                        stk_error *e)
{
    struct following *f = &w->follow;
    f->w = wide;
    f->h = high;
    f->boxes = (struct boxes){0};
    if (l->follow.boxes < 0)
        return STK_OK;
    const struct field *of = source_field_at(l->source, sample, l->follow.boxes);
    int rc = field_ragged_row(of, &w->desk.reading.cells[l->follow.boxes], &f->raw, e);
    const int64_t n = rc == STK_OK ? (int64_t)(f->raw.n / (4 * sizeof(float))) : 0;
    if (rc == STK_OK)
        rc = reserve_boxes(f, n, e);
    for (int64_t i = 0; i < n && rc == STK_OK; i++)
        rc = take_box(f, of, i, (const float *)(const void *)f->raw.data + 4 * i, e);
    f->boxes = (struct boxes){.n = (int)n, .at = (const float(*)[4])f->at, .whole = true};
    for (int64_t i = 0; i < 4 * n && rc == STK_OK; i++)
        f->boxes.whole &= f->at[i / 4][i % 4] == floorf(f->at[i / 4][i % 4]);
    return rc;
}

/* ------------------------------------------------------------------ rows */

const struct cell *following_cell(const struct making_row *m)
{
    return &m->w->desk.reading.cells[m->f];
}

int following_go(struct making_row *m, int k, stk_error *e)
{
    struct following *f = &m->w->follow;
    m->v = m->l->views;
    m->job = &f->jobs[k];
    m->keep = f->keep + k * f->n_most;
    for (m->copy = k; m->copy >= m->v->copies; m->v++)
        m->copy -= m->v->copies;
    const struct follower *to = &m->v->followers[m->f];
    m->to = to->to;
    m->at = m->row * m->v->copies + m->copy;
    if (!to->own)
        return STK_OK;
    m->job = f->own;
    return plan_follow_own(to->own, &f->jobs[k], f->own, e);
}

static int make_boxes(const struct making_row *m, uint8_t *keep, stk_error *e)
{
    struct following *f = &m->w->follow;
    struct ragged_row *to = batch_open_ragged(m->b, m->to, m->at);
    const struct field *field = &m->b->depot->fields[m->to];
    const size_t bytes = (size_t)f->boxes.n * 4 * sizeof(float);
    int64_t n = 0;
    int rc = STK_OK;
    if (to && ragged_row_reserve(to, bytes))
        rc = error_nomem(e, stage, bytes);
    for (int i = 0; i < f->boxes.n && rc == STK_OK; i++) {
        double box[4];
        for (int k = 0; k < 4; k++)
            box[k] = (double)f->at[i][k];
        keep[i] = follow_box(m->job, f->boxes.whole, box);
        for (int k = 0; k < 4 && field->relative; k++)
            box[k] /= k % 2 ? m->job->h : m->job->w;
        if (to && keep[i])
            box_from_corners(field->box_format, box, (float *)(void *)to->data + 4 * n);
        n += keep[i];
    }
    if (!to)
        return rc;
    to->n = rc == STK_OK ? (size_t)n * 4 * sizeof(float) : 0;
    memset(to->shape, 0, sizeof to->shape);
    to->shape[0] = rc == STK_OK ? n : 0;
    to->shape[1] = 4;
    batch_close_ragged(m->b, to);
    return rc;
}

int following_check_count(const struct making_row *m, int64_t n, stk_error *e)
{
    if (m->l->follow.boxes < 0 || n == m->w->follow.boxes.n)
        return STK_OK;
    return error_set(e, STK_EDATA, stage, "%s has %lld entries, but the sample has %d boxes", m->of->name, (long long)n,
                     m->w->follow.boxes.n);
}

/* Removes the entries of boxes that were removed. */
static void keep_entries(const struct making_row *m, struct ragged_row *to)
{
    const int64_t all = to->shape[0];
    const size_t size = all > 0 ? to->n / (size_t)all : 0;
    int64_t n = 0;
    for (int64_t i = 0; i < all && m->l->follow.boxes >= 0; i++) {
        if (!m->keep[i])
            continue;
        if (n != i)
            memcpy(to->data + (size_t)n * size, to->data + (size_t)i * size, size);
        n++;
    }
    if (m->l->follow.boxes < 0)
        return;
    to->shape[0] = n;
    to->n = (size_t)n * size;
}

static int make_each(const struct making_row *m, struct ragged_row *to, stk_error *e)
{
    int rc = field_ragged_row(m->of, following_cell(m), to, e);
    if (rc == STK_OK)
        rc = following_check_count(m, to->shape[0], e);
    if (rc == STK_OK)
        keep_entries(m, to);
    return rc;
}

/* An entry of `count` points; false: SanitizeKeyPoints removes it. */
static int make_entry(const struct making_row *m, float *at, int64_t count, int64_t step, bool *stays, stk_error *e)
{
    const struct following *f = &m->w->follow;
    *stays = true;
    for (int64_t i = 0; i < count; i++, at += step) {
        double p[2] = {(double)at[0] * (m->of->relative ? f->w : 1), (double)at[1] * (m->of->relative ? f->h : 1)};
        if (!isfinite(p[0]) || !isfinite(p[1]))
            return error_set(e, STK_EDATA, stage, "%s has a number that is not finite", m->of->name);
        *stays &= follow_point(m->job, p);
        at[0] = (float)p[0];
        at[1] = (float)p[1];
    }
    return STK_OK;
}

static int make_points(const struct making_row *m, struct ragged_row *to, stk_error *e)
{
    int rc = field_ragged_row(m->of, following_cell(m), to, e);
    const bool groups = m->of->ndim == 3;
    const int64_t step = to->shape[groups ? 2 : 1], count = groups ? to->shape[1] : 1;
    if (rc == STK_OK && to->shape[0] > 0 && step != 2 && step != 3)
        rc = error_set(e, STK_EDATA, stage, "%s: a point has %lld numbers, not 2 or 3", m->of->name, (long long)step);
    if (rc == STK_OK && groups)
        rc = following_check_count(m, to->shape[0], e);
    if (rc == STK_OK && groups)
        keep_entries(m, to);
    float *const at = (float *)(void *)to->data;
    const int64_t all = rc == STK_OK ? to->shape[0] : 0, size = count * step;
    int64_t n = 0;
    for (int64_t i = 0; i < all && rc == STK_OK; i++) {
        bool stays;
        rc = make_entry(m, at + i * size, count, step, &stays, e);
        if (n != i && stays)
            memcpy(at + n * size, at + i * size, (size_t)size * sizeof *at);
        n += stays;
    }
    to->shape[0] = n;
    to->n = (size_t)(n * size) * sizeof *at;
    return rc;
}

/* ------------------------------------------------------------------ all of them */

static int make_ragged(const struct making_row *m, stk_error *e)
{
    struct ragged_row *to = batch_open_ragged(m->b, m->to, m->at);
    if (!to)
        return STK_OK; /* the whole batch will be refused */
    to->n = 0;
    memset(to->shape, 0, sizeof to->shape);
    const int rc = m->of->follow == FOLLOW_EACH ? make_each(m, to, e) : make_points(m, to, e);
    if (rc != STK_OK)
        to->n = 0;
    batch_close_ragged(m->b, to);
    return rc;
}

static int make_field(struct making_row *m, stk_error *e)
{
    int rc = STK_OK;
    if (m->of->follow == FOLLOW_MASK)
        return following_mask(m, e);
    if (m->of->follow == FOLLOW_MASKS)
        return following_masks(m, e);
    for (int k = 0; k < m->l->copies && rc == STK_OK; k++) {
        rc = following_go(m, k, e);
        if (rc == STK_OK)
            rc = make_ragged(m, e);
    }
    return rc;
}

int loader_follow_make(struct stk_loader *l, struct worker *w, const struct draw *d, struct stk_batch *b, int64_t row,
                       stk_error *e)
{
    struct following *f = &w->follow;
    struct making_row m = {.l = l, .w = w, .b = b, .sample = (int64_t)d->sample, .row = row};
    int rc = STK_OK, k = 0;
    for (const struct view *v = l->views; v < l->views + l->n_views; v++)
        for (int copy = 0; copy < v->copies && rc == STK_OK; copy++, k++) {
            const struct draw own = loader_views_key(d, v, copy);
            rc = plan_follow(v->plan, &own, f->w, f->h, &f->jobs[k], e);
        }
    m.f = l->follow.boxes;
    for (k = 0; k < l->copies && m.f >= 0 && rc == STK_OK; k++) {
        rc = following_go(&m, k, e);
        if (rc == STK_OK)
            rc = make_boxes(&m, f->keep + k * f->n_most, e);
    }
    for (m.f = 0; m.f < source_n_fields(l->source) && rc == STK_OK; m.f++) {
        m.of = source_field_at(l->source, m.sample, m.f);
        if (m.of->follow != FOLLOW_NONE && m.of->follow != FOLLOW_BOXES)
            rc = make_field(&m, e);
    }
    return rc;
}
