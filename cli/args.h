/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h -- commands, their options, and the parsed command line.
 *
 * An option is a row in a table: its name, the kind of its value, and where in struct args the value goes. A command
 * has its own table, and accepts the rows of the common table that have an effect on it. If both tables have a name,
 * the command's own row wins.
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

/* Every option and operand. Zero is the default unless the command sets another. */
struct args {
    const struct command *command;
    const char *operand; /* SRC or OUT */
    const char *second;  /* of commands with two operands */
    const char *kind;
    stk_options o;
    int64_t epochs, stop_after;
    const char *state;
    int each_sample, json, all;
    const char *output, *quarantine;
    int columns, rows;
    int64_t index, epoch;
    int draws, each; /* of show */
    int64_t need;    /* of doctor: samples/s */
    int seconds;
    struct args_synth synth;
    struct args_pack pack;
    char *class_text; /* o.classes points into it */
    const char **class_names;
    const char **sources; /* all operands, if they are SRC */
    int n_sources;
    const char **fields; /* one for each --fields */
    int n_fields;
    char *joined; /* the names of several sources in one string, which `operand` points to */
    double *mix;
    unsigned char given[96]; /* 1 for each row of the table that was typed */
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
    ARGS_FIELDS,  /* the same; may be repeated, once for each source */
    ARGS_WORD,    /* one of words: int or an enum */
    ARGS_GRID,    /* 8x5: int columns, int rows */
    ARGS_CLASSES, /* a,b,c or @FILE */
    ARGS_WEIGHTS  /* 0.7,0.3 */
};

struct args_word {
    const char *word;
    int value;
};

/* Groups of options. A command names the groups that it accepts, and the options in them that it does not. */
enum {
    FOR_SOURCE = 1, /* which samples, and with which resources */
    FOR_PIXELS = 2, /* what happens to them: changes the output bits */
    FOR_LOADER = 4, /* batches, epochs, ranks */
    FOR_STATE = 8,
    FOR_EACH = 16,
    FOR_JSON = 32,
    FOR_FORM = 64, /* type and layout: change the output bits, too */
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
    const char *value; /* its name in the help */
    const char *help;
    const char *standard; /* the default as text, where zero does not show it */
};

struct command {
    const char *name, *operand;
    const char *second;  /* a second operand, optional unless `both`; NULL: none */
    int both;            /* the second operand is required */
    const char *summary; /* one line */
    const char *about;   /* a paragraph */
    const char *ends_0;  /* when the exit status is 0; NULL: on success */
    const char *ends_1;  /* when it is 1; NULL: never */
    unsigned groups;
    const char *without[8];            /* options of these groups that have no effect; ended by NULL */
    const struct args_option *options; /* its own; the last has the name NULL */
    const char *const *examples;       /* command, explanation, command, explanation, ..., NULL */
    void (*defaults)(struct args *a);  /* NULL: zeros */
    int (*run)(struct args *a);
    /* Sees the words before they are parsed. Returns an END_* if it did all the work, else -1. NULL: none. */
    int (*instead)(int argc, char **argv);
};

extern const struct args_option args_common[];
extern const struct command cmd_ls, cmd_bench, cmd_verify, cmd_show, cmd_checksum, cmd_synth, cmd_info, cmd_cache,
    cmd_pack, cmd_unpack, cmd_cat, cmd_index, cmd_doctor;

/* Fills *a from the words after the command. Returns END_GOOD, END_USAGE after a message on stderr,
 * END_MACHINE, or -1 if help was requested. The caller calls args_done() in every case. */
int args_parse(struct args *a, const struct command *c, int argc, char **argv);
void args_done(struct args *a);

/* The i-th option that a command accepts, its own first, then the common ones; NULL: no more. */
const struct args_option *args_option_at(const struct command *c, int i);
int args_given(const struct args *a, const char *name);
/* The value of an option as one would type it; also for defaults. */
void args_show(const struct args *a, const struct args_option *o, char *buf, size_t n);
/* Sets an option from text, but does not mark it as given. Returns an END_*. */
int args_set(struct args *a, const struct args_option *o, const char *text);
/* Opens the source that the options describe. */
int args_open_source(const struct args *a, stk_source **s, stk_error *e);
/* The options of a scan that the command line sets. */
stk_scan_options args_scan(const struct args *a);

/* help.c */
void help_overview(const struct command *const *commands, FILE *f);
void help_command(const struct command *c, FILE *f);

#endif
