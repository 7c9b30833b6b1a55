/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_strip.c -- samples and pixels of a crop, one row of MCUs at a time.
 *
 * If chroma has half the rows, a row of pixels also uses the chroma row above or below. So the last row of pixels of an
 * MCU row waits for the next MCU row, and planes hold two MCU rows in turn:
 *
 *      MCU row y - 1   ================  written, except for its last row
 *      MCU row y       ================  decoded now: writes the row that waited, and all but its own last row
 *
 * If chroma has half the columns, the sample beside the crop is also used. It exists, except at the image's edge, where
 * the outermost sample is repeated.
 */
#include "decode/jpeg_strip.h"

#include <string.h>

#include "base/size.h"

enum {
    MARGIN = 64,   /* bytes before each row of a plane: the first sample is aligned, and one may be written before it */
    MCU_SIDE = 16, /* pixels, at most */
    PLANE_ROWS = 64 /* of the luma's width, of all planes together: 32 of luma, 16 each of chroma */
};

/* The samples of one component. */
struct plane {
    uint8_t *at; /* of the first MCU column that is needed */
    size_t stride;
    int32_t rows;  /* rows that it holds */
    int32_t mcu_w; /* samples of an MCU, across */
    int32_t w, h;  /* of the component in the whole image */
    int32_t x;     /* column of its first sample in the whole image */
};

struct strip {
    const struct jpeg_frame *f;
    const struct rect *crop;
    const struct jpeg_kernels *k;
    struct jpeg_need need;
    struct plane planes[JPEG_COMPONENTS];
    struct jpeg_blocks blocks;
    int16_t *coef;      /* of all blocks, one after the other */
    struct image image; /* from an even column on, if columns are halved */
    int32_t row;        /* the next row of the image to write */
};

static size_t plane_stride(size_t w)
{
    return (w + MARGIN - 1) / MARGIN * MARGIN + 2 * MARGIN;
}

enum { COEF_BYTES = JPEG_AT_ONCE_BLOCKS * JPEG_BLOCK * (int)sizeof(int16_t) };

size_t jpeg_strip_scratch(const struct rect *crop)
{
    const size_t w = (size_t)crop->w, stride = plane_stride(w + 4 * MCU_SIDE);
    const size_t px = size_mul((w + 1) * 3, (size_t)crop->h);
    size_t n = size_add(arena_cost(px), arena_cost(COEF_BYTES + JPEG_AT_ONCE_BLOCKS));
    for (int i = 0; i < JPEG_COMPONENTS; i++)
        n = size_add(n, arena_cost(stride * (i ? PLANE_ROWS / 4 : PLANE_ROWS / 2)));
    return n;
}

/* ------------------------------------------------------------------ set-up */

static bool make_planes(struct strip *s, struct arena *a)
{
    const struct jpeg_frame *f = s->f;
    const bool columns = jpeg_frame_halves_columns(f), rows = jpeg_frame_halves_rows(f);
    for (int i = 0; i < f->n_components; i++) {
        const struct jpeg_component *c = &f->component[i];
        const int across = i > 0 && columns ? 2 : 1, down = i > 0 && rows ? 2 : 1;
        struct plane *p = &s->planes[i];
        p->mcu_w = c->h * c->side * c->wide;
        p->stride = plane_stride((size_t)(s->need.x1 - s->need.x0) * (size_t)p->mcu_w);
        p->rows = (rows ? 2 : 1) * c->v * c->side * c->high;
        p->w = (f->w + across - 1) / across;
        p->h = (f->h + down - 1) / down;
        p->x = s->need.x0 * p->mcu_w;
        uint8_t *base = arena_alloc(a, p->stride * (size_t)p->rows);
        if (!base)
            return false;
        p->at = base + MARGIN;
    }
    return true;
}

void jpeg_strip_blocks(struct jpeg_blocks *b, const struct jpeg_frame *f, int mcus, int16_t *coef, uint8_t *last)
{
    size_t n = 0;
    *b = (struct jpeg_blocks){0};
    for (int i = 0; i < f->n_components; i++)
        for (int v = 0; v < f->component[i].v; v++) {
            b->coef[i][v] = coef + n * JPEG_BLOCK;
            b->last[i][v] = last + n;
            n += (size_t)(f->component[i].h * mcus);
        }
}

static bool make_blocks(struct strip *s, struct arena *a)
{
    const struct jpeg_frame *f = s->f;
    uint8_t *base = arena_alloc(a, COEF_BYTES + JPEG_AT_ONCE_BLOCKS);
    if (!base)
        return false;
    jpeg_strip_blocks(&s->blocks, f, JPEG_AT_ONCE, (int16_t *)(void *)base, base + COEF_BYTES);
    for (int i = 0; i < f->n_components; i++)
        s->blocks.first_only[i] = f->component[i].side == 1;
    return true;
}

static bool make_image(struct strip *s, struct arena *a)
{
    const int32_t w = s->crop->w + (jpeg_frame_halves_columns(s->f) ? s->crop->x & 1 : 0);
    const size_t stride = (size_t)w * 3;
    s->image = (struct image){.stride = stride, .w = w, .h = s->crop->h, .channels = 3};
    s->image.px = arena_alloc(a, stride * (size_t)s->crop->h);
    s->row = s->crop->y;
    return s->image.px != NULL;
}

/* ------------------------------------------------------------------ samples */

static uint8_t *row_of(const struct plane *p, int32_t row)
{
    return p->at + p->stride * (size_t)(row % p->rows);
}

/* Repeats samples: across, n in each row of a block; or down, if a block has one row. */
static void repeat_samples(const struct jpeg_component *c, uint8_t *to, size_t stride, int32_t n)
{
    for (int row = 0; c->wide == 2 && row < c->side; row++) {
        uint8_t *at = to + (size_t)row * stride;
        for (int32_t i = n - 1; i >= 0; i--)
            at[2 * i] = at[2 * i + 1] = at[i];
    }
    if (c->high == 2)
        memcpy(to + stride, to, (size_t)(n * c->wide));
}

static jpeg_idct_fn *idct_of(const struct jpeg_kernels *k, int side)
{
    return side == 8 ? k->idct : k->small[side == 4 ? 0 : side == 2 ? 1 : 2];
}

/* Turns the blocks of n MCUs, from column x of MCU row y on, into samples. */
static void samples_of(struct strip *s, int32_t y, int32_t x, int32_t n)
{
    for (int i = 0; i < s->f->n_components; i++) {
        const struct jpeg_component *c = &s->f->component[i];
        const struct plane *p = &s->planes[i];
        for (int v = 0; v < c->v; v++) {
            uint8_t *to = row_of(p, (y * c->v + v) * c->side * c->high) + (size_t)(x - s->need.x0) * (size_t)p->mcu_w;
            idct_of(s->k, c->side)(to, p->stride, s->blocks.coef[i][v], s->blocks.last[i][v], (size_t)(n * c->h), c->q);
            repeat_samples(c, to, p->stride, n * c->h * c->side);
        }
    }
}

/* Repeats the outermost samples of chroma with half the columns. */
static void repeat_edges(const struct strip *s, int32_t y)
{
    for (int i = 1; jpeg_frame_halves_columns(s->f) && i < s->f->n_components; i++) {
        const struct plane *p = &s->planes[i];
        const int32_t side = s->f->component[i].side;
        for (int32_t row = side * y; row < side * (y + 1); row++) {
            uint8_t *at = row_of(p, row);
            at[-1] = s->need.x0 == 0 ? at[0] : at[-1];
            if (s->need.x1 == s->f->mcus_x)
                at[p->w - p->x] = at[p->w - p->x - 1];
        }
    }
}

static void zero_blocks(const struct strip *s, int32_t mcus)
{
    for (int i = 0; i < s->f->n_components; i++) {
        const struct jpeg_component *c = &s->f->component[i];
        for (int v = 0; v < c->v && !s->blocks.first_only[i]; v++)
            memset(s->blocks.coef[i][v], 0, (size_t)(mcus * c->h) * JPEG_BLOCK * sizeof(int16_t));
    }
}

static bool decode_row(struct strip *s, const struct jpeg_giver *from, int32_t y)
{
    for (int32_t x = s->need.x0; x < s->need.x1; x += JPEG_AT_ONCE) {
        const int32_t left = s->need.x1 - x, n = left < JPEG_AT_ONCE ? left : JPEG_AT_ONCE;
        if (from->sparse)
            zero_blocks(s, n);
        if (!from->give(from->user, y, x, n, &s->blocks))
            return false;
        samples_of(s, y, x, n);
    }
    repeat_edges(s, y);
    return true;
}

/* ------------------------------------------------------------------ pixels */

/* The other chroma row that a row of pixels uses. */
static int32_t other_row(int32_t row, int32_t h)
{
    const int32_t own = row / 2;
    if (row % 2)
        return own + 1 < h ? own + 1 : own;
    return own > 0 ? own - 1 : own;
}

static void put_row(const struct strip *s, int32_t row)
{
    const struct jpeg_frame *f = s->f;
    const bool halved = jpeg_frame_halves_rows(f);
    const int across = jpeg_frame_halves_columns(f) ? 2 : 1;
    const int32_t x = s->crop->x + s->crop->w - s->image.w;
    const struct plane *luma = &s->planes[0], *cb = &s->planes[1], *cr = &s->planes[2];
    struct jpeg_row r = {.y = row_of(luma, row) + (x - luma->x), .odd = row % 2};
    if (f->n_components == JPEG_COMPONENTS) {
        const int32_t own = halved ? row / 2 : row, other = halved ? other_row(row, cb->h) : own;
        const ptrdiff_t at = x / across - cb->x;
        r.cb = row_of(cb, own) + at;
        r.cr = row_of(cr, own) + at;
        r.cb_other = row_of(cb, other) + at;
        r.cr_other = row_of(cr, other) + at;
    }
    s->k->row[f->sampling](s->image.px + s->image.stride * (size_t)(row - s->crop->y), &r, (size_t)s->image.w);
}

/* Writes the rows of pixels that MCU row y completes. */
static void put_rows(struct strip *s, int32_t y)
{
    const struct jpeg_frame *f = s->f;
    const int waits = jpeg_frame_halves_rows(f) && y + 1 < f->mcus_y ? 1 : 0;
    const int32_t bottom = s->crop->y + s->crop->h, known = (y + 1) * f->mcu_h - waits;
    const int32_t end = known < bottom ? known : bottom;
    for (; s->row < end; s->row++)
        put_row(s, s->row);
}

bool jpeg_strip_run(const struct jpeg_frame *f, const struct rect *crop, const struct jpeg_kernels *k,
                    const struct jpeg_giver *from, struct arena *a, struct image *out)
{
    struct strip s = {.f = f, .crop = crop, .k = k, .need = jpeg_frame_need(f, crop, false)};
    if (!make_image(&s, a) || !make_planes(&s, a) || !make_blocks(&s, a))
        return false;
    for (int32_t y = s.need.y0; y < s.need.y1; y++) {
        if (!decode_row(&s, from, y))
            return false;
        put_rows(&s, y);
    }
    *out = s.image;
    out->px += (size_t)(s.image.w - crop->w) * 3;
    out->w = crop->w;
    return true;
}
