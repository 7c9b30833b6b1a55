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
    if (j->f)
        fwrite(p, 1, n, j->f);
    else
        text_add(j->text, p, n);
}

static void put_str(struct json *j, const char *s)
{
    put(j, s, strlen(s));
}

static void put_quoted(struct json *j, const char *text)
{
    char escape[8];
    const uint8_t *s = (const uint8_t *)text, *end = s + strlen(text);
    put_str(j, "\"");
    while (s < end) {
        const size_t n = text_character(s, (size_t)(end - s));
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
        put_str(j, row || j->layout == JSON_COMPACT ? "," : ", ");
    if (row)
        put_line(j);
    j->used |= bit;
    if (key) {
        put_quoted(j, key);
        put_str(j, j->layout == JSON_COMPACT ? ":" : ": ");
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
    if (j->layout == JSON_LINES && (j->depth == 1 || (bracket == '[' && j->depth == 2)))
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
    if (j->depth == 0 && j->layout == JSON_LINES)
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
