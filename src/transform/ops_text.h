/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_text.h -- the letters of an op text: names, values, and errors that point at them.
 *
 * A value is a number (3, 0.08, 3/4), a word (bilinear, "edge", InterpolationMode.BICUBIC, True) or a
 * list of numbers in round or square brackets. Nothing nests. The locale has no say.
 */
#ifndef OPS_TEXT_H
#define OPS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { VALUE_ITEMS = 8, WORD_BYTES = 48 };

struct text {
    const char *start, *at;
    stk_error *e;
};

enum value_kind { VALUE_NUMBER, VALUE_WORD, VALUE_LIST };

struct value {
    enum value_kind kind;
    int32_t column;          /* from 1 */
    char source[WORD_BYTES]; /* as written, for messages */
    int n;                   /* numbers; 1 for VALUE_NUMBER */
    double number[VALUE_ITEMS];
    bool whole[VALUE_ITEMS]; /* written without point, exponent or fraction */
    char word[WORD_BYTES];   /* in small letters, after the last point, with _ for - */
};

/* Skips spaces and says where the next letter is. */
int32_t text_column(struct text *t);
/* Sets "ops: column N: ..."; returns STK_EUSAGE. */
int text_error(struct text *t, int32_t column, const char *format, ...) PRINTF_LIKE(3, 4);
/* Skips spaces; true, and past it, when c comes next. */
bool text_take(struct text *t, char c);
/* What comes next, quoted, for messages; "the end" at the end. */
void text_next(struct text *t, char *buf, size_t n);
/* Reads a name; false, and nothing taken, when none comes next. Longer ones than fit are cut. */
bool text_name(struct text *t, char *buf, size_t n);
int text_value(struct text *t, struct value *v);

/* The name that was probably meant; NULL when none is near. */
const char *text_nearest(const char *word, const char *const *names, int n);

#endif
