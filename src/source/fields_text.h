/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields_text.h -- parses stk_options.fields; columns.h describes the syntax.
 */
#ifndef FIELDS_TEXT_H
#define FIELDS_TEXT_H

#include "base/buf.h"
#include "base/sample.h"

struct field_text {
    char name[FIELD_NAME], column[COLUMN_NAME];
    stk_kind kind;   /* DEFAULT: not given */
    bool words;      /* "class": an int; words become class indices */
    stk_dtype dtype; /* 0: not given */
    enum follow follow;
    enum box_format box_format;
    bool relative;
    bool shaped; /* a shape is given; keypoints, each: of one entry */
    int ndim;
    int64_t shape[FIELD_DIMS]; /* -1: any length */
    bool pads;
    char pad[32]; /* "": zero */
    bool has_default;
    char otherwise[32];
};

/* Parses the next field of the text; *at becomes NULL after the last one. Errors quote the position. */
int fields_text_next(const char *text, const char **at, struct field_text *out, stk_error *e);
/* Resolves `fields` (NULL: all) against the fields that `own` defines, into one text with its 0. */
int fields_text_choose(const char *own, const char *fields, struct buf *out, stk_error *e);

/* Appends a field of this column to such a text. Returns 0, or -1: out of memory. */
int fields_text_add(struct buf *b, const struct field *f, const char *column);

#endif
