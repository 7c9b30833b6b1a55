/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h -- the records of a text file, one after the other, through a small window.
 */
#ifndef LINES_H
#define LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct lines {
    int fd; /* the caller's */
    struct buf window;
    size_t pos;     /* of the next record in window */
    int64_t offset; /* in the file, of the end of window */
    bool end;       /* nothing follows window */
    int64_t line;   /* of the record that was given last; 1 is the first */
    int64_t next_line;
    const char *problem; /* words, after -1 */
    int os_error;        /* when the system is to blame */
};

/* To the first record again; the first time, too. */
void lines_rewind(struct lines *l);
/* 1 and a record without its line end; it may be written to and is valid until the next call. 0 at the end, -1 on
 * failure. With a delimiter, line ends within quoted cells do not end a record. */
int lines_next(struct lines *l, char delimiter, struct slice *out);
void lines_done(struct lines *l);

#endif
