/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_window.c -- looking along a shard: large reads where everything is looked at, small ones where much is
 * skipped.
 */
#include "source/records_window.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "source/io.h"

enum { WANT_LEAST = 4 << 10, WANT_MOST = 1 << 20 };

void window_init(struct record_window *w, int fd)
{
    w->fd = fd;
    w->at = 0;
    w->buf.len = 0;
    w->want = WANT_LEAST;
    w->os_error = 0;
}

void window_done(struct record_window *w)
{
    buf_done(&w->buf);
}

/* Whether [at, at + n) is in the window. */
static bool holds(const struct record_window *w, int64_t at, size_t n)
{
    return at >= w->at && at - w->at <= (int64_t)w->buf.len && n <= w->buf.len - (size_t)(at - w->at);
}

/* A look that follows closely asks for more at a time; one that skips more than it would have read, for less. */
static void adapt(struct record_window *w, int64_t at)
{
    const int64_t end = w->at + (int64_t)w->buf.len;
    if (at <= end)
        w->want = w->want * 4 < WANT_MOST ? w->want * 4 : WANT_MOST;
    else if (at - end > (int64_t)w->want)
        w->want = WANT_LEAST;
}

static void fill(struct record_window *w, int64_t at, size_t n)
{
    adapt(w, at);
    const size_t want = n > w->want ? n : w->want;
    w->at = at;
    w->buf.len = 0;
    if (buf_reserve(&w->buf, want + IO_SLACK)) {
        w->os_error = ENOMEM;
        return;
    }
    const ssize_t got = io_pread(w->fd, w->buf.data, want, at);
    if (got < 0)
        w->os_error = errno;
    else
        w->buf.len = (size_t)got;
}

const uint8_t *record_peek(struct record_scan *sc, int64_t at, size_t n, size_t *got)
{
    struct record_window *w = sc->window;
    if (!holds(w, at, n))
        fill(w, at, n);
    const size_t there = w->buf.len - (size_t)(at - w->at);
    *got = there < n ? there : n;
    return w->buf.data + (at - w->at);
}

bool record_failed(const struct record_scan *sc, stk_error *e)
{
    const int os_error = sc->window->os_error;
    if (os_error)
        error_os(e, os_error, "open", "cannot be read");
    return os_error != 0;
}
