/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c -- reads the text of ops. ops_args.c has the table of ops and arguments; ops_check.c checks that ops fit
 * together.
 *
 *     text      = [ "image" ":" ] op { "|" op } [ ";" ]
 *     op        = name [ "(" [ argument { "," argument } [ "," ] ] ")" ]
 *     argument  = [ name "=" ] value
 */
#include "transform/ops.h"

#include <stdio.h>
#include <string.h>

#include "transform/ops_args.h"
#include "transform/ops_check.h"

const char *op_name(enum op_kind k)
{
    return op_specs[k].name;
}

static int n_params(const struct spec *s)
{
    int n = 0;
    while (n < PARAMS && s->params[n].name)
        n++;
    return n;
}

/* Collects the names of the arguments, for messages and to find the nearest. */
static int param_names(const struct spec *s, const char *names[PARAMS], char *list, size_t size)
{
    const int n = n_params(s);
    size_t used = 0;
    list[0] = 0;
    for (int i = 0; i < n; i++) {
        names[i] = s->params[i].name;
        used += (size_t)snprintf(list + used, size - used, "%s%s", i ? ", " : "", names[i]);
    }
    return n;
}

static int no_param(struct reader *r, int32_t column, const char *name)
{
    const char *names[PARAMS] = {0};
    char list[128];
    const int n = param_names(r->spec, names, list, sizeof list);
    const char *near = text_nearest(name, names, n);
    if (n == 0)
        return text_error(&r->text, column, "%s takes no arguments", r->spec->name);
    if (near)
        return text_error(&r->text, column, "%s has no argument \"%s\"; did you mean %s?", r->spec->name, name, near);
    return text_error(&r->text, column, "%s has no argument \"%s\"; it takes %s", r->spec->name, name, list);
}

/* The index of the next argument, by name or by position; -1: an error was set. */
static int next_param(struct reader *r, int place, bool *named)
{
    const int32_t column = text_column(&r->text);
    const char *const before = r->text.at;
    char name[WORD_BYTES];
    const int n = n_params(r->spec);
    if (text_name(&r->text, name, sizeof name) && text_take(&r->text, '=')) {
        *named = true;
        for (int i = 0; i < n; i++)
            if (strcmp(name, r->spec->params[i].name) == 0)
                return i;
        no_param(r, column, name);
        return -1;
    }
    r->text.at = before;
    if (*named) {
        text_error(&r->text, column, "%s: an argument without a name comes after one with a name", r->spec->name);
        return -1;
    }
    if (n == 0) {
        no_param(r, column, "");
        return -1;
    }
    if (place >= n) {
        text_error(&r->text, column, "%s takes at most %d argument%s", r->spec->name, n, n == 1 ? "" : "s");
        return -1;
    }
    return place;
}

/* Reads the arguments up to the closing bracket. */
static int read_arguments(struct reader *r, struct op *o, unsigned *given)
{
    bool named = false;
    char seen[WORD_BYTES + 2];
    for (int place = 0; !text_take(&r->text, ')'); place++) {
        const int i = next_param(r, place, &named);
        if (i < 0)
            return STK_EUSAGE;
        r->param = &r->spec->params[i];
        struct value v;
        int rc = text_value(&r->text, &v);
        if (rc == STK_OK && *given & 1u << i)
            rc = text_error(&r->text, v.column, "%s: %s is given twice", r->spec->name, r->param->name);
        if (rc == STK_OK)
            rc = r->param->set(r, o, &v);
        if (rc)
            return rc;
        *given |= 1u << i;
        if (text_take(&r->text, ',') || *r->text.at == ')')
            continue;
        text_next(&r->text, seen, sizeof seen);
        return text_error(&r->text, text_column(&r->text), "found %s, expected \",\" or \")\"", seen);
    }
    return STK_OK;
}

static int find_op(struct reader *r, const char *name, int32_t column)
{
    const char *names[OP_KINDS];
    char list[320] = "";
    size_t used = 0;
    for (int k = 0; k < OP_KINDS; k++) {
        if (strcmp(name, op_specs[k].name) == 0)
            return k;
        names[k] = op_specs[k].name;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", names[k]);
    }
    const char *near = text_nearest(name, names, OP_KINDS);
    if (near)
        text_error(&r->text, column, "unknown op \"%s\"; did you mean %s?", name, near);
    else
        text_error(&r->text, column, "unknown op \"%s\"; the ops are %s", name, list);
    return -1;
}

static int read_op(struct reader *r, struct ops *ops)
{
    char name[WORD_BYTES], seen[WORD_BYTES + 2];
    text_next(&r->text, seen, sizeof seen);
    const int32_t column = text_column(&r->text);
    if (!text_name(&r->text, name, sizeof name))
        return text_error(&r->text, column, "found %s, expected an op", seen);
    if (ops->n == OPS_MAX)
        return text_error(&r->text, column, "more than %d ops", OPS_MAX);
    const int kind = find_op(r, name, column);
    if (kind < 0)
        return STK_EUSAGE;
    struct op *o = &ops->op[ops->n];
    *o = (struct op){.kind = (enum op_kind)kind, .column = column};
    op_defaults(o);
    for (int i = 0; i < ops->n; i++)
        o->nth += ops->op[i].kind == o->kind;
    r->spec = &op_specs[kind];
    unsigned given = 0;
    const int rc = text_take(&r->text, '(') ? read_arguments(r, o, &given) : STK_OK;
    for (int i = 0; rc == STK_OK && i < r->spec->required; i++)
        if (!(given & 1u << i))
            return text_error(&r->text, column, "%s needs its argument %s", name, r->spec->params[i].name);
    ops->n++;
    return rc;
}

/* "image:" in front names the only pipeline. */
static int read_label(struct reader *r)
{
    const int32_t column = text_column(&r->text);
    const char *const before = r->text.at;
    char name[WORD_BYTES];
    if (text_name(&r->text, name, sizeof name) && text_take(&r->text, ':'))
        return strcmp(name, "image") == 0
                   ? STK_OK
                   : text_error(&r->text, column, "pipeline \"%s\" is unknown; this version supports only \"image\"",
                                name);
    r->text.at = before;
    return STK_OK;
}

static int read_pipeline(struct reader *r, struct ops *ops)
{
    char seen[WORD_BYTES + 2];
    int rc = read_label(r);
    do
        rc = rc ? rc : read_op(r, ops);
    while (rc == STK_OK && text_take(&r->text, '|'));
    if (rc)
        return rc;
    const int32_t column = text_column(&r->text);
    const bool more = text_take(&r->text, ';');
    text_next(&r->text, seen, sizeof seen);
    if (more && *r->text.at)
        return text_error(&r->text, column, "this version supports only one pipeline");
    if (*r->text.at)
        return text_error(&r->text, column, "found %s, expected \"|\" or the end", seen);
    return STK_OK;
}

int ops_read(struct ops *out, const char *text, stk_dtype dtype, int32_t w, int32_t h, stk_error *e)
{
    const bool open = w == OPS_OPEN;
    *out = (struct ops){.normalize = -1, .w = open ? 0 : w, .h = open ? 0 : h, .channels = 3};
    const char *const start = text ? text : "";
    const size_t n = strnlen(start, OPS_TEXT);
    if (n == OPS_TEXT)
        return error_set(e, STK_EUSAGE, "ops", "ops: the text is longer than %d bytes", OPS_TEXT - 1);
    const bool none = n == strspn(start, " \t\n\v\f\r");
    if (none && w == 0)
        return error_set(e, STK_EUSAGE, "ops",
                         "ops: no ops are given, so images keep their own sizes, but a batch needs one size: use for "
                         "example Resize(256) | CenterCrop(224), or batch_size 1");
    struct reader r = {.text = {.start = start, .at = start, .e = e}};
    const int rc = none ? STK_OK : read_pipeline(&r, out);
    return rc ? rc : ops_check(out, &r.text, dtype, open);
}
