/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_rows.c -- the fifteen kinds of PNG pixels, converted in three ways, or kept as numbers for masks:
 *
 *     grey or index of up to 8 bits    a table of 256 colours
 *     grey+alpha, RGB, RGBA            the first sample, or the first three; the high byte of 16 bits
 *     grey of 16 bits                  scaled (v / 257), where Pillow clips
 */
#include "decode/png_rows.h"

#include <string.h>

#include "base/bytes.h"

void png_rows_init(struct png_rows *s, const struct png_chunks *c, const struct png_kernels *k)
{
    const size_t sample = c->bits == 16 ? 2 : 1;
    *s = (struct png_rows){.kernels = k, .step = sample * (size_t)c->samples, .sample = c->samples < 3 ? 0 : sample};
    s->deep_grey = c->colour == PNG_GREY && c->bits == 16;
    s->plain_grey = c->colour == PNG_GREY && c->bits == 8;
    if (c->samples > 1 || s->deep_grey || s->plain_grey)
        return;
    s->bits = c->bits;
    if (c->colour == PNG_INDEXED) {
        for (size_t i = 0; i < 256 && i < c->palette_bytes / 3; i++)
            memcpy(s->table[i], c->palette + i * 3, 3);
        return;
    }
    const int max = (1 << c->bits) - 1;
    for (int v = 0; v <= max; v++)
        memset(s->table[v], v * 255 / max, 3);
}

void png_rows_init_indices(struct png_rows *s, const struct png_chunks *c)
{
    *s = (struct png_rows){.bits = c->bits, .indices = true};
}

static void as_stored(const struct png_rows *s, const uint8_t *row, size_t x, uint8_t *out, size_t n)
{
    const size_t bits = (size_t)s->bits, mask = ((size_t)1 << bits) - 1;
    if (bits == 8)
        memcpy(out, row + x, n);
    for (size_t i = x; i < x + n && bits < 8; i++)
        *out++ = (uint8_t)((size_t)row[i * bits / 8] >> (8 - bits - i * bits % 8) & mask);
    for (size_t i = x; i < x + n && bits > 8; i++, out += 2) {
        const uint16_t v = (uint16_t)be16(row + i * 2);
        memcpy(out, &v, sizeof v);
    }
}

static void from_table(const struct png_rows *s, const uint8_t *row, size_t x, uint8_t *out, size_t n)
{
    const size_t bits = (size_t)s->bits, mask = ((size_t)1 << bits) - 1;
    for (size_t i = x; i < x + n; i++, out += 3) {
        const size_t bit = i * bits;
        const size_t v = (size_t)row[bit / 8] >> (8 - bits - bit % 8) & mask;
        memcpy(out, s->table[v], 3);
    }
}

/* The fourth byte of a pixel is overwritten by the next one. */
static void from_bytes(const struct png_rows *s, const uint8_t *p, uint8_t *out, size_t n)
{
    for (; n > 1; n--, out += 3)
        memcpy(out, s->table[*p++], 4);
    memcpy(out, s->table[*p], 3);
}

static void from_deep_grey(const uint8_t *p, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++, p += 2, out += 3)
        memset(out, (be16(p) + 128) / 257, 3);
}

static void from_samples(const uint8_t *p, size_t step, size_t sample, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++, p += step, out += 3) {
        out[0] = p[0];
        out[1] = p[sample];
        out[2] = p[2 * sample];
    }
}

void png_rows_expand(const struct png_rows *s, const uint8_t *row, const struct rect *crop, uint8_t *out)
{
    const size_t x = (size_t)crop->x, n = (size_t)crop->w;
    if (s->indices)
        as_stored(s, row, x, out, n);
    else if (s->bits == 8)
        from_bytes(s, row + x, out, n);
    else if (s->bits)
        from_table(s, row, x, out, n);
    else if (s->deep_grey)
        from_deep_grey(row + x * 2, out, n);
    else if (s->plain_grey)
        s->kernels->spread_grey(out, row + x, n);
    else if (s->step == 3)
        memcpy(out, row + x * 3, n * 3);
    else if (s->step == 4 && s->sample == 1)
        s->kernels->drop_alpha(out, row + x * 4, n);
    else
        from_samples(row + x * s->step, s->step, s->sample, out, n);
}
