/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.h -- many files on their way into memory at once, by one thread, through io_uring.
 *
 *     fetch_open(&f, &options, &e)
 *     fetch_file(f, &want);            up to options.most at a time
 *     fetch_wait(f);                   some of them may be done
 *
 * What does not go smoothly (missing, empty, cut, too large, no room, an error of the disk) ends without
 * bytes: whoever needs the file then reads it plainly, which finds the same and has the words for it.
 */
#ifndef FETCH_H
#define FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sample.h"

enum { FETCH_ALIGN = 4096 }; /* of memory, offsets and lengths when the page cache is passed by */

struct fetch;

struct fetch_options {
    int most;        /* at a time */
    uint8_t *memory; /* what room() gives out pieces of */
    size_t memory_bytes;
    void *user;
    /* Memory for n bytes, aligned to FETCH_ALIGN; NULL: none now. */
    uint8_t *(*room)(void *user, int64_t token, size_t n);
    /* Which parts of a file of n bytes, all within it, are enough when it is read past the page cache; none: all of it.
     * They come to where they would be in the whole, with anything in between. May be NULL. */
    void (*parts)(void *user, int64_t token, size_t n, struct parts *out);
    /* The end of it: bytes, with IO_SLACK zeros behind them, or NULL. warm: they were in the page cache. */
    void (*done)(void *user, int64_t token, const uint8_t *bytes, size_t n, bool warm);
};

struct fetch_want {
    int64_t token;
    int dir;
    const char *path;  /* copied */
    int64_t max_bytes; /* a larger file is not read */
    bool direct;       /* past the page cache, where the file system can do that */
};

int fetch_open(struct fetch **out, const struct fetch_options *o, stk_error *e);
void fetch_close(struct fetch *f); /* waits for all that is under way; also NULL */

/* Under way; or done at once, without bytes, when the path is too long. */
void fetch_file(struct fetch *f, const struct fetch_want *w);
/* The same for some bytes of a file, which may be open. Past the page cache, whole blocks are read. */
void fetch_extent(struct fetch *f, int64_t token, const struct extent *x);
/* Waits until something has happened to at least one of them; false when io_uring fails and can be used no more. */
bool fetch_wait(struct fetch *f);

int fetch_under_way(const struct fetch *f);
bool fetch_refused(const struct fetch *f); /* a file system refused to be read past the page cache */

#endif
