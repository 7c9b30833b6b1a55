/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_lossless.c -- lossless JPEG (ITU T.81, annex H) of one component and 8 bits.
 *
 * A sample is its prediction from the neighbours to the left, above and above left, plus a difference that is
 * Huffman-coded as DC differences are. Every bit is needed to get to the next, so that a crop saves only the rows
 * below it.
 */
#include "decode/jpeg_lossless.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

static const char stage[] = "decode";

struct table {
    bool there;
    int32_t first[17], count[17], at[17]; /* by length of code: first code, how many, where their values begin */
    uint8_t values[256];
};

struct stream {
    const uint8_t *p, *end;
    uint32_t bits;
    int n_bits;
    bool dry; /* a marker or the end of the file came where bits were needed */
};

struct scan {
    struct table tables[4];
    int table, predictor, shift;
    int64_t restart; /* samples between restarts; 0: none */
    struct stream s;
};

/* ------------------------------------------------------------------ headers */

static bool read_tables(struct scan *c, const uint8_t *p, size_t n)
{
    while (n >= 17) {
        struct table *t = &c->tables[p[0] & 3];
        int32_t code = 0, at = 0;
        for (int k = 1; k <= 16; k++) {
            t->first[k] = code;
            t->count[k] = p[k];
            t->at[k] = at;
            at += p[k];
            code = (code + p[k]) << 1;
        }
        if (at > 256 || (size_t)at > n - 17)
            return false;
        memcpy(t->values, p + 17, (size_t)at);
        t->there = true;
        p += 17 + at;
        n -= 17 + (size_t)at;
    }
    return n == 0;
}

static bool read_scan(struct scan *c, const uint8_t *p, size_t n)
{
    if (n < 6 || p[0] != 1)
        return false;
    c->table = p[2] >> 4 & 3;
    c->predictor = p[3];
    c->shift = p[5] & 15;
    return c->tables[c->table].there && c->predictor >= 1 && c->predictor <= 7 && c->shift < 8;
}

/* Walks along the markers to the scan; the head was read before, so the beginning is sound. */
static bool find_scan(struct scan *c, const uint8_t *p, size_t n)
{
    for (size_t i = 2; n - i >= 4 && i < n;) {
        const uint8_t *m = p + i;
        const size_t length = be16(m + 2);
        if (m[0] != 0xff) {
            i++;
            continue;
        }
        if (m[1] == 0xff || m[1] == 0 || (m[1] >= 0xd0 && m[1] <= 0xd8)) {
            i += m[1] == 0xff ? 1 : 2;
            continue;
        }
        if (length < 2 || length > n - i - 2)
            return false;
        if (m[1] == 0xc4 && !read_tables(c, m + 4, length - 2))
            return false;
        if (m[1] == 0xdd && length >= 4)
            c->restart = be16(m + 4);
        i += 2 + length;
        if (m[1] == 0xda) {
            c->s = (struct stream){.p = p + i, .end = p + n};
            return read_scan(c, m + 4, length - 2);
        }
    }
    return false;
}

/* ------------------------------------------------------------------ samples */

static uint32_t take_bit(struct stream *s)
{
    if (s->n_bits == 0) {
        if (s->p == s->end || (s->p[0] == 0xff && (s->end - s->p < 2 || s->p[1] != 0))) {
            s->dry = true;
            return 0;
        }
        s->bits = *s->p;
        s->p += s->bits == 0xff ? 2 : 1; /* a zero is stuffed behind */
        s->n_bits = 8;
    }
    return s->bits >> --s->n_bits & 1;
}

static int32_t difference(struct scan *c)
{
    const struct table *t = &c->tables[c->table];
    int32_t code = 0;
    for (int k = 1; k <= 16; k++) {
        code = code << 1 | (int32_t)take_bit(&c->s);
        if (code - t->first[k] >= t->count[k])
            continue;
        const int size = t->values[t->at[k] + code - t->first[k]];
        if (size >= 16)
            return 32768;
        int32_t v = 0;
        for (int i = 0; i < size; i++)
            v = v << 1 | (int32_t)take_bit(&c->s);
        return size && v < 1 << (size - 1) ? v - (1 << size) + 1 : v;
    }
    c->s.dry = true; /* no such code */
    return 0;
}

static int32_t predict(int predictor, int32_t left, int32_t above, int32_t corner)
{
    switch (predictor) {
    case 1:
        return left;
    case 2:
        return above;
    case 3:
        return corner;
    case 4:
        return left + above - corner;
    case 5:
        return left + ((above - corner) >> 1);
    case 6:
        return above + ((left - corner) >> 1);
    default:
        return (left + above) >> 1;
    }
}

/* The first row, and the first after a restart, is predicted from the left; the first column from above. */
static void read_row(struct scan *c, uint16_t *row, const uint16_t *above, int32_t w, bool first)
{
    for (int32_t x = 0; x < w; x++) {
        int32_t guess = 1 << (7 - c->shift);
        if (first && x > 0)
            guess = row[x - 1];
        else if (!first)
            guess = x == 0 ? above[0] : predict(c->predictor, row[x - 1], above[x], above[x - 1]);
        row[x] = (uint16_t)(guess + difference(c));
    }
}

static void skip_restart(struct stream *s)
{
    s->n_bits = 0;
    if (s->end - s->p >= 2 && s->p[0] == 0xff && s->p[1] >= 0xd0 && s->p[1] <= 0xd7)
        s->p += 2;
    else
        s->dry = true;
}

static void store_row(uint8_t *px, const uint16_t *row, int32_t w, int shift)
{
    for (int32_t x = 0; x < w; x++)
        memset(px + 3 * (size_t)x, (uint8_t)(row[x] << shift), 3);
}

int jpeg_lossless(const struct picture_job *job, struct image *out, stk_error *e)
{
    const struct rect *crop = &job->crop;
    const int32_t w = job->head->w, end = job->whole ? job->head->h : crop->y + crop->h;
    const size_t stride = (size_t)crop->w * 3;
    struct scan c = {0};
    if (!find_scan(&c, job->bytes, job->n) || c.restart % w != 0)
        return error_set(e, STK_EDATA, stage, "lossless JPEG with a scan that is broken or not supported");
    uint8_t *px = arena_alloc(job->arena, stride * (size_t)crop->h);
    uint16_t *rows = arena_alloc(job->arena, (size_t)w * 2 * sizeof *rows);
    if (!px || !rows)
        return codec_no_arena(e);
    for (int32_t y = 0; y < end; y++) {
        uint16_t *row = rows + (size_t)(y & 1) * (size_t)w;
        const bool fresh = c.restart && y > 0 && (int64_t)y * w % c.restart == 0;
        if (fresh)
            skip_restart(&c.s);
        read_row(&c, row, rows + (size_t)(~y & 1) * (size_t)w, w, y == 0 || fresh);
        if (c.s.dry)
            return error_set(e, STK_EDATA, stage, "lossless JPEG whose data ends or breaks in row %d of %d", y,
                             job->head->h);
        if (y >= crop->y && y < crop->y + crop->h)
            store_row(px + (size_t)(y - crop->y) * stride, row + crop->x, crop->w, c.shift);
    }
    *out = (struct image){.px = px, .stride = stride, .w = crop->w, .h = crop->h, .channels = 3};
    return STK_OK;
}
