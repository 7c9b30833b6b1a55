/* SPDX-License-Identifier: Apache-2.0 */
/*
 * browse.c -- a source without a loader: its samples, their names and labels, single images and stored values.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loader.h"

int stk_source_open_sized(stk_source **out, const stk_source_options *given, size_t size, stk_error *e)
{
    stk_source_options o = {0};
    stk_options options;
    struct machine m;
    *out = NULL;
    const int known = given ? options_copy(&o, sizeof o, given, size, e) : STK_OK;
    const stk_options all = {
        .source = o.source,
        .sources = o.sources,
        .n_sources = o.n_sources,
        .arrays = o.arrays,
        .n_arrays = o.n_arrays,
        .read_hooks = o.read_hooks,
        .fill_hooks = o.fill_hooks,
        .cells_hooks = o.cells_hooks,
        .classes = o.classes,
        .n_classes = o.n_classes,
        .index_beside = o.index_beside,
        .max_bytes = o.max_bytes,
        .fields = o.fields,
        .source_fields = o.source_fields,
        .no_exif = o.no_exif,
        .max_pixels = o.max_pixels,
        .threads = o.threads,
        .memory = o.memory,
        .cache_dir = o.cache_dir,
    };
    struct stk_source *s = calloc(1, sizeof *s);
    if (known != STK_OK || !s) {
        options_close(&all);
        free(s);
        return known != STK_OK ? known : error_nomem(e, "open", sizeof *s);
    }
    int rc = options_take(&options, &all, sizeof all, &m, e);
    if (rc == STK_OK)
        rc = options_source(&options, false, &s->source, e);
    s->limits = options_limits(&options);
    s->max_bytes = options.max_bytes;
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

int64_t stk_source_find(const stk_source *s, const char *key)
{
    char name[4096];
    for (int64_t i = 0; i < source_count(s->source); i++)
        if (source_key(s->source, i, name, sizeof name) < sizeof name && strcmp(name, key) == 0)
            return i;
    return -1;
}

void stk_source_overview_sized(const stk_source *s, stk_overview *out, size_t size)
{
    const struct source_tally *t = source_tally(s->source);
    const stk_overview v = {
        .bytes = t->bytes,
        .ignored_hidden = t->ignored_hidden,
        .ignored_other = t->ignored_other,
        .ignored_loops = t->ignored_loops,
        .unreadable = t->unreadable,
        .empty_classes = t->empty_classes,
        .missing = t->missing,
        .beside = t->beside,
        .index_cached = t->index_cached,
        .index_s = t->index_s,
        .index_bytes = t->index_bytes,
        .columns = source_unused_columns(s->source),
        .left_out = source_unshared_fields(s->source),
    };
    memset(out, 0, size);
    memcpy(out, &v, size < sizeof v ? size : sizeof v);
}

/* ------------------------------------------------------------------ one image */

static int copy_out(const struct image *image, uint8_t **pixels, stk_error *e)
{
    const size_t row = (size_t)image->w * 3;
    *pixels = malloc(row * (size_t)image->h);
    if (!*pixels)
        return error_nomem(e, "decode", row * (size_t)image->h);
    for (int32_t y = 0; y < image->h; y++)
        memcpy(*pixels + (size_t)y * row, image->px + (size_t)y * image->stride, row);
    return STK_OK;
}

static int find_image(const struct source *s, int64_t sample)
{
    for (int f = 0; f < source_n_fields(s); f++)
        if (source_field_at(s, sample, f)->what == STK_IMAGE)
            return f;
    return -1;
}

static int make_image(const struct stk_source *s, struct desk *d, int64_t sample, int f, struct image *out,
                      stk_error *e)
{
    int rc = STK_OK;
    d->reading.label = source_label(s->source, sample);
    if (source_field_at(s->source, sample, f)->kind == FIELD_ENCODED)
        rc = desk_read(d, s->source, sample, e);
    struct desk_image im = desk_image(d, s->source, sample, f);
    if (rc == STK_OK)
        rc = desk_head(&im, &s->limits, e);
    if (rc == STK_OK) {
        const struct want want = desk_whole(&im.head);
        rc = desk_decode(d, &im, &want, 0, e);
    }
    *out = im.pixels;
    return rc;
}

int stk_source_image(const stk_source *s, int64_t sample, uint8_t **pixels, int *width, int *height, int64_t *label,
                     stk_error *e)
{
    *pixels = NULL;
    int rc = loader_check_sample(s->source, "read", sample, e);
    if (rc != STK_OK)
        return rc;
    const int f = find_image(s->source, sample);
    if (f < 0)
        return error_set(e, STK_EUSAGE, "read", "this source has no images");
    struct desk d;
    struct image image;
    rc = desk_init(&d, 0, NULL, true, STK_CPU_DEFAULT, e);
    if (rc == STK_OK)
        rc = make_image(s, &d, sample, f, &image, e);
    if (rc == STK_OK)
        rc = copy_out(&image, pixels, e);
    if (rc == STK_OK) {
        *width = image.w;
        *height = image.h;
        *label = d.reading.label;
    } else {
        loader_blame(s->source, sample, e);
    }
    desk_done(&d);
    return rc;
}

/* ------------------------------------------------------------------ the stored values of one sample */

/* Cells that are reported to the caller. */
struct report {
    const struct source *source;
    struct reading reading;
    int64_t sample;
    int (*each)(void *user, const char *name, stk_kind kind, const stk_cell *c);
    void *user;
};

/* A field that only the source can copy. */
static int copy_cell(struct report *t, int f, stk_cell *c, void **own, stk_error *e)
{
    const struct field *of = source_field_at(t->source, t->sample, f);
    *own = malloc(of->bytes + IMAGE_SLACK);
    if (!*own)
        return error_nomem(e, "read", of->bytes);
    *c = (stk_cell){.bytes = *own, .n = of->bytes, .dtype = of->dtype, .ndim = of->ndim};
    memcpy(c->shape, of->shape, sizeof c->shape);
    return source_copy(t->source, &t->reading, t->sample, f, *own, e);
}

static int report_cell(struct report *t, int f, int *stopped, stk_error *e)
{
    const struct field *of = source_field_at(t->source, t->sample, f);
    const struct cell *cell = &t->reading.cells[f];
    void *own = NULL;
    int rc = STK_OK;
    stk_cell c = {0};
    if (of->kind == FIELD_ENCODED) {
        c = (stk_cell){.bytes = t->reading.bytes, .n = t->reading.n_bytes};
    } else if (of->label) {
        c = (stk_cell){.bytes = &t->reading.label, .n = sizeof t->reading.label, .dtype = STK_INT64};
    } else if (of->column >= 0) {
        c = (stk_cell){.bytes = cell->bytes, .n = cell->n, .dtype = cell->dtype, .ndim = cell->ndim};
        memcpy(c.shape, cell->shape, sizeof c.shape);
    } else {
        rc = copy_cell(t, f, &c, &own, e);
    }
    if (rc == STK_OK)
        *stopped = t->each(t->user, of->name, of->what, &c);
    free(own);
    return rc;
}

int stk_source_cells(const stk_source *s, int64_t sample,
                     int (*each)(void *user, const char *name, stk_kind kind, const stk_cell *c), void *user,
                     stk_error *e)
{
    struct report t = {.source = s->source, .sample = sample, .each = each, .user = user};
    const int n = source_n_fields(s->source);
    bool read = false;
    int stopped = 0, rc = loader_check_sample(s->source, "read", sample, e);
    if (rc != STK_OK)
        return rc;
    if (source_fills_rows(s->source))
        return error_set(e, STK_EUSAGE, "read", "a source with fill() stores no fields to read");
    t.reading.label = source_label(s->source, sample);
    for (int f = 0; f < n; f++) {
        const struct field *of = source_field_at(s->source, sample, f);
        read |= of->kind == FIELD_ENCODED || of->column >= 0;
    }
    if (read)
        rc = source_read(s->source, &t.reading, sample, e);
    for (int f = 0; f < n && rc == STK_OK && !stopped; f++)
        rc = report_cell(&t, f, &stopped, e);
    reading_done(&t.reading);
    if (rc != STK_OK)
        loader_blame(s->source, sample, e);
    return rc;
}
