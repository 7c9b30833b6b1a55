/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.c -- reads files with open, fstat, pread and close. Every other reader must return the same bytes.
 *
 * A read asks for one byte more than the file's size, which shows without another call whether the file has grown since
 * fstat. To learn whether a file is in the page cache, it is read with RWF_NOWAIT first; if it is, that one call is
 * enough.
 */
#include "base/io.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"

/* Reads until *got is at least `enough`, at most `most`, or the file ends. 0, or -1: see errno. */
static int read_on(int fd, uint8_t *to, size_t enough, size_t most, int64_t at, size_t *got)
{
    while (*got < enough) {
        const ssize_t k = pread(fd, to + *got, most - *got, (off_t)(at + (int64_t)*got));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        if (k == 0)
            break;
        *got += (size_t)k;
    }
    return 0;
}

ssize_t io_pread(int fd, void *to, size_t n, int64_t at)
{
    size_t got = 0;
    return read_on(fd, to, n, n, at, &got) ? -1 : (ssize_t)got;
}

static int not_a_file(mode_t mode, stk_error *e)
{
    return error_set(e, STK_EDATA, "read", "is %s, not a file",
                     S_ISDIR(mode)    ? "a folder"
                     : S_ISFIFO(mode) ? "a pipe"
                     : S_ISSOCK(mode) ? "a socket"
                                      : "a device");
}

static int check(const struct stat *st, int64_t max_bytes, int64_t *size, stk_error *e)
{
    if (!S_ISREG(st->st_mode))
        return not_a_file(st->st_mode, e);
    *size = (int64_t)st->st_size;
    if (st->st_size == 0)
        return error_set(e, STK_EDATA, "read", "is empty");
    if (st->st_size > max_bytes)
        return error_set(e, STK_EDATA, "read", "has %lld bytes, more than the %lld that max_bytes allows",
                         (long long)st->st_size, (long long)max_bytes);
    return STK_OK;
}

/* Reads what is in the page cache of n bytes. */
static size_t read_warm(int fd, void *to, size_t n, int64_t at)
{
    const struct iovec all = {.iov_base = to, .iov_len = n};
    const ssize_t k = preadv2(fd, &all, 1, (off_t)at, RWF_NOWAIT);
    return k < 0 ? 0 : (size_t)k;
}

bool io_pread_warm(int fd, void *to, size_t n, int64_t at)
{
    return read_warm(fd, to, n, at) == n;
}

static int fill(int fd, size_t size, struct buf *out, bool *cold, stk_error *e)
{
    out->len = 0;
    if (size > SIZE_MAX / 2 || buf_reserve(out, size + IO_SLACK))
        return error_nomem(e, "read", size);
    size_t got = cold ? read_warm(fd, out->data, size + 1, 0) : 0;
    if (cold)
        *cold = got < size;
    if (read_on(fd, out->data, size, size + 1, 0, &got))
        return error_os(e, errno, "read", "cannot be read at byte %zu", got);
    if (got < size)
        return error_set(e, STK_EIO, "read", "was truncated while it was read: it had %zu bytes, now %zu", size, got);
    if (got > size)
        return error_set(e, STK_EIO, "read", "grew while it was read: it had %zu bytes", size);
    out->len = size;
    memset(out->data + size, 0, IO_SLACK);
    return STK_OK;
}

int io_open(int dir, const char *path)
{
    int fd;
    do
        fd = openat(dir, path, IO_OPEN_FLAGS);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int io_read(int dir, const char *path, int64_t max_bytes, struct buf *out, int64_t *size, bool *cold, stk_error *e)
{
    if (cold)
        *cold = false;
    const int fd = io_open(dir, path);
    if (fd < 0)
        return error_os(e, errno, "read", "cannot be opened");
    struct stat st;
    int rc =
        fstat(fd, &st) == 0 ? check(&st, max_bytes, size, e) : error_os(e, errno, "read", "its size cannot be read");
    if (rc == STK_OK)
        rc = fill(fd, (size_t)st.st_size, out, cold, e);
    close(fd);
    return rc;
}

ssize_t io_peek(int dir, const char *path, uint8_t *to, size_t n)
{
    const int fd = io_open(dir, path);
    if (fd < 0)
        return -1;
    struct stat st;
    const bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    const ssize_t got = regular ? io_pread(fd, to, n, 0) : -1;
    close(fd);
    return got;
}
