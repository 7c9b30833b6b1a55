/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_cells.c -- from a tf.train.Example to the cells of a sample.
 *
 * Byte strings and packed floats are lent where they lie. Integers are varints, and have to be made: first all are
 * measured, so that r->derived has room for them and need not move.
 */
#include "source/example_cells.h"

#include <string.h>

#include "base/error.h"
#include "base/size.h"

/* ------------------------------------------------------------------ what is wanted */

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

/* ------------------------------------------------------------------ what has to be made */

struct making {
    struct feature features[FIELD_MAX];
    size_t at[FIELD_MAX], n[FIELD_MAX]; /* in r->derived, where it was made */
    bool made[FIELD_MAX];
};

static size_t round_up(size_t n)
{
    return (n + 7) / 8 * 8;
}

static int damaged(const struct column *c, stk_error *e)
{
    return error_set(e, STK_EDATA, "read", "the feature %s is damaged", c->name);
}

static int measure(const struct example_wanted *w, const struct source *s, struct making *m, struct reading *r,
                   stk_error *e)
{
    size_t room = 0;
    for (int i = 0; i < w->names.n; i++) {
        struct feature *f = &m->features[i];
        m->made[i] = false;
        if (!f->p)
            continue;
        if (!feature_measure(f))
            return damaged(&w->columns[i], e);
        if (f->whole || f->count == 0 || w->json[i])
            continue;
        m->made[i] = true;
        m->at[i] = room;
        m->n[i] = feature_room(f);
        room += round_up(m->n[i]);
    }
    if (s->max_bytes > 0 && room > (uint64_t)s->max_bytes)
        return error_set(e, STK_EDATA, "read", "its numbers take %zu bytes, more than the %lld that max_bytes allows",
                         room, (long long)s->max_bytes);
    const int rc = r->allow ? r->allow(r->user, size_add(r->file.len, room), e) : STK_OK;
    if (rc != STK_OK)
        return rc;
    r->derived.len = room;
    return buf_reserve(&r->derived, room + 1) ? error_nomem(e, "read", room) : STK_OK;
}

static int make(const struct example_wanted *w, struct making *m, struct reading *r, stk_error *e)
{
    for (int i = 0; i < w->names.n; i++)
        if (m->made[i] && !feature_make(&m->features[i], r->derived.data + m->at[i]))
            return damaged(&w->columns[i], e);
    for (int i = 0; i < w->names.n; i++) {
        if (!m->features[i].p || !w->json[i] || m->features[i].kind != FEATURE_BYTES)
            continue;
        m->made[i] = true;
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

/* Several byte strings in a row can be taken for binary numbers, and for nothing else. */
static int check(const struct feature *f, const struct column *c, bool json, const struct field *field, stk_error *e)
{
    const bool tensor = field->what == STK_TENSOR,
               numbers = tensor || field->what == STK_INT || field->what == STK_FLOAT;
    const bool binary = tensor && !field->text;
    if (f->kind != FEATURE_BYTES && !numbers)
        return refuse(c, "holds numbers in this example, not bytes", e);
    if (f->kind != FEATURE_BYTES)
        return f->steps && f->each < 0 ? refuse(c, "has different numbers of values in its steps", e) : STK_OK;
    if (binary && columns_hold_numbers(c))
        return refuse(c, "holds bytes in this example, not numbers", e);
    if (f->count > 1 && !json && !binary)
        return error_set(e, STK_EDATA, "read", "the feature %s holds %zu byte strings in this example, not one",
                         c->name, f->count);
    return STK_OK;
}

/* A list of numbers may be empty where their count is open; else there must be a value. */
static bool has_none(const struct feature *f, const struct field *field)
{
    if (!f->p || f->kind == FEATURE_NONE)
        return true;
    return f->count == 0 && (f->kind == FEATURE_BYTES || field->kind != FIELD_RAGGED);
}

static int cell_of(const struct example_wanted *w, const struct making *m, int i, const struct field *field,
                   struct reading *r, struct cell *cell, stk_error *e)
{
    const struct feature *f = &m->features[i];
    const struct column *c = &w->columns[i];
    if (!m->made[i] && has_none(f, field)) {
        *cell = (struct cell){0}; /* a default may stand for it */
        return STK_OK;
    }
    if (f->count == 0 && !m->made[i]) {
        *cell = (struct cell){.bytes = (const uint8_t *)""};
        return check(f, c, w->json[i], field, e);
    }
    *cell = f->kind == FEATURE_BYTES ? (struct cell){.text = field->text} : numbers(f, c);
    cell->bytes = m->made[i] ? r->derived.data + m->at[i] : f->whole;
    cell->n = m->made[i] ? m->n[i] : f->bytes;
    return check(f, c, w->json[i], field, e);
}

int example_cells(const struct example_wanted *w, const struct source *s, const uint8_t *p, size_t n, struct reading *r,
                  stk_error *e)
{
    struct making m;
    if (!example_find(&w->names, p, n, m.features))
        return error_set(e, STK_EDATA, "read", "the record is no tf.train.Example");
    int rc = measure(w, s, &m, r, e);
    if (rc == STK_OK)
        rc = make(w, &m, r, e);
    for (int f = 0; f < s->n_fields && rc == STK_OK; f++)
        if (w->feature_of[f] >= 0)
            rc = cell_of(w, &m, w->feature_of[f], &s->fields[f], r, &r->cells[f], e);
    return rc;
}
