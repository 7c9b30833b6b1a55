/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.c -- reads many files into memory at once.
 *
 *     openat (queued) -> fstat -> FETCH_OPENED -> fetch_read -> reads (queued) -> FETCH_DONE
 *
 * Opening is queued because the folder and the inode may have to come from the disk, too; fstat then finds them in
 * memory. A read through the page cache is first tried without waiting. It succeeds if the file is warm; otherwise the
 * kernel starts to fetch all of it. As in base/io.c, one byte more than the size is read, so that a file that has grown
 * is noticed.
 *
 * A flight is one file under way. It has at most one event in the queue, and is reused after fetch_next has returned
 * its FETCH_DONE.
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
    bool busy, direct, whole, lent; /* whole: a whole file, not an extent; lent: the descriptor is the caller's */
    bool ended, good, warm;         /* ended: its FETCH_DONE is in the queue */
    uint8_t *to;
    int64_t at;           /* offset in the file */
    size_t before, size;  /* bytes read only for alignment; bytes wanted */
    struct ranges ranges; /* to read; none: everything in one read */
    int reads;            /* under way */
    bool failed;          /* one of them failed */
    int64_t max_bytes;
    char path[PATH_MAX];
};

struct fetch {
    int most;
    struct uring *ring;
    struct flight *flights;
    int *idle; /* indices of flights that are not under way */
    int n_idle;
    int *queue; /* indices of flights with an event: a ring of `most` */
    int64_t head, tail;
    bool refused, broken;
};

static size_t round_up(size_t n)
{
    return (n + FETCH_ALIGN - 1) / FETCH_ALIGN * FETCH_ALIGN;
}

static void report(struct fetch *f, const struct flight *l)
{
    f->queue[f->tail++ % f->most] = (int)(l - f->flights);
}

static void end(struct fetch *f, struct flight *l, bool good, bool warm)
{
    if (l->fd >= 0 && !l->lent)
        close(l->fd);
    l->ended = true;
    l->good = good;
    l->warm = warm;
    if (good)
        memset(l->to + l->before + l->size, 0, IO_SLACK);
    report(f, l);
}

/* ------------------------------------------------------------------ steps */

/* Names a read of a flight. */
static uint64_t name_of(const struct fetch *f, const struct flight *l, int read)
{
    return (uint64_t)(l - f->flights) * RANGES_MAX + (uint64_t)read;
}

static void queue_open(struct fetch *f, struct flight *l)
{
    const int flags = IO_OPEN_FLAGS | (l->direct ? O_DIRECT : 0);
    uring_openat(f->ring, l->dir, l->path, flags, name_of(f, l, 0));
}

static void queue_read(struct fetch *f, struct flight *l)
{
    const size_t n = l->before + l->size + l->whole;
    l->reads = 1;
    uring_read(f->ring, l->fd, l->to, l->direct ? round_up(n) : n, l->at - (int64_t)l->before, name_of(f, l, 0));
}

/* Reads whole blocks, to where they would be in the whole file. */
static void queue_ranges(struct fetch *f, struct flight *l)
{
    l->reads = l->ranges.n;
    for (int i = 0; i < l->ranges.n; i++) {
        const size_t from = (size_t)l->ranges.at[i].from / FETCH_ALIGN * FETCH_ALIGN;
        const size_t n = round_up((size_t)l->ranges.at[i].to) - from;
        uring_read(f->ring, l->fd, l->to + from, n, (int64_t)from, name_of(f, l, i));
    }
}

/* Reads what the page cache contains, without waiting. false: not everything; the kernel then starts to fetch it. */
static bool is_warm(const struct flight *l)
{
    const struct iovec all = {.iov_base = l->to, .iov_len = l->size + l->whole};
    if (preadv2(l->fd, &all, 1, (off_t)l->at, RWF_NOWAIT) == (ssize_t)l->size)
        return true;
    posix_fadvise(l->fd, (off_t)l->at, (off_t)l->size, POSIX_FADV_WILLNEED);
    return false;
}

/* Finds the size of a whole file. false: it must not be read. */
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
    l->before = l->direct ? (size_t)(l->at % FETCH_ALIGN) : 0;
    report(f, l);
}

void fetch_read(struct fetch *f, const struct fetch_event *e, uint8_t *to, const struct ranges *ranges)
{
    struct flight *l = &f->flights[e->flight];
    l->to = to;
    if (ranges && e->by_range)
        l->ranges = *ranges;
    if (!l->to || f->broken)
        end(f, l, false, false);
    else if (l->ranges.n > 0)
        queue_ranges(f, l);
    else if (!l->direct && is_warm(l))
        end(f, l, true, true);
    else
        queue_read(f, l);
}

/* Whether a read returned what was wanted. An extent may be read beyond its end, a whole file may not. */
static bool is_enough(const struct flight *l, int read, int64_t got)
{
    const int64_t all = (int64_t)(l->before + l->size);
    if (l->ranges.n > 0)
        return got >= (int64_t)(l->ranges.at[read].to - l->ranges.at[read].from / FETCH_ALIGN * FETCH_ALIGN);
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
    l->whole = l->lent = l->ended = false;
    l->to = NULL;
    l->at = 0;
    l->before = l->size = 0;
    l->ranges.n = 0;
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

/* The ring cannot be used any more. It will not report the reads under way, though they may still write to memory. */
static void give_up(struct fetch *f)
{
    f->broken = true;
    for (int i = 0; i < f->most; i++)
        if (f->flights[i].busy && !f->flights[i].ended)
            end(f, &f->flights[i], false, false);
}

bool fetch_wait(struct fetch *f)
{
    struct uring_event events[64];
    const bool wait = f->head == f->tail && fetch_under_way(f) > 0;
    const int n = wait ? uring_wait(f->ring, events, 64) : 0;
    for (int i = 0; i < n; i++)
        happened(f, &f->flights[events[i].token / RANGES_MAX], (int)(events[i].token % RANGES_MAX), events[i].result);
    if (n < 0)
        give_up(f);
    return !f->broken;
}

bool fetch_next(struct fetch *f, struct fetch_event *out)
{
    if (f->head == f->tail)
        return false;
    const int i = f->queue[f->head++ % f->most];
    struct flight *l = &f->flights[i];
    *out = (struct fetch_event){.token = l->token, .flight = i, .size = l->size};
    if (!l->ended) {
        out->kind = FETCH_OPENED;
        out->by_range = l->direct && l->whole;
        out->n = round_up(l->before + l->size + IO_SLACK);
        return true;
    }
    out->kind = FETCH_DONE;
    out->bytes = l->good ? l->to + l->before : NULL;
    out->warm = l->warm;
    l->busy = false;
    f->idle[f->n_idle++] = i;
    return true;
}

int fetch_under_way(const struct fetch *f)
{
    return f->most - f->n_idle;
}

bool fetch_refused(const struct fetch *f)
{
    return f->refused;
}

/* ------------------------------------------------------------------ life */

int fetch_open(struct fetch **out, int most, uint8_t *memory, size_t memory_bytes, stk_error *e)
{
    struct fetch *f = *out = calloc(1, sizeof *f);
    if (!f)
        return error_nomem(e, "open", sizeof *f);
    f->most = most;
    f->flights = calloc((size_t)most, sizeof *f->flights);
    f->idle = calloc((size_t)most, sizeof *f->idle);
    f->queue = calloc((size_t)most, sizeof *f->queue);
    for (int i = most; f->idle && i-- > 0;)
        f->idle[f->n_idle++] = i;
    const int rc = f->flights && f->idle && f->queue
                       ? uring_open(&f->ring, (unsigned)most * RANGES_MAX, memory, memory_bytes, e)
                       : error_nomem(e, "open", (size_t)most * sizeof *f->flights);
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
    struct fetch_event event;
    while (f->ring && fetch_under_way(f) > 0) {
        fetch_wait(f);
        while (fetch_next(f, &event))
            if (event.kind == FETCH_OPENED)
                fetch_read(f, &event, NULL, NULL);
    }
    uring_close(f->ring);
    free(f->flights);
    free(f->idle);
    free(f->queue);
    free(f);
}
