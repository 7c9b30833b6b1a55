/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields_text.h -- the text in which a caller says which fields he wants; columns.h shows it.
 */
#ifndef FIELDS_TEXT_H
#define FIELDS_TEXT_H

#include "base/buf.h"
#include "base/sample.h"

struct field_text {
    char name[FIELD_NAME], column[COLUMN_NAME];
    stk_kind kind;   /* DEFAULT: not said */
    bool words;      /* "class": an int, and words become numbers of classes */
    stk_dtype dtype; /* 0: not said */
    bool shaped;     /* a shape is said */
    int ndim;
    int64_t shape[FIELD_DIMS]; /* -1: open */
    bool pads;
    char pad[32]; /* "": zero */
    bool has_default;
    char otherwise[32];
};

/* The next field of the text; *at becomes NULL after the last one. Errors point at the place. */
int fields_text_next(const char *text, const char **at, struct field_text *out, stk_error *e);
/* What `fields` choose of the fields that `own` makes, NULL: all of them, as one text; with its 0. */
int fields_text_of(const char *own, const char *fields, struct buf *out, stk_error *e);

/* Adds a field to such a text: as what it is, from this column. 0, or -1: no memory. */
int fields_text_add(struct buf *b, const struct field *f, const char *column);

#endif
