/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_json.c -- finds path and label of a JSON object.
 */
#include <string.h>

#include "base/json.h"
#include "source/list.h"

const char LIST_NO_PATH[] = "has no path; add a string under one of the keys path, file_name, filename, file or image";

/* The best name found so far. */
struct best {
    int rank; /* lower is better; -1: none yet */
    struct slice name;
    bool twice;
};

struct found {
    struct best path, label;
    enum json_kind label_kind;
};

static bool is_better(struct best *b, int rank, struct slice name)
{
    if (rank < 0 || (b->rank >= 0 && rank > b->rank))
        return false;
    if (rank == b->rank) {
        b->twice |= name.n == b->name.n && memcmp(name.p, b->name.p, name.n) == 0;
        return false;
    }
    *b = (struct best){.rank = rank, .name = name};
    return true;
}

static void keep(struct found *f, struct list_row *row, struct slice name, struct slice v, enum json_kind kind)
{
    if (is_better(&f->path, kind == JSON_STRING ? list_path_rank(name) : -1, name))
        row->path = v;
    if (is_better(&f->label, list_label_rank(name), name)) {
        f->label_kind = kind;
        row->label = v;
    }
}

static bool object(struct json_reader *j, struct found *f, struct list_row *row)
{
    if (!json_expect(j, '{', "not a JSON object"))
        return false;
    if (json_peek(j) == '}')
        return json_expect(j, '}', "");
    for (;;) {
        struct slice name, v;
        enum json_kind kind;
        if (!json_read_string(j, &name) || !json_expect(j, ':', "a colon was expected") ||
            !json_read_value(j, &v, &kind))
            return false;
        keep(f, row, name, v, kind);
        if (json_peek(j) != ',')
            return json_expect(j, '}', "a comma or } was expected");
        j->p++;
    }
}

const char *list_json(struct slice record, struct list_row *row)
{
    struct json_reader j = {.p = record.p, .end = record.p + record.n};
    struct found f = {.path.rank = -1, .label.rank = -1};
    row->path = row->label = (struct slice){record.p, 0};
    row->has_label = false;
    if (!object(&j, &f, row))
        return j.problem;
    if (json_peek(&j) != 0 || j.p != j.end)
        return "text follows the JSON object";
    if (f.path.rank < 0)
        return LIST_NO_PATH;
    if (f.path.twice || f.label.twice)
        return f.path.twice ? "the key of the path appears twice" : "the key of the label appears twice";
    if (f.label.rank >= 0 && f.label_kind == JSON_NESTED)
        return "the label is neither a string nor a number";
    row->has_label = f.label.rank >= 0;
    if (f.label_kind == JSON_NULL)
        row->label.n = 0;
    return NULL;
}
