/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example.c -- reads the features of an example: walks over its two maps.
 */
#include "format/example.h"

#include <string.h>

enum { CONTEXT = 1, FEATURE_LISTS = 2 }; /* fields of a SequenceExample; the first is Example's features */
enum { KEY = 1, VALUE = 2 };             /* of an entry of a map */

void example_begin(struct example_walk *w, const uint8_t *p, size_t n)
{
    *w = (struct example_walk){.example = {p, p + n}};
}

/* A missing key or value is empty. */
bool example_entry(const uint8_t *p, size_t n, bool steps, struct example_entry *out)
{
    *out = (struct example_entry){.name = p, .feature = {.p = p, .steps = steps}};
    struct wire w = {p, p + n};
    struct wire_field part;
    int rc;
    while ((rc = wire_next(&w, &part)) > 0) {
        if (part.number <= VALUE && part.type != WIRE_BYTES)
            return false;
        if (part.number == KEY) {
            out->name = part.p;
            out->name_bytes = part.n;
        } else if (part.number == VALUE) {
            out->feature.p = part.p;
            out->feature.n = part.n;
        }
    }
    return rc == 0;
}

int example_next(struct example_walk *w, struct example_entry *out)
{
    for (;;) {
        struct wire_field f;
        int rc = wire_next(&w->map, &f);
        if (rc > 0) {
            if (f.number != 1)
                continue;
            return f.type == WIRE_BYTES && example_entry(f.p, f.n, w->steps, out) ? 1 : -1;
        }
        if (rc < 0 || (rc = wire_next(&w->example, &f)) <= 0)
            return rc;
        if (f.number > FEATURE_LISTS)
            continue;
        if (f.type != WIRE_BYTES)
            return -1;
        w->map = (struct wire){f.p, f.p + f.n};
        w->steps = f.number == FEATURE_LISTS;
    }
}

/* ------------------------------------------------------------------ finding */

static bool is(const struct example_name *name, const struct example_entry *x)
{
    return name->n == x->name_bytes && memcmp(name->p, x->name, name->n) == 0;
}

/* The index of the wanted name that an entry has; tries `likely` first. n: none. */
static int which(const struct example_names *names, const struct example_entry *x, int likely)
{
    if (likely < names->n && is(&names->of[likely], x))
        return likely;
    int i = 0;
    while (i < names->n && !is(&names->of[i], x))
        i++;
    return i;
}

bool example_find(const struct example_names *names, const uint8_t *p, size_t n, struct feature *out)
{
    struct example_walk w;
    struct example_entry x;
    int rc, likely = 0;
    for (int i = 0; i < names->n; i++)
        out[i].p = NULL;
    example_begin(&w, p, n);
    while ((rc = example_next(&w, &x)) > 0) {
        const int i = which(names, &x, likely);
        /* A feature list does not replace a context feature of the same name. */
        if (i < names->n && !(x.feature.steps && out[i].p && !out[i].steps))
            out[i] = x.feature;
        likely = i < names->n ? i + 1 : likely;
    }
    return rc == 0;
}
