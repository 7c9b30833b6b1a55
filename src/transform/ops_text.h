/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_text.h -- tokens of an op text: names, values, and errors with their column.
 *
 * A value is a number (3, 0.08, 3/4), a word (bilinear, "edge", InterpolationMode.BICUBIC, True) or a list of numbers
 * in round or square brackets. Nothing nests. The locale has no effect.
 */
#ifndef OPS_TEXT_H
#define OPS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { VALUE_ITEMS = 16, WORD_BYTES = 48 };

struct text {
    const char *start, *at;
    stk_error *e;
};

enum value_kind { VALUE_NUMBER, VALUE_WORD, VALUE_LIST };

struct value {
    enum value_kind kind;
    int32_t column;          /* from 1 */
    char source[WORD_BYTES]; /* as written, for messages */
    int n;                   /* count of numbers; 1 for VALUE_NUMBER */
    double number[VALUE_ITEMS];
    bool whole[VALUE_ITEMS]; /* written without a decimal point, exponent or fraction */
    char word[WORD_BYTES];   /* in lower case, after the last dot, with _ for - */
};

/* Skips spaces and returns the column of the next character. */
int32_t text_column(struct text *t);
/* Sets "ops: column N: ..."; returns STK_EUSAGE. */
int text_error(struct text *t, int32_t column, const char *format, ...) PRINTF_LIKE(3, 4);
/* Skips spaces. If c is next, skips it and returns true. */
bool text_take(struct text *t, char c);
/* The next token, quoted, for messages; "the end" at the end. */
void text_next(struct text *t, char *buf, size_t n);
/* Reads a name, cut to n bytes. Returns false, and reads nothing, if the next token is not a name. */
bool text_name(struct text *t, char *buf, size_t n);
int text_value(struct text *t, struct value *v);

#endif
