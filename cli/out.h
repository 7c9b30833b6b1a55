/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out.h -- output of every command: readable numbers, messages, exit statuses.
 *
 * Results go to stdout; messages, warnings and progress go to stderr.
 */
#ifndef OUT_H
#define OUT_H

#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "stoker.h"

/* Exit statuses. */
enum {
    END_GOOD = 0,
    END_BAD = 1,     /* bad samples */
    END_USAGE = 2,   /* wrong usage */
    END_MACHINE = 3, /* cannot read, cannot write, no memory */
    END_INTERRUPTED = 130
};

/* Text short enough to be passed by value: printf("%s", out_count(n).s). */
struct out_text {
    char s[48];
};

struct out_text out_count(int64_t n);                                   /* 12,345 */
struct out_text out_some(int64_t n, const char *one, const char *many); /* 1 sample, 24 samples */
struct out_text out_bytes(int64_t n);                                   /* 100.7 MiB */
struct out_text out_seconds(double s);                                  /* 0.61 s, 12 ms, 3 min 07 s */
struct out_text out_real(double v, int decimals);                       /* 1,574.2 */
struct out_text out_share(double part, double whole);                   /* 73 % */

/* Prints a name on one line: control characters as \xNN, all else unchanged. */
void out_name(FILE *f, const char *name);

/* Appends words to a text that has room for n bytes. Returns 0, or -1 if they do not fit. */
int out_add(char *to, size_t n, const char *words);
/* The same for a word of a command, quoted for the shell if it must be. -1: also if it has control characters. */
int out_add_quoted(char *to, size_t n, const char *word);

enum out_paint { PAINT_PLAIN, PAINT_BOLD, PAINT_DIM, PAINT_GOOD, PAINT_BAD };
/* Sets the colour of the following text. Does nothing if f is not a terminal or NO_COLOR is set. */
void out_paint(FILE *f, enum out_paint p);
int out_is_terminal(FILE *f);
int out_width(FILE *f);  /* columns of the terminal; 100 if it is not a terminal */
int out_height(FILE *f); /* lines; 0 if it is not a terminal */

/* Prints "stoker ls: message" on stderr. */
void out_say(const char *command, const char *format, ...);
/* Copies a message of the library, with the names of its options as one types them here. */
void out_typed(char *to, size_t n, const char *words);
/* Prints what failed, with advice, and returns the exit status. */
int out_fail(const char *command, int code, const stk_error *e);
/* Writes the member "error" of a command's own document: the error of out_fail(), or null. */
void out_json_error(struct json *j);
/* With --json, a failure also needs a document: prints one unless out_json_error() did. */
void out_json_failure(int end);
/* Flushes stdout. Returns the exit status: `end`, or END_MACHINE if the result could not be written. */
int out_close(const char *command, int end);

/* Prints the first few log lines of the library on stderr. */
struct out_log {
    const char *command;
    int64_t n;
    uint64_t seen[10]; /* hashes of the lines: a sample that is bad in every epoch is reported once */
    stk_log_hook hook;
};
const stk_log_hook *out_log_init(struct out_log *l, const char *command);

double out_clock(void); /* seconds, monotonic */

#endif
