/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_values.c -- the values of a JSON object, with joined names.
 *
 * Nested objects are entered without recursion: a stack keeps the length of the joined name at each level.
 */
#include "source/list_values.h"

#include <string.h>

enum { DEPTH = 64 };

struct walk {
    struct json_reader j;
    char name[VALUE_NAME];
    size_t n;            /* bytes of it */
    size_t outer[DEPTH]; /* n of the enclosing objects */
    int depth;
    bool too_long; /* the last name does not fit */
};

/* Reads a name and its colon, and appends it to the joined name. */
static bool enter_name(struct walk *w)
{
    struct slice name;
    if (!json_read_string(&w->j, &name) || !json_expect(&w->j, ':', "a colon was expected"))
        return false;
    const size_t from = w->outer[w->depth - 1], left = sizeof w->name - from, dot = from > 0 && left > 0;
    w->too_long = (from > 0) + name.n > left;
    if (dot)
        w->name[from] = '.';
    const size_t n = w->too_long ? left - dot : name.n;
    memcpy(w->name + from + dot, name.p, n);
    w->n = from + dot + n;
    return true;
}

static bool enter_object(struct walk *w)
{
    if (w->depth == DEPTH)
        return json_fail(&w->j, "nested more than 64 deep");
    w->j.p++;
    w->outer[w->depth++] = w->n;
    return true;
}

/* After a value: moves past the comma to the next name, or leaves all objects that end here. */
static bool leave_value(struct walk *w)
{
    while (w->depth > 0) {
        const char c = json_peek(&w->j);
        if (c == ',') {
            w->j.p++;
            return true;
        }
        if (!json_expect(&w->j, '}', "a comma or } was expected"))
            return false;
        w->depth--;
    }
    return true;
}

/* Handles one member. An object is entered; its first member is next. */
static bool member(struct walk *w, bool (*each)(void *user, const struct list_value *v), void *user, bool *more)
{
    struct list_value v;
    if (!enter_name(w))
        return false;
    if (json_peek(&w->j) == '{' && !w->too_long) {
        if (!enter_object(w))
            return false;
        return json_peek(&w->j) == '}' ? leave_value(w) : true;
    }
    if (!json_read_value(&w->j, &v.text, &v.kind))
        return false;
    v.name = w->name;
    v.name_bytes = w->n;
    v.too_long = w->too_long;
    *more = each(user, &v);
    return leave_value(w);
}

const char *list_values(struct slice record, bool (*each)(void *user, const struct list_value *v), void *user)
{
    struct walk w = {.j = {.p = record.p, .end = record.p + record.n}};
    bool more = true;
    if (json_peek(&w.j) != '{')
        return "not a JSON object";
    if (!enter_object(&w) || (json_peek(&w.j) == '}' && !leave_value(&w)))
        return w.j.problem;
    while (w.depth > 0 && more)
        if (!member(&w, each, user, &more))
            return w.j.problem;
    if (more && (json_peek(&w.j) != 0 || w.j.p != w.j.end))
        return "text follows the JSON object";
    return NULL;
}
