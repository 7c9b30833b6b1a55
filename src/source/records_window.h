/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_window.h -- the part of a shard that is looked at while it is scanned.
 */
#ifndef RECORDS_WINDOW_H
#define RECORDS_WINDOW_H

#include "base/buf.h"
#include "source/records.h"

struct record_window {
    int fd;
    struct buf buf;
    int64_t at;            /* of its first byte in the shard */
    size_t want;           /* how much is read at a time: less where much is skipped */
    int os_error;          /* of the last read that failed; 0 */
    struct stream *stream; /* NULL: the file is looked at as it is */
    char broken[128];      /* why the stream ended before its end; empty: it did not */
    stk_error refused;     /* why it cannot be unpacked, through no fault of its own */
};

/* w is zeroed; c is for streams. */
int window_init(struct record_window *w, int fd, enum stream_form form, struct stream_cache *c, stk_error *e);
void window_done(struct record_window *w);
int64_t window_end(const struct record_window *w);        /* behind what was looked at last */
const char *window_broken(const struct record_window *w); /* NULL: it is not */

#endif
