/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature.c -- reads the values of a feature: three nested messages, without recursion.
 */
#include "format/feature.h"

#include <string.h>

/* ------------------------------------------------------------------ walking */

void feature_begin(struct feature_walk *w, const struct feature *f)
{
    *w = (struct feature_walk){0};
    const struct wire all = {f->p, f->p + f->n};
    if (f->steps) {
        w->steps = all;
    } else {
        w->feature = all;
        w->n_steps = 1;
    }
}

/* A field of a list as a run of values; count is 0 for unknown fields. */
static bool as_run(enum feature_kind kind, const struct wire_field *f, struct feature_run *run)
{
    *run = (struct feature_run){f->p, f->n, 1};
    if (f->number != 1) {
        run->count = 0;
        return true;
    }
    switch (kind) {
    case FEATURE_BYTES:
        return f->type == WIRE_BYTES;
    case FEATURE_FLOATS:
        run->count = f->n / 4;
        return f->type == WIRE_FIXED32 || (f->type == WIRE_BYTES && f->n % 4 == 0);
    case FEATURE_INTS:
        if (f->type == WIRE_BYTES && f->n > 0)
            run->count = wire_count(f->p, f->n);
        else if (f->type == WIRE_BYTES)
            run->count = 0;
        return f->type == WIRE_VARINT || (f->type == WIRE_BYTES && (f->n == 0 || f->p[f->n - 1] < 128));
    case FEATURE_NONE:
        break;
    }
    return false;
}

static void end_step(struct feature_walk *w)
{
    if (w->n_steps <= 1)
        w->each = (int64_t)w->in_step;
    else if (w->each != (int64_t)w->in_step)
        w->each = -1;
    w->in_step = 0;
}

/* Enters the list of values of a feature. All lists must have the same kind. */
static bool enter_list(struct feature_walk *w, const struct wire_field *f)
{
    if (f->number > FEATURE_INTS)
        return true;
    if (f->type != WIRE_BYTES || (w->kind != FEATURE_NONE && w->kind != (enum feature_kind)f->number))
        return false;
    w->kind = (enum feature_kind)f->number;
    w->list = (struct wire){f->p, f->p + f->n};
    return true;
}

static bool enter_step(struct feature_walk *w, const struct wire_field *f)
{
    if (f->number != 1)
        return true;
    if (f->type != WIRE_BYTES)
        return false;
    if (w->n_steps > 0)
        end_step(w);
    w->n_steps++;
    w->feature = (struct wire){f->p, f->p + f->n};
    return true;
}

int feature_next(struct feature_walk *w, struct feature_run *run)
{
    for (;;) {
        struct wire_field f;
        int rc = wire_next(&w->list, &f);
        if (rc > 0) {
            if (!as_run(w->kind, &f, run))
                return -1;
            if (run->count == 0)
                continue;
            w->in_step += run->count;
            return 1;
        }
        if (rc == 0 && (rc = wire_next(&w->feature, &f)) > 0) {
            if (!enter_list(w, &f))
                return -1;
        } else if (rc == 0 && (rc = wire_next(&w->steps, &f)) > 0) {
            if (!enter_step(w, &f))
                return -1;
        } else {
            if (rc == 0)
                end_step(w);
            return rc;
        }
    }
}

/* ------------------------------------------------------------------ measuring and making */

bool feature_measure(struct feature *f)
{
    struct feature_walk w;
    struct feature_run run;
    size_t runs = 0;
    int rc;
    f->count = f->bytes = 0;
    f->whole = NULL;
    feature_begin(&w, f);
    while ((rc = feature_next(&w, &run)) > 0) {
        f->count += run.count;
        f->bytes += run.n;
        f->whole = runs++ == 0 && w.kind != FEATURE_INTS ? run.p : NULL;
    }
    f->kind = w.kind;
    f->n_steps = w.n_steps;
    f->each = w.each;
    return rc == 0;
}

size_t feature_room(const struct feature *f)
{
    return f->kind == FEATURE_INTS ? f->count * sizeof(int64_t) : f->bytes;
}

bool feature_make(const struct feature *f, void *to)
{
    struct feature_walk w;
    struct feature_run run;
    uint8_t *at = to;
    int rc;
    feature_begin(&w, f);
    while ((rc = feature_next(&w, &run)) > 0) {
        if (f->kind == FEATURE_INTS) {
            if (!wire_ints(run.p, run.n, (int64_t *)(void *)at))
                return false;
            at += run.count * sizeof(int64_t);
        } else {
            memcpy(at, run.p, run.n);
            at += run.n;
        }
    }
    return rc == 0;
}

/* ------------------------------------------------------------------ as JSON */

static int add_string(struct buf *to, const uint8_t *p, size_t n)
{
    int rc = buf_add(to, "\"", 1);
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] >= 0x20 && p[i] != '"' && p[i] != '\\')
            continue;
        rc |= buf_add(to, p + from, i - from);
        rc |= p[i] < 0x20 ? buf_printf(to, "\\u%04x", p[i]) : buf_printf(to, "\\%c", p[i]);
        from = i + 1;
    }
    rc |= buf_add(to, p + from, n - from);
    return rc | buf_add(to, "\"", 1);
}

bool feature_json(const struct feature *f, struct buf *to)
{
    struct feature_walk w;
    struct feature_run run;
    int rc, failed = buf_add(to, "[", 1);
    size_t n = 0;
    feature_begin(&w, f);
    while ((rc = feature_next(&w, &run)) > 0) {
        if (n++ > 0)
            failed |= buf_add(to, ",", 1);
        failed |= add_string(to, run.p, run.n);
    }
    return (failed | buf_add(to, "]", 1)) == 0 && rc == 0;
}
