/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_guess.c -- guesses the kinds of the columns of a list from its rows.
 *
 * A column contains integers if all its values are integers, floats if all are numbers, and otherwise text. Arrays of
 * numbers are tensors; other arrays are JSON. Missing values do not count.
 */
#include "source/list_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/number_list.h"
#include "source/field.h"
#include "source/list.h"

enum { REFUSED = -2 }; /* as index: a name in JSON that a column cannot have */

struct guess {
    char name[COLUMN_NAME];
    const char *refused; /* why the name cannot be that of a column; NULL: it can */
    int number;
    bool texts, floats, ints, arrays, others, float_arrays;
    int64_t least, most; /* count of numbers in an array */
};

static uint64_t hash_of(int number, struct slice name)
{
    return hash_bytes(name.p, name.n, (uint64_t)number);
}

static bool is(const struct guess *g, int number, struct slice name)
{
    return g->number == number && memcmp(g->name, name.p, name.n) == 0 && g->name[name.n] == 0;
}

/* Columns mostly appear in the same order. */
static struct guess *find(struct list_guess *g, int number, struct slice name)
{
    int i = g->next;
    if (i >= g->n || !is(&g->guesses[i], number, name)) {
        const uint64_t hash = hash_of(number, name);
        for (i = 0; i < g->n && (g->hash[i] != hash || !is(&g->guesses[i], number, name)); i++)
            ;
    }
    if (i == g->n)
        return NULL;
    g->next = i + 1;
    return &g->guesses[i];
}

static struct guess *add(struct list_guess *g, int number, struct slice name)
{
    if (g->n == g->room) {
        const int room = g->room ? 2 * g->room : 16;
        struct guess *more = realloc(g->guesses, (size_t)room * sizeof *more);
        if (!more)
            return NULL;
        g->guesses = more;
        g->room = room;
    }
    g->hash[g->n] = hash_of(number, name);
    struct guess *x = &g->guesses[g->n++];
    *x = (struct guess){.number = number, .least = INT64_MAX};
    memcpy(x->name, name.p, name.n);
    g->next = g->n;
    return x;
}

static bool all_digits(struct slice s)
{
    size_t i = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+');
    if (i == s.n || s.n > 19)
        return false;
    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
        i++;
    return i == s.n;
}

static void add_text(struct guess *g, struct slice s)
{
    uint8_t number[8];
    if (all_digits(s))
        g->ints = true;
    else if (field_number(s.p, s.n, STK_FLOAT64, number) == 0)
        g->floats = true;
    else
        g->texts = true;
}

/* Integers have no decimal point. */
static void add_array(struct guess *g, struct slice s)
{
    struct number_list l;
    const bool ints = !memchr(s.p, '.', s.n) && !number_list_read(s.p, s.n, STK_INT64, NULL, 0, &l);
    const bool flat = (ints || !number_list_read(s.p, s.n, STK_FLOAT64, NULL, 0, &l)) && l.ndim == 1;
    g->float_arrays |= !ints;
    g->arrays |= flat;
    g->others |= !flat;
    if (!flat)
        return;
    g->least = l.count < g->least ? l.count : g->least;
    g->most = l.count > g->most ? l.count : g->most;
}

/* *found is NULL if there are LIST_GUESSES already, or no memory: -1. */
static int find_or_add(struct list_guess *g, int number, struct slice name, struct guess **found)
{
    *found = find(g, number, name);
    if (*found || g->n >= LIST_GUESSES)
        return 0;
    *found = add(g, number, name);
    return *found ? 0 : -1;
}

/* Shows the beginning of the name. No UTF-8 character is cut in two. */
static int refuse(struct list_guess *g, int number, struct slice beginning, const char *why)
{
    char name[64];
    size_t n = beginning.n < 60 ? beginning.n : 60;
    while (n > 0 && n < beginning.n && (beginning.p[n] & 0xc0) == 0x80)
        n--;
    const int length = snprintf(name, sizeof name, "%.*s...", (int)n, beginning.p);
    struct guess *x;
    const int rc = find_or_add(g, number < 0 ? REFUSED : number, (struct slice){name, (size_t)length}, &x);
    if (x)
        x->refused = why;
    return rc;
}

int list_guess_add_long(struct list_guess *g, struct slice beginning)
{
    return refuse(g, REFUSED, beginning, "its name has more than 1,023 bytes");
}

int list_guess_add(struct list_guess *g, int number, struct slice name, enum json_kind kind, struct slice text)
{
    if (name.n > 0 && memchr(name.p, 0, name.n))
        return refuse(g, number, name, "its name contains a NUL character");
    name.n = name.n < COLUMN_NAME ? name.n : COLUMN_NAME - 1;
    struct guess *x;
    const int rc = find_or_add(g, number, name, &x);
    if (!x)
        return rc;
    const bool is_bool = kind == JSON_PLAIN && text.n > 0 && (text.p[0] == 't' || text.p[0] == 'f');
    if (kind == JSON_NULL || (kind == JSON_STRING && number >= 0 && text.n == 0))
        return 0;
    if (kind == JSON_NESTED)
        add_array(x, text);
    else if (is_bool)
        x->ints = true;
    else if (kind == JSON_STRING && number < 0)
        x->texts = true;
    else
        add_text(x, text);
    return 0;
}

void list_guess_done(struct list_guess *g)
{
    free(g->guesses);
    *g = (struct list_guess){0};
}

/* ------------------------------------------------------------------ deciding */

static void decide(const struct guess *g, struct column *c)
{
    const bool scalars = g->texts || g->floats || g->ints;
    memcpy(c->name, g->name, sizeof c->name);
    c->text = true;
    c->refused = g->refused;
    if (g->others || (g->arrays && scalars)) {
        c->kind = STK_JSON;
    } else if (g->arrays) {
        c->kind = STK_TENSOR;
        c->dtype = g->float_arrays ? STK_FLOAT32 : STK_INT64;
        c->ndim = 1;
        c->shape[0] = g->least == g->most && g->most > 0 ? g->most : -1;
    } else {
        c->kind = g->texts || !scalars ? STK_TEXT : g->floats ? STK_FLOAT : STK_INT;
    }
}

int list_guess_columns(const struct list_guess *g, bool table, struct columns *c)
{
    for (int i = 0; i < g->n; i++) {
        struct column one = {0};
        decide(&g->guesses[i], &one);
        if (table && one.name[0] == 0) /* a column without a name is named by its position, from 1 on */
            snprintf(one.name, sizeof one.name, "%d", g->guesses[i].number + 1);
        if (columns_add(c, &one))
            return -1;
    }
    return 0;
}
