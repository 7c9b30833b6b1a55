/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.h -- reading files: positioned reads into the caller's memory, one descriptor at a time.
 *
 * A path is relative to dir (an open folder, or AT_FDCWD) unless it is absolute. Nothing here
 * blocks on a FIFO, and nothing is mapped: a file that is cut under us is an error, not a signal.
 */
#ifndef IO_H
#define IO_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "stoker.h"

enum { IO_SLACK = 64 }; /* zero bytes behind the content: decoders may read past its end */

/* O_NONBLOCK lets the open of a FIFO return; regular files do not care. */
enum { IO_OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

/* Opens a file with these flags; a signal (a profiler's) that interrupts a slow file system is no failure. -1: errno.
 */
int io_open(int dir, const char *path);

/* The whole file into out (its memory is reused), out->len bytes long and followed by IO_SLACK
 * zeros. What the file says of its size goes to *size when that is known. *cold, unless NULL: whether storage had
 * to be waited for, or may have been. */
int io_read(int dir, const char *path, int64_t max_bytes, struct buf *out, int64_t *size, bool *cold, stk_error *e);

/* The first n bytes of a regular file; how many there were, -1 when it cannot be read or is none. */
ssize_t io_peek(int dir, const char *path, uint8_t *to, size_t n);

/* n bytes from offset at, less only where the file ends; -1 with errno. */
ssize_t io_pread(int fd, void *to, size_t n, int64_t at);
/* Whether all of them are there without waiting, and come. */
bool io_pread_warm(int fd, void *to, size_t n, int64_t at);

#endif
