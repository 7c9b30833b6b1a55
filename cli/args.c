/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.c -- parses the command line into struct args, by the tables of options.
 */
#include "args.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "file.h"
#include "out.h"
#include "value.h"

/* ------------------------------------------------------------------ values */

static const struct args_word *find_word(const struct args_word *words, const char *s)
{
    for (; words->word; words++)
        if (strcmp(words->word, s) == 0)
            return words;
    return NULL;
}

/* Names separated by commas, or the lines of a file. Skips empty names. */
static int parse_classes(struct args *a, const char *s)
{
    stk_error e;
    size_t n;
    free(a->class_text);
    free(a->class_names);
    a->class_text = NULL;
    a->class_names = NULL;
    if (s[0] == '@') {
        if (file_read(s + 1, 64 << 20, &a->class_text, &n, &e) != STK_OK)
            return out_fail(a->command->name, e.code, &e);
    } else if (!(a->class_text = strdup(s))) {
        return END_MACHINE;
    }
    size_t most = 1;
    for (const char *p = a->class_text; *p; p++)
        most += *p == ',' || *p == '\n';
    a->class_names = calloc(most, sizeof *a->class_names);
    if (!a->class_names)
        return END_MACHINE;
    int count = 0;
    const char *between = s[0] == '@' ? "\r\n" : ",";
    for (char *p = a->class_text; *p;) {
        const size_t len = strcspn(p, between);
        const int last = p[len] == 0;
        p[len] = 0;
        if (len)
            a->class_names[count++] = p;
        p += len + !last;
    }
    a->o.classes = a->class_names;
    a->o.n_classes = count;
    return count ? END_GOOD : END_USAGE;
}

static int parse_weights(struct args *a, const char *text)
{
    int n = 1;
    for (const char *p = text; *p; p++)
        n += *p == ',';
    free(a->mix);
    a->mix = calloc((size_t)n, sizeof *a->mix);
    if (!a->mix)
        return END_MACHINE;
    for (int i = 0; i < n; i++) {
        if (value_weight(text, &text, &a->mix[i]) || *text != (i + 1 < n ? ',' : 0))
            return -1;
        text++;
    }
    a->o.mix = a->mix;
    a->o.n_mix = n;
    return 0;
}

/* ------------------------------------------------------------------ one option */

static void *slot(struct args *a, const struct args_option *o)
{
    return (char *)a + o->at;
}

static int assign(struct args *a, const struct args_option *o, const char *text)
{
    int64_t v;
    const struct args_word *word;
    switch (o->kind) {
    case ARGS_ON:
    case ARGS_OFF:
        *(int *)slot(a, o) = o->kind == ARGS_ON;
        return 0;
    case ARGS_INT:
        if (value_int64(text, o->min, o->max, &v))
            return -1;
        *(int *)slot(a, o) = (int)v;
        return 0;
    case ARGS_INT64:
        return value_int64(text, o->min, o->max, slot(a, o));
    case ARGS_UINT64:
        return value_uint64(text, slot(a, o));
    case ARGS_SIZE:
        return value_size(text, slot(a, o));
    case ARGS_SHARE:
        return value_share(text, slot(a, o));
    case ARGS_TEXT:
        *(const char **)slot(a, o) = text;
        return 0;
    case ARGS_FIELDS:
        a->fields[a->n_fields++] = *(const char **)slot(a, o) = text;
        return 0;
    case ARGS_WORD:
        word = find_word(o->words, text);
        if (!word)
            return -1;
        memcpy(slot(a, o), &word->value, sizeof word->value); /* an int or an enum */
        return 0;
    case ARGS_GRID:
        return value_grid(text, slot(a, o), (int *)slot(a, o) + 1);
    case ARGS_CLASSES:
        return parse_classes(a, text);
    case ARGS_WEIGHTS:
        return parse_weights(a, text);
    }
    return -1;
}

/* Names of data types in other programs. */
static const char *same_word(const char *typed)
{
    static const char *const names[][2] = {
        {"fp16", "float16"}, {"half", "float16"},   {"f16", "float16"}, {"bf16", "bfloat16"}, {"fp32", "float32"},
        {"f32", "float32"},  {"single", "float32"}, {"u8", "uint8"},    {"byte", "uint8"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i][0], typed) == 0)
            return names[i][1];
    return typed;
}

static void say_words(const struct args_option *o, const char *typed)
{
    struct nearest n = {.word = same_word(typed)};
    fputs("  it takes", stderr);
    for (const struct args_word *w = o->words; w->word; w++) {
        fprintf(stderr, " %s", w->word);
        nearest_try(&n, w->word, strlen(w->word));
    }
    fprintf(stderr, "%s\n", nearest_hint(&n));
}

static void say_wanted(const struct args_option *o, const char *typed)
{
    switch (o->kind) {
    case ARGS_INT:
    case ARGS_INT64:
        fprintf(stderr, "  it takes a whole number from %" PRId64 " to %" PRId64 "\n", o->min, o->max);
        break;
    case ARGS_UINT64:
        fputs("  it takes a whole number from 0 to 18446744073709551615\n", stderr);
        break;
    case ARGS_SIZE:
        fputs("  it takes a size such as 512M, 2GiB or 4096; M is MiB\n", stderr);
        break;
    case ARGS_SHARE:
        fputs("  it takes a share such as 0.05 or 5%\n", stderr);
        break;
    case ARGS_WORD:
        say_words(o, typed);
        break;
    case ARGS_WEIGHTS:
        fputs("  it takes numbers, 0 or more, separated by commas: 0.7,0.3\n", stderr);
        break;
    case ARGS_GRID:
        fputs("  it takes columns x rows, such as 8x5\n", stderr);
        break;
    default:
        break;
    }
}

int args_set(struct args *a, const struct args_option *o, const char *text)
{
    const int rc = assign(a, o, text);
    if (rc == 0)
        return END_GOOD;
    if (rc == END_MACHINE)
        return END_MACHINE;
    out_say(a->command->name, "'%s' is not a valid --%s", text, o->name);
    say_wanted(o, text);
    return END_USAGE;
}

void args_show(const struct args *a, const struct args_option *o, char *buf, size_t n)
{
    const void *at = (const char *)a + o->at;
    const char *text;
    int word;
    buf[0] = 0;
    switch (o->kind) {
    case ARGS_ON:
    case ARGS_OFF:
    case ARGS_INT:
        snprintf(buf, n, "%d", *(const int *)at);
        break;
    case ARGS_INT64:
    case ARGS_SIZE:
        snprintf(buf, n, "%" PRId64, *(const int64_t *)at);
        break;
    case ARGS_UINT64:
        snprintf(buf, n, "%" PRIu64, *(const uint64_t *)at);
        break;
    case ARGS_SHARE:
        snprintf(buf, n, "%.9f", *(const double *)at);
        break;
    case ARGS_TEXT:
    case ARGS_FIELDS:
        text = *(const char *const *)at;
        snprintf(buf, n, "%s", text ? text : "");
        break;
    case ARGS_WORD:
        memcpy(&word, at, sizeof word);
        for (const struct args_word *w = o->words; w->word; w++)
            if (w->value == word)
                snprintf(buf, n, "%s", w->word);
        break;
    case ARGS_GRID:
        snprintf(buf, n, "%dx%d", ((const int *)at)[0], ((const int *)at)[1]);
        break;
    case ARGS_CLASSES:
    case ARGS_WEIGHTS:
        break;
    }
}

/* ------------------------------------------------------------------ the tables */

/* Whether a command accepts a common option. */
static int accepts(const struct command *c, const struct args_option *o)
{
    for (const char *const *name = c->without; *name; name++)
        if (strcmp(*name, o->name) == 0)
            return 0;
    for (const struct args_option *own = c->options; own && own->name; own++)
        if (strcmp(own->name, o->name) == 0)
            return 0;
    return (o->group & c->groups) != 0;
}

const struct args_option *args_option_at(const struct command *c, int i)
{
    int n = 0;
    for (const struct args_option *o = c->options; o && o->name; o++)
        if (n++ == i)
            return o;
    for (const struct args_option *o = args_common; o->name; o++)
        if (accepts(c, o) && n++ == i)
            return o;
    return NULL;
}

static int find_option(const struct command *c, const char *name, size_t n)
{
    const struct args_option *o;
    for (int i = 0; (o = args_option_at(c, i)); i++)
        if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
            return i;
    return -1;
}

static int find_letter(const struct command *c, char letter)
{
    const struct args_option *o;
    for (int i = 0; (o = args_option_at(c, i)); i++)
        if (o->letter && o->letter == letter)
            return i;
    return -1;
}

int args_given(const struct args *a, const char *name)
{
    const int i = find_option(a->command, name, strlen(name));
    return i >= 0 && i < (int)sizeof a->given && a->given[i];
}

/* ------------------------------------------------------------------ the line */

static int unknown_option(const struct command *c, const char *typed, size_t n)
{
    char name[64];
    const struct args_option *o;
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), typed);
    struct nearest near = {.word = name, .prefix = "--"};
    for (o = args_common; o->name; o++)
        if (strcmp(o->name, name) == 0) {
            out_say(c->name, "--%s has no effect on this command; remove it", name);
            return END_USAGE;
        }
    for (int i = 0; (o = args_option_at(c, i)); i++)
        nearest_try(&near, o->name, strlen(o->name));
    if (near.found)
        out_say(c->name, "there is no option --%s%s", name, nearest_hint(&near));
    else
        out_say(c->name, "there is no option --%s; `stoker %s --help` lists them", name, c->name);
    return END_USAGE;
}

static int set_given(struct args *a, int i, const char *value)
{
    if (i < (int)sizeof a->given)
        a->given[i] = 1;
    return args_set(a, args_option_at(a->command, i), value);
}

/* "--name value", "--name=value", "-o value". Moves *at past a value that is a word of its own. */
static int take_option(struct args *a, int argc, char **argv, int *at)
{
    const char *word = argv[*at];
    const int is_long = word[1] == '-';
    const char *name = word + 1 + is_long, *equals = strchr(name, '=');
    const size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const int i = is_long ? find_option(a->command, name, n) : n == 1 ? find_letter(a->command, name[0]) : -1;
    if (i < 0 && is_long)
        return unknown_option(a->command, name, n);
    if (i < 0) {
        out_say(a->command->name, "there is no option -%s; `stoker %s --help` lists them", name, a->command->name);
        return END_USAGE;
    }
    const struct args_option *o = args_option_at(a->command, i);
    if (o->kind == ARGS_ON || o->kind == ARGS_OFF) {
        if (!equals)
            return set_given(a, i, "");
        out_say(a->command->name, "--%s takes no value", o->name);
        return END_USAGE;
    }
    if (equals)
        return set_given(a, i, equals + 1);
    if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0) {
        out_say(a->command->name, "--%s needs a value: --%s %s", o->name, o->name, o->value);
        return END_USAGE;
    }
    return set_given(a, i, argv[++*at]);
}

static int take_operand(struct args *a, const char *word)
{
    if (!a->command->operand) {
        out_say(a->command->name, "unexpected argument '%s'", word);
        return END_USAGE;
    }
    if (a->operand && a->command->second && !a->second) {
        a->second = word;
        return END_GOOD;
    }
    if (strcmp(a->command->operand, "SRC") == 0 && !a->command->second)
        a->sources[a->n_sources++] = word;
    else if (a->operand) {
        out_say(a->command->name, "takes one %s, but two are given: '%s' and '%s'", a->command->operand, a->operand,
                word);
        return END_USAGE;
    }
    a->operand = word;
    return END_GOOD;
}

/* One source, or several that are joined; `operand` then has the names of all. */
static int take_sources(struct args *a)
{
    size_t n = 1, at = 0;
    for (int i = 0; i < a->n_sources; i++)
        n += strlen(a->sources[i]) + 3;
    a->o.source = a->operand;
    if (a->n_sources < 2)
        return END_GOOD;
    a->o.source = NULL;
    a->o.sources = a->sources;
    a->o.n_sources = a->n_sources;
    a->operand = a->joined = calloc(n, 1);
    for (int i = 0; a->joined && i < a->n_sources; i++)
        at += (size_t)snprintf(a->joined + at, n - at, "%s%s", i ? " + " : "", a->sources[i]);
    return a->joined ? END_GOOD : END_MACHINE;
}

/* Once for all sources, or once for each. */
static int take_fields(struct args *a)
{
    if (a->n_fields < 2)
        return END_GOOD;
    if (a->n_fields != a->n_sources) {
        out_say(a->command->name,
                "--fields is given %d times for %s; give it once for all sources, or once for each, in order",
                a->n_fields, out_some(a->n_sources, "source", "sources").s);
        return END_USAGE;
    }
    a->o.fields = NULL;
    a->o.source_fields = a->fields;
    return END_GOOD;
}

static int check_operands(const struct args *a)
{
    const struct command *c = a->command;
    const char *missing = c->operand && !(a->operand && a->operand[0]) ? c->operand
                          : c->both && !(a->second && a->second[0])    ? c->second
                                                                       : NULL;
    if (!missing)
        return END_GOOD;
    out_say(c->name, "%s is missing: stoker %s %s%s%s; `stoker %s --help` shows examples", missing, c->name, c->operand,
            c->both ? " " : "", c->both ? c->second : "", c->name);
    return END_USAGE;
}

int args_parse(struct args *a, const struct command *c, int argc, char **argv)
{
    *a = (struct args){.command = c};
    a->sources = calloc((size_t)argc + 1, sizeof *a->sources);
    a->fields = calloc((size_t)argc + 1, sizeof *a->fields);
    if (!a->sources || !a->fields)
        return END_MACHINE;
    if (c->defaults)
        c->defaults(a);
    int only_operands = 0;
    for (int i = 0; i < argc; i++) {
        int end;
        if (!only_operands && strcmp(argv[i], "--") == 0) {
            only_operands = 1;
            continue;
        }
        if (!only_operands && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0))
            return -1;
        if (!only_operands && argv[i][0] == '-' && argv[i][1])
            end = take_option(a, argc, argv, &i);
        else
            end = take_operand(a, argv[i]);
        if (end != END_GOOD)
            return end;
    }
    if (take_sources(a))
        return END_MACHINE;
    if (take_fields(a))
        return END_USAGE;
    if (a->o.max_bad <= 0 && args_given(a, "max-bad"))
        a->o.max_bad = -1; /* none; zero would be the default */
    return check_operands(a);
}

void args_done(struct args *a)
{
    free(a->class_text);
    free(a->class_names);
    free(a->sources);
    free(a->fields);
    free(a->joined);
    free(a->mix);
    a->class_text = NULL;
    a->class_names = a->sources = a->fields = NULL;
    a->joined = NULL;
    a->mix = NULL;
}

int args_open_source(const struct args *a, stk_source **s, stk_error *e)
{
    const stk_options *o = &a->o;
    const stk_source_options source = {
        .source = o->source,
        .sources = o->sources,
        .n_sources = o->n_sources,
        .classes = o->classes,
        .n_classes = o->n_classes,
        .index_beside = o->index_beside,
        .max_bytes = o->max_bytes,
        .fields = o->fields,
        .source_fields = o->source_fields,
        .no_exif = o->no_exif,
        .max_pixels = o->max_pixels,
        .threads = o->threads,
        .memory = o->memory,
        .cache_dir = o->cache_dir,
    };
    return stk_source_open(s, &source, e);
}

stk_scan_options args_scan(const struct args *a)
{
    return (stk_scan_options){
        .take = a->o.take, .threads = a->o.threads, .memory = a->o.memory, .cpu = a->o.cpu, .runs = 1};
}
