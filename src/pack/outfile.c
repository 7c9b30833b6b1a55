/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.c -- a file that is whole or not there.
 *
 * Bytes gather in a block, which is what the checksum goes over and what is written at a time. Writing out begins at
 * once where the system can be asked for that, so that little is left to wait for at the end.
 */
#include "pack/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"

static int failed(const struct outfile *o, int why, const char *what, stk_error *e)
{
    const int rc = error_os(e, why, "write", "%s", what);
    error_at(e, o->name, -1);
    return rc;
}

int outfile_open(struct outfile *o, int dir, const char *name, stk_error *e)
{
    if (!o->block && !(o->block = malloc(OUTFILE_BLOCK)))
        return error_nomem(e, "write", OUTFILE_BLOCK);
    o->dir = dir;
    o->used = 0;
    o->bytes = 0;
    o->sum = 0;
    snprintf(o->name, sizeof o->name, "%s", name);
    snprintf(o->temp, sizeof o->temp, ".%s.part", o->name);
    o->fd = openat(dir, o->temp, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (o->fd < 0)
        return failed(o, errno, "cannot make it", e);
    o->open = 1;
    return STK_OK;
}

static int flush(struct outfile *o, stk_error *e)
{
    if (o->used == 0)
        return STK_OK;
    const int64_t at = o->bytes - (int64_t)o->used;
    o->sum = hash_bytes(o->block, o->used, o->sum);
    const int why = file_write_at(o->fd, o->block, o->used, at);
    if (why)
        return failed(o, why, "cannot write it", e);
#ifdef SYNC_FILE_RANGE_WRITE
    sync_file_range(o->fd, at, (off_t)o->used, SYNC_FILE_RANGE_WRITE);
#endif
    o->used = 0;
    return STK_OK;
}

int outfile_add(struct outfile *o, const void *bytes, size_t n, stk_error *e)
{
    const uint8_t *p = bytes;
    while (n > 0) {
        const size_t room = OUTFILE_BLOCK - o->used, k = n < room ? n : room;
        memcpy(o->block + o->used, p, k);
        o->used += k;
        o->bytes += (int64_t)k;
        p += k;
        n -= k;
        const int rc = o->used == OUTFILE_BLOCK ? flush(o, e) : STK_OK;
        if (rc != STK_OK)
            return rc;
    }
    return STK_OK;
}

static int sum_up(int fd, uint8_t *block, struct outfile *o, stk_error *e)
{
    for (;;) {
        size_t n = 0;
        while (n < OUTFILE_BLOCK) {
            const ssize_t k = pread(fd, block + n, OUTFILE_BLOCK - n, (off_t)(o->bytes + (int64_t)n));
            if (k < 0 && errno == EINTR)
                continue;
            if (k < 0)
                return failed(o, errno, "cannot read it", e);
            if (k == 0)
                break;
            n += (size_t)k;
        }
        o->sum = n ? hash_bytes(block, n, o->sum) : o->sum;
        o->bytes += (int64_t)n;
        if (n < OUTFILE_BLOCK)
            return STK_OK;
    }
}

int outfile_begin_again(struct outfile *o, const void *bytes, size_t n, stk_error *e)
{
    const int rc = flush(o, e);
    const int why = rc == STK_OK ? file_write_at(o->fd, bytes, n, 0) : 0;
    if (rc != STK_OK || why)
        return rc != STK_OK ? rc : failed(o, why, "cannot write it", e);
    o->bytes = 0;
    o->sum = 0;
    return sum_up(o->fd, o->block, o, e);
}

int outfile_finish(struct outfile *o, stk_error *e)
{
    const int rc = flush(o, e);
    if (rc != STK_OK)
        return rc;
    if (fsync(o->fd))
        return failed(o, errno, "cannot bring it to disk", e);
    o->open = 0;
    const int closed = close(o->fd);
    if (closed || renameat(o->dir, o->temp, o->dir, o->name)) {
        const int why = errno;
        unlinkat(o->dir, o->temp, 0);
        return failed(o, why, closed ? "cannot write it" : "cannot give it its name", e);
    }
    fsync(o->dir); /* where folders cannot be synced, the system sees to it in its own time */
    return STK_OK;
}

void outfile_done(struct outfile *o)
{
    if (o->open) {
        close(o->fd);
        unlinkat(o->dir, o->temp, 0);
    }
    free(o->block);
    *o = (struct outfile){0};
}

int outfile_write(int dir, const char *name, const void *bytes, size_t n, stk_error *e)
{
    struct outfile o = {0};
    int rc = outfile_open(&o, dir, name, e);
    if (rc == STK_OK)
        rc = outfile_add(&o, bytes, n, e);
    if (rc == STK_OK)
        rc = outfile_finish(&o, e);
    outfile_done(&o);
    return rc;
}

int outfile_check(int dir, const char *name, int64_t *bytes, uint64_t *sum, stk_error *e)
{
    struct outfile o = {.dir = dir};
    snprintf(o.name, sizeof o.name, "%s", name);
    uint8_t *block = malloc(OUTFILE_BLOCK);
    if (!block)
        return error_nomem(e, "verify", OUTFILE_BLOCK);
    struct stat st;
    const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); /* it might be a FIFO */
    int rc = STK_OK;
    if (fd < 0 || fstat(fd, &st))
        rc = failed(&o, errno, "cannot open it", e);
    else if (!S_ISREG(st.st_mode))
        rc = error_set(e, STK_EIO, "verify", "is no file, but something else of that name");
    else
        rc = sum_up(fd, block, &o, e);
    if (fd >= 0)
        close(fd);
    free(block);
    *bytes = o.bytes;
    *sum = o.sum;
    return rc;
}
