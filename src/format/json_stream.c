/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_stream.c -- reads a large JSON document through a window.
 *
 * Such a document consists mostly of numbers, which are skipped byte by byte with a table: only quotes and brackets
 * matter.
 * Every loop ends at a 0 byte, so that it need not compare with the end. If a value does not end in the window, more is
 * read and the value is skipped again from its start.
 */
#include "format/json_stream.h"

#include <string.h>

#include "base/text.h"

enum { DEPTH = 64, CHUNK = 1 << 20 };

enum class { PLAIN, ZERO, QUOTE, OPEN, CLOSE };

static const uint8_t classes[256] = {
    [0] = ZERO, ['"'] = QUOTE, ['{'] = OPEN, ['['] = OPEN, ['}'] = CLOSE, [']'] = CLOSE,
};

static const char CUT[] = "the text ends in the middle of a value";

/* ------------------------------------------------------------------ values */

static char *fail(const char **problem, const char *text)
{
    *problem = text;
    return NULL;
}

/* The end of a string, from its first quote. */
static char *skip_string(char *p, const char *end, const char **problem)
{
    for (p++;; p += 2) { /* an escape has two characters at least */
        while (*p != '"' && *p != '\\' && *p)
            p++;
        if (p >= end || (*p == '\\' && p + 1 >= end))
            return fail(problem, CUT);
        if (*p == '"')
            return p + 1;
        if (*p == 0 || p[1] == 0)
            return fail(problem, "a 0 byte in a string");
    }
}

/* The end of an object or an array. */
static char *skip_nested(char *p, const char *end, const char **problem)
{
    uint64_t stack = 0; /* bit 0: the innermost bracket is a brace */
    int depth = 0;
    do {
        while (classes[(uint8_t)*p] == PLAIN)
            p++;
        if (p >= end)
            return fail(problem, CUT);
        switch (classes[(uint8_t)*p]) {
        case QUOTE:
            p = skip_string(p, end, problem);
            if (!p)
                return NULL;
            break;
        case OPEN:
            if (depth++ == DEPTH)
                return fail(problem, "nested more than 64 deep");
            stack = stack << 1 | (*p++ == '{');
            break;
        case CLOSE:
            if ((*p++ == '}') != (stack & 1))
                return fail(problem, "brackets do not match");
            stack >>= 1;
            depth--;
            break;
        default:
            return fail(problem, "a 0 byte between values");
        }
    } while (depth > 0);
    return p;
}

/* The end of any value. NULL: there is a problem, which is CUT if the text ends. */
static char *skip_value(char *p, const char *end, const char **problem)
{
    if (p >= end)
        return fail(problem, CUT);
    if (*p == '"')
        return skip_string(p, end, problem);
    if (*p == '{' || *p == '[')
        return skip_nested(p, end, problem);
    char *const begin = p;
    while (p < end && !strchr(",]}: \t\r\n\"{[", *p))
        p++;
    if (p == end)
        return fail(problem, CUT);
    return p == begin || *p == 0 ? fail(problem, "a value was expected") : p;
}

static char *skip_space(char *p, const char *end)
{
    while (p < end && text_is_space(*p))
        p++;
    return p;
}

/* ------------------------------------------------------------------ members */

/* Moves to the next member or element: behind the bracket or a comma. false: the closing bracket, or a problem. */
static bool next_member(struct json_cursor *c, char open, char close)
{
    if (c->problem)
        return false;
    c->p = skip_space(c->p, c->end);
    const char separator = c->begun ? ',' : open;
    if (c->begun && c->p < c->end && *c->p == close)
        return false;
    if (c->p >= c->end || *c->p != separator) {
        c->problem = c->begun ? "a comma or a closing bracket was expected" : "another kind of value was expected";
        return false;
    }
    c->p = skip_space(c->p + 1, c->end);
    if (!c->begun && c->p < c->end && *c->p == close)
        return false;
    c->begun = true;
    return true;
}

static bool take_value(struct json_cursor *c, struct slice *value)
{
    char *const from = c->p;
    char *const to = skip_value(from, c->end, &c->problem);
    if (!to)
        return false;
    *value = (struct slice){from, (size_t)(to - from)};
    c->p = to;
    return true;
}

bool json_object_next(struct json_cursor *c, struct slice *key, struct slice *value)
{
    if (!next_member(c, '{', '}'))
        return false;
    if (c->p >= c->end || *c->p != '"') {
        c->problem = "a key was expected";
        return false;
    }
    if (!take_value(c, key))
        return false;
    *key = (struct slice){key->p + 1, key->n - 2};
    c->p = skip_space(c->p, c->end);
    if (c->p >= c->end || *c->p != ':') {
        c->problem = "a colon was expected";
        return false;
    }
    c->p = skip_space(c->p + 1, c->end);
    return take_value(c, value);
}

bool json_array_next(struct json_cursor *c, struct slice *value)
{
    return next_member(c, '[', ']') && take_value(c, value);
}

/* ------------------------------------------------------------------ the window */

static int problem(struct json_stream *s, const char *text)
{
    s->problem = text;
    s->offset = s->base + (int64_t)s->at;
    return -1;
}

/* Reads more, and forgets what is before s->at. Returns 1, 0: the document ends, or -1. */
static int more(struct json_stream *s)
{
    if (s->ended)
        return 0;
    struct buf *const b = &s->text;
    if (s->at > 0)
        memmove(b->data, b->data + s->at, b->len - s->at);
    b->len -= s->at;
    s->base += (int64_t)s->at;
    s->at = 0;
    if (b->len >= JSON_STREAM_ELEMENT)
        return problem(s, "a value has more than 256 MiB");
    const size_t room = b->len > CHUNK ? b->len : CHUNK;
    if (buf_reserve(b, b->len + room + 1)) {
        s->no_memory = true;
        return -1;
    }
    const int64_t got = s->read(s->user, b->data + b->len, room);
    if (got < 0)
        return -1;
    s->ended = got == 0;
    b->len += (size_t)got;
    b->data[b->len] = 0;
    return got > 0;
}

/* Skips white space and returns the next character; 0 at the end; -1. */
static int peek(struct json_stream *s)
{
    for (;;) {
        char *const text = (char *)s->text.data;
        if (text)
            s->at = (size_t)(skip_space(text + s->at, text + s->text.len) - text);
        if (s->at < s->text.len)
            return (uint8_t)text[s->at];
        const int rc = more(s);
        if (rc <= 0)
            return rc;
    }
}

static int expect(struct json_stream *s, char c, const char *text)
{
    const int got = peek(s);
    if (got < 0)
        return -1;
    if (got != c)
        return problem(s, text);
    s->at++;
    return 0;
}

/* Takes the value at s->at. */
static int take(struct json_stream *s, struct slice *out, int64_t *at)
{
    for (;;) {
        const char *why = NULL;
        char *const from = (char *)s->text.data + s->at, *const end = (char *)s->text.data + s->text.len;
        char *const to = skip_value(from, end, &why);
        if (to) {
            *out = (struct slice){from, (size_t)(to - from)};
            *at = s->base + (int64_t)s->at;
            s->at += out->n;
            return 0;
        }
        if (why != CUT)
            return problem(s, why);
        const int rc = more(s);
        if (rc <= 0)
            return rc < 0 ? -1 : problem(s, CUT);
    }
}

/* ------------------------------------------------------------------ the document */

static int find(const struct json_stream *s, struct slice key)
{
    for (int i = 0; s->wanted[i]; i++)
        if (key.n == strlen(s->wanted[i]) + 2 && memcmp(key.p + 1, s->wanted[i], key.n - 2) == 0)
            return i;
    return -1;
}

/* Moves to the next array that is wanted. Returns 1, 0 at the end of the document, or -1. */
static int next_array(struct json_stream *s)
{
    struct slice text;
    int64_t at;
    for (;;) {
        int c = peek(s);
        if (c == '}' && s->begun) {
            s->at++;
            c = peek(s);
            return c < 0 ? -1 : s->at < s->text.len ? problem(s, "text follows the document") : 0;
        }
        if (!s->first && expect(s, ',', "a comma or a closing bracket was expected"))
            return -1;
        s->first = false;
        c = peek(s);
        if (c < 0)
            return -1;
        if (c != '"')
            return problem(s, "a key was expected");
        if (take(s, &text, &at))
            return -1;
        const int array = find(s, text);
        if (expect(s, ':', "a colon was expected"))
            return -1;
        c = peek(s);
        if (c < 0)
            return -1;
        if (array >= 0 && c != '[')
            return problem(s, "an array was expected");
        if (array >= 0 && s->found & 1u << array)
            return problem(s, "the key of an array appears twice");
        if (c == '[') {
            s->at++;
            s->array = array;
            s->found |= array >= 0 ? 1u << array : 0;
            return 1;
        }
        if (take(s, &text, &at))
            return -1;
    }
}

/* Returns 1 and the next element of the array, 0 at its end, or -1. */
static int next_element(struct json_stream *s, struct json_element *out)
{
    int c = peek(s);
    if (c == ']') {
        s->at++;
        return 0;
    }
    if (!s->first && expect(s, ',', "a comma or a closing bracket was expected"))
        return -1;
    s->first = false;
    c = peek(s);
    if (c <= 0)
        return c < 0 ? -1 : problem(s, CUT);
    out->array = s->array;
    return take(s, &out->text, &out->at) ? -1 : 1;
}

int json_stream_next(struct json_stream *s, struct json_element *out)
{
    if (!s->begun) {
        if (peek(s) == 0xef && s->text.len >= 3 && memcmp(s->text.data, "\xef\xbb\xbf", 3) == 0)
            s->at += 3;
        if (expect(s, '{', "an object was expected"))
            return -1;
        s->begun = s->first = true;
    }
    for (;;) {
        if (!s->inside) {
            const int rc = next_array(s);
            if (rc <= 0)
                return rc;
            s->inside = s->first = true;
        }
        const int rc = next_element(s, out);
        if (rc < 0 || (rc > 0 && out->array >= 0))
            return rc;
        s->inside = rc > 0;
        s->first &= s->inside;
    }
}

void json_stream_done(struct json_stream *s)
{
    buf_done(&s->text);
}
