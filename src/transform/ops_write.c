/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_write.c -- writes ops back as text, with every default.
 */
#include "base/number.h"
#include "transform/ops_spec.h"

/* Writes a number, or several in brackets. */
static void put_numbers(struct text_out *to, const struct arg *a)
{
    char text[NUMBER_BYTES];
    text_put(to, "%s", a->n > 1 ? "(" : "");
    for (int i = 0; i < a->n; i++) {
        number_write(a->v[i], text);
        text_put(to, "%s%s", i ? ", " : "", text);
    }
    text_put(to, "%s", a->n > 1 ? ")" : "");
}

static void put_children(struct text_out *to, const struct op *o)
{
    text_put(to, "[");
    for (const struct op *c = o + 1; c < o + o->span; c += c->span) {
        text_put(to, "%s", c > o + 1 ? ", " : "");
        op_write(to, c);
    }
    text_put(to, "]");
}

static void put_argument(struct text_out *to, const struct op *o, int i)
{
    const struct arg_type *t = o->spec->params[i].type;
    const struct arg *a = &o->arg[i];
    text_put(to, "%s%s=", i ? ", " : "", o->spec->params[i].name);
    if (t == &arg_ops)
        put_children(to, o);
    else if (t->text)
        text_put(to, "\"%s\"", o->word);
    else if (a->n == 0)
        text_put(to, "None");
    else if (t->words && (a->n < 0 || !t->counts))
        text_put(to, "%s", t->words[(int)a->v[0]]);
    else
        put_numbers(to, a);
}

void op_write(struct text_out *to, const struct op *o)
{
    const struct param *p = o->spec->params;
    text_put(to, "%s%s", o->spec->name, p[0].name ? "(" : "");
    for (int i = 0; i < OPS_ARGS && p[i].name; i++)
        if (!p[i].type->ignored && !(p[i].type == &arg_mask_fill && o->arg[i].n == 0))
            put_argument(to, o, i);
    text_put(to, "%s", p[0].name ? ")" : "");
}

void ops_write(const struct ops *ops, char *buf, size_t n)
{
    struct text_out to = {.buf = buf, .n = n};
    buf[0] = 0;
    for (const struct op *o = ops->op; o < ops->op + ops->n; o += o->span) {
        text_put(&to, "%s", o > ops->op ? " | " : "");
        op_write(&to, o);
    }
}
