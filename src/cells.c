/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.c -- what a source has stored of one sample, and how it was found.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "browse.h"

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
        .kind = source_kind(s->source),
        .samples = source_count(s->source),
        .bytes = t->bytes,
        .n_classes = source_n_classes(s->source),
        .index_cached = t->index_cached,
        .index_s = t->index_s,
        .index_bytes = t->index_bytes,
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

/* A field that the source copies. */
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

int stk_source_cells(stk_source *s, int64_t sample,
                     int (*each)(void *user, const char *name, stk_kind kind, const stk_cell *c), void *user,
                     stk_error *e)
{
    struct telling t = {.source = s->source, .sample = sample, .each = each, .user = user};
    const int n = source_n_fields(s->source);
    bool read = false;
    int rc = STK_OK, stopped = 0;
    if (sample < 0 || sample >= source_count(s->source))
        return error_set(e, STK_EUSAGE, "read", "there is no sample %lld; there are %lld", (long long)sample,
                         (long long)source_count(s->source));
    if (source_fills_rows(s->source))
        return error_set(e, STK_EUSAGE, "read", "a source that fills rows has nothing stored");
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
