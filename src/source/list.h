/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h -- text files that name a path, and perhaps a label, per record: .txt .csv .tsv .jsonl
 *
 *     struct list l = {.name = "train.csv", .lines.fd = fd, .dir = folder};
 *     list_look(&l, e);                       which format, which columns
 *     while (list_next(&l, &row, e) == 1) ... row.path, row.label
 *     list_done(&l);
 */
#ifndef LIST_H
#define LIST_H

#include "base/error.h"
#include "base/names.h"
#include "format/lines.h"
#include "source/index.h"

enum list_format {
    LIST_LINES, /* a path per line, perhaps with a label behind the last space */
    LIST_TABLE, /* cells between delimiters */
    LIST_JSON   /* an object per line */
};

struct list {
    const char *name; /* as typed */
    int dir;          /* what paths are relative to: a line that exists whole is a path */
    struct lines lines;
    enum list_format format;
    char delimiter;
    bool comments; /* lines that begin with # are skipped */
    bool header;
    bool labels; /* the records have labels; in JSON each says for itself */
    int path_column, label_column;
    bool path_named; /* the header says which column it is */
};

struct list_row {
    int64_t line;
    struct slice path, label; /* valid until the next row */
    bool has_label;
};

/* What can fail here returns -1 with the reason, and the line, in *e, which is not NULL. */
int list_look(struct list *l, stk_error *e);
bool list_has_columns(const struct list *l); /* by its name: then looking takes some lines, else perhaps all */
/* Whether the records name files. Those of a table or of JSON may be values alone: nothing is called a path, and
 * nothing looks like one or exists. Then the header, if there is one, is found anew. 1, 0, or -1. */
int list_names_files(struct list *l, stk_error *e);
void list_rewind(struct list *l);
/* 1 and a row; 0 at the end. */
int list_next(struct list *l, struct list_row *row, stk_error *e);
void list_done(struct list *l);

/* An error in a line of the list: returns -1. */
int list_fail(const struct list *l, int64_t line, stk_error *e, const char *format, ...) PRINTF_LIKE(4, 5);

/* The index of all records (two passes over the list). Labels that are all whole numbers stay as
 * they are; others become numbers of classes: the given, or all that occur, in byte order. */
int list_index(struct list *l, const struct names *given, struct index *x, stk_error *e);

/* ------------------------------------------------------------------ between the list_*.c */

enum { LIST_COLUMNS = 256 };

/* Cells of a record, quotes undone in place; how many. Cells beyond LIST_COLUMNS are left out. */
int list_cells(struct slice record, char delimiter, struct slice *cells);
/* Path and label of a JSON object, undone in place; NULL, or what is wrong with it. */
const char *list_json(struct slice record, struct list_row *row);
extern const char LIST_NO_PATH[]; /* what it says of an object without one */
/* A record that is not blank and no comment: 1, 0 at the end, -1. */
int list_record(struct list *l, struct slice *out, stk_error *e);
/* Splits at the last space or tab; false when there is none. */
bool list_split(struct slice line, struct slice *path, struct slice *label);
/* How good a name this is for the column of paths or labels: 0 is best, -1 is none. */
int list_path_rank(struct slice name);
int list_label_rank(struct slice name);
struct slice list_trim(struct slice s);

#endif
