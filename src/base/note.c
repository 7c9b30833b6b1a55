/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note.c -- small JSON documents, written with a line for every member of the outer two levels, and read by looking for
 * what is wanted: values are stepped over, not kept.
 */
#include "base/note.h"

#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------------ writing */

static void put(struct note *n, const void *p, size_t bytes)
{
    if (buf_add(&n->text, p, bytes))
        n->failed = true;
}

static void put_str(struct note *n, const char *s)
{
    put(n, s, strlen(s));
}

/* Bytes of the UTF-8 character at s; 0: it is none. */
static size_t utf8_bytes(const uint8_t *s)
{
    const size_t n = s[0] < 0x80                   ? 1
                     : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
                     : (s[0] & 0xf0) == 0xe0       ? 3
                     : s[0] < 0xf5                 ? 4
                                                   : 0;
    if (s[0] >= 0x80 && s[0] < 0xc2)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if (n == 3)
        return (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ? 0 : n;
    if (n == 4)
        return (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f) ? 0 : n;
    return n;
}

static void put_quoted(struct note *n, const char *text)
{
    const uint8_t *s = (const uint8_t *)text;
    put_str(n, "\"");
    while (*s) {
        const size_t k = utf8_bytes(s);
        int rc = 0;
        if (k == 0)
            rc = buf_printf(&n->text, "\\udc%02x", *s);
        else if (*s < 0x20 || *s == 0x7f)
            rc = buf_printf(&n->text, "\\u%04x", *s);
        else if (*s == '"' || *s == '\\')
            rc = buf_printf(&n->text, "\\%c", *s);
        else
            put(n, s, k);
        n->failed |= rc != 0;
        s += k ? k : 1;
    }
    put_str(n, "\"");
}

static void begin(struct note *n, const char *key)
{
    enum { LINES = 2 }; /* levels that have a line for every member */
    if (n->depth > 0) {
        put_str(n, n->used ? "," : "");
        put_str(n, n->depth <= LINES ? "\n" : n->used ? " " : "");
        for (int i = 0; i < n->depth && n->depth <= LINES; i++)
            put_str(n, "  ");
    }
    n->used = true;
    if (key) {
        put_quoted(n, key);
        put_str(n, ": ");
    }
}

void note_open(struct note *n, const char *key, char bracket)
{
    begin(n, key);
    put(n, &bracket, 1);
    n->depth++;
    n->used = false;
}

void note_close(struct note *n, char bracket)
{
    n->depth--;
    if (n->used && n->depth < 2) {
        put_str(n, "\n");
        for (int i = 0; i < n->depth; i++)
            put_str(n, "  ");
    }
    put(n, &bracket, 1);
    put_str(n, n->depth == 0 ? "\n" : "");
    n->used = true;
}

void note_int(struct note *n, const char *key, int64_t value)
{
    begin(n, key);
    n->failed |= buf_printf(&n->text, "%" PRId64, value) != 0;
}

void note_hex(struct note *n, const char *key, uint64_t value)
{
    begin(n, key);
    n->failed |= buf_printf(&n->text, "\"%016" PRIx64 "\"", value) != 0;
}

void note_text(struct note *n, const char *key, const char *value)
{
    begin(n, key);
    put_quoted(n, value);
}

void note_done(struct note *n)
{
    buf_done(&n->text);
    *n = (struct note){0};
}

/* ------------------------------------------------------------------ reading */

static const struct note_value none;

static struct note_value space(struct note_value v)
{
    while (v.p && v.p < v.end && strchr(" \t\r\n", *v.p) && *v.p)
        v.p++;
    return v.p && v.p < v.end ? v : none;
}

static struct note_value step(struct note_value v)
{
    v.p++;
    return space(v);
}

static bool at(struct note_value v, char c)
{
    return v.p && *v.p == c;
}

/* Behind a string; none: it does not end. */
static struct note_value skip_string(struct note_value v)
{
    for (v.p++; v.p < v.end && *v.p != '"'; v.p++)
        if (*v.p == '\\' && v.p + 1 < v.end)
            v.p++;
    return v.p < v.end ? step(v) : none;
}

/* Behind a value: brackets are counted, whatever is between them. */
static struct note_value skip(struct note_value v)
{
    int depth = 0;
    while (v.p) {
        if (*v.p == '"') {
            v = skip_string(v);
        } else if (*v.p == '{' || *v.p == '[') {
            depth++;
            v = step(v);
            continue; /* empty brackets close next */
        } else if (*v.p == '}' || *v.p == ']') {
            if (depth-- == 0)
                return none;
            v = step(v);
        } else if (*v.p == ',' || *v.p == ':') {
            if (depth == 0)
                return none;
            v = step(v);
            continue;
        } else {
            while (v.p < v.end && !strchr(",:]}[{\" \t\r\n", *v.p) && *v.p)
                v.p++;
            if (v.p < v.end && *v.p == 0)
                return none;
            v = space(v);
        }
        if (depth == 0)
            return v;
    }
    return none;
}

struct note_value note_document(const void *text, size_t n)
{
    const char *p = text;
    return space((struct note_value){p, p ? p + n : p});
}

static bool is_key(struct note_value v, const char *key)
{
    const size_t n = strlen(key);
    return at(v, '"') && (size_t)(v.end - v.p) > n + 1 && memcmp(v.p + 1, key, n) == 0 && v.p[n + 1] == '"';
}

struct note_value note_find(struct note_value object, const char *key)
{
    if (!at(object, '{'))
        return none;
    struct note_value v = step(object);
    while (at(v, '"')) {
        const bool found = is_key(v, key);
        v = skip_string(v);
        if (!at(v, ':'))
            return none;
        v = step(v);
        if (found)
            return v;
        v = skip(v);
        if (!at(v, ','))
            return none;
        v = step(v);
    }
    return none;
}

struct note_value note_first(struct note_value array)
{
    if (!at(array, '['))
        return none;
    const struct note_value v = step(array);
    return at(v, ']') ? none : v;
}

struct note_value note_next(struct note_value element)
{
    const struct note_value v = skip(element);
    return at(v, ',') ? step(v) : none;
}

bool note_get_int(struct note_value v, int64_t *out)
{
    const bool minus = at(v, '-');
    uint64_t sum = 0;
    const char *p = minus ? v.p + 1 : v.p;
    if (!p || p == v.end || *p < '0' || *p > '9')
        return false;
    for (; p < v.end && *p >= '0' && *p <= '9'; p++) {
        if (sum > (uint64_t)INT64_MAX / 10 - 1)
            return false;
        sum = sum * 10 + (uint64_t)(*p - '0');
    }
    *out = minus ? -(int64_t)sum : (int64_t)sum;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The number that n digits make; -1: they do not. */
static int64_t hex(const char *p, const char *end, int n)
{
    int64_t v = 0;
    if (end - p < n)
        return -1;
    for (int i = 0; i < n; i++) {
        const int d = hex_digit(p[i]);
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

bool note_get_hex(struct note_value v, uint64_t *out)
{
    if (!at(v, '"') || v.end - v.p < 18 || v.p[17] != '"')
        return false;
    const int64_t high = hex(v.p + 1, v.end, 8), low = hex(v.p + 9, v.end, 8);
    *out = (uint64_t)high << 32 | (uint64_t)low;
    return high >= 0 && low >= 0;
}

static int add_utf8(struct buf *out, unsigned v)
{
    uint8_t b[3];
    size_t n = 1;
    if (v >= 0xdc80 && v <= 0xdcff) {
        b[0] = (uint8_t)(v & 0xff);
    } else if (v < 0x80) {
        b[0] = (uint8_t)v;
    } else if (v < 0x800) {
        b[0] = (uint8_t)(0xc0 | v >> 6);
        b[1] = (uint8_t)(0x80 | (v & 0x3f));
        n = 2;
    } else {
        b[0] = (uint8_t)(0xe0 | v >> 12);
        b[1] = (uint8_t)(0x80 | (v >> 6 & 0x3f));
        b[2] = (uint8_t)(0x80 | (v & 0x3f));
        n = 3;
    }
    return buf_add(out, b, n);
}

/* What stands behind a backslash at p; where it ends, NULL when it is none of ours. We write no pairs of surrogates. */
static const char *escape(const char *p, const char *end, struct buf *out)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *known = p < end && *p ? strchr(from, *p) : NULL;
    if (known)
        return buf_add(out, &into[known - from], 1) ? NULL : p + 1;
    const int64_t v = p < end && *p == 'u' ? hex(p + 1, end, 4) : -1;
    return v > 0 && add_utf8(out, (unsigned)v) == 0 ? p + 5 : NULL;
}

bool note_get_text(struct note_value v, struct buf *out)
{
    if (!at(v, '"'))
        return false;
    const char *p = v.p + 1;
    while (p && p < v.end && *p != '"') {
        if (*p == '\\')
            p = escape(p + 1, v.end, out);
        else
            p = buf_add(out, p, 1) ? NULL : p + 1;
    }
    if (!p || p == v.end || buf_add(out, "", 1))
        return false;
    out->len--;
    return true;
}
