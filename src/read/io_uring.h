/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_uring.h -- opening and reading through a queue of the kernel's, many at once, by one thread.
 *
 *     uring_open(&u, 128, memory, bytes, &e)
 *     uring_read(u, fd, to, n, at, token);       queued
 *     n = uring_wait(u, events, 64);             all that is queued goes out
 */
#ifndef IO_URING_H
#define IO_URING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

struct uring;

struct uring_event {
    uint64_t token;
    int result; /* a descriptor or a number of bytes; -errno */
};

/* At most `entries` may be queued or under way at a time. Reads go into memory, which is registered with the kernel
 * where that is allowed. An error when there is no io_uring here. */
int uring_open(struct uring **out, unsigned entries, void *memory, size_t bytes, stk_error *e);
void uring_close(struct uring *u); /* nothing may be under way; also NULL */

/* Queued until the next wait; path is used up to then. */
void uring_openat(struct uring *u, int dir, const char *path, int flags, uint64_t token);
void uring_read(struct uring *u, int fd, void *to, size_t n, int64_t at, uint64_t token);

/* Waits for at least one event; how many there were, or -errno. */
int uring_wait(struct uring *u, struct uring_event *events, int max);

#endif
