/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_fields.c -- the columns of a list, read from its lines.
 *
 * Opening scans the list once for the kinds of the columns and once for the positions of the lines. It keeps 16 bytes
 * per line. The text stays in the file: a line is read with its sample.
 */
#include "source/list_fields.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "source/list_values.h"

enum { VALUES_MOST = 4096 }; /* per row */

/* ------------------------------------------------------------------ positions */

static int add_position(struct list_fields *f, const struct lines *l, struct slice record)
{
    if (f->n == f->room) {
        const int64_t room = f->room ? 2 * f->room : 1024;
        struct line_position *more = realloc(f->lines, (size_t)room * sizeof *more);
        if (!more)
            return -1;
        f->lines = more;
        f->room = room;
    }
    const int64_t from = l->offset - (int64_t)l->window.len;
    f->lines[f->n++] = (struct line_position){from + (record.p - (char *)l->window.data), (uint32_t)record.n};
    return 0;
}

static int find_positions(struct list_fields *f, struct list *l, stk_error *e)
{
    struct slice record;
    int rc;
    list_rewind(l);
    while ((rc = list_next_record(l, &record, e)) > 0)
        if (add_position(f, &l->lines, record))
            return error_nomem(e, "open", (size_t)f->room * sizeof *f->lines);
    return rc < 0 ? e->code : STK_OK;
}

/* ------------------------------------------------------------------ columns */

struct scanning {
    struct list_guess guess;
    int values; /* of this row */
    int failed;
};

static bool add_value(void *user, const struct list_value *v)
{
    struct scanning *k = user;
    const struct slice name = {(char *)v->name, v->name_bytes};
    k->failed =
        v->too_long ? list_guess_add_long(&k->guess, name) : list_guess_add(&k->guess, -1, name, v->kind, v->text);
    return !k->failed && ++k->values < VALUES_MOST;
}

static void add_cells(struct scanning *k, struct slice record, char delimiter, const struct slice *names, int n_names)
{
    struct slice cells[LIST_COLUMNS];
    const int n = list_cells(record, delimiter, cells);
    for (int i = 0; i < n && !k->failed; i++)
        k->failed =
            list_guess_add(&k->guess, i, i < n_names ? names[i] : (struct slice){record.p, 0}, JSON_STRING, cells[i]);
}

/* Reads the header's cells, which point into *held. */
static int read_names(struct list *l, struct buf *held, struct slice *names, stk_error *e)
{
    struct slice record;
    if (l->format != LIST_TABLE || !l->header)
        return 0;
    lines_rewind(&l->lines);
    const int rc = list_next_record(l, &record, e);
    if (rc <= 0)
        return rc;
    if (buf_add(held, record.p, record.n)) {
        error_nomem(e, "open", record.n);
        return -1;
    }
    return list_cells((struct slice){(char *)held->data, held->len}, l->delimiter, names);
}

static int scan_rows(struct list *l, struct scanning *k, int64_t most, stk_error *e)
{
    struct buf held = {0};
    struct slice names[LIST_COLUMNS], record;
    const int n_names = read_names(l, &held, names, e);
    int rc = n_names < 0 ? -1 : 1;
    list_rewind(l);
    for (int64_t i = 0; rc > 0 && !k->failed && i < most && (rc = list_next_record(l, &record, e)) > 0; i++) {
        k->values = 0;
        if (l->format == LIST_TABLE)
            add_cells(k, record, l->delimiter, names, n_names);
        else if (l->format == LIST_JSON)
            list_values(record, add_value, k); /* a damaged line is a bad sample when it is read */
    }
    buf_done(&held);
    if (k->failed)
        return error_nomem(e, "open", sizeof k->guess);
    return rc < 0 ? e->code : STK_OK;
}

/* In JSON, the column whose name fits best; NULL: none fits. */
static struct column *best_named(const struct list_fields *f, int (*rank_of)(struct slice name))
{
    struct column *found = NULL;
    int best = INT32_MAX;
    for (int c = f->paths; c < f->columns.n; c++) {
        struct column *one = &f->columns.items[c];
        const int rank = rank_of((struct slice){one->name, strlen(one->name)});
        if (rank >= 0 && rank < best) {
            best = rank;
            found = one;
        }
    }
    return found;
}

static struct column *column_at(const struct list_fields *f, int c)
{
    return c >= 0 && c + f->paths < f->columns.n ? &f->columns.items[c + f->paths] : NULL;
}

/* Marks the columns of label and path. The path is implied by its image. */
static void mark_columns(struct list_fields *f, const struct list *l)
{
    const bool json = l->format == LIST_JSON, table = l->format == LIST_TABLE;
    struct column *label = json                 ? best_named(f, list_label_rank)
                           : table && l->labels ? column_at(f, l->label_column)
                                                : NULL;
    struct column *path = json ? best_named(f, list_path_rank) : table ? column_at(f, l->path_column) : NULL;
    if (label)
        label->label = f->paths || label->kind == STK_INT;
    if (path && f->paths)
        path->implied = true;
}

int list_fields_detect(struct list_fields *f, struct list *l, int64_t most, stk_error *e)
{
    struct scanning k = {0};
    const struct column image = {.name = "image", .kind = STK_IMAGE};
    int rc = scan_rows(l, &k, most, e);
    if (rc == STK_OK && ((f->paths && columns_add(&f->columns, &image)) ||
                         list_guess_columns(&k.guess, l->format == LIST_TABLE, &f->columns)))
        rc = error_nomem(e, "open", sizeof image);
    list_guess_done(&k.guess);
    if (rc == STK_OK)
        mark_columns(f, l);
    return rc;
}

/* ------------------------------------------------------------------ classes */

struct collecting {
    const struct column *column;
    struct names *words;
    bool failed;
};

static void collect(struct collecting *k, struct slice word)
{
    uint32_t ignored;
    if (word.n > 0 && !memchr(word.p, 0, word.n))
        k->failed |= names_add(k->words, word.p, word.n, &ignored) < 0;
}

static bool collect_value(void *user, const struct list_value *v)
{
    struct collecting *k = user;
    if (v->kind != JSON_NULL && !v->too_long && strlen(k->column->name) == v->name_bytes &&
        memcmp(k->column->name, v->name, v->name_bytes) == 0)
        collect(k, v->text);
    return !k->failed;
}

static int collect_all(struct list_fields *f, struct list *l, int column, stk_error *e)
{
    struct collecting k = {.column = &f->columns.items[column], .words = &f->words.names};
    struct slice record, cells[LIST_COLUMNS];
    int rc = 1;
    list_rewind(l);
    while (!k.failed && (rc = list_next_record(l, &record, e)) > 0) {
        if (l->format == LIST_JSON)
            list_values(record, collect_value, &k);
        else if (column - f->paths < list_cells(record, l->delimiter, cells))
            collect(&k, cells[column - f->paths]);
    }
    if (k.failed)
        return error_nomem(e, "open", f->words.names.pool.len);
    return rc < 0 ? e->code : STK_OK;
}

static int take_classes(struct source *s, const struct labels *words, stk_error *e)
{
    for (int i = 0; i < s->n_fields; i++)
        if (s->fields[i].label && s->n_classes > 0)
            return error_set(
                e, STK_EUSAGE, "open",
                "the labels are class names, so no other field can be of kind class; choose one of the two in "
                "fields, or pass all names in classes");
    s->n_classes = 0;
    for (uint32_t i = 0; i < words->names.n; i++) {
        uint32_t ignored;
        const uint32_t k = words->rank[i];
        if (names_add(&s->classes, names_at(&words->names, k), names_length(&words->names, k), &ignored) < 0)
            return error_nomem(e, "open", words->names.pool.len);
    }
    s->n_classes = (int)s->classes.n;
    return STK_OK;
}

int list_fields_classes(struct list_fields *f, struct list *l, struct source *s, stk_error *e)
{
    int field = s->n_fields - 1;
    while (field >= 0 && !s->fields[field].words)
        field--;
    if (field < 0)
        return STK_OK;
    int rc = collect_all(f, l, s->fields[field].column, e);
    if (rc == STK_OK)
        rc = labels_resolve(&f->words, &s->classes, e);
    return rc == STK_OK && f->words.rank ? take_classes(s, &f->words, e) : rc;
}

/* ------------------------------------------------------------------ opening and closing */

static int fill(struct list_fields *f, struct list *l, stk_error *e)
{
    f->fd = fcntl(l->lines.fd, F_DUPFD_CLOEXEC, 0);
    if (f->fd < 0)
        return error_os(e, errno, "open", "cannot be opened");
    f->format = l->format;
    f->delimiter = l->delimiter;
    const int rc = list_fields_detect(f, l, INT64_MAX, e);
    return rc == STK_OK ? find_positions(f, l, e) : rc;
}

int list_fields_open(struct list_fields **out, struct list *l, bool paths, stk_error *e)
{
    struct list_fields *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return error_nomem(e, "open", sizeof *f);
    f->fd = -1;
    f->paths = paths;
    const int rc = fill(f, l, e);
    if (rc != STK_OK)
        list_fields_free(f);
    else
        *out = f;
    return rc;
}

void list_fields_done(struct list_fields *f)
{
    if (f->fd >= 0)
        close(f->fd);
    columns_done(&f->columns);
    labels_done(&f->words);
    free(f->lines);
}

void list_fields_free(struct list_fields *f)
{
    if (f)
        list_fields_done(f);
    free(f);
}

/* ------------------------------------------------------------------ cells */

/* A row while its cells are set. */
struct row {
    const struct list_fields *f;
    const struct source *s;
    struct reading *r;
    uint64_t seen;     /* fields that have a value already, as bits */
    const char *twice; /* the column that has two values; NULL: none */
};
_Static_assert(FIELD_MAX <= 64, "bits for all fields");

static bool takes_text(const struct field *f)
{
    return f->what == STK_TEXT || f->what == STK_BYTES || f->what == STK_JSON;
}

/* If the list was changed, a word may not be a class. It stays text, and converting it to a number fails. */
static void set_class(struct row *row, int f, struct slice word)
{
    struct cell *cell = &row->r->cells[f];
    uint32_t i;
    *cell = (struct cell){.bytes = (const uint8_t *)word.p, .n = word.n, .text = true};
    if (names_find(&row->f->words.names, word.p, word.n, &i))
        *cell =
            (struct cell){.bytes = (const uint8_t *)&row->f->words.value[i], .n = sizeof(int64_t), .dtype = STK_INT64};
}

static void set_cell(struct row *row, int f, enum json_kind kind, struct slice text)
{
    const struct field *field = &row->s->fields[f];
    const bool is_bool = kind == JSON_PLAIN && (text.p[0] == 't' || text.p[0] == 'f');
    if (kind == JSON_NULL || (text.n == 0 && !takes_text(field)))
        return;
    if (field->words) {
        set_class(row, f, text);
        return;
    }
    if (is_bool && !takes_text(field))
        text = (struct slice){text.p[0] == 't' ? "1" : "0", 1};
    row->r->cells[f] = (struct cell){.bytes = (const uint8_t *)text.p, .n = text.n, .text = true};
}

static bool set_value(void *user, const struct list_value *v)
{
    struct row *row = user;
    for (int f = 0; f < row->s->n_fields; f++) {
        const int column = row->s->fields[f].column;
        if (column < row->f->paths)
            continue;
        const char *name = row->f->columns.items[column].name;
        const size_t n = strlen(name);
        if (v->too_long || n != v->name_bytes || memcmp(name, v->name, n) != 0)
            continue;
        if (row->seen >> f & 1)
            row->twice = name;
        row->seen |= UINT64_C(1) << f;
        set_cell(row, f, v->kind, v->text);
    }
    return !row->twice;
}

static void set_cells(struct row *row, struct slice line)
{
    struct slice cells[LIST_COLUMNS];
    const int n = list_cells(line, row->f->delimiter, cells);
    for (int f = 0; f < row->s->n_fields; f++) {
        const int cell = row->s->fields[f].column - row->f->paths;
        if (cell >= 0 && cell < n)
            set_cell(row, f, JSON_STRING, cells[cell]);
    }
}

int list_fields_read(const struct list_fields *f, const struct source *s, struct reading *r, int64_t i, stk_error *e)
{
    const struct line_position *at = &f->lines[i];
    struct row row = {.f = f, .s = s, .r = r};
    r->derived.len = 0;
    if (buf_reserve(&r->derived, (size_t)at->bytes + 1))
        return error_nomem(e, "read", at->bytes);
    const ssize_t got = io_pread(f->fd, r->derived.data, at->bytes, at->at);
    if (got < 0)
        return error_os(e, errno, "read", "the list cannot be read");
    if ((size_t)got < at->bytes)
        return error_set(e, STK_EDATA, "read",
                         "the list ends before this line: it became shorter after it was opened; open it again");
    r->derived.len = at->bytes;
    const struct slice line = {(char *)r->derived.data, at->bytes};
    for (int k = 0; k < s->n_fields; k++) /* all values are missing at first */
        if (s->fields[k].column >= f->paths)
            r->cells[k] = (struct cell){0};
    if (f->format == LIST_TABLE)
        set_cells(&row, line);
    const char *problem = f->format == LIST_JSON ? list_values(line, set_value, &row) : NULL;
    if (row.twice)
        return error_set(e, STK_EDATA, "read", "its line in the list: the name %.200s appears twice", row.twice);
    return problem ? error_set(e, STK_EDATA, "read", "its line in the list: %s", problem) : STK_OK;
}
