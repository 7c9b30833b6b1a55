/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.c -- many files on their way into memory at once.
 *
 *     openat (queued) -> fstat, parts, room -> reads (queued) -> done
 *
 * Opening is queued since the folder and the inode may have to come from the disk, too; fstat then finds them
 * in memory. A read through the page cache is tried first without waiting: it is done when the file is
 * warm, and else has the kernel fetch all of it at once. As in io_pread.c one byte more than
 * the size is asked for, so that a file which has grown is noticed.
 */
#include "read/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "read/io_uring.h"

struct flight {
    int64_t token;
    int fd; /* -1: being opened */
    int dir;
    bool busy, direct, whole, lent; /* whole: all of the file is wanted; lent: the descriptor is the caller's */
    uint8_t *to;
    int64_t at;          /* where in the file */
    size_t before, size; /* bytes that were read for the sake of alignment; bytes wanted */
    struct parts parts;  /* that are read; none: all in one */
    int reads;           /* under way */
    bool failed;         /* one of them has */
    int64_t max_bytes;
    char path[PATH_MAX];
};

struct fetch {
    struct fetch_options o;
    struct uring *ring;
    struct flight *flights;
    int *idle; /* numbers of those that are not under way */
    int n_idle;
    bool refused, broken;
};

static size_t round_up(size_t n)
{
    return (n + FETCH_ALIGN - 1) / FETCH_ALIGN * FETCH_ALIGN;
}

static void end(struct fetch *f, struct flight *l, bool good, bool warm)
{
    if (l->fd >= 0 && !l->lent)
        close(l->fd);
    l->busy = false;
    f->idle[f->n_idle++] = (int)(l - f->flights);
    if (good)
        memset(l->to + l->before + l->size, 0, IO_SLACK);
    f->o.done(f->o.user, l->token, good ? l->to + l->before : NULL, good ? l->size : 0, warm);
}

/* ------------------------------------------------------------------ steps */

/* Which read of which flight an event is of. */
static uint64_t name_of(const struct fetch *f, const struct flight *l, int read)
{
    return (uint64_t)(l - f->flights) * PARTS_MAX + (uint64_t)read;
}

static void queue_open(struct fetch *f, struct flight *l)
{
    const int flags = IO_OPEN_FLAGS | (l->direct ? O_DIRECT : 0);
    uring_openat(f->ring, l->dir, l->path, flags, name_of(f, l, 0));
}

/* Of a whole file one byte more. */
static void queue_read(struct fetch *f, struct flight *l)
{
    const size_t n = l->before + l->size + l->whole;
    l->reads = 1;
    uring_read(f->ring, l->fd, l->to, l->direct ? round_up(n) : n, l->at - (int64_t)l->before, name_of(f, l, 0));
}

/* Whole blocks of each, to where they belong. */
static void queue_parts(struct fetch *f, struct flight *l)
{
    l->reads = l->parts.n;
    for (int i = 0; i < l->parts.n; i++) {
        const size_t from = (size_t)l->parts.at[i].from / FETCH_ALIGN * FETCH_ALIGN;
        const size_t n = round_up((size_t)l->parts.at[i].to) - from;
        uring_read(f->ring, l->fd, l->to + from, n, (int64_t)from, name_of(f, l, i));
    }
}

/* Through the page cache, without waiting: whether all is there. Else the kernel begins to fetch it. */
static bool is_warm(const struct flight *l)
{
    const struct iovec all = {.iov_base = l->to, .iov_len = l->size + l->whole};
    if (preadv2(l->fd, &all, 1, (off_t)l->at, RWF_NOWAIT) == (ssize_t)l->size)
        return true;
    posix_fadvise(l->fd, (off_t)l->at, (off_t)l->size, POSIX_FADV_WILLNEED);
    return false;
}

static void choose_parts(struct fetch *f, struct flight *l)
{
    l->parts.n = 0;
    if (l->direct && l->whole && f->o.parts)
        f->o.parts(f->o.user, l->token, l->size, &l->parts);
}

/* How much a whole file is; false: it is not to be read. */
static bool measure(struct flight *l)
{
    struct stat st;
    if (fstat(l->fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0 || st.st_size > l->max_bytes)
        return false;
    l->size = (size_t)st.st_size;
    return true;
}

static void opened(struct fetch *f, struct flight *l, int fd)
{
    l->fd = fd;
    if (f->broken || (l->whole && !measure(l))) {
        end(f, l, false, false);
        return;
    }
    choose_parts(f, l);
    l->before = l->direct ? (size_t)(l->at % FETCH_ALIGN) : 0;
    l->to = f->o.room(f->o.user, l->token, round_up(l->before + l->size + IO_SLACK));
    if (!l->to)
        end(f, l, false, false);
    else if (l->parts.n > 0)
        queue_parts(f, l);
    else if (!l->direct && is_warm(l))
        end(f, l, true, true);
    else
        queue_read(f, l);
}

/* Whether a read brought what it was to. A range may be read beyond its end, a file not. */
static bool is_enough(const struct flight *l, int read, int64_t got)
{
    const int64_t all = (int64_t)(l->before + l->size);
    if (l->parts.n > 0)
        return got >= (int64_t)(l->parts.at[read].to - l->parts.at[read].from / FETCH_ALIGN * FETCH_ALIGN);
    return l->whole ? got == all : got >= all;
}

static void happened(struct fetch *f, struct flight *l, int read, int result)
{
    if (l->direct && result == -EINVAL)
        f->refused = true;
    if (l->fd >= 0) {
        l->failed = l->failed || !is_enough(l, read, result);
        if (--l->reads == 0)
            end(f, l, !l->failed, false);
    } else if (result >= 0) {
        opened(f, l, result);
    } else if (l->direct && result == -EINVAL) {
        l->direct = false;
        queue_open(f, l);
    } else {
        end(f, l, false, false);
    }
}

/* ------------------------------------------------------------------ the queue */

static struct flight *begin(struct fetch *f, int64_t token, bool direct)
{
    struct flight *l = &f->flights[f->idle[--f->n_idle]];
    l->busy = true;
    l->token = token;
    l->fd = -1;
    l->direct = direct;
    l->whole = l->lent = false;
    l->to = NULL;
    l->at = 0;
    l->before = l->size = 0;
    l->parts.n = 0;
    l->failed = false;
    return l;
}

static void open_path(struct fetch *f, struct flight *l, int dir, const char *path)
{
    const size_t n = strlen(path);
    if (n >= sizeof l->path || f->broken) {
        end(f, l, false, false);
        return;
    }
    l->dir = dir;
    memcpy(l->path, path, n + 1);
    queue_open(f, l);
}

void fetch_file(struct fetch *f, const struct fetch_want *w)
{
    struct flight *l = begin(f, w->token, w->direct && !f->refused);
    l->whole = true;
    l->max_bytes = w->max_bytes;
    open_path(f, l, w->dir, w->path);
}

void fetch_extent(struct fetch *f, int64_t token, const struct extent *x)
{
    struct flight *l = begin(f, token, x->direct && (x->fd >= 0 || !f->refused));
    l->at = x->at;
    l->size = x->bytes;
    l->lent = x->fd >= 0;
    if (l->lent)
        opened(f, l, x->fd);
    else
        open_path(f, l, AT_FDCWD, x->path);
}

/* The ring is of no more use: what is under way will not be heard of, though it may still be written. */
static void give_up(struct fetch *f)
{
    f->broken = true;
    for (int i = 0; i < f->o.most; i++)
        if (f->flights[i].busy)
            end(f, &f->flights[i], false, false);
}

bool fetch_wait(struct fetch *f)
{
    struct uring_event events[64];
    const int n = fetch_under_way(f) > 0 ? uring_wait(f->ring, events, 64) : 0;
    for (int i = 0; i < n; i++)
        happened(f, &f->flights[events[i].token / PARTS_MAX], (int)(events[i].token % PARTS_MAX), events[i].result);
    if (n < 0)
        give_up(f);
    return !f->broken;
}

int fetch_under_way(const struct fetch *f)
{
    return f->o.most - f->n_idle;
}

bool fetch_refused(const struct fetch *f)
{
    return f->refused;
}

/* ------------------------------------------------------------------ life */

int fetch_open(struct fetch **out, const struct fetch_options *o, stk_error *e)
{
    struct fetch *f = *out = calloc(1, sizeof *f);
    if (!f)
        return error_nomem(e, "open", sizeof *f);
    f->o = *o;
    f->flights = calloc((size_t)o->most, sizeof *f->flights);
    f->idle = calloc((size_t)o->most, sizeof *f->idle);
    for (int i = o->most; f->idle && i-- > 0;)
        f->idle[f->n_idle++] = i;
    const unsigned entries = (unsigned)o->most * (o->parts ? PARTS_MAX : 1);
    const int rc = f->flights && f->idle ? uring_open(&f->ring, entries, o->memory, o->memory_bytes, e)
                                         : error_nomem(e, "open", (size_t)o->most * sizeof *f->flights);
    if (rc != STK_OK) {
        fetch_close(f);
        *out = NULL;
    }
    return rc;
}

void fetch_close(struct fetch *f)
{
    if (!f)
        return;
    while (f->ring && fetch_under_way(f) > 0)
        fetch_wait(f);
    uring_close(f->ring);
    free(f->flights);
    free(f->idle);
    free(f);
}
