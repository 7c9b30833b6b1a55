/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c -- strings and values of JSON, one after the other.
 *
 * Strings are undone in place: what an escape stands for is never longer than the escape. Nested values
 * are stepped over with a stack of bits, not by recursion. Bytes outside ASCII stay as they are;
 * a lone \udc80 to \udcff is how Python writes a byte of a name that is no UTF-8, and becomes it.
 */
#include "format/json.h"

#include <string.h>

enum { DEPTH = 64 };

bool json_fail(struct json *j, const char *problem)
{
    if (!j->problem)
        j->problem = problem;
    return false;
}

char json_peek(struct json *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\r' || *j->p == '\n'))
        j->p++;
    return j->p < j->end ? *j->p : 0;
}

bool json_expect(struct json *j, char c, const char *problem)
{
    if (json_peek(j) != c || j->p == j->end)
        return json_fail(j, problem);
    j->p++;
    return true;
}

/* ------------------------------------------------------------------ strings */

static int hex4(const char *p, const char *end)
{
    if (end - p < 4)
        return -1;
    int v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        v = v << 4 | digit;
    }
    return v;
}

static char *put_utf8(char *to, unsigned v)
{
    if (v < 0x80) {
        *to++ = (char)v;
    } else if (v < 0x800) {
        *to++ = (char)(0xc0 | v >> 6);
        *to++ = (char)(0x80 | (v & 0x3f));
    } else if (v < 0x10000) {
        *to++ = (char)(0xe0 | v >> 12);
        *to++ = (char)(0x80 | (v >> 6 & 0x3f));
        *to++ = (char)(0x80 | (v & 0x3f));
    } else {
        *to++ = (char)(0xf0 | v >> 18);
        *to++ = (char)(0x80 | (v >> 12 & 0x3f));
        *to++ = (char)(0x80 | (v >> 6 & 0x3f));
        *to++ = (char)(0x80 | (v & 0x3f));
    }
    return to;
}

/* Behind "\u". */
static char *unicode(struct json *j, char *to)
{
    const int v = hex4(j->p, j->end);
    if (v < 0) {
        json_fail(j, "four hexadecimal digits must follow \\u");
        return to;
    }
    j->p += 4;
    if (v >= 0xdc80 && v <= 0xdcff) {
        *to = (char)(v & 0xff);
        return to + 1;
    }
    if (v < 0xd800 || v > 0xdfff)
        return put_utf8(to, (unsigned)v);
    int low = -1;
    if (v < 0xdc00 && j->end - j->p >= 6 && j->p[0] == '\\' && j->p[1] == 'u')
        low = hex4(j->p + 2, j->end);
    if (low < 0xdc00 || low > 0xdfff) {
        json_fail(j, "half of a surrogate pair");
        return to;
    }
    j->p += 6;
    return put_utf8(to, 0x10000u + ((unsigned)(v - 0xd800) << 10) + (unsigned)(low - 0xdc00));
}

static char *escape(struct json *j, char *to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char c = j->p < j->end ? *j->p++ : 0;
    if (c == 'u')
        return unicode(j, to);
    const char *at = c ? strchr(from, c) : NULL;
    if (at)
        *to++ = into[at - from];
    else
        json_fail(j, "unknown escape in a string");
    return to;
}

bool json_string(struct json *j, struct slice *out)
{
    if (!json_expect(j, '"', "a string was expected"))
        return false;
    char *const begin = j->p, *to = begin;
    while (j->p < j->end && *j->p != '"' && !j->problem) {
        const char c = *j->p++;
        if ((unsigned char)c < 0x20)
            return json_fail(j, "a control character in a string");
        if (c == '\\')
            to = escape(j, to);
        else
            *to++ = c;
    }
    if (j->problem || !json_expect(j, '"', "a string is not closed"))
        return json_fail(j, "a string is not closed");
    *out = (struct slice){begin, (size_t)(to - begin)};
    return true;
}

/* ------------------------------------------------------------------ values */

static bool is(const struct slice *s, const char *word)
{
    return s->n == strlen(word) && memcmp(s->p, word, s->n) == 0;
}

static bool digits(const char **p, const char *end)
{
    const char *begin = *p;
    while (*p < end && **p >= '0' && **p <= '9')
        ++*p;
    return *p > begin;
}

static bool is_number(const struct slice *s)
{
    const char *p = s->p, *end = s->p + s->n;
    if (p < end && *p == '-')
        p++;
    if (!digits(&p, end))
        return false;
    if (p < end && *p == '.') {
        p++;
        if (!digits(&p, end))
            return false;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        if (!digits(&p, end))
            return false;
    }
    return p == end;
}

static bool plain(struct json *j, struct slice *out, enum json_kind *kind)
{
    char *const begin = j->p;
    while (j->p < j->end && !strchr(",:]}[{\" \t\r\n", *j->p) && *j->p)
        j->p++;
    *out = (struct slice){begin, (size_t)(j->p - begin)};
    *kind = is(out, "null") || is(out, "NaN") ? JSON_NULL : JSON_PLAIN;
    if (*kind == JSON_PLAIN && !is(out, "true") && !is(out, "false") && !is_number(out))
        return json_fail(j, "a value was expected");
    return true;
}

static bool open_bracket(struct json *j, uint64_t *stack, int *depth)
{
    if (*depth == DEPTH)
        return json_fail(j, "nested more than 64 deep");
    *stack = *stack << 1 | (*j->p++ == '{');
    ++*depth;
    return true;
}

/* Steps over a string and leaves it as it is. */
static bool skip_string(struct json *j)
{
    for (j->p++; j->p < j->end && *j->p != '"'; j->p++)
        if (*j->p == '\\' && j->p + 1 < j->end)
            j->p++;
    return json_expect(j, '"', "a string is not closed");
}

/* Steps over an array or object: brackets must match; what is between is looked at loosely. */
static bool nested(struct json *j)
{
    uint64_t stack = 0; /* 1: within an object */
    int depth = 0;
    do {
        struct slice ignored;
        enum json_kind kind;
        const char c = json_peek(j);
        if (c == '"') {
            if (!skip_string(j))
                return false;
        } else if (c == '{' || c == '[') {
            if (!open_bracket(j, &stack, &depth))
                return false;
        } else if (c == '}' || c == ']') {
            if ((c == '}') != (stack & 1))
                return json_fail(j, "brackets do not match");
            j->p++;
            stack >>= 1;
            depth--;
        } else if (c == ',' || c == ':') {
            j->p++;
        } else if (!plain(j, &ignored, &kind)) {
            return false;
        }
    } while (depth > 0);
    return true;
}

bool json_value(struct json *j, struct slice *out, enum json_kind *kind)
{
    const char c = json_peek(j);
    *out = (struct slice){j->p, 0};
    if (c == '"') {
        *kind = JSON_STRING;
        return json_string(j, out);
    }
    if (c == '{' || c == '[') {
        *kind = JSON_NESTED;
        const bool good = nested(j);
        out->n = (size_t)(j->p - out->p);
        return good;
    }
    return plain(j, out, kind);
}
