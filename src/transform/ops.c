/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c -- reads the text of ops. The families of ops have a file each; ops_args.c has the types of arguments;
 * ops_check.c checks that ops fit together.
 *
 *     text      = [ "image" ":" ] op { "|" op } [ ";" ]
 *     op        = name [ "(" [ argument { "," argument } [ "," ] ] ")" ]
 *     argument  = [ name "=" ] ( value | op | "[" op { "," op } [ "," ] "]" )
 */
#include "transform/ops.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "transform/ops_spec.h"

enum { DEPTH = 4 }; /* of ops in arguments of ops */

static const struct spec *const families[] = {ops_crop,   ops_scale,  ops_warp,  ops_filter, ops_iou_crop,
                                              ops_color,  ops_choice, ops_erase, ops_policy, ops_timm,
                                              ops_augmix, ops_type,   ops_blend, ops_boxes};
enum { FAMILIES = sizeof families / sizeof families[0], NAMES = 128 };

const char *op_name(const struct op *o)
{
    return o->spec->name;
}

static int n_params(const struct spec *s)
{
    int n = 0;
    while (n < OPS_ARGS && s->params[n].name)
        n++;
    return n;
}

/* Collects the names of the arguments, for messages and to find the nearest. */
static int param_names(const struct spec *s, const char *names[OPS_ARGS], char *list, size_t size)
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
    const char *names[OPS_ARGS] = {0};
    char list[128];
    const int n = param_names(r->spec, names, list, sizeof list);
    struct nearest near = {.word = name};
    nearest_try_all(&near, names, n);
    if (n == 0)
        return text_error(&r->text, column, "%s takes no arguments", r->spec->name);
    if (near.found)
        return text_error(&r->text, column, "%s has no argument \"%s\"%s", r->spec->name, name, nearest_hint(&near));
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

static int read_op(struct reader *r, struct ops *ops, int depth);

/* Reads an op, or ops in square brackets. They follow the op that has them as its argument. */
static int read_children(struct reader *r, struct ops *ops, int depth)
{
    const int32_t column = text_column(&r->text);
    char seen[WORD_BYTES + 2];
    if (depth == DEPTH)
        return text_error(&r->text, column, "ops in arguments of ops are more than %d deep", DEPTH);
    if (!text_take(&r->text, '['))
        return read_op(r, ops, depth + 1);
    int rc = STK_OK;
    while (rc == STK_OK && !text_take(&r->text, ']')) {
        rc = read_op(r, ops, depth + 1);
        if (rc || text_take(&r->text, ',') || *r->text.at == ']')
            continue;
        text_next(&r->text, seen, sizeof seen);
        return text_error(&r->text, text_column(&r->text), "found %s, expected \",\" or \"]\"", seen);
    }
    return rc;
}

static int read_argument(struct reader *r, struct ops *ops, struct op *o, int i, int depth)
{
    struct value v;
    const struct spec *const spec = r->spec;
    r->param = &spec->params[i];
    if (r->param->type == &arg_ops) {
        const int rc = read_children(r, ops, depth);
        r->spec = spec;
        return rc;
    }
    const int rc = text_value(&r->text, &v);
    return rc ? rc : arg_set(r, o, i, &v);
}

/* Reads the arguments up to the closing bracket. */
static int read_arguments(struct reader *r, struct ops *ops, struct op *o, unsigned *given, int depth)
{
    bool named = false;
    char seen[WORD_BYTES + 2];
    for (int place = 0; !text_take(&r->text, ')'); place++) {
        const int i = next_param(r, place, &named);
        const int32_t column = text_column(&r->text);
        if (i < 0)
            return STK_EUSAGE;
        if (*given & 1u << i)
            return text_error(&r->text, column, "%s: %s is given twice", r->spec->name, r->spec->params[i].name);
        const int rc = read_argument(r, ops, o, i, depth);
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

static const struct spec *find_op(struct reader *r, const char *name, int32_t column)
{
    const char *names[NAMES];
    int n = 0;
    for (int f = 0; f < FAMILIES; f++)
        for (const struct spec *s = families[f]; s->name; s++) {
            if (strcmp(name, s->name) == 0)
                return s;
            if (n < NAMES)
                names[n++] = s->name;
        }
    struct nearest near = {.word = name};
    nearest_try_all(&near, names, n);
    if (near.found)
        text_error(&r->text, column, "unknown op \"%s\"%s", name, nearest_hint(&near));
    else
        text_error(&r->text, column, "unknown op \"%s\"; docs/ops.md lists the ops, such as Resize and CenterCrop",
                   name);
    return NULL;
}

/* An argument without a default must be given. */
static int check_given(struct reader *r, const struct op *o, unsigned given)
{
    const struct param *p = o->spec->params;
    for (int i = 0; i < OPS_ARGS && p[i].name; i++)
        if (!p[i].preset && !(given & 1u << i))
            return text_error(&r->text, o->column, "%s needs its argument %s", op_name(o), p[i].name);
    return STK_OK;
}

static int read_op(struct reader *r, struct ops *ops, int depth)
{
    char name[WORD_BYTES], seen[WORD_BYTES + 2];
    text_next(&r->text, seen, sizeof seen);
    const int32_t column = text_column(&r->text);
    if (!text_name(&r->text, name, sizeof name))
        return text_error(&r->text, column, "found %s, expected an op", seen);
    if (ops->n == OPS_MAX)
        return text_error(&r->text, column, "more than %d ops", OPS_MAX);
    const struct spec *spec = find_op(r, name, column);
    if (!spec)
        return STK_EUSAGE;
    struct op *o = &ops->op[ops->n];
    *o = (struct op){.spec = spec, .column = column};
    op_defaults(o);
    for (int i = 0; i < ops->n; i++)
        o->nth += ops->op[i].spec == spec;
    ops->n++;
    r->spec = spec;
    unsigned given = 0;
    const int rc = text_take(&r->text, '(') ? read_arguments(r, ops, o, &given, depth) : STK_OK;
    o->span = (int)(&ops->op[ops->n] - o);
    return rc ? rc : check_given(r, o, given);
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
                   : text_error(&r->text, column, "pipeline \"%s\": only \"image\" is possible here", name);
    r->text.at = before;
    return STK_OK;
}

static int read_pipeline(struct reader *r, struct ops *ops)
{
    char seen[WORD_BYTES + 2];
    int rc = read_label(r);
    do
        rc = rc ? rc : read_op(r, ops, 0);
    while (rc == STK_OK && text_take(&r->text, '|'));
    if (rc)
        return rc;
    const int32_t column = text_column(&r->text);
    const bool more = text_take(&r->text, ';');
    text_next(&r->text, seen, sizeof seen);
    if (more && *r->text.at)
        return text_error(&r->text, column, "only one pipeline is possible here");
    if (*r->text.at)
        return text_error(&r->text, column, "found %s, expected \"|\" or the end", seen);
    return STK_OK;
}

int ops_read(struct ops *out, const char *text, stk_dtype dtype, int32_t w, int32_t h, stk_error *e)
{
    const bool open = w == OPS_OPEN;
    *out = (struct ops){.w = open ? 0 : w, .h = open ? 0 : h, .channels = 3};
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
