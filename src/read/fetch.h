/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.h -- reads many files into memory at once, from one thread, through io_uring.
 *
 *     fetch_open(&f, most, memory, bytes, &e)
 *     fetch_file(f, &want);                     up to `most` at a time
 *     fetch_wait(f);                            something has happened to at least one of them
 *     while (fetch_next(f, &event))
 *         if (event.kind == FETCH_OPENED)       the file is open, and its size is known
 *             fetch_read(f, &event, memory for event.n bytes, ranges);
 *         else                                  event.bytes, or NULL
 *
 * Whatever goes wrong (the file is missing, empty, cut or too large, no room, a disk error) ends without bytes. The
 * worker that needs the file then reads it with pread, finds the same problem and reports it.
 */
#ifndef FETCH_H
#define FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sample.h"

enum { FETCH_ALIGN = 4096 }; /* of memory, offsets and lengths in reads that bypass the page cache */

struct fetch;

struct fetch_want {
    int64_t token;
    int dir;
    const char *path;  /* copied */
    int64_t max_bytes; /* a larger file is not read */
    bool direct;       /* bypass the page cache if the file system can do that */
};

enum fetch_kind { FETCH_OPENED, FETCH_DONE };

struct fetch_event {
    enum fetch_kind kind;
    int64_t token;
    int flight;           /* for fetch_read */
    bool by_range;        /* opened: ranges of the file may be read instead of all of it */
    const uint8_t *bytes; /* done: followed by IO_SLACK zeros; NULL: failed */
    size_t size;          /* of the file or the extent */
    size_t n;             /* opened: the memory that reading it takes */
    bool warm;            /* done: the bytes were in the page cache */
};

/* At most `most` files at a time; what fetch_read receives is part of memory. */
int fetch_open(struct fetch **out, int most, uint8_t *memory, size_t memory_bytes, stk_error *e);
void fetch_close(struct fetch *f); /* waits for everything under way; accepts NULL */

/* Starts to open and read a file. fetch_under_way() must be below `most`. */
void fetch_file(struct fetch *f, const struct fetch_want *w);
/* The same for an extent of a file, which may be open. Reads that bypass the page cache read whole blocks. */
void fetch_extent(struct fetch *f, int64_t token, const struct extent *x);

/* Waits for an event. false: io_uring fails and cannot be used any more. All files under way then end without bytes. */
bool fetch_wait(struct fetch *f);
/* Returns the next event. false: there are no more. */
bool fetch_next(struct fetch *f, struct fetch_event *out);
/* Answers FETCH_OPENED. to: e->n bytes, aligned to FETCH_ALIGN; NULL: do not read the file. ranges, all within the
 * file: what to read, if e->by_range; none or NULL: all of it. Ranges are read to where they would be in the whole
 * file. */
void fetch_read(struct fetch *f, const struct fetch_event *e, uint8_t *to, const struct ranges *ranges);

int fetch_under_way(const struct fetch *f); /* until fetch_next has returned their last event */
bool fetch_refused(const struct fetch *f);  /* a file system refused to bypass the page cache */

#endif
