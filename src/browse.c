/* SPDX-License-Identifier: Apache-2.0 */
/*
 * browse.c -- a source alone: its samples, their names and labels, and a picture now and then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "browse.h"

int stk_source_open_sized(stk_source **out, const stk_options *o, size_t size, stk_error *e)
{
    *out = NULL;
    struct stk_source *s = calloc(1, sizeof *s);
    if (!s)
        return error_nomem(e, "open", sizeof *s);
    struct machine m;
    int rc = options_take(&s->options, o, size, &m, e);
    if (rc == STK_OK)
        rc = options_source(&s->options, false, &s->source, e);
    if (rc == STK_OK)
        *out = s;
    else
        free(s);
    return rc;
}

void stk_source_close(stk_source *s)
{
    if (!s)
        return;
    source_close(s->source);
    free(s);
}

const char *stk_source_kind(const stk_source *s)
{
    return source_kind(s->source);
}

int64_t stk_source_count(const stk_source *s)
{
    return source_count(s->source);
}

uint64_t stk_source_fingerprint(const stk_source *s)
{
    return source_fingerprint(s->source);
}

int stk_source_n_classes(const stk_source *s)
{
    return source_n_classes(s->source);
}

const char *stk_source_class(const stk_source *s, int i)
{
    return source_class(s->source, i);
}

static int has(const stk_source *s, int64_t sample)
{
    return sample >= 0 && sample < source_count(s->source);
}

size_t stk_source_fields(const stk_source *s, char *buf, size_t n)
{
    return source_fields_text(s->source, buf, n);
}

int64_t stk_source_label(const stk_source *s, int64_t sample)
{
    return has(s, sample) ? source_label(s->source, sample) : -1;
}

size_t stk_source_path(const stk_source *s, int64_t sample, char *buf, size_t n)
{
    return source_path(s->source, sample, buf, n);
}

size_t stk_source_key(const stk_source *s, int64_t sample, char *buf, size_t n)
{
    return source_key(s->source, sample, buf, n);
}

/* ------------------------------------------------------------------ one picture */

static int copy_out(const struct image *image, uint8_t **pixels, stk_error *e)
{
    const size_t row = (size_t)image->w * 3;
    uint8_t *to = malloc(row * (size_t)image->h);
    if (!to)
        return error_nomem(e, "decode", row * (size_t)image->h);
    for (int32_t y = 0; y < image->h; y++) {
        const uint8_t *from = image->px + (size_t)y * image->stride;
        if (image->channels == 3)
            memcpy(to + (size_t)y * row, from, row);
        else
            for (int32_t x = 0; x < image->w; x++)
                memset(to + (size_t)y * row + 3 * (size_t)x, from[x], 3);
    }
    *pixels = to;
    return STK_OK;
}

static int decode_whole(struct desk *d, const struct decode_limits *limits, struct image *image, stk_error *e)
{
    struct head head;
    int warnings = 0;
    int rc = decode_head(d->reading.bytes, d->reading.n_bytes, limits, &head, e);
    if (rc != STK_OK)
        return rc;
    const struct want want = {.crop = {.w = head_width(&head), .h = head_height(&head)}};
    const size_t scratch = decode_scratch(&head, &want);
    if (scratch == 0)
        return error_set(e, STK_EDATA, "decode", "%d x %d pixels are too many", head.w, head.h);
    rc = desk_reserve(d, scratch, 0, e);
    if (rc != STK_OK)
        return rc;
    return decode_pixels(d->decoder, d->reading.bytes, d->reading.n_bytes, &head, &want, &d->arena, image, &warnings,
                         e);
}

static int find_picture(const struct source *s, int64_t sample)
{
    for (int f = 0; f < source_n_fields(s); f++)
        if (source_field_at(s, sample, f)->what == STK_IMAGE)
            return f;
    return -1;
}

static int read_encoded(const struct stk_source *s, struct desk *d, int64_t sample, struct image *image, stk_error *e)
{
    const struct decode_limits limits = options_limits(&s->options);
    const int rc = desk_read(d, s->source, sample, e);
    return rc == STK_OK ? decode_whole(d, &limits, image, e) : rc;
}

/* Pixels as they are stored. */
static int read_pixels(const struct stk_source *s, struct desk *d, int64_t sample, int f, struct image *image,
                       stk_error *e)
{
    const struct field *of = source_field_at(s->source, sample, f);
    const int rc = desk_reserve(d, arena_cost(of->bytes), 0, e);
    if (rc != STK_OK)
        return rc;
    *image = (struct image){.px = arena_alloc(&d->arena, of->bytes),
                            .stride = (size_t)of->shape[1] * (size_t)of->shape[2],
                            .w = (int32_t)of->shape[1],
                            .h = (int32_t)of->shape[0],
                            .channels = (int)of->shape[2]};
    d->reading.label = source_label(s->source, sample);
    return source_copy(s->source, &d->reading, sample, f, image->px, e);
}

int stk_source_picture(stk_source *s, int64_t sample, uint8_t **pixels, int *width, int *height, int64_t *label,
                       stk_error *e)
{
    *pixels = NULL;
    if (!has(s, sample))
        return error_set(e, STK_EUSAGE, "read", "there is no sample %lld; there are %lld", (long long)sample,
                         (long long)source_count(s->source));
    const int f = find_picture(s->source, sample);
    if (f < 0)
        return error_set(e, STK_EUSAGE, "read", "this source has no pictures");
    const bool encoded = source_field_at(s->source, sample, f)->kind == FIELD_ENCODED;
    struct desk d;
    struct image image;
    int rc = desk_init(&d, 0, NULL, true, s->options.cpu, e);
    if (rc == STK_OK)
        rc = encoded ? read_encoded(s, &d, sample, &image, e) : read_pixels(s, &d, sample, f, &image, e);
    if (rc == STK_OK)
        rc = copy_out(&image, pixels, e);
    if (rc == STK_OK) {
        *width = image.w;
        *height = image.h;
        *label = d.reading.label;
    } else {
        char path[1024];
        source_path(s->source, sample, path, sizeof path);
        error_at(e, path, sample);
    }
    desk_done(&d);
    return rc;
}
