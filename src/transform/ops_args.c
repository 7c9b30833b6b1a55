/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_args.c -- arguments of ops: the types that several ops share, and how a value is checked and stored.
 */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/text.h"
#include "transform/ops_spec.h"
#include "transform/resample.h"

/* "RandomCrop: size: found X, expected a number" */
int arg_bad(struct reader *r, const struct value *v, const char *expected)
{
    return text_error(&r->text, v->column, "%s: %s: found %s, expected %s", r->spec->name, r->param->name, v->source,
                      expected);
}

static bool is_none(const struct value *v)
{
    return v->kind == VALUE_WORD && strcmp(v->word, "none") == 0;
}

/* Whether a word, in lower case, is this name. */
static bool is_word(const char *word, const char *name)
{
    for (; *word && *name; word++, name++)
        if (*word != *name && *word != text_lower(*name))
            return false;
    return *word == *name;
}

int arg_word(struct reader *r, const struct value *v, const char *const *words, int n, const char *expected)
{
    for (int i = 0; i < n; i++)
        if (v->kind == VALUE_WORD && is_word(v->word, words[i]))
            return i;
    struct nearest near = {.word = v->word};
    char text[400];
    if (v->kind == VALUE_WORD)
        nearest_try_all(&near, words, n);
    snprintf(text, sizeof text, "%s%s", expected, nearest_hint(&near));
    arg_bad(r, v, text);
    return -1;
}

static bool fits(const struct arg_type *t, const struct value *v)
{
    if (v->kind == VALUE_WORD || v->n >= 32 || !(t->counts & ARG_COUNT(v->n)))
        return false;
    for (int i = 0; i < v->n; i++)
        if (!(v->number[i] >= t->low && v->number[i] <= t->high) || (t->whole && !v->whole[i]) ||
            (t->ascending && i > 0 && v->number[i] < v->number[i - 1]))
            return false;
    return true;
}

/* Without quotes. */
static int store_text(struct reader *r, struct op *o, int i, const struct value *v)
{
    const bool quoted = v->source[0] == '"' || v->source[0] == '\'';
    const size_t n = strlen(v->source);
    if (v->kind != VALUE_WORD || n + 1 >= sizeof v->source || n < 1 + 2 * (size_t)quoted)
        return arg_bad(r, v, o->spec->params[i].type->expected);
    snprintf(o->word, sizeof o->word, "%.*s", (int)(n - 2 * (size_t)quoted), v->source + quoted);
    o->arg[i].n = 1;
    return STK_OK;
}

int arg_store(struct reader *r, struct op *o, int i, const struct value *v)
{
    const struct arg_type *t = o->spec->params[i].type;
    struct arg *a = &o->arg[i];
    if (t->none && is_none(v)) {
        a->n = 0;
        return STK_OK;
    }
    if (t->text)
        return store_text(r, o, i, v);
    if (t->words && (v->kind == VALUE_WORD || !t->counts)) {
        const int word = arg_word(r, v, t->words, t->n_words, t->expected);
        a->n = t->counts ? -1 : 1;
        a->v[0] = word;
        return word < 0 ? STK_EUSAGE : STK_OK;
    }
    if (!fits(t, v))
        return arg_bad(r, v, t->expected);
    a->n = v->n;
    memcpy(a->v, v->number, sizeof *v->number * (size_t)v->n);
    return STK_OK;
}

int arg_set(struct reader *r, struct op *o, int i, const struct value *v)
{
    const struct arg_type *t = o->spec->params[i].type;
    return t->set ? t->set(r, o, i, v) : arg_store(r, o, i, v);
}

void op_defaults(struct op *o)
{
    struct reader r = {.spec = o->spec};
    for (int i = 0; i < OPS_ARGS && o->spec->params[i].name; i++) {
        struct value v;
        r.param = &o->spec->params[i];
        if (!r.param->preset || !r.param->preset[0] || r.param->type == &arg_ops)
            continue;
        r.text = (struct text){.start = r.param->preset, .at = r.param->preset};
        if (text_value(&r.text, &v) == STK_OK)
            arg_set(&r, o, i, &v);
    }
}

const struct arg *op_arg(const struct op *o, const struct arg_type *t)
{
    for (int i = 0; i < OPS_ARGS && o->spec->params[i].name; i++)
        if (o->spec->params[i].type == t)
            return &o->arg[i];
    return NULL;
}

/* ------------------------------------------------------------------ types that several ops share */

/* One number means both sides. */
static int set_size(struct reader *r, struct op *o, int i, const struct value *v)
{
    const int rc = arg_store(r, o, i, v);
    if (rc == STK_OK) {
        o->arg[i].v[1] = o->arg[i].v[o->arg[i].n - 1];
        o->arg[i].n = 2;
    }
    return rc;
}

const struct arg_type arg_size = {"a whole number from 1 to 65536, or two: (height, width)",
                                  .low = 1,
                                  .high = OPS_SIDE,
                                  .counts = ARG_COUNT(1) | ARG_COUNT(2),
                                  .whole = true,
                                  .set = set_size};

/* A word, its alias nearest_exact, which is what Pillow's nearest does, or Pillow's number. */
static int set_filter(struct reader *r, struct op *o, int i, const struct value *v)
{
    static const enum filter by_number[] = {FILTER_NEAREST, FILTER_LANCZOS, FILTER_BILINEAR,
                                            FILTER_BICUBIC, FILTER_BOX,     FILTER_HAMMING};
    struct arg *a = &o->arg[i];
    if (v->kind != VALUE_WORD && v->n == 1 && v->whole[0] && v->number[0] >= 0 && v->number[0] <= 5) {
        a->n = 1;
        a->v[0] = by_number[(int)v->number[0]];
        return STK_OK;
    }
    const int rc = arg_store(r, o, i, v);
    if (rc == STK_OK && a->v[0] == FILTER_COUNT)
        a->v[0] = FILTER_NEAREST;
    return rc;
}

const char *const arg_filters[FILTER_COUNT + 1] = {"nearest", "box",     "bilinear",     "hamming",
                                                   "bicubic", "lanczos", "nearest_exact"};
const struct arg_type arg_filter = {"nearest, nearest_exact, box, bilinear, hamming, bicubic or lanczos",
                                    .words = arg_filters, .n_words = FILTER_COUNT + 1, .set = set_filter};

static const char *const bools[] = {"False", "True"};
const struct arg_type arg_bool = {"True or False", .words = bools, .n_words = 2};
const struct arg_type arg_ignored = {"True or False", .words = bools, .n_words = 2, .ignored = true};

/* None means as for a PIL image. */
static int set_antialias(struct reader *r, struct op *o, int i, const struct value *v)
{
    o->arg[i] = (struct arg){.n = 1, .v = {1}};
    return is_none(v) ? STK_OK : arg_store(r, o, i, v);
}

const struct arg_type arg_antialias = {"True or False", .words = bools, .n_words = 2, .set = set_antialias};

static int set_fill(struct reader *r, struct op *o, int i, const struct value *v)
{
    const int rc = arg_store(r, o, i, v);
    for (int k = 0; k < o->arg[i].n; k++)
        o->arg[i].v[k] = (uint8_t)o->arg[i].v[k];
    return rc;
}

const struct arg_type arg_fill = {"a number from 0 to 255, or three", .high = 255,
                                  .counts = ARG_COUNT(1) | ARG_COUNT(3), .set = set_fill};

const struct arg_type arg_mask_fill = {"a whole number from 0 to 255, or None", .high = 255, .counts = ARG_COUNT(1),
                                       .whole = true, .none = true};

const struct arg_type arg_share = {"a number from 0 to 1", .high = 1, .counts = ARG_COUNT(1)};
const struct arg_type arg_p = {"a probability from 0 to 1", .high = 1, .counts = ARG_COUNT(1)};

const struct arg_type arg_ops = {.expected = "an op, or [op, op]"}; /* read by ops.c */
