/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c -- reads JSON without building a tree.
 *
 * Strings are decoded in place: an escape is never shorter than what it stands for. Nested values are skipped with a
 * stack of bits, not by recursion. Bytes outside ASCII are not checked.
 */
#include "base/json.h"

#include <string.h>

enum { DEPTH = 64 };

/* ------------------------------------------------------------------ strings */

bool json_fail(struct json_reader *r, const char *problem)
{
    if (!r->problem)
        r->problem = problem;
    return false;
}

char json_peek(struct json_reader *r)
{
    while (r->p < r->end && text_is_space(*r->p))
        r->p++;
    return r->p < r->end ? *r->p : 0;
}

bool json_expect(struct json_reader *r, char c, const char *problem)
{
    if (json_peek(r) != c || r->p == r->end)
        return json_fail(r, problem);
    r->p++;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static int hex4(const char *p, const char *end)
{
    int v = end - p < 4 ? -1 : 0;
    for (int i = 0; i < 4 && v >= 0; i++)
        v = hex_digit(p[i]) < 0 ? -1 : v << 4 | hex_digit(p[i]);
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

/* Reads the digits after "\u", and the second half of a surrogate pair. */
static char *unicode(struct json_reader *r, char *to)
{
    const int v = hex4(r->p, r->end);
    if (v < 0) {
        json_fail(r, "four hexadecimal digits must follow \\u");
        return to;
    }
    r->p += 4;
    if (v >= 0xdc80 && v <= 0xdcff) {
        *to = (char)(v & 0xff);
        return to + 1;
    }
    if (v < 0xd800 || v > 0xdfff)
        return put_utf8(to, (unsigned)v);
    int low = -1;
    if (v < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u')
        low = hex4(r->p + 2, r->end);
    if (low < 0xdc00 || low > 0xdfff) {
        json_fail(r, "a surrogate pair is incomplete");
        return to;
    }
    r->p += 6;
    return put_utf8(to, 0x10000u + ((unsigned)(v - 0xd800) << 10) + (unsigned)(low - 0xdc00));
}

static char *escape(struct json_reader *r, char *to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char c = r->p < r->end ? *r->p++ : 0;
    if (c == 'u')
        return unicode(r, to);
    const char *at = c ? strchr(from, c) : NULL;
    if (at)
        *to++ = into[at - from];
    else
        json_fail(r, "unknown escape in a string");
    return to;
}

bool json_read_string(struct json_reader *r, struct slice *out)
{
    if (!json_expect(r, '"', "a string was expected"))
        return false;
    char *const begin = r->p, *to = begin;
    while (r->p < r->end && *r->p != '"' && !r->problem) {
        const char c = *r->p++;
        if ((unsigned char)c < 0x20)
            return json_fail(r, "a control character in a string");
        if (c == '\\')
            to = escape(r, to);
        else
            *to++ = c;
    }
    if (r->problem || !json_expect(r, '"', "a string is not closed"))
        return json_fail(r, "a string is not closed");
    *out = (struct slice){begin, (size_t)(to - begin)};
    return true;
}

/* ------------------------------------------------------------------ values in order */

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

static bool plain(struct json_reader *r, struct slice *out, enum json_kind *kind)
{
    char *const begin = r->p;
    while (r->p < r->end && !strchr(",:]}[{\" \t\r\n", *r->p) && *r->p)
        r->p++;
    *out = (struct slice){begin, (size_t)(r->p - begin)};
    *kind = is(out, "null") || is(out, "NaN") ? JSON_NULL : JSON_PLAIN;
    if (*kind == JSON_PLAIN && !is(out, "true") && !is(out, "false") && !is_number(out))
        return json_fail(r, "a value was expected");
    return true;
}

static bool open_bracket(struct json_reader *r, uint64_t *stack, int *depth)
{
    if (*depth == DEPTH)
        return json_fail(r, "nested more than 64 deep");
    *stack = *stack << 1 | (*r->p++ == '{');
    ++*depth;
    return true;
}

/* Skips a string without decoding it. */
static bool skip_string(struct json_reader *r)
{
    for (r->p++; r->p < r->end && *r->p != '"'; r->p++)
        if (*r->p == '\\' && r->p + 1 < r->end)
            r->p++;
    return json_expect(r, '"', "a string is not closed");
}

/* Skips an array or object. Brackets must match; the order of what is between them is not checked. */
static bool nested(struct json_reader *r)
{
    uint64_t stack = 0; /* 1: an object, 0: an array; the innermost is bit 0 */
    int depth = 0;
    do {
        struct slice ignored;
        enum json_kind kind;
        const char c = json_peek(r);
        if (c == '"') {
            if (!skip_string(r))
                return false;
        } else if (c == '{' || c == '[') {
            if (!open_bracket(r, &stack, &depth))
                return false;
        } else if (c == '}' || c == ']') {
            if ((c == '}') != (stack & 1))
                return json_fail(r, "brackets do not match");
            r->p++;
            stack >>= 1;
            depth--;
        } else if (c == ',' || c == ':') {
            r->p++;
        } else if (!plain(r, &ignored, &kind)) {
            return false;
        }
    } while (depth > 0);
    return true;
}

bool json_read_value(struct json_reader *r, struct slice *out, enum json_kind *kind)
{
    const char c = json_peek(r);
    *out = (struct slice){r->p, 0};
    if (c == '"') {
        *kind = JSON_STRING;
        return json_read_string(r, out);
    }
    if (c == '{' || c == '[') {
        *kind = JSON_NESTED;
        const bool good = nested(r);
        out->n = (size_t)(r->p - out->p);
        return good;
    }
    return plain(r, out, kind);
}

/* ------------------------------------------------------------------ single values */

static const struct json_value none;

/* For functions that skip values; those do not write. */
static struct json_reader reader_at(struct json_value v)
{
    return (struct json_reader){.p = (char *)v.p, .end = (char *)v.end};
}

static struct json_value value_at(struct json_reader r)
{
    return json_peek(&r) ? (struct json_value){r.p, r.end} : none;
}

static bool skip_value(struct json_reader *r)
{
    struct slice ignored;
    enum json_kind kind;
    return json_peek(r) == '"' ? skip_string(r) : json_read_value(r, &ignored, &kind);
}

struct json_value json_document(const void *text, size_t n)
{
    return text ? value_at(reader_at((struct json_value){text, (const char *)text + n})) : none;
}

struct json_value json_find(struct json_value object, const char *key)
{
    const size_t n = strlen(key);
    struct json_reader r = reader_at(object);
    if (!object.p || !json_expect(&r, '{', ""))
        return none;
    while (json_peek(&r) == '"') {
        const char *name = r.p + 1;
        if (!skip_string(&r))
            return none;
        const bool found = (size_t)(r.p - name) == n + 1 && memcmp(name, key, n) == 0;
        if (!json_expect(&r, ':', ""))
            return none;
        if (found)
            return value_at(r);
        if (!skip_value(&r) || !json_expect(&r, ',', ""))
            return none;
    }
    return none;
}

struct json_value json_first(struct json_value array)
{
    struct json_reader r = reader_at(array);
    return array.p && json_expect(&r, '[', "") && json_peek(&r) != ']' ? value_at(r) : none;
}

struct json_value json_next(struct json_value element)
{
    struct json_reader r = reader_at(element);
    return element.p && skip_value(&r) && json_expect(&r, ',', "") ? value_at(r) : none;
}

size_t json_bytes(struct json_value v)
{
    struct json_reader r = reader_at(v);
    return v.p && skip_value(&r) ? (size_t)(r.p - v.p) : 0;
}

bool json_get_uint(struct json_value v, uint64_t *out)
{
    const size_t n = json_bytes(v);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t digit = (uint64_t)(v.p[i] - '0');
        if (v.p[i] < '0' || v.p[i] > '9' || sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *out = sum;
    return n > 0;
}

bool json_get_int(struct json_value v, int64_t *out)
{
    uint64_t sum;
    const bool minus = v.p && *v.p == '-';
    if (minus)
        v = v.end - v.p > 1 ? (struct json_value){v.p + 1, v.end} : none;
    if (!json_get_uint(v, &sum) || sum > INT64_MAX)
        return false;
    *out = minus ? -(int64_t)sum : (int64_t)sum;
    return true;
}

bool json_get_hex(struct json_value v, uint64_t *out)
{
    const size_t n = json_bytes(v);
    if (n < 3 || n > 18 || *v.p != '"')
        return false;
    *out = 0;
    for (size_t i = 1; i + 1 < n; i++) {
        const int digit = hex_digit(v.p[i]);
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint64_t)digit;
    }
    return true;
}

bool json_get_text(struct json_value v, struct buf *out)
{
    const size_t n = json_bytes(v), before = out->len;
    if (n == 0 || *v.p != '"' || buf_add(out, v.p, n))
        return false;
    char *const copy = (char *)out->data + before;
    struct json_reader r = {.p = copy, .end = copy + n};
    struct slice text;
    out->len = before;
    if (!json_read_string(&r, &text) || memchr(text.p, 0, text.n))
        return false;
    memmove(copy, text.p, text.n);
    copy[text.n] = 0;
    out->len = before + text.n;
    return true;
}
