/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write.c -- writes JSON as it comes, without building a tree.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"

static void put(struct json *j, const void *p, size_t n)
{
    fwrite(p, 1, n, j->f);
}

static void put_str(struct json *j, const char *s)
{
    put(j, s, strlen(s));
}

/* Length of the UTF-8 character at s; 0 if it is invalid, as overlong forms and surrogates are. */
static size_t utf8_length(const uint8_t *s)
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

static void put_quoted(struct json *j, const char *text)
{
    char escape[8];
    put_str(j, "\"");
    for (const uint8_t *s = (const uint8_t *)text; *s;) {
        const size_t n = utf8_length(s);
        const bool special = *s == '"' || *s == '\\', control = *s < 0x20 || *s == 0x7f;
        if (n && !special && !control) {
            put(j, s, n);
        } else {
            snprintf(escape, sizeof escape, special ? "\\%c" : n ? "\\u%04x" : "\\udc%02x", *s);
            put_str(j, escape);
        }
        s += n ? n : 1;
    }
    put_str(j, "\"");
}

static void put_line(struct json *j)
{
    put_str(j, "\n");
    for (int i = 0; i < j->depth; i++)
        put_str(j, "  ");
}

/* Writes the comma, the line break and the key before a value. */
static void begin(struct json *j, const char *key)
{
    const uint32_t bit = UINT32_C(1) << j->depth;
    const bool row = j->rows & bit;
    if (j->used & bit)
        put_str(j, row || j->compact ? "," : ", ");
    if (row)
        put_line(j);
    j->used |= bit;
    if (key) {
        put_quoted(j, key);
        put_str(j, j->compact ? ":" : ": ");
    }
}

/* The document and its top-level arrays have one value per line; everything deeper is on one line. */
void json_open(struct json *j, const char *key, char bracket)
{
    begin(j, key);
    put(j, &bracket, 1);
    j->depth++;
    const uint32_t bit = UINT32_C(1) << j->depth;
    j->used &= ~bit;
    if (!j->compact && (j->depth == 1 || (bracket == '[' && j->depth == 2)))
        j->rows |= bit;
    else
        j->rows &= ~bit;
}

void json_close(struct json *j, char bracket)
{
    const uint32_t bit = UINT32_C(1) << j->depth;
    j->depth--;
    if (j->rows & bit && j->used & bit)
        put_line(j);
    put(j, &bracket, 1);
    if (j->depth == 0 && !j->compact)
        put_str(j, "\n");
}

void json_raw(struct json *j, const char *key, const char *json)
{
    begin(j, key);
    put_str(j, json);
}

void json_text(struct json *j, const char *key, const char *value)
{
    if (!value) {
        json_raw(j, key, "null");
        return;
    }
    begin(j, key);
    put_quoted(j, value);
}

void json_int(struct json *j, const char *key, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    json_raw(j, key, digits);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    json_raw(j, key, digits);
}

void json_real(struct json *j, const char *key, double value)
{
    char digits[352]; /* the largest double has 309 digits */
    snprintf(digits, sizeof digits, "%.6f", value);
    json_raw(j, key, isfinite(value) ? digits : "null");
}

void json_bool(struct json *j, const char *key, bool value)
{
    json_raw(j, key, value ? "true" : "false");
}

void json_hex(struct json *j, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "\"%016" PRIx64 "\"", value);
    json_raw(j, key, digits);
}
