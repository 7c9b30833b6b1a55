/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h -- commands, their options, and what was typed.
 *
 * An option is a row in a table: its name, what kind of value it takes and where in struct args the
 * value goes. A command has a table of its own and takes the common one as well; where both have a
 * name, its own counts. The common options without a use for a command are taken with a warning, so
 * that one set of options may stand before every command of a script.
 */
#ifndef ARGS_H
#define ARGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "stoker.h"

struct args_synth {
    int64_t samples;
    int classes, size, quality;
    int format; /* stk_format; 0: jpeg, -1: mixed */
    uint64_t seed;
    int threads, force;
};

struct args_pack {
    stk_to to;
    stk_as as;
    int quality, baseline, force, dry_run, measure;
    int64_t shard_size;
    const char *resize;
    const char *field; /* of cat */
};

/* Everything that can be typed; zero is the default unless the command says otherwise. */
struct args {
    const struct command *command;
    const char *operand; /* SRC or OUT */
    const char *second;  /* of commands that take two */
    const char *kind;
    stk_options o;
    int64_t epochs, stop_after;
    const char *state;
    int each_sample, json, all;
    const char *output, *quarantine;
    int columns, rows;
    int64_t index, epoch;
    struct args_synth synth;
    struct args_pack pack;
    char *class_text; /* what o.classes points into */
    const char **class_names;
    const char **sources; /* all operands, when they are SRC */
    int n_sources;
    const char **fields; /* as often as they were given */
    int n_fields;
    char *joined; /* their names in one text, when there are several: `operand` then */
    double *mix;
    unsigned char given[96]; /* the option's row in the table was typed */
};

enum args_kind {
    ARGS_ON,      /* a flag: int = 1 */
    ARGS_OFF,     /* a flag: int = 0 */
    ARGS_INT,     /* int, min to max */
    ARGS_INT64,   /* int64_t, min to max */
    ARGS_UINT64,  /* uint64_t */
    ARGS_SIZE,    /* int64_t of bytes: 512M, 2GiB */
    ARGS_SHARE,   /* double: 0.05 or 5% */
    ARGS_TEXT,    /* const char * */
    ARGS_FIELDS,  /* the same; as often as there are sources: one for each */
    ARGS_WORD,    /* one of words: int or an enum */
    ARGS_GRID,    /* 8x5: int columns, int rows */
    ARGS_CLASSES, /* a,b,c or @FILE */
    ARGS_WEIGHTS  /* 0.7,0.3 */
};

struct args_word {
    const char *word;
    int value;
};

/* What an option is for; a command names the groups that it has a use for. */
enum {
    FOR_SOURCE = 1, /* which samples, with what means */
    FOR_PIXELS = 2, /* what happens to them: decides the bits that come out */
    FOR_LOADER = 4, /* batches, epochs, ranks */
    FOR_STATE = 8,
    FOR_EACH = 16,
    FOR_JSON = 32,
    FOR_FORM = 64, /* type and layout: decide the bits, too */
    FOR_ERRORS = 128
};

struct args_option {
    const char *name;
    char letter;
    enum args_kind kind;
    unsigned group;
    size_t at; /* offset in struct args */
    int64_t min, max;
    const struct args_word *words;
    const char *value; /* what the help calls it */
    const char *help;
    const char *standard; /* the default in words, where zero is not it */
};

struct command {
    const char *name, *operand;
    const char *second;  /* another operand, which may be missing; NULL: none */
    int both;            /* it may not */
    const char *summary; /* one line */
    const char *about;   /* a paragraph */
    int may_be_bad;      /* ends with 1 for bad samples */
    unsigned groups;
    const struct args_option *options; /* its own; ended by a name of NULL */
    const char *const *examples;       /* line, words, line, words, ..., NULL */
    void (*defaults)(struct args *a);  /* NULL: zeros */
    int (*run)(struct args *a);
};

extern const struct args_option args_common[];
extern const struct command cmd_ls, cmd_bench, cmd_verify, cmd_show, cmd_checksum, cmd_synth, cmd_info, cmd_cache,
    cmd_pack, cmd_unpack, cmd_cat, cmd_index;

/* Fills *a from what was typed after the command; END_GOOD, END_USAGE with words on stderr, or -1
 * when the help was asked for. args_done gives back what it holds in any case. */
int args_parse(struct args *a, const struct command *c, int argc, char **argv);
void args_done(struct args *a);

/* The i-th option of a command, its own first, then the common ones; NULL: no more. */
const struct args_option *args_option_at(const struct command *c, int i);
int args_given(const struct args *a, const char *name);
/* The value of an option as it would be typed; also for defaults. */
void args_show(const struct args *a, const struct args_option *o, char *buf, size_t n);
/* Sets an option from text, as if typed, but not as given; END_GOOD or END_USAGE. */
int args_set(struct args *a, const struct args_option *o, const char *text);

/* help.c */
void help_overview(const struct command *const *commands, FILE *f);
void help_command(const struct command *c, FILE *f);

#endif
