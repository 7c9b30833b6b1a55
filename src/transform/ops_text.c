/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_text.c -- tokens of an op text.
 */
#include "transform/ops_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void skip(struct text *t)
{
    while (*t->at == ' ' || (*t->at >= '\t' && *t->at <= '\r'))
        t->at++;
}

int32_t text_column(struct text *t)
{
    skip(t);
    return (int32_t)(t->at - t->start) + 1;
}

int text_error(struct text *t, int32_t column, const char *format, ...)
{
    char words[512];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return error_set(t->e, STK_EUSAGE, "ops", "ops: column %d: %s", (int)column, words);
}

bool text_take(struct text *t, char c)
{
    skip(t);
    if (*t->at != c)
        return false;
    t->at++;
    return true;
}

/* Copies text; replaces what cannot be printed. */
static void copy(char *buf, size_t n, const char *from, size_t len)
{
    const size_t keep = len < n ? len : n - 1;
    for (size_t i = 0; i < keep; i++)
        buf[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    buf[keep] = 0;
}

void text_next(struct text *t, char *buf, size_t n)
{
    skip(t);
    size_t len = 0;
    while (is_letter(t->at[len]) || is_digit(t->at[len]))
        len++;
    if (len == 0 && t->at[0])
        len = 1;
    char word[WORD_BYTES];
    copy(word, sizeof word, t->at, len);
    snprintf(buf, n, len ? "\"%s\"" : "the end", word);
}

bool text_name(struct text *t, char *buf, size_t n)
{
    skip(t);
    if (!is_letter(*t->at))
        return false;
    size_t len = 0;
    while (is_letter(t->at[len]) || is_digit(t->at[len]))
        len++;
    copy(buf, n, t->at, len);
    t->at += len;
    return true;
}

/* Reads a number without a fraction bar. */
static int read_plain(struct text *t, double *out, bool *whole)
{
    const int32_t column = text_column(t);
    const char *digits = t->at + (*t->at == '-' || *t->at == '+');
    struct number v;
    const size_t n = is_digit(*digits) || *digits == '.' ? number_read(t->at, strlen(t->at), &v) : 0;
    if (n == 0)
        return text_error(t, column, "expected a number");
    if (!isfinite(v.d))
        return text_error(t, column, "the number is too large");
    *whole = !memchr(t->at, '.', n) && !memchr(t->at, 'e', n) && !memchr(t->at, 'E', n);
    *out = v.d;
    t->at += n;
    return STK_OK;
}

static int read_number(struct text *t, double *out, bool *whole)
{
    const int32_t column = text_column(t);
    int rc = read_plain(t, out, whole);
    if (rc || !text_take(t, '/'))
        return rc;
    double below;
    bool ignored;
    skip(t);
    rc = read_plain(t, &below, &ignored);
    if (rc)
        return rc;
    if (below == 0.0 || !isfinite(*out / below))
        return text_error(t, column, "the fraction divides by zero or is too large");
    *out /= below;
    *whole = false;
    return STK_OK;
}

static int read_list(struct text *t, struct value *v)
{
    const char close = *t->at == '(' ? ')' : ']';
    char seen[WORD_BYTES + 2];
    v->kind = VALUE_LIST;
    t->at++;
    while (!text_take(t, close)) {
        if (v->n == VALUE_ITEMS)
            return text_error(t, text_column(t), "more than %d numbers in a list", VALUE_ITEMS);
        const int rc = read_number(t, &v->number[v->n], &v->whole[v->n]);
        if (rc)
            return rc;
        v->n++;
        if (text_take(t, ',') || *t->at == close)
            continue;
        text_next(t, seen, sizeof seen);
        return text_error(t, text_column(t), "found %s, expected \",\" or \"%c\"", seen, close);
    }
    return STK_OK;
}

/* In lower case, after the last dot: InterpolationMode.NEAREST_EXACT is "nearest_exact". */
static void word_of(struct value *v, const char *from, size_t len)
{
    size_t start = len;
    while (start > 0 && from[start - 1] != '.')
        start--;
    copy(v->word, sizeof v->word, from + start, len - start);
    for (char *p = v->word; *p; p++)
        *p = *p == '-' ? '_' : text_lower(*p);
    v->kind = VALUE_WORD;
}

static int read_word(struct text *t, struct value *v)
{
    size_t len = 0;
    if (*t->at == '"' || *t->at == '\'') {
        const char quote = *t->at++;
        while (t->at[len] && t->at[len] != quote)
            len++;
        if (!t->at[len])
            return text_error(t, v->column, "the closing quote is missing");
        word_of(v, t->at, len);
        t->at += len + 1;
        return STK_OK;
    }
    while (is_letter(t->at[len]) || is_digit(t->at[len]) || t->at[len] == '.' || t->at[len] == '-')
        len++;
    word_of(v, t->at, len);
    t->at += len;
    return STK_OK;
}

int text_value(struct text *t, struct value *v)
{
    *v = (struct value){.kind = VALUE_NUMBER};
    skip(t);
    v->column = text_column(t);
    const char *from = t->at, c = *t->at;
    int rc;
    if (c == '(' || c == '[') {
        rc = read_list(t, v);
    } else if (is_letter(c) || c == '"' || c == '\'') {
        rc = read_word(t, v);
    } else if (is_digit(c) || c == '.' || c == '-' || c == '+') {
        v->n = 1;
        rc = read_number(t, &v->number[0], &v->whole[0]);
    } else {
        char seen[WORD_BYTES + 2];
        text_next(t, seen, sizeof seen);
        rc = text_error(t, v->column, "found %s, expected a value", seen);
    }
    copy(v->source, sizeof v->source, from, (size_t)(t->at - from));
    return rc;
}
