/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_columns.c -- what columns a set of tf.train.Examples has, by looking at some.
 *
 * An example says of a feature only whether it has byte strings, floats or integers. How many, and whether as many
 * everywhere, and what the bytes are, is seen.
 */
#include "source/example_columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/picture.h"
#include "base/text.h"

enum { FEATURES_MOST = 1024, ENTRIES_MOST = 16384 }; /* more are left out: hostile ones would take for ever */

struct seen {
    char name[COLUMN_NAME];
    enum feature_kind kind;
    bool steps;
    bool mixed;           /* of several kinds */
    bool pictures, texts; /* all byte strings were */
    int samples;          /* that had it */
    int64_t least, most;  /* values; of steps: values of each, -1: they differ */
    bool several;         /* byte strings in one sample */
};

/* ------------------------------------------------------------------ seeing */

static struct seen *seen_of(struct example_look *l, const struct example_entry *x)
{
    const size_t n = x->name_bytes;
    for (int i = 0; i < l->n; i++)
        if (memcmp(l->of[i].name, x->name, n) == 0 && l->of[i].name[n] == 0)
            return &l->of[i];
    if (l->n == l->room) {
        const int room = l->room ? 2 * l->room : 32;
        struct seen *more = realloc(l->of, (size_t)room * sizeof *more);
        if (!more)
            return NULL;
        l->of = more;
        l->room = room;
    }
    struct seen *s = &l->of[l->n++];
    *s = (struct seen){.steps = x->feature.steps, .pictures = true, .texts = true, .least = INT64_MAX};
    memcpy(s->name, x->name, n);
    return s;
}

static void see_strings(struct seen *s, const struct feature *f)
{
    struct feature_walk w;
    struct feature_run run;
    feature_begin(&w, f);
    while ((s->pictures || s->texts) && feature_next(&w, &run) > 0) {
        s->pictures = s->pictures && picture_magic(run.p, run.n);
        s->texts = s->texts && text_is(run.p, run.n);
    }
    s->several |= f->count > 1;
}

static void see(struct seen *s, const struct feature *f)
{
    const int64_t count = f->steps ? f->each : (int64_t)f->count;
    s->mixed |= s->steps != f->steps || (s->kind != FEATURE_NONE && s->kind != f->kind);
    s->kind = f->kind;
    s->samples++;
    if (f->kind == FEATURE_BYTES)
        see_strings(s, f);
    if (f->steps && f->n_steps == 0)
        return; /* no step tells how many values one has */
    s->least = count < s->least ? count : s->least;
    s->most = count > s->most ? count : s->most;
}

/* The whole of it is an example, down to the values. */
static bool is_example(const uint8_t *p, size_t n)
{
    struct example_walk w;
    struct example_entry x;
    int rc, features = 0;
    example_begin(&w, p, n);
    while ((rc = example_next(&w, &x)) > 0 && feature_measure(&x.feature))
        features++;
    return rc == 0 && (features > 0 || n == 0);
}

int example_see(struct example_look *l, const uint8_t *p, size_t n)
{
    struct example_walk w;
    struct example_entry x;
    if (!is_example(p, n)) {
        l->others++;
        return 0;
    }
    l->examples += n > 0;
    example_begin(&w, p, n);
    for (int i = 0; i < ENTRIES_MOST && l->n < FEATURES_MOST && example_next(&w, &x) > 0; i++) {
        if (x.name_bytes >= COLUMN_NAME || memchr(x.name, 0, x.name_bytes) || !feature_measure(&x.feature) ||
            x.feature.kind == FEATURE_NONE)
            continue;
        struct seen *s = seen_of(l, &x);
        if (!s)
            return -1;
        see(s, &x.feature);
    }
    return 0;
}

void example_look_done(struct example_look *l)
{
    free(l->of);
    *l = (struct example_look){0};
}

/* ------------------------------------------------------------------ judging */

/* What is usual for the number of a class; it stays as it is written. */
static bool is_label(const char *name)
{
    static const char *const words[] = {
        "label", "image/class/label", "image/label", "class", "class_id", "target", "cls", "y"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(name, words[i]) == 0)
            return true;
    return false;
}

static void numbers(const struct seen *s, bool everywhere, struct column *c)
{
    const bool same = s->least == s->most && everywhere;
    c->dtype = s->kind == FEATURE_INTS ? STK_INT64 : STK_FLOAT32;
    c->kind = STK_TENSOR;
    c->ndim = 1;
    c->shape[0] = -1;
    if (s->steps && s->most > 1) {
        c->ndim = 2;
        c->shape[1] = s->most;
    } else if (!s->steps && same && s->most == 1) {
        c->kind = s->kind == FEATURE_INTS ? STK_INT : STK_FLOAT;
        c->ndim = 0;
    } else if (!s->steps && same) {
        c->shape[0] = s->most;
    }
}

static const char *refused(const struct seen *s)
{
    if (s->mixed)
        return "it is of several kinds";
    if (s->kind == FEATURE_BYTES)
        return s->several && !s->texts ? "it holds lists of byte strings that are no text; name a type to have them as "
                                         "numbers"
                                       : NULL;
    return s->steps && (s->least != s->most || s->most < 1) ? "its steps have different numbers of values" : NULL;
}

static void judge(const struct seen *s, int examples, struct column *c)
{
    *c = (struct column){.kind = STK_BYTES, .refused = refused(s)};
    memcpy(c->name, s->name, sizeof c->name);
    if (s->kind != FEATURE_BYTES) {
        numbers(s, s->samples == examples, c);
    } else if (s->steps || s->several) {
        c->kind = s->texts ? STK_JSON : STK_BYTES;
    } else if (s->most > 0) {
        c->kind = s->pictures && !c->refused ? STK_IMAGE : s->texts ? STK_TEXT : STK_BYTES;
    }
    c->optional = s->samples < examples || (s->kind == FEATURE_BYTES && s->least < 1);
    c->label = c->kind == STK_INT && !c->refused && is_label(s->name);
}

int example_columns(const struct example_look *l, struct columns *c)
{
    bool labelled = false;
    for (int i = 0; i < l->n; i++) {
        struct column one;
        judge(&l->of[i], l->examples, &one);
        one.label = one.label && !labelled;
        labelled |= one.label;
        if (columns_add(c, &one))
            return -1;
    }
    return 0;
}
