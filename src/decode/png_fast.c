/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_fast.c -- the pixels of a plain PNG.
 *
 * Data passes through three buffers that are small enough for the CPU's caches:
 *
 *     chunks of the file --inflate--> window --unfilter--> rows --expand--> pixels of the crop
 *
 * The window holds what the stream may still refer to, and some tens of rows. It is moved down once their pixels are
 * written. Filters are undone for eight rows at a time; the last of them is the row above the next eight.
 *
 * Everything that libpng sees until it has the last row affects its verdict, and it may see slightly more than that
 * row. So the stream is decompressed at least one byte further, or must end as it should. If that is near the end of a
 * chunk, the next chunk must be there and have the right checksum.
 */
#include "decode/png_fast.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "decode/inflate.h"
#include "decode/png_kernel.h"

enum {
    BATCH_BYTES = 64 * 1024,   /* to decompress at a time, besides eight rows */
    ROW_BYTES_MAX = 64 * 1024, /* wider images are rare, and need much memory */
    NEAR_END = 16,             /* bytes of a chunk: more than any decompressor reads ahead */
};

struct png_fast {
    struct png_kernels kernels;
    const struct crc32 *crc;
    struct inflate inflate;
};

struct png_fast *png_fast_new(stk_cpu cpu)
{
    struct png_fast *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    png_kernels_fill(&f->kernels, cpu);
    f->crc = crc32_choose(cpu);
    return f;
}

void png_fast_free(struct png_fast *f)
{
    free(f);
}

const struct png_kernels *png_fast_kernels(const struct png_fast *f)
{
    return &f->kernels;
}

/* ------------------------------------------------------------------ memory */

static size_t window_bytes(size_t row)
{
    return INFLATE_WINDOW + UNFILTER_ROWS * (row + 1) + BATCH_BYTES + INFLATE_SLACK;
}

static size_t stride_of(size_t row)
{
    return (row + UNFILTER_PAD + 63) / 64 * 64;
}

/* The row above, the rows, and padding before the first. */
static size_t rows_bytes(size_t row)
{
    return UNFILTER_PAD + (1 + UNFILTER_ROWS) * stride_of(row);
}

static bool suits(const struct head *h, size_t row)
{
    return !(h->odd & STK_ODD_INTERLACED) && row <= ROW_BYTES_MAX && h->h < INT32_MAX;
}

size_t png_fast_scratch(const struct head *h, size_t row)
{
    return suits(h, row) ? size_add(arena_cost(window_bytes(row)), arena_cost(rows_bytes(row))) : 0;
}

/* ------------------------------------------------------------------ the path */

struct path {
    struct png_fast *f;
    const struct image_job *job;
    struct png_walk walk; /* over the chunks of pixels */
    const struct png_rows *how;
    size_t row, step;          /* bytes of a row, without its filter, and of a pixel */
    int32_t y, rows;           /* the next row, and how many are needed */
    uint8_t *window;           /* `at` decompressed bytes; those from next_row on are new */
    size_t at, next_row, gone; /* gone: bytes moved out of the window */
    uint32_t sum;
    uint8_t *above, *px; /* above: the row above, followed by UNFILTER_ROWS more */
    size_t stride;
};

/* Ends the input, as odd, at a chunk with a wrong checksum. */
static bool next_piece(void *user, const uint8_t **p, size_t *n)
{
    struct path *s = user;
    if (!png_walk_next(&s->walk, p, n))
        return false;
    s->walk.odd |= s->f->crc->of(*p - 4, *n + 4) != be32(*p + *n);
    return !s->walk.odd;
}

static bool filters_known(const struct path *s, const uint8_t *row, int n)
{
    for (int i = 0; i < n; i++, row += s->row + 1)
        if (*row >= FILTERS)
            return false;
    return true;
}

/* Unfilters and expands complete rows, eight at a time, and finally the rest. Returns false if a filter is unknown. */
static bool take_rows(struct path *s)
{
    const struct rect *crop = &s->job->crop;
    for (;;) {
        const size_t there = (s->at - s->next_row) / (s->row + 1);
        const int32_t left = s->rows - s->y;
        const int n = left < UNFILTER_ROWS ? (int)left : UNFILTER_ROWS;
        if (n == 0 || there < (size_t)n)
            return true;
        const uint8_t *from = s->window + s->next_row;
        uint8_t *to = s->above + s->stride;
        if (!filters_known(s, from, n))
            return false;
        s->f->kernels.unfilter[s->step](to, s->stride, from, s->row, n);
        for (int32_t y = s->y - crop->y; y < s->y - crop->y + n; y++, to += s->stride)
            if (y >= 0 && y < crop->h)
                png_rows_expand(s->how, to, crop, s->px + (size_t)y * (size_t)crop->w * 3);
        memcpy(s->above, to - s->stride, s->row);
        s->y += n;
        s->next_row += (size_t)n * (s->row + 1);
    }
}

/* Drops what is neither an unused row nor within reach of the stream. */
static void move_window(struct path *s)
{
    const size_t reach = s->at > INFLATE_WINDOW ? s->at - INFLATE_WINDOW : 0;
    const size_t from = reach < s->next_row ? reach : s->next_row;
    memmove(s->window, s->window + from, s->at - from);
    s->at -= from;
    s->next_row -= from;
    s->gone += from;
}

/* After the last row of the image: the stream ends, its checksum is right, and no data follows. */
static bool ends_well(struct path *s)
{
    uint32_t sum;
    const uint8_t *p;
    size_t n;
    return inflate_end(&s->f->inflate, &sum) && sum == s->sum && !next_piece(s, &p, &n) && !s->walk.odd;
}

/* After the last row that is needed: enough of a chunk is left, or the next one is right, for a reader that reads
 * ahead. */
static bool goes_on_well(struct path *s)
{
    const uint8_t *p;
    size_t n;
    const bool near = s->f->inflate.in_end - s->f->inflate.in < NEAR_END;
    return !s->walk.odd && (!near || next_piece(s, &p, &n));
}

static bool run(struct path *s)
{
    const bool to_end = s->rows == s->job->head->h;
    const size_t needed = (size_t)s->rows * (s->row + 1), room = window_bytes(s->row) - INFLATE_SLACK;
    enum inflate_state state = INFLATE_MORE;
    while (state == INFLATE_MORE && s->gone + s->at <= needed) {
        move_window(s);
        const size_t before = s->at, wanted = needed + 1 - s->gone;
        state = inflate_run(&s->f->inflate, s->window, &s->at, wanted < room ? wanted : room);
        if (state == INFLATE_ODD)
            return false;
        if (to_end)
            s->sum = s->f->kernels.adler(s->sum, s->window + before, s->at - before);
        if (!take_rows(s))
            return false;
    }
    if (to_end)
        return state == INFLATE_END && s->gone + s->at == needed && ends_well(s);
    return state == INFLATE_MORE && goes_on_well(s);
}

static bool begin(struct path *s, struct arena *a, const struct png_chunks *c)
{
    const size_t bits = (size_t)(c->samples * c->bits);
    s->row = ((size_t)c->w * bits + 7) / 8;
    s->step = bits < 8 ? 1 : bits / 8;
    s->stride = stride_of(s->row);
    s->rows = s->job->whole ? c->h : s->job->crop.y + s->job->crop.h;
    s->window = arena_alloc(a, window_bytes(s->row));
    uint8_t *rows = arena_alloc(a, rows_bytes(s->row));
    if (!s->window || !rows)
        return false;
    s->above = rows + UNFILTER_PAD;
    memset(s->above, 0, s->row);
    s->walk = png_walk_begin(s->job->bytes, s->job->n, c);
    inflate_begin(&s->f->inflate, next_piece, s);
    return true;
}

bool png_fast_pixels(struct png_fast *f, const struct image_job *job, const struct png_chunks *c,
                     const struct png_rows *how, uint8_t *px)
{
    const size_t used = job->arena->used, bits = (size_t)(c->samples * c->bits);
    if (!suits(job->head, ((size_t)c->w * bits + 7) / 8))
        return false;
    struct path s = {.f = f, .job = job, .how = how, .px = px, .sum = 1};
    const bool good = begin(&s, job->arena, c) && run(&s);
    job->arena->used = used;
    return good;
}
