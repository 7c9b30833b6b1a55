/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_fields.h -- the columns of a list: the position of each line, the kinds of the columns, and the cells of a
 * sample.
 *
 *     list_fields_open(&f, &list, paths, e);      after list_detect
 *     columns_bind(s, &f->columns, fields, e);
 *     list_fields_read(f, s, r, i, e);            from any thread
 *     list_fields_free(f);
 */
#ifndef LIST_FIELDS_H
#define LIST_FIELDS_H

#include "base/json.h"
#include "source/columns.h"
#include "source/labels.h"
#include "source/list.h"
#include "source/source_ops.h"

struct list_fields {
    int fd; /* a duplicate of the list's */
    enum list_format format;
    char delimiter;
    bool paths; /* column 0 is the image, and table cells start at column 1 */
    struct columns columns;
    struct labels words; /* of the field of kind class */
    int64_t n, room;     /* lines */
    struct line_position {
        int64_t at;
        uint32_t bytes;
    } * lines;
};

/* On failure *out is NULL. paths: the list contains paths of images. */
int list_fields_open(struct list_fields **out, struct list *l, bool paths, stk_error *e);
/* Detects only the columns, from the first `most` lines. f is {.fd = -1}; list_fields_done frees it, even on failure.
 */
int list_fields_detect(struct list_fields *f, struct list *l, int64_t most, stk_error *e);
/* Called when the fields of s are known: collects the words of the field of kind class. They become the source's
 * classes, in byte order, unless classes were given. */
int list_fields_classes(struct list_fields *f, struct list *l, struct source *s, stk_error *e);
void list_fields_done(struct list_fields *f);
void list_fields_free(struct list_fields *f); /* accepts NULL */
/* Fills the cells of all fields that have a column, except the image. They point into r->derived. */
int list_fields_read(const struct list_fields *f, const struct source *s, struct reading *r, int64_t i, stk_error *e);

/* ------------------------------------------------------------------ list_guess.c: the kinds of the columns */

enum { LIST_GUESSES = 1024 }; /* columns; later ones are ignored */

struct list_guess {
    struct guess *guesses;
    uint64_t hash[LIST_GUESSES]; /* of their names: rows may have any number of ignored names */
    int n, room;
    int next; /* the column that probably follows */
};

/* Takes a cell of a column into account. Cells of a table have kind JSON_STRING and the index of their column, since
 * columns may share a name; JSON values have index -1. Returns 0, or -1: out of memory. */
int list_guess_add(struct list_guess *g, int number, struct slice name, enum json_kind kind, struct slice text);
/* Adds a column that cannot become a field, because its name is too long. Returns 0, or -1: out of memory. */
int list_guess_add_long(struct list_guess *g, struct slice beginning);
/* Adds the columns in the order in which they were seen. Returns 0, or -1: out of memory. */
int list_guess_columns(const struct list_guess *g, bool table, struct columns *c);
void list_guess_done(struct list_guess *g);

#endif
