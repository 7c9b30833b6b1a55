/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_columns.c -- the columns of a dataset of tf.train.Examples.
 *
 * One example only shows whether a feature has byte strings, floats or integers. All examples together determine their
 * count and meaning:
 *
 *     one number in every example                    a number
 *     integers and floats                            a float
 *     counts that differ                             ragged
 *     bytes in some examples, numbers in others      the majority decides; the others are bad samples
 *
 * Examples without the feature do not count. An empty list is a missing value if no example has several values;
 * otherwise it is an empty list.
 */
#include "source/example_columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/image_file.h"
#include "base/text.h"

enum { FEATURES_MOST = 1024 }; /* more are ignored: a hostile file would take forever */

/* Written to the index up to name_bytes. */
struct seen {
    int64_t filled[FEATURE_INTS + 1]; /* samples with values, by enum feature_kind */
    int64_t empty[FEATURE_INTS + 1];  /* samples with an empty list */
    int64_t strings, images;
    int64_t least, most;                       /* count of numbers; with steps: count per step, -1: they differ */
    uint32_t steps, single, several, not_text; /* 1: true for some sample */
    uint32_t name_bytes;
    char *name; /* terminated by 0 */
};
enum { SEEN_BYTES = offsetof(struct seen, name_bytes) + sizeof(uint32_t) };

/* ------------------------------------------------------------------ one feature */

static size_t whole_characters(const uint8_t *p, size_t n)
{
    size_t back = 0;
    while (back < 3 && back < n && (p[n - 1 - back] & 0xc0) == 0x80)
        back++;
    return back < n && p[n - 1 - back] >= 0xc0 ? n - 1 - back : n;
}

bool example_is_text(const uint8_t *p, size_t n, bool whole)
{
    return text_is(p, whole ? n : whole_characters(p, n));
}

static void glance_at(struct example_glance *out, const uint8_t *p, size_t n)
{
    out->strings += n > 0;
    out->images += image_file_magic(p, n);
    out->texts = out->texts && text_is(p, n);
}

void example_glance(const struct feature *f, struct example_glance *out)
{
    struct feature_walk w;
    struct feature_run run;
    *out = (struct example_glance){.kind = f->kind,
                                   .steps = f->steps,
                                   .empty = f->steps && f->n_steps == 0,
                                   .count = f->steps ? f->each : (int64_t)f->count,
                                   .several = f->kind == FEATURE_BYTES && f->count > 1,
                                   .texts = true};
    if (f->kind != FEATURE_BYTES)
        return;
    if (f->whole && f->count == 1) {
        glance_at(out, f->whole, f->bytes);
        return;
    }
    feature_begin(&w, f);
    while (feature_next(&w, &run) > 0)
        glance_at(out, run.p, run.n);
}

/* ------------------------------------------------------------------ the survey */

static bool is(const struct seen *s, const uint8_t *name, size_t n)
{
    return s->name_bytes == n && memcmp(s->name, name, n) == 0;
}

/* Features mostly come in the same order. */
static struct seen *find(const struct example_survey *l, const uint8_t *name, size_t n)
{
    int i = l->next;
    if (i >= l->n || !is(&l->features[i], name, n))
        for (i = 0; i < l->n && !is(&l->features[i], name, n); i++)
            ;
    return i < l->n ? &l->features[i] : NULL;
}

static struct seen *add(struct example_survey *l, const uint8_t *name, size_t n)
{
    if (l->n == l->room) {
        const int room = l->room ? 2 * l->room : 16;
        struct seen *more = realloc(l->features, (size_t)room * sizeof *more);
        if (!more)
            return NULL;
        l->features = more;
        l->room = room;
    }
    char *own = malloc(n + 1);
    if (!own)
        return NULL;
    memcpy(own, name, n);
    own[n] = 0;
    l->features[l->n] = (struct seen){.least = INT64_MAX, .most = INT64_MIN, .name = own, .name_bytes = (uint32_t)n};
    return &l->features[l->n++];
}

static bool is_ignored(const struct example_survey *l, const struct seen *s, const uint8_t *name, size_t n)
{
    return (!s && l->n >= FEATURES_MOST) || n >= COLUMN_NAME || memchr(name, 0, n);
}

static bool is_empty(const struct example_glance *g)
{
    return !g->steps && g->count == 0;
}

bool example_survey_is_new(const struct example_survey *l, const uint8_t *name, size_t n,
                           const struct example_glance *g)
{
    const struct seen *s = find(l, name, n);
    if (g->kind == FEATURE_NONE || is_ignored(l, s, name, n))
        return false;
    if (!s || (is_empty(g) ? s->empty : s->filled)[g->kind] == 0 || !(g->steps ? s->steps : s->single))
        return true;
    if (g->kind == FEATURE_BYTES)
        return (g->several && !s->several) || (!g->texts && !s->not_text);
    return !g->empty && (g->count < s->least || g->count > s->most);
}

int example_survey_add(struct example_survey *l, const uint8_t *name, size_t n, const struct example_glance *g)
{
    struct seen *s = find(l, name, n);
    if (g->kind == FEATURE_NONE || is_ignored(l, s, name, n))
        return 0;
    if (!s)
        s = add(l, name, n);
    if (!s)
        return -1;
    l->next = (int)(s - l->features) + 1;
    (is_empty(g) ? s->empty : s->filled)[g->kind]++;
    s->steps |= g->steps;
    s->single |= !g->steps;
    s->several |= g->several;
    s->not_text |= !g->texts;
    s->strings += g->strings;
    s->images += g->images;
    if (g->kind == FEATURE_BYTES || g->empty)
        return 0;
    s->least = g->count < s->least ? g->count : s->least;
    s->most = g->count > s->most ? g->count : s->most;
    return 0;
}

void example_survey_done(struct example_survey *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->features[i].name);
    free(l->features);
    *l = (struct example_survey){0};
}

/* ------------------------------------------------------------------ as bytes */

int example_survey_write(const struct example_survey *l, struct buf *to)
{
    const int64_t counts[] = {l->examples, l->others};
    int rc = buf_add(to, counts, sizeof counts);
    for (int i = 0; i < l->n; i++)
        rc |= buf_add(to, &l->features[i], SEEN_BYTES) | buf_add(to, l->features[i].name, l->features[i].name_bytes);
    return rc ? -1 : 0;
}

static void join(struct seen *to, const struct seen *from)
{
    for (int k = 0; k <= FEATURE_INTS; k++) {
        to->filled[k] += from->filled[k];
        to->empty[k] += from->empty[k];
    }
    to->strings += from->strings;
    to->images += from->images;
    to->least = from->least < to->least ? from->least : to->least;
    to->most = from->most > to->most ? from->most : to->most;
    to->steps |= from->steps;
    to->single |= from->single;
    to->several |= from->several;
    to->not_text |= from->not_text;
}

/* Rejects counts that no file can have, since sums could overflow. */
static bool is_count(int64_t n)
{
    return n >= 0 && n <= INT64_C(1) << 48;
}

static bool is_sound(const struct seen *s)
{
    bool sound = is_count(s->strings) && is_count(s->images) && s->least >= -1;
    for (int k = 0; k <= FEATURE_INTS; k++)
        sound &= is_count(s->filled[k]) && is_count(s->empty[k]);
    return sound;
}

int example_survey_merge(struct example_survey *l, const uint8_t *p, size_t n)
{
    int64_t counts[2];
    if (n < sizeof counts)
        return 1;
    memcpy(counts, p, sizeof counts);
    if (!is_count(counts[0]) || !is_count(counts[1]))
        return 1;
    l->examples += counts[0];
    l->others += counts[1];
    for (size_t at = sizeof counts; at < n;) {
        struct seen one;
        if (n - at < SEEN_BYTES)
            return 1;
        memcpy(&one, p + at, SEEN_BYTES);
        at += SEEN_BYTES;
        if (one.name_bytes > n - at || one.name_bytes >= COLUMN_NAME || memchr(p + at, 0, one.name_bytes) ||
            !is_sound(&one))
            return 1;
        struct seen *s = find(l, p + at, one.name_bytes);
        if (!s && l->n < FEATURES_MOST && !(s = add(l, p + at, one.name_bytes)))
            return -1;
        if (s)
            join(s, &one);
        at += one.name_bytes;
    }
    return 0;
}

/* ------------------------------------------------------------------ deciding */

/* Usual names of the class index. */
static bool is_label(const char *name)
{
    static const char *const words[] = {
        "label", "image/class/label", "image/label", "class", "class_id", "target", "cls", "y"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(name, words[i]) == 0)
            return true;
    return false;
}

static bool is_always_empty(const struct seen *s)
{
    return s->filled[FEATURE_BYTES] + s->filled[FEATURE_FLOATS] + s->filled[FEATURE_INTS] == 0;
}

/* Samples by kind. Empty lists count only if there is nothing else. */
static const int64_t *votes(const struct seen *s)
{
    return is_always_empty(s) ? s->empty : s->filled;
}

static void numbers(const struct seen *s, struct column *c)
{
    const bool ints = votes(s)[FEATURE_FLOATS] == 0, same = s->least == s->most;
    c->dtype = ints ? STK_INT64 : STK_FLOAT32;
    c->kind = STK_TENSOR;
    c->ndim = 1;
    c->shape[0] = -1;
    if (s->steps && s->most > 1) {
        c->ndim = 2;
        c->shape[1] = s->most;
    } else if (!s->steps && s->most == 1) { /* in an empty list the number is missing */
        c->kind = ints ? STK_INT : STK_FLOAT;
        c->ndim = 0;
    } else if (!s->steps && same && s->most > 0) {
        c->shape[0] = s->most;
    }
}

static bool holds_bytes(const struct seen *s)
{
    const int64_t *of = votes(s);
    return of[FEATURE_BYTES] > of[FEATURE_FLOATS] + of[FEATURE_INTS];
}

static const char *refused(const struct seen *s)
{
    if (s->steps && s->single)
        return "it is a feature in some examples and a list of features in others";
    if (holds_bytes(s))
        return s->several && s->not_text
                   ? "it contains lists of byte strings that are not text; give a type to read them as numbers"
                   : NULL;
    return s->steps && (s->least != s->most || s->most < 1) ? "its steps have different numbers of values" : NULL;
}

static void decide(const struct seen *s, struct column *c)
{
    *c = (struct column){.kind = STK_BYTES, .refused = refused(s)};
    memcpy(c->name, s->name, s->name_bytes + 1);
    if (!holds_bytes(s))
        numbers(s, c);
    else if (s->steps || s->several)
        c->kind = s->not_text ? STK_BYTES : STK_JSON;
    else if (s->images > s->strings / 2 && !c->refused)
        c->kind = STK_IMAGE;
    else
        c->kind = s->not_text ? STK_BYTES : is_always_empty(s) ? STK_JSON : STK_TEXT;
    c->label = c->kind == STK_INT && !c->refused && is_label(c->name);
}

int example_columns(const struct example_survey *l, struct columns *c)
{
    bool labelled = false;
    for (int i = 0; i < l->n; i++) {
        struct column one;
        decide(&l->features[i], &one);
        one.label = one.label && !labelled;
        labelled |= one.label;
        if (columns_add(c, &one))
            return -1;
    }
    return 0;
}
