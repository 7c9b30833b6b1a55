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
    int64_t at;   /* of its first byte in the shard */
    size_t want;  /* how much is read at a time: less where much is skipped */
    int os_error; /* of the last read that failed; 0 */
};

void window_init(struct record_window *w, int fd); /* buf is kept */
void window_done(struct record_window *w);

#endif
