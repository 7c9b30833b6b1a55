/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.c -- the stored values of one sample, and finding a sample by its key.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loader.h"

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

/* ------------------------------------------------------------------ one sample */

struct telling {
    const struct source *source;
    struct reading reading;
    int64_t sample;
    int (*each)(void *user, const char *name, stk_kind kind, const stk_cell *c);
    void *user;
};

static bool is_read(const struct field *f)
{
    return f->kind == FIELD_ENCODED || f->column >= 0;
}

/* A field that only the source can copy. */
static int copied(struct telling *t, int f, stk_cell *c, void **own, stk_error *e)
{
    const struct field *of = source_field_at(t->source, t->sample, f);
    *own = malloc(of->bytes + IMAGE_SLACK);
    if (!*own)
        return error_nomem(e, "read", of->bytes);
    *c = (stk_cell){.bytes = *own, .n = of->bytes, .dtype = of->dtype, .ndim = of->ndim};
    memcpy(c->shape, of->shape, sizeof c->shape);
    return source_copy(t->source, &t->reading, t->sample, f, *own, e);
}

static int tell(struct telling *t, int f, int *stopped, stk_error *e)
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
        rc = copied(t, f, &c, &own, e);
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
    struct telling t = {.source = s->source, .sample = sample, .each = each, .user = user};
    const int n = source_n_fields(s->source);
    bool read = false;
    int rc = STK_OK, stopped = 0;
    if (sample < 0 || sample >= source_count(s->source))
        return error_set(e, STK_EUSAGE, "read", "there is no sample %lld; the source has %lld samples, counted from 0",
                         (long long)sample, (long long)source_count(s->source));
    if (source_fills_rows(s->source))
        return error_set(e, STK_EUSAGE, "read", "a source with fill() makes its samples and stores none");
    t.reading.label = source_label(s->source, sample);
    for (int f = 0; f < n; f++)
        read |= is_read(source_field_at(s->source, sample, f));
    if (read)
        rc = source_read(s->source, &t.reading, sample, e);
    for (int f = 0; f < n && rc == STK_OK && !stopped; f++)
        rc = tell(&t, f, &stopped, e);
    reading_done(&t.reading);
    if (rc != STK_OK) {
        char path[1024];
        source_path(s->source, sample, path, sizeof path);
        error_at(e, path, sample);
    }
    return rc;
}
