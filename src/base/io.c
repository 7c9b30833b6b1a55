/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.c -- reading files with open, fstat, pread, close: the reference for every other reader.
 *
 * One byte more than the file's size is asked for, so that a file which has grown since fstat is
 * noticed without a further call. Who wants to know whether the file was in the page cache has it read without
 * waiting first: a warm file is done with that one call, too.
 */
#include "base/io.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"

ssize_t io_pread(int fd, void *to, size_t n, int64_t at)
{
    size_t got = 0;
    while (got < n) {
        const ssize_t k = pread(fd, (uint8_t *)to + got, n - got, (off_t)(at + (int64_t)got));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        if (k == 0)
            break;
        got += (size_t)k;
    }
    return (ssize_t)got;
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

/* What of n bytes is there without waiting. */
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
    while (got < size) { /* the usual file is done after one call */
        const ssize_t k = pread(fd, out->data + got, size + 1 - got, (off_t)got);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return error_os(e, errno, "read", "cannot be read at byte %zu", got);
        if (k == 0)
            break;
        got += (size_t)k;
    }
    if (got < size)
        return error_set(e, STK_EIO, "read", "changed while being read: was %zu bytes, %zu could be read", size, got);
    if (got > size)
        return error_set(e, STK_EIO, "read", "changed while being read: was %zu bytes, and has grown", size);
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
    int rc = fstat(fd, &st) == 0 ? check(&st, max_bytes, size, e) : error_os(e, errno, "read", "cannot be looked at");
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
