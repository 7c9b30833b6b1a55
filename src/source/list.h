/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h -- text files with a path and perhaps a label per record: .txt .csv .tsv .jsonl
 *
 *     struct list l = {.name = "train.csv", .lines.fd = fd, .dir = folder};
 *     list_detect(&l, e);                       detects the format and the columns
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
    LIST_LINES, /* a path per line, perhaps followed by a space and a label */
    LIST_TABLE, /* cells between delimiters */
    LIST_JSON   /* an object per line */
};

struct list {
    const char *name; /* as typed */
    int dir;          /* what paths are relative to: a line that names an existing file is a path */
    struct lines lines;
    enum list_format format;
    char delimiter;
    bool comments; /* lines that start with # are skipped */
    bool header;
    bool labels; /* the records have labels; in JSON each record decides */
    int path_column, label_column;
    bool path_named;      /* the header names the column of paths */
    char label_name[64];  /* of the label's column in a table, as the user knows it */
    bool labels_optional; /* the caller does not need them: if they are invalid, list_index leaves them out */
    bool without_labels;  /* list_index left them out */
};

struct list_row {
    int64_t line;
    struct slice path, label; /* valid until the next row */
    bool has_label;
};

/* Functions that can fail return -1 and set *e, which must not be NULL, to the reason and the line. */
int list_detect(struct list *l, stk_error *e);
bool list_has_columns(
    const struct list *l); /* by its suffix; detecting then reads a few lines, otherwise perhaps all */
/* Returns 1 if the records contain paths, 0 if they contain only values, or -1. Only tables and JSON can contain only
 * values: no column is named like a path, and no cell looks like a path or exists as a file. The header is then
 * detected again. */
int list_names_files(struct list *l, stk_error *e);
void list_rewind(struct list *l);
/* Returns 1 and a row, 0 at the end, or -1. */
int list_next(struct list *l, struct list_row *row, stk_error *e);
void list_done(struct list *l);

/* Sets an error in a line of the list; returns -1. */
int list_fail(const struct list *l, int64_t line, stk_error *e, const char *format, ...) PRINTF_LIKE(4, 5);

/* Builds the index of all records, in two passes. If all labels are integers, they are kept. Otherwise they become
 * class indices: in the given classes, or in all labels in byte order. */
int list_index(struct list *l, const struct names *given, struct index *x, stk_error *e);

/* ------------------------------------------------------------------ shared by list_*.c */

enum { LIST_COLUMNS = 256 };

/* Splits a record into cells and removes quotes in place. Returns the count; skips cells beyond LIST_COLUMNS. */
int list_cells(struct slice record, char delimiter, struct slice *cells);
/* Finds path and label of a JSON object and unescapes them in place. Returns NULL, or what is wrong. */
const char *list_json(struct slice record, struct list_row *row);
extern const char LIST_NO_PATH[]; /* what list_json returns for an object without a path */
/* The next record that is neither blank nor a comment. Returns 1, 0 at the end, or -1. */
int list_next_record(struct list *l, struct slice *out, stk_error *e);
/* Splits at the last space or tab; false: there is none. */
bool list_split(struct slice line, struct slice *path, struct slice *label);
/* How well a name fits the column of paths or labels: 0 is best; -1: it does not. */
int list_path_rank(struct slice name);
int list_label_rank(struct slice name);
struct slice list_trim(struct slice s);

#endif
