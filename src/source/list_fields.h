/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_fields.h -- the columns of a list, read from its own lines: where each line lies, what the columns are, and the
 * cells of a sample.
 *
 *     list_fields_open(&f, &list, paths, e);      after list_look
 *     columns_bind(s, &f->columns, fields, e);
 *     list_fields_read(f, s, r, i, e);            from any thread
 *     list_fields_free(f);
 */
#ifndef LIST_FIELDS_H
#define LIST_FIELDS_H

#include "source/columns.h"
#include "source/labels.h"
#include "source/list.h"
#include "source/shard.h"

struct list_fields {
    int fd; /* of its own */
    enum list_format format;
    char delimiter;
    bool paths;             /* column 0 is the picture, and table cells begin with column 1 */
    struct columns columns; /* the label's is marked */
    struct labels words;    /* of the field whose words are classes */
    int64_t n, room;        /* lines */
    struct line_place {
        int64_t at;
        uint32_t bytes;
    } * lines;
};

/* On failure *out is NULL. paths: lines name files, which are the pictures. */
int list_fields_open(struct list_fields **out, struct list *l, bool paths, stk_error *e);
/* Columns alone, by the first `most` lines, of one that is {.fd = -1}; list_fields_done frees what it left. */
int list_fields_look(struct list_fields *f, struct list *l, int64_t most, stk_error *e);
/* Once the fields of s are bound: collects the words of the one that is of kind class; they become the source's
 * classes, in byte order, unless classes were given. */
int list_fields_classes(struct list_fields *f, struct list *l, struct source *s, stk_error *e);
void list_fields_done(struct list_fields *f);
void list_fields_free(struct list_fields *f); /* also NULL */
/* Cells of all fields with a column but the picture, which lie in r->made. */
int list_fields_read(const struct list_fields *f, const struct source *s, struct reading *r, int64_t i, stk_error *e);

#endif
