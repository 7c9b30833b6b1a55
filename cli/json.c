/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c -- writes JSON without building a tree.
 */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Length of the UTF-8 character at s; 0 if it is invalid, as overlong forms and surrogates are. */
static size_t utf8_length(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (s[0] < 0x80)
        return 1;
    const size_t n = s[0] >= 0xf0 && s[0] < 0xf5   ? 4
                     : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
                     : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
                                                   : 0;
    uint32_t c = n ? s[0] & (0x7fu >> n) : 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

static void write_string(FILE *f, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    putc('"', f);
    while (*s) {
        const size_t n = utf8_length(s);
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            fprintf(f, "\\u%04x", *s);
        else if (n == 0)
            fprintf(f, "\\udc%02x", *s);
        else
            fwrite(s, 1, n, f);
        s += n ? n : 1;
    }
    putc('"', f);
}

/* Writes the comma, the line break and the key before a value. */
static void begin(struct json *j, const char *key)
{
    const uint32_t bit = UINT32_C(1) << j->depth;
    if (j->used & bit)
        fputs(j->rows & bit ? "," : ", ", j->f);
    if (j->depth && j->rows & bit)
        fprintf(j->f, "\n%*s", 2 * j->depth, "");
    j->used |= bit;
    if (key) {
        write_string(j->f, key);
        fputs(": ", j->f);
    }
}

/* The document and its top-level arrays have one value per line; everything deeper is on one line. */
void json_open(struct json *j, const char *key, char bracket)
{
    begin(j, key);
    putc(bracket, j->f);
    j->depth++;
    const uint32_t bit = UINT32_C(1) << j->depth;
    j->used &= ~bit;
    if (j->depth == 1 || (bracket == '[' && j->depth == 2))
        j->rows |= bit;
    else
        j->rows &= ~bit;
}

void json_close(struct json *j, char bracket)
{
    const uint32_t bit = UINT32_C(1) << j->depth;
    j->depth--;
    if (j->rows & bit && j->used & bit)
        fprintf(j->f, "\n%*s", 2 * j->depth, "");
    putc(bracket, j->f);
    if (j->depth == 0)
        putc('\n', j->f);
}

void json_text(struct json *j, const char *key, const char *value)
{
    begin(j, key);
    if (value)
        write_string(j->f, value);
    else
        fputs("null", j->f);
}

void json_int(struct json *j, const char *key, int64_t value)
{
    begin(j, key);
    fprintf(j->f, "%" PRId64, value);
}

void json_real(struct json *j, const char *key, double value)
{
    begin(j, key);
    if (isfinite(value))
        fprintf(j->f, "%.6f", value);
    else
        fputs("null", j->f);
}

void json_bool(struct json *j, const char *key, int value)
{
    begin(j, key);
    fputs(value ? "true" : "false", j->f);
}

void json_hex(struct json *j, const char *key, uint64_t value)
{
    begin(j, key);
    fprintf(j->f, "\"%016" PRIx64 "\"", value);
}

void json_raw(struct json *j, const char *key, const char *json)
{
    begin(j, key);
    fputs(json, j->f);
}

/* ------------------------------------------------------------------ reading */

static const char *skip_space(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

static const char *string_end(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1])
            p++;
    return *p ? p + 1 : NULL;
}

const char *json_end(const char *p)
{
    if (*p == '"')
        return string_end(p);
    if (*p != '{' && *p != '[') {
        const size_t n = strcspn(p, ",}] \t\r\n\"");
        return n ? p + n : NULL;
    }
    for (int depth = 0; *p;) {
        if (*p == '"') {
            p = string_end(p);
            if (!p)
                return NULL;
            continue;
        }
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
        p++;
        if (depth == 0)
            return p;
    }
    return NULL;
}

const char *json_find(const char *text, const char *key)
{
    const size_t n = strlen(key);
    const char *p = skip_space(text);
    if (*p++ != '{')
        return NULL;
    for (;;) {
        p = skip_space(p);
        if (*p != '"')
            return NULL;
        const char *name = p + 1, *end = string_end(p);
        if (!end)
            return NULL;
        p = skip_space(end);
        if (*p++ != ':')
            return NULL;
        p = skip_space(p);
        if ((size_t)(end - name) == n + 1 && memcmp(name, key, n) == 0)
            return p;
        p = json_end(p);
        if (!p)
            return NULL;
        p = skip_space(p);
        if (*p++ != ',')
            return NULL;
    }
}

static int hex_value(const char *p, int n, uint64_t *out)
{
    *out = 0;
    for (int i = 0; i < n; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *d = p[i] ? strchr(digits, p[i]) : NULL;
        if (!d)
            return -1;
        *out = *out << 4 | (uint64_t)(d - digits);
    }
    return 0;
}

/* Reads one escape as write_string() writes it: control characters and raw bytes. */
static const char *unescape(const char *p, char *c)
{
    uint64_t code = 0;
    if (*p != 'u') {
        *c = *p;
        return *p == '"' || *p == '\\' || *p == '/' ? p + 1 : NULL;
    }
    if (hex_value(p + 1, 4, &code) || !(code < 0x80 || (code >= 0xdc80 && code < 0xdd00)))
        return NULL;
    *c = (char)(code & 0xff);
    return p + 5;
}

int json_get_text(const char *text, const char *key, char *buf, size_t n)
{
    const char *p = json_find(text, key);
    if (!p || *p != '"' || n == 0)
        return -1;
    size_t len = 0;
    for (p++; *p && *p != '"';) {
        char c = *p;
        p = c == '\\' ? unescape(p + 1, &c) : p + 1;
        if (!p || len + 1 >= n)
            return -1;
        buf[len++] = c;
    }
    buf[len] = 0;
    return *p == '"' ? 0 : -1;
}

int json_get_int(const char *text, const char *key, int64_t *out)
{
    const char *p = json_find(text, key);
    if (!p)
        return -1;
    const int negative = *p == '-';
    p += negative;
    const size_t n = strspn(p, "0123456789");
    if (n == 0 || n > 18)
        return -1;
    int64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = 10 * v + (p[i] - '0');
    *out = negative ? -v : v;
    return 0;
}

int json_get_hex(const char *text, const char *key, uint64_t *out)
{
    char digits[20];
    if (json_get_text(text, key, digits, sizeof digits) || strlen(digits) != 16)
        return -1;
    return hex_value(digits, 16, out);
}
