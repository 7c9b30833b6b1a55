/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number_list.c -- parses numbers in brackets, without recursion.
 *
 * Values are separated by spaces, a comma, or both, as in JSON, in cells of tables and in what NumPy prints. All lists
 * of one depth must have the same length, so that the result has a shape.
 */
#include "base/number_list.h"

#include <string.h>

#include "base/number.h"
#include "base/text.h"

struct parsing {
    const char *at, *end;
    stk_dtype type;
    uint8_t *to;
    int64_t most;
    struct number_list *out;
    int depth;                  /* open brackets */
    int leaves;                 /* depth of the numbers; 0: no number so far */
    int deepest;                /* the deepest brackets */
    int64_t length[FIELD_DIMS]; /* elements of the open lists so far */
    bool known[FIELD_DIMS];     /* the length of lists at this depth */
};

/* Skips separators. */
size_t number_list_most(const char *text, size_t n)
{
    size_t words = 0;
    bool within = false;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        const bool between = text_is_space(c) || c == ',' || c == '[' || c == ']';
        words += !between && !within;
        within = !between;
    }
    return words;
}

static bool skip_spaces(struct parsing *p)
{
    const char *const from = p->at;
    while (p->at < p->end && text_is_space(*p->at))
        p->at++;
    return p->at > from;
}

static bool take(struct parsing *p, char c)
{
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

static bool take_word(struct parsing *p, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static const char *take_number(struct parsing *p)
{
    struct number v = {.whole = true};
    if (take_word(p, "true")) {
        v.i = 1;
        v.d = 1.0;
    } else if (!take_word(p, "false")) {
        const size_t n = number_read(p->at, (size_t)(p->end - p->at), &v);
        if (n == 0)
            return "a number was expected";
        p->at += n;
    }
    if (p->leaves > 0 && p->leaves != p->depth)
        return "its numbers are at different depths";
    p->leaves = p->depth;
    uint8_t element[8];
    if (number_store(&v, p->type, element) != 0)
        return "a number does not fit the type";
    const size_t size = dtype_bytes(p->type);
    if (p->out->count < p->most)
        memcpy(p->to + (size_t)p->out->count * size, element, size);
    p->out->count++;
    return NULL;
}

static const char *open_list(struct parsing *p)
{
    if (p->depth == FIELD_DIMS)
        return "lists are nested more than 8 deep";
    p->length[p->depth++] = 0;
    p->deepest = p->depth > p->deepest ? p->depth : p->deepest;
    return NULL;
}

static const char *close_list(struct parsing *p)
{
    const int d = --p->depth;
    if (p->known[d] && p->out->shape[d] != p->length[d])
        return "its lists have different lengths";
    p->known[d] = true;
    p->out->shape[d] = p->length[d];
    return NULL;
}

/* A value in brackets: a number or an opening bracket, and all closing brackets after it. */
static const char *value(struct parsing *p)
{
    const char *problem;
    if (take(p, '[')) {
        problem = open_list(p);
        skip_spaces(p);
        if (problem || p->at == p->end || *p->at != ']')
            return problem;
    } else {
        problem = take_number(p);
        if (!problem)
            p->length[p->depth - 1]++;
    }
    while (!problem && p->depth > 0) {
        const bool space = skip_spaces(p);
        if (!take(p, ']'))
            return take(p, ',') || space ? NULL : "a comma or ] was expected";
        problem = close_list(p);
        if (p->depth > 0)
            p->length[p->depth - 1]++;
    }
    return problem;
}

/* Numbers without brackets. */
static const char *run(struct parsing *p)
{
    for (;;) {
        const char *problem = take_number(p);
        if (problem)
            return problem;
        const bool space = skip_spaces(p), comma = take(p, ',');
        skip_spaces(p);
        if (p->at == p->end)
            return comma ? "a number was expected" : NULL;
        if (!space && !comma)
            return "a comma was expected";
    }
}

const char *number_list_read(const char *text, size_t n, stk_dtype t, uint8_t *to, int64_t most,
                             struct number_list *out)
{
    struct parsing p = {.at = text, .end = text + n, .type = t, .to = to, .most = most, .out = out};
    *out = (struct number_list){.ndim = -1};
    if (!number_is_type(t))
        return "text cannot be converted to this type";
    skip_spaces(&p);
    if (p.at == p.end)
        return NULL;
    if (*p.at != '[')
        return run(&p);
    const char *problem;
    do {
        problem = value(&p);
        skip_spaces(&p);
    } while (!problem && p.depth > 0);
    if (!problem && p.at != p.end)
        return "text follows the list";
    if (!problem && p.leaves > 0 && p.leaves < p.deepest)
        return "its numbers are at different depths";
    out->ndim = p.deepest;
    return problem;
}
