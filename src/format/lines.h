/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h -- reads the records of a text file in order, through a small window.
 */
#ifndef LINES_H
#define LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct lines {
    int fd; /* the caller closes it */
    struct buf window;
    size_t pos;     /* of the next record, in window */
    int64_t offset; /* of the end of window, in the file */
    bool end;       /* the file ends with window */
    int64_t line;   /* of the last record; the first is 1 */
    int64_t next_line;
    const char *problem; /* after -1: what is wrong */
    int os_error;        /* its errno, if it has one */
};

/* Moves to the first record. Must be called before the first lines_next(). */
void lines_rewind(struct lines *l);
/* 1 and a record without its line end, writable and valid until the next call. 0 at the end; -1 on failure. With a
 * delimiter, line ends inside quoted cells do not end a record. */
int lines_next(struct lines *l, char delimiter, struct slice *out);
void lines_done(struct lines *l);

#endif
