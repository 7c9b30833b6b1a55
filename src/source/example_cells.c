/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_cells.c -- converts a tf.train.Example into the cells of a sample.
 *
 * Cells point directly at byte strings and floats in the example. Integers are varints and are decoded into r->derived.
 * All of them are measured first, so that r->derived does not move.
 */
#include "source/example_cells.h"

#include <string.h>

#include "base/error.h"
#include "base/size.h"

/* ------------------------------------------------------------------ features to read */

static int want(struct example_wanted *w, const struct column *c, stk_kind what)
{
    for (int i = 0; i < w->names.n; i++)
        if (strcmp(w->columns[i].name, c->name) == 0)
            return i;
    const int i = w->names.n++;
    w->columns[i] = *c;
    w->json[i] = c->kind == STK_JSON && (what == STK_JSON || what == STK_TEXT || what == STK_BYTES);
    w->names.of[i] = (struct example_name){w->columns[i].name, strlen(w->columns[i].name)};
    return i;
}

void example_want(struct example_wanted *w, const struct source *s, const struct columns *c)
{
    w->names.n = 0;
    for (int column = 0; column < c->n; column++)
        for (int f = 0; f < s->n_fields; f++)
            if (s->fields[f].column == column)
                w->feature_of[f] = want(w, &c->items[column], s->fields[f].what);
    for (int f = 0; f < s->n_fields; f++)
        if (s->fields[f].column < 0)
            w->feature_of[f] = -1;
}

/* ------------------------------------------------------------------ decoding */

struct decoding {
    struct feature features[FIELD_MAX];
    size_t at[FIELD_MAX], n[FIELD_MAX]; /* range in r->derived, if it was decoded */
    bool decoded[FIELD_MAX];
};

static int damaged(const struct column *c, stk_error *e)
{
    return error_set(e, STK_EDATA, "read", "the feature %s is damaged", c->name);
}

static int measure(const struct example_wanted *w, const struct source *s, struct decoding *m, struct reading *r,
                   stk_error *e)
{
    size_t room = 0;
    for (int i = 0; i < w->names.n; i++) {
        struct feature *f = &m->features[i];
        m->decoded[i] = false;
        if (!f->p)
            continue;
        if (!feature_measure(f))
            return damaged(&w->columns[i], e);
        if (f->whole || f->count == 0 || w->json[i])
            continue;
        m->decoded[i] = true;
        m->at[i] = room;
        m->n[i] = feature_room(f);
        room += (m->n[i] + 7) / 8 * 8;
    }
    if (s->max_bytes > 0 && room > (uint64_t)s->max_bytes)
        return error_set(e, STK_EDATA, "read", "its numbers need %zu bytes, more than the %lld that max_bytes allows",
                         room, (long long)s->max_bytes);
    const int rc = r->allow ? r->allow(r->user, size_add(r->file.len, room), e) : STK_OK;
    if (rc != STK_OK)
        return rc;
    r->derived.len = room;
    return buf_reserve(&r->derived, room + 1) ? error_nomem(e, "read", room) : STK_OK;
}

static int make(const struct example_wanted *w, struct decoding *m, struct reading *r, stk_error *e)
{
    for (int i = 0; i < w->names.n; i++)
        if (m->decoded[i] && !feature_make(&m->features[i], r->derived.data + m->at[i]))
            return damaged(&w->columns[i], e);
    for (int i = 0; i < w->names.n; i++) {
        if (!m->features[i].p || !w->json[i] || m->features[i].kind != FEATURE_BYTES)
            continue;
        m->decoded[i] = true;
        m->at[i] = r->derived.len;
        if (!feature_json(&m->features[i], &r->derived))
            return error_nomem(e, "read", r->derived.len);
        m->n[i] = r->derived.len - m->at[i];
    }
    return STK_OK;
}

/* ------------------------------------------------------------------ cells */

static struct cell numbers(const struct feature *f, const struct column *c)
{
    struct cell cell = {.dtype = f->kind == FEATURE_INTS ? STK_INT64 : STK_FLOAT32, .ndim = 1};
    cell.shape[0] = (int64_t)f->count;
    if (f->steps && c->ndim == 2) {
        cell.ndim = 2;
        cell.shape[0] = f->n_steps;
        cell.shape[1] = f->each;
    }
    return cell;
}

static int refuse(const struct column *c, const char *why, stk_error *e)
{
    return error_set(e, STK_EDATA, "read", "the feature %s %s", c->name, why);
}

/* Several byte strings can only be read as binary numbers. */
static int check(const struct feature *f, const struct column *c, bool json, const struct field *field, stk_error *e)
{
    const bool tensor = field->what == STK_TENSOR,
               numbers = tensor || field->what == STK_INT || field->what == STK_FLOAT;
    const bool binary = tensor && !field->text;
    if (f->kind != FEATURE_BYTES && !numbers)
        return refuse(c, "contains numbers in this example, not bytes", e);
    if (f->kind != FEATURE_BYTES)
        return f->steps && f->each < 0 ? refuse(c, "has a different number of values in each step", e) : STK_OK;
    if (binary && columns_hold_numbers(c))
        return refuse(c, "contains bytes in this example, not numbers", e);
    if (f->count > 1 && !json && !binary)
        return error_set(e, STK_EDATA, "read", "the feature %s contains %zu byte strings in this example, not one",
                         c->name, f->count);
    return STK_OK;
}

/* Whether the value is missing. A ragged list of numbers may be empty. */
static bool is_missing(const struct feature *f, const struct field *field)
{
    if (!f->p || f->kind == FEATURE_NONE)
        return true;
    return f->count == 0 && (f->kind == FEATURE_BYTES || field->kind != FIELD_RAGGED);
}

static int cell_of(const struct example_wanted *w, const struct decoding *m, int i, const struct field *field,
                   struct reading *r, struct cell *cell, stk_error *e)
{
    const struct feature *f = &m->features[i];
    const struct column *c = &w->columns[i];
    if (!m->decoded[i] && is_missing(f, field)) {
        *cell = (struct cell){0}; /* missing: the field's default applies */
        return STK_OK;
    }
    if (f->count == 0 && !m->decoded[i]) {
        *cell = (struct cell){.bytes = (const uint8_t *)""};
        return check(f, c, w->json[i], field, e);
    }
    *cell = f->kind == FEATURE_BYTES ? (struct cell){.text = field->text} : numbers(f, c);
    cell->bytes = m->decoded[i] ? r->derived.data + m->at[i] : f->whole;
    cell->n = m->decoded[i] ? m->n[i] : f->bytes;
    return check(f, c, w->json[i], field, e);
}

int example_cells(const struct example_wanted *w, const struct source *s, const uint8_t *p, size_t n, struct reading *r,
                  stk_error *e)
{
    struct decoding m;
    if (!example_find(&w->names, p, n, m.features))
        return error_set(e, STK_EDATA, "read", "the record is not a tf.train.Example");
    int rc = measure(w, s, &m, r, e);
    if (rc == STK_OK)
        rc = make(w, &m, r, e);
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
        if (w->feature_of[f] >= 0)
            rc = cell_of(w, &m, w->feature_of[f], &s->fields[f], r, &r->cells[f], e);
    return rc;
}
