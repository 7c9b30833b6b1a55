/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drawing.c -- what the draw functions of ops share.
 */
#include "transform/drawing.h"

#include <math.h>

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"

int drawing_op(struct drawing *g, const struct op *o)
{
    if (g->notes) {
        json_open(g->notes, NULL, '{');
        json_text(g->notes, "op", op_name(o));
    }
    g->tensor = o->tensor;
    /* A choice of ops that combine rows is drawn for the batch. */
    const int rc = o->spec->draw && !op_blends(o) ? o->spec->draw(g, o) : STK_OK;
    if (g->notes)
        json_close(g->notes, '}');
    return rc;
}

struct rng drawing_rng(const struct drawing *g, const struct op *o)
{
    struct rng r;
    rng_init(&r, g->draw, op_name(o), o->nth);
    return r;
}

bool drawing_chance(struct drawing *g, const struct op *o, struct rng *r)
{
    const bool yes = rng_chance(r, op_arg(o, &arg_p)->v[0]);
    drawing_note_bool(g, "applied", yes);
    return yes;
}

void drawing_shuffle(struct rng *r, int32_t *order, int n)
{
    for (int i = 0; i < n; i++) {
        const int k = (int)rng_below(r, (uint64_t)i + 1);
        order[i] = k < i ? order[k] : i;
        order[k] = i;
    }
}

/* A job that is full keeps its last step free, so that callers need not check. plan_draw.c reports it. */
struct step *drawing_step(struct drawing *g, enum step_kind kind, int32_t w, int32_t h, int channels)
{
    struct job *j = g->job;
    g->full |= j->n_steps == JOB_STEPS - 1;
    struct step *s = &j->steps[j->n_steps];
    j->n_steps += !g->full;
    *s = (struct step){.kind = kind,
                       .in_w = g->w,
                       .in_h = g->h,
                       .w = w,
                       .h = h,
                       .from = {0, 0, g->w, g->h},
                       .need = {0, 0, w, h},
                       .in = (int8_t)g->channels,
                       .channels = (int8_t)channels};
    g->w = w;
    g->h = h;
    g->channels = channels;
    return s;
}

void drawing_fill(const struct op *o, uint8_t fill[3])
{
    const struct arg *a = op_arg(o, &arg_fill);
    for (int i = 0; i < 3; i++)
        fill[i] = a && a->n > 0 ? (uint8_t)a->v[a->n == 3 ? i : 0] : 0;
}

uint8_t drawing_mask_fill(const struct op *o)
{
    const struct arg *own = op_arg(o, &arg_mask_fill), *a = own && own->n ? own : op_arg(o, &arg_fill);
    return a && a->n == 1 ? (uint8_t)a->v[0] : 0;
}

struct step *drawing_mark(struct drawing *g, enum step_kind kind)
{
    return drawing_step(g, kind, g->w, g->h, g->channels);
}

struct step *drawing_crop(struct drawing *g, const struct op *o, struct rect c)
{
    const struct arg *mode = op_arg(o, &arg_pad_mode);
    if (c.x == 0 && c.y == 0 && c.w == g->w && c.h == g->h)
        return drawing_mark(g, STEP_CLAMP_BOXES);
    struct step *s = drawing_step(g, STEP_CROP, c.w, c.h, g->channels);
    s->x = c.x;
    s->y = c.y;
    s->pad_mode = mode ? (int8_t)mode->v[0] : PAD_CONSTANT;
    drawing_fill(o, s->fill);
    s->mask_fill = drawing_mask_fill(o);
    return s;
}

void drawing_resize(struct drawing *g, const struct op *o, int32_t w, int32_t h)
{
    const struct arg *antialias = op_arg(o, &arg_antialias);
    if (w == g->w && h == g->h)
        return;
    struct step *s = drawing_step(g, STEP_RESIZE, w, h, g->channels);
    s->filter = (int8_t)op_arg(o, &arg_filter)->v[0];
    s->antialias = !antialias || antialias->v[0] != 0;
}

void drawing_note_int(struct drawing *g, const char *name, int64_t v)
{
    if (g->notes)
        json_int(g->notes, name, v);
}

void drawing_note_seed(struct drawing *g, const char *name, uint64_t v)
{
    if (g->notes)
        json_uint(g->notes, name, v);
}

/* All digits, so that torchvision can be given the same number. */
void drawing_note_number(struct drawing *g, const char *name, double v)
{
    char text[NUMBER_BYTES];
    if (!g->notes)
        return;
    number_write(v, text);
    json_raw(g->notes, name, text);
}

void drawing_note_bool(struct drawing *g, const char *name, bool v)
{
    if (g->notes)
        json_bool(g->notes, name, v);
}

void drawing_note_text(struct drawing *g, const char *name, const char *v)
{
    if (g->notes)
        json_text(g->notes, name, v);
}

void drawing_note_open(struct drawing *g, const char *name)
{
    if (g->notes)
        json_open(g->notes, name, '[');
}

void drawing_note_close(struct drawing *g)
{
    if (g->notes)
        json_close(g->notes, ']');
}

void drawing_note_object(struct drawing *g)
{
    if (g->notes)
        json_open(g->notes, NULL, '{');
}

void drawing_note_object_end(struct drawing *g)
{
    if (g->notes)
        json_close(g->notes, '}');
}

void drawing_note_ints(struct drawing *g, const char *name, const int32_t *v, int n)
{
    drawing_note_open(g, name);
    for (int i = 0; i < n; i++)
        drawing_note_int(g, NULL, v[i]);
    drawing_note_close(g);
}

void drawing_note_numbers(struct drawing *g, const char *name, const double *v, int n)
{
    drawing_note_open(g, name);
    for (int i = 0; i < n; i++)
        drawing_note_number(g, NULL, v[i]);
    drawing_note_close(g);
}

void drawing_note_size(struct drawing *g, int32_t w, int32_t h)
{
    drawing_note_ints(g, "size", (const int32_t[]){h, w}, 2);
}

void drawing_note_crop(struct drawing *g, struct rect c)
{
    drawing_note_int(g, "top", c.y);
    drawing_note_int(g, "left", c.x);
    drawing_note_int(g, "height", c.h);
    drawing_note_int(g, "width", c.w);
}

int drawing_refuse(const struct drawing *g, const struct op *o, const char *why)
{
    return error_set(g->e, STK_EDATA, "transform", "%s: the image has %d x %d pixels here, %s", op_name(o), (int)g->w,
                     (int)g->h, why);
}

int32_t drawing_round(double x)
{
    const double low = floor(x), rest = x - low;
    const bool up = rest > 0.5 || (rest == 0.5 && fmod(low, 2.0) != 0.0);
    return (int32_t)(up ? low + 1.0 : low);
}
