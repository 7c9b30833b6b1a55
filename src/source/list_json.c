/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_json.c -- path and label of one JSON object.
 *
 * Strings are undone in place: what an escape stands for is never longer than the escape. Nested values
 * are stepped over with a stack of bits, not by recursion. Bytes outside ASCII stay as they are;
 * a lone \udc80 to \udcff is how Python writes a byte of a name that is no UTF-8, and becomes it.
 */
#include <string.h>

#include "source/list.h"

enum { DEPTH = 64 };

struct json {
    char *p, *end;
    const char *problem;
};

static bool fail(struct json *j, const char *problem)
{
    if (!j->problem)
        j->problem = problem;
    return false;
}

static char peek(struct json *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\r' || *j->p == '\n'))
        j->p++;
    return j->p < j->end ? *j->p : 0;
}

static bool expect(struct json *j, char c, const char *problem)
{
    if (peek(j) != c || j->p == j->end)
        return fail(j, problem);
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
        fail(j, "four hexadecimal digits must follow \\u");
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
        fail(j, "half of a surrogate pair");
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
        fail(j, "unknown escape in a string");
    return to;
}

static bool string(struct json *j, struct slice *out)
{
    if (!expect(j, '"', "a string was expected"))
        return false;
    char *const begin = j->p, *to = begin;
    while (j->p < j->end && *j->p != '"' && !j->problem) {
        const char c = *j->p++;
        if ((unsigned char)c < 0x20)
            return fail(j, "a control character in a string");
        if (c == '\\')
            to = escape(j, to);
        else
            *to++ = c;
    }
    if (j->problem || !expect(j, '"', "a string is not closed"))
        return fail(j, "a string is not closed");
    *out = (struct slice){begin, (size_t)(to - begin)};
    return true;
}

/* ------------------------------------------------------------------ values */

enum value { VALUE_STRING, VALUE_PLAIN /* number, true, false */, VALUE_NULL, VALUE_NESTED };

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

static bool plain(struct json *j, struct slice *out, enum value *kind)
{
    char *const begin = j->p;
    while (j->p < j->end && !strchr(",:]}[{\" \t\r\n", *j->p) && *j->p)
        j->p++;
    *out = (struct slice){begin, (size_t)(j->p - begin)};
    *kind = is(out, "null") || is(out, "NaN") ? VALUE_NULL : VALUE_PLAIN;
    if (*kind == VALUE_PLAIN && !is(out, "true") && !is(out, "false") && !is_number(out))
        return fail(j, "a value was expected");
    return true;
}

static bool open_bracket(struct json *j, uint64_t *stack, int *depth)
{
    if (*depth == DEPTH)
        return fail(j, "nested more than 64 deep");
    *stack = *stack << 1 | (*j->p++ == '{');
    ++*depth;
    return true;
}

/* Steps over an array or object: brackets must match; what is between is looked at loosely. */
static bool nested(struct json *j)
{
    uint64_t stack = 0; /* 1: within an object */
    int depth = 0;
    do {
        struct slice ignored;
        enum value kind;
        const char c = peek(j);
        if (c == '"') {
            if (!string(j, &ignored))
                return false;
        } else if (c == '{' || c == '[') {
            if (!open_bracket(j, &stack, &depth))
                return false;
        } else if (c == '}' || c == ']') {
            if ((c == '}') != (stack & 1))
                return fail(j, "brackets do not match");
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

static bool value(struct json *j, struct slice *out, enum value *kind)
{
    const char c = peek(j);
    *out = (struct slice){j->p, 0};
    if (c == '"') {
        *kind = VALUE_STRING;
        return string(j, out);
    }
    if (c == '{' || c == '[') {
        *kind = VALUE_NESTED;
        return nested(j);
    }
    return plain(j, out, kind);
}

/* ------------------------------------------------------------------ objects */

struct found {
    int path, label; /* ranks of the names found so far; a lower one is better, -1: none yet */
    enum value label_kind;
};

static void keep(struct found *f, struct list_row *row, struct slice name, struct slice v, enum value kind)
{
    const int as_path = kind == VALUE_STRING ? list_path_rank(name) : -1, as_label = list_label_rank(name);
    if (as_path >= 0 && (f->path < 0 || as_path < f->path)) {
        f->path = as_path;
        row->path = v;
    }
    if (as_label >= 0 && (f->label < 0 || as_label < f->label)) {
        f->label = as_label;
        f->label_kind = kind;
        row->label = v;
    }
}

static bool object(struct json *j, struct found *f, struct list_row *row)
{
    if (!expect(j, '{', "not a JSON object"))
        return false;
    if (peek(j) == '}')
        return expect(j, '}', "");
    for (;;) {
        struct slice name, v;
        enum value kind;
        if (!string(j, &name) || !expect(j, ':', "a colon was expected") || !value(j, &v, &kind))
            return false;
        keep(f, row, name, v, kind);
        if (peek(j) != ',')
            return expect(j, '}', "a comma or } was expected");
        j->p++;
    }
}

const char *list_json(struct slice record, struct list_row *row)
{
    struct json j = {.p = record.p, .end = record.p + record.n};
    struct found f = {.path = -1, .label = -1};
    row->path = row->label = (struct slice){record.p, 0};
    row->has_label = false;
    if (!object(&j, &f, row))
        return j.problem;
    if (peek(&j) != 0 || j.p != j.end)
        return "something follows the object";
    if (f.path < 0)
        return "no path: one of the names path, file_name, filename, file, image must have a string";
    if (f.label >= 0 && f.label_kind == VALUE_NESTED)
        return "the label is neither a string nor a number";
    row->has_label = f.label >= 0;
    if (f.label_kind == VALUE_NULL)
        row->label.n = 0;
    return NULL;
}
