/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_uring.h -- opens and reads many files at once, from one thread, through a queue of the kernel.
 *
 *     uring_open(&u, 128, memory, bytes, &e)
 *     uring_read(u, fd, to, n, at, token);       adds to the queue
 *     n = uring_wait(u, events, 64);             submits the queue and waits
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
    int result; /* a descriptor or a count of bytes; or -errno */
};

/* At most `entries` may be queued or under way at a time. Reads must go into this memory, which is registered with the
 * kernel if that is allowed. Fails if io_uring is not available. */
int uring_open(struct uring **out, unsigned entries, void *memory, size_t bytes, stk_error *e);
void uring_close(struct uring *u); /* nothing may be under way. Accepts NULL. */

/* Queued until the next uring_wait; path must stay valid until then. */
void uring_openat(struct uring *u, int dir, const char *path, int flags, uint64_t token);
void uring_read(struct uring *u, int fd, void *to, size_t n, int64_t at, uint64_t token);

/* Waits for at least one event. Returns how many there were, or -errno. */
int uring_wait(struct uring *u, struct uring_event *events, int max);

#endif
