/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.h -- reads files with pread into the caller's memory.
 *
 * A path is relative to dir (an open folder, or AT_FDCWD) unless it is absolute. No function blocks on a FIFO. No file
 * is mapped: if a file is truncated while it is read, that is an error, not a signal.
 */
#ifndef IO_H
#define IO_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "stoker.h"

enum { IO_SLACK = 64 }; /* zero bytes after the content: decoders may read past its end */

/* O_NONBLOCK lets the open of a FIFO return; it does not affect regular files. */
enum { IO_OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

/* Opens a file with these flags. Tries again if a signal interrupts it. -1: see errno. */
int io_open(int dir, const char *path);

/* Reads the whole file into out, reusing its memory, followed by IO_SLACK zeros. Sets *size to the file's size as soon
 * as it is known, also on failure. cold may be NULL; *cold: the file was not, or not all, in the page cache. */
int io_read(int dir, const char *path, int64_t max_bytes, struct buf *out, int64_t *size, bool *cold, stk_error *e);

/* Reads up to n bytes from the start of a regular file and returns how many. -1: not a regular file, or unreadable. */
ssize_t io_peek(int dir, const char *path, uint8_t *to, size_t n);

/* Reads n bytes from offset `at`, fewer only at the end of the file. -1: see errno. */
ssize_t io_pread(int fd, void *to, size_t n, int64_t at);
/* Reads n bytes if all are in the page cache; false: not all are. */
bool io_pread_warm(int fd, void *to, size_t n, int64_t at);

#endif
