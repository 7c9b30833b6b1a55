/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out.h -- what every command says and how it ends: numbers for people, messages, exit codes.
 *
 * Results go to stdout; messages, warnings and progress go to stderr.
 */
#ifndef OUT_H
#define OUT_H

#include <stdint.h>
#include <stdio.h>

#include "json.h"
#include "stoker.h"

/* What a command ends with. */
enum {
    END_GOOD = 0,
    END_BAD = 1,     /* bad samples */
    END_USAGE = 2,   /* the command was called wrongly */
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

/* Bytes as they are, but control characters as \xNN, so that a name stays on its line. */
void out_name(FILE *f, const char *name);

enum out_paint { PAINT_PLAIN, PAINT_BOLD, PAINT_DIM, PAINT_GOOD, PAINT_BAD };
/* Switches the colour of what follows; nothing when f is no terminal or NO_COLOR is set. */
void out_paint(FILE *f, enum out_paint p);
int out_is_terminal(FILE *f);
int out_width(FILE *f);  /* columns of the terminal; 100 when it is none */
int out_height(FILE *f); /* lines; 0 when it is no terminal */

/* "stoker ls: words" to stderr. */
void out_say(const char *command, const char *format, ...);
/* Words of the library, which speak of its options, with the options as they are typed here. */
void out_typed(char *to, size_t n, const char *words);
/* Says what failed, with advice, and returns what to end with. */
int out_fail(const char *command, int code, const stk_error *e);
/* The member "error" of a command's own document: what out_fail said, null when nothing failed. */
void out_json_error(struct json *j);
/* With --json a failure is a document, too: prints one unless out_json_error has done so. */
void out_json_failure(int end);
/* Flushes stdout; a result that could not be written ends with 3. */
int out_close(const char *command, int end);

/* What the library has to say while it runs, on stderr: the first few lines of it. */
struct out_log {
    const char *command;
    int64_t n;
    uint64_t seen[10]; /* hashes of the lines: a sample that is bad in every epoch is told once */
    stk_log_hook hook;
};
const stk_log_hook *out_log_init(struct out_log *l, const char *command);

double out_clock(void); /* seconds, monotonic */

#endif
