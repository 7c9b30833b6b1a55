/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.c -- writes a file under a temporary name, then renames it.
 *
 * Bytes are collected in a block. A full block is hashed and written at once. sync_file_range() then starts writing it
 * to disk, so that the final fsync() has little left to do.
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
        return failed(o, errno, "cannot create", e);
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
        return failed(o, why, "cannot write", e);
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

/* Computes the checksum of the first `bytes` bytes of a file. */
static int sum_up(int fd, uint8_t *block, int64_t bytes, struct outfile *o, stk_error *e)
{
    o->sum = 0;
    for (o->bytes = 0; o->bytes < bytes;) {
        const int64_t left = bytes - o->bytes;
        const size_t n = left < OUTFILE_BLOCK ? (size_t)left : OUTFILE_BLOCK;
        if (!file_read_at(fd, block, n, o->bytes))
            return failed(o, EIO, "cannot read", e);
        o->sum = hash_bytes(block, n, o->sum);
        o->bytes += (int64_t)n;
    }
    return STK_OK;
}

int outfile_replace_head(struct outfile *o, const void *bytes, size_t n, stk_error *e)
{
    const int rc = flush(o, e);
    const int why = rc == STK_OK ? file_write_at(o->fd, bytes, n, 0) : 0;
    if (rc != STK_OK || why)
        return rc != STK_OK ? rc : failed(o, why, "cannot write", e);
    return sum_up(o->fd, o->block, o->bytes, o, e);
}

int outfile_finish(struct outfile *o, stk_error *e)
{
    const int rc = flush(o, e);
    if (rc != STK_OK)
        return rc;
    if (fsync(o->fd))
        return failed(o, errno, "cannot sync to disk", e);
    o->open = 0;
    const int closed = close(o->fd);
    if (closed || renameat(o->dir, o->temp, o->dir, o->name)) {
        const int why = errno;
        unlinkat(o->dir, o->temp, 0);
        return failed(o, why, closed ? "cannot write" : "cannot rename", e);
    }
    fsync(o->dir); /* some file systems cannot sync folders; they write them later by themselves */
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
    /* O_NONBLOCK: it might be a FIFO. */
    const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int rc = STK_OK;
    if (fd < 0 || fstat(fd, &st))
        rc = failed(&o, errno, "cannot open", e);
    else if (!S_ISREG(st.st_mode))
        rc = error_set(e, STK_EIO, "verify", "is not a regular file");
    else
        rc = sum_up(fd, block, st.st_size, &o, e);
    if (fd >= 0)
        close(fd);
    free(block);
    *bytes = o.bytes;
    *sum = o.sum;
    return rc;
}
