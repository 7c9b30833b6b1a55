/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blend.c -- draws how the rows of a batch are combined, and combines them in place.
 *
 * Rows are combined in an order in which each is read before it is overwritten. torchvision's pairs form a ring: from
 * the last row to the first, with the last one saved. timm's pairs are independent: one row of each pair is saved.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/size.h"
#include "transform/plan_inner.h"

/* The rows of a batch. */
struct rows {
    const struct plan *p;
    uint8_t *image;
    float *label;
};

/* How one row is combined with its partner. */
struct mixture {
    bool cut;
    double lambda;    /* the share of the row; 1: the row stays as it is */
    float keep, rest; /* shares of the row and of its partner */
    struct rect box;  /* CutMix: this part is the partner's */
};

/* ------------------------------------------------------------------ draws */

static double beta(struct rng *r, double alpha)
{
    const double a = rng_log_gamma(r, alpha), b = rng_log_gamma(r, alpha);
    return 1.0 / (1.0 + exp(b - a));
}

static int32_t clamp(int64_t v, int32_t most)
{
    return (int32_t)(v < 0 ? 0 : v > most ? most : v);
}

/* From the centre to either side; cut off at the edges of the image. */
static struct rect box_around(int64_t x, int64_t y, int32_t half_w, int32_t half_h, int32_t w, int32_t h)
{
    const int32_t x0 = clamp(x - half_w, w), y0 = clamp(y - half_h, h);
    return (struct rect){x0, y0, clamp(x + half_w, w) - x0, clamp(y + half_h, h) - y0};
}

/* A box anywhere inside, with sides between the limits. */
static struct rect box_within(struct rng *r, const struct blend *b, int32_t w, int32_t h)
{
    struct rect box;
    const int32_t low_h = (int32_t)(h * b->box_min), high_h = (int32_t)(h * b->box_max);
    const int32_t low_w = (int32_t)(w * b->box_min), high_w = (int32_t)(w * b->box_max);
    box.h = low_h + (high_h > low_h ? (int32_t)rng_below(r, (uint64_t)(high_h - low_h)) : 0);
    box.w = low_w + (high_w > low_w ? (int32_t)rng_below(r, (uint64_t)(high_w - low_w)) : 0);
    box.y = (int32_t)rng_below(r, (uint64_t)(h - box.h) + (box.h == h));
    box.x = (int32_t)rng_below(r, (uint64_t)(w - box.w) + (box.w == w));
    return box;
}

static struct rect draw_box(struct rng *r, const struct blend *b, double lambda, int32_t w, int32_t h)
{
    if (b->box_max > 0.0)
        return box_within(r, b, w, h);
    const double side = sqrt(1.0 - lambda);
    if (b->timm) {
        const int32_t cut_h = (int32_t)(h * side), cut_w = (int32_t)(w * side);
        const int64_t y = (int64_t)rng_below(r, (uint64_t)h), x = (int64_t)rng_below(r, (uint64_t)w);
        return box_around(x, y, cut_w / 2, cut_h / 2, w, h);
    }
    const int64_t x = (int64_t)rng_below(r, (uint64_t)w), y = (int64_t)rng_below(r, (uint64_t)h);
    return box_around(x, y, (int32_t)(0.5 * side * w), (int32_t)(0.5 * side * h), w, h);
}

static struct mixture draw_mixture(struct rng *r, const struct blend *b, int32_t w, int32_t h)
{
    struct mixture m = {.lambda = 1.0, .keep = 1.0f};
    if (!rng_chance(r, b->p))
        return m;
    m.cut = b->cutmix > 0.0 && (b->mixup <= 0.0 || rng_chance(r, b->cutmix_p));
    m.lambda = beta(r, m.cut ? b->cutmix : b->mixup);
    if (m.cut) {
        m.box = draw_box(r, b, m.lambda, w, h);
        if (b->correct || b->box_max > 0.0)
            m.lambda = 1.0 - (double)m.box.w * m.box.h / ((double)w * h);
    }
    m.keep = (float)m.lambda;
    m.rest = (float)(1.0 - m.lambda);
    if (b->timm && b->mode != BLEND_BATCH) /* timm has a float32 per row */
        m.rest = 1.0f - m.keep;
    return m;
}

/* Which of the mixtures that are drawn, one after the other, belongs to row i of n. */
static int64_t drawn_for(const struct blend *b, int64_t i, int64_t n)
{
    const int64_t back = n - 1 - i;
    return b->mode == BLEND_BATCH ? 0 : b->mode == BLEND_PAIR && back < i ? back : i;
}

static void draw_all(const struct plan *p, const struct draw *d, struct mixture *m, int64_t n)
{
    struct rng r;
    rng_init(&r, d, "MixUp", 0);
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = drawn_for(&p->ops.blend, i, n);
        m[i] = from < i ? m[from] : draw_mixture(&r, &p->ops.blend, p->ops.w, p->ops.h);
    }
}

void plan_blend_drawn(const struct plan *p, const struct draw *d, int64_t i, int64_t n, struct json *j)
{
    const struct blend *b = &p->ops.blend;
    struct mixture m = {0};
    struct rng r;
    rng_init(&r, d, "MixUp", 0);
    for (int64_t k = drawn_for(b, i, n); k >= 0; k--)
        m = draw_mixture(&r, b, p->ops.w, p->ops.h);
    char lambda[32];
    snprintf(lambda, sizeof lambda, "%.17g", m.lambda); /* enough digits to read the same double again */
    json_raw(j, "lam", lambda);
    if (m.cut) {
        json_open(j, "box", '[');
        json_int(j, NULL, m.box.x);
        json_int(j, NULL, m.box.y);
        json_int(j, NULL, m.box.x + m.box.w);
        json_int(j, NULL, m.box.y + m.box.h);
        json_close(j, ']');
    }
    json_int(j, "partner", b->timm ? n - 1 - i : (i + n - 1) % n);
}

/* ------------------------------------------------------------------ rows */

static void copy_box(const struct plan *p, struct rect box, uint8_t *to, const uint8_t *from)
{
    const bool planar = p->layout == STK_NCHW;
    const size_t line = plan_pitch(p, p->ops.w), pixel = line / (size_t)p->ops.w;
    const int32_t planes = planar ? p->ops.channels : 1;
    for (int32_t ch = 0; ch < planes; ch++)
        for (int32_t y = box.y; y < box.y + box.h; y++) {
            const size_t at = line * ((size_t)p->ops.h * (size_t)ch + (size_t)y) + pixel * (size_t)box.x;
            memcpy(to + at, from + at, pixel * (size_t)box.w);
        }
}

static uint8_t *image_at(const struct rows *r, int64_t row)
{
    return r->image + (size_t)row * r->p->row_bytes;
}

static float *label_at(const struct rows *r, int64_t row)
{
    return r->label + row * r->p->ops.blend.classes;
}

static void combine(const struct rows *r, const struct mixture *m, int64_t row, const uint8_t *image,
                    const float *label)
{
    const struct plan *p = r->p;
    if (m->keep == 1.0f && m->rest == 0.0f)
        return;
    if (m->cut)
        copy_box(p, m->box, image_at(r, row), image);
    else
        p->blend(image_at(r, row), image, p->row_bytes / p->element, m->keep, m->rest);
    p->kernels.blend[STORE_F32](label_at(r, row), label, (size_t)p->ops.blend.classes, m->keep, m->rest);
}

static void combine_rows(const struct rows *r, const struct mixture *m, int64_t row, int64_t partner)
{
    combine(r, m, row, image_at(r, partner), label_at(r, partner));
}

/* Copies a row to `saved`. */
static void save(const struct rows *r, int64_t row, const struct rows *saved)
{
    memcpy(saved->image, image_at(r, row), r->p->row_bytes);
    memcpy(saved->label, label_at(r, row), (size_t)r->p->ops.blend.classes * sizeof *r->label);
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t label_bytes(const struct plan *p)
{
    return aligned((size_t)p->ops.blend.classes * sizeof(float));
}

size_t plan_blend_spare(const struct plan *p, int64_t n)
{
    const size_t row = size_add(aligned(p->row_bytes), label_bytes(p));
    return size_add(row, size_mul((size_t)n, sizeof(int64_t) + sizeof(struct mixture)));
}

/* row[]: the rows that take part. */
static void combine_ring(const struct rows *r, const struct mixture *m, const int64_t *row, int64_t n,
                         const struct rows *saved)
{
    save(r, row[n - 1], saved);
    for (int64_t i = n - 1; i > 0; i--)
        combine_rows(r, &m[i], row[i], row[i - 1]);
    combine(r, &m[0], row[0], saved->image, saved->label);
}

static void combine_pairs(const struct rows *r, const struct mixture *m, const int64_t *row, int64_t n,
                          const struct rows *saved)
{
    for (int64_t i = 0, j = n - 1; i <= j; i++, j--) {
        save(r, row[i], saved);
        if (i == j)
            combine(r, &m[i], row[i], saved->image, saved->label);
        else {
            combine_rows(r, &m[i], row[i], row[j]);
            combine(r, &m[j], row[j], saved->image, saved->label);
        }
    }
}

void plan_blend(const struct plan *p, const struct draw *d, uint8_t *image, float *label, const uint8_t *valid,
                int64_t n, void *spare)
{
    const struct rows rows = {.p = p, .image = image, .label = label};
    struct rows saved = {.p = p, .image = spare};
    saved.label = (float *)(saved.image + aligned(p->row_bytes));
    int64_t *const row = (int64_t *)((uint8_t *)saved.label + label_bytes(p));
    struct mixture *const m = (struct mixture *)(row + n);
    int64_t good = 0;
    for (int64_t i = 0; i < n; i++)
        if (valid[i])
            row[good++] = i;
    if (good == 0)
        return;
    struct draw first = *d;
    first.sample += (uint64_t)row[0];
    draw_all(p, &first, m, good);
    (p->ops.blend.timm ? combine_pairs : combine_ring)(&rows, m, row, good, &saved);
}

/* ------------------------------------------------------------------ labels */

int64_t plan_soft_classes(const struct plan *p)
{
    return p->ops.blend.classes;
}

void plan_soft_label(const struct plan *p, int64_t label, float *row)
{
    const struct blend *b = &p->ops.blend;
    const double off = b->smoothing / (double)b->classes;
    for (int64_t i = 0; i < b->classes; i++)
        row[i] = (float)off;
    row[label] = (float)(1.0 - b->smoothing + off);
}
