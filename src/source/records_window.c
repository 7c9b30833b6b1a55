/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_window.c -- the window of a scan: large reads if everything is needed, small ones if much is skipped.
 */
#include "source/records_index.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/io.h"

enum { WANT_LEAST = 4 << 10, WANT_MOST = 1 << 20 };

int records_window_init(struct records_window *w, int fd, enum stream_form form, struct stream_cache *c, stk_error *e)
{
    w->fd = fd;
    w->want = WANT_LEAST;
    if (form == STREAM_PLAIN)
        return STK_OK;
    w->stream = stream_new(c, form, true);
    return w->stream ? STK_OK : error_nomem(e, "open", WANT_MOST);
}

void records_window_done(struct records_window *w)
{
    buf_done(&w->buf);
    stream_free(w->stream);
}

int64_t records_window_end(const struct records_window *w)
{
    return w->at + (int64_t)w->buf.len;
}

const char *records_window_broken(const struct records_window *w)
{
    return w->broken[0] ? w->broken : NULL;
}

/* Whether the window contains [at, at + n). */
static bool holds(const struct records_window *w, int64_t at, size_t n)
{
    return at >= w->at && at - w->at <= (int64_t)w->buf.len && n <= w->buf.len - (size_t)(at - w->at);
}

/* Sequential access reads more at a time. Skipping a good part of a read reads less. */
static void adapt(struct records_window *w, int64_t at)
{
    const int64_t end = w->at + (int64_t)w->buf.len;
    if (at <= end)
        w->want = w->want * 4 < WANT_MOST ? w->want * 4 : WANT_MOST;
    else if (at - end > (int64_t)w->want / 4)
        w->want = WANT_LEAST;
}

/* Decompresses from `at` on, up to any damage; -1 with errno. */
static ssize_t read_stream(struct records_window *w, size_t want, int64_t at)
{
    size_t got;
    stk_error e;
    const int rc = stream_read(w->stream, w->fd, w->buf.data, want, at, &got, &e);
    if (rc == STK_EDATA)
        snprintf(w->broken, sizeof w->broken, "%.100s", e.reason);
    else if (rc == STK_EUSAGE)
        w->refused = e;
    if (rc != STK_OK && rc != STK_EDATA)
        errno = e.os_error ? e.os_error : ENOMEM;
    return rc == STK_OK || rc == STK_EDATA ? (ssize_t)got : -1;
}

static void fill(struct records_window *w, int64_t at, size_t n)
{
    adapt(w, at);
    const size_t want = n > w->want ? n : w->want;
    w->at = at;
    w->buf.len = 0;
    if (buf_reserve(&w->buf, want + IO_SLACK)) {
        w->os_error = ENOMEM;
        return;
    }
    const ssize_t got = w->stream ? read_stream(w, want, at) : io_pread(w->fd, w->buf.data, want, at);
    if (got < 0)
        w->os_error = errno;
    else
        w->buf.len = (size_t)got;
}

const uint8_t *record_peek(struct record_scan *sc, int64_t at, size_t n, size_t *got)
{
    struct records_window *w = sc->window;
    if (!holds(w, at, n))
        fill(w, at, n);
    const size_t there = w->buf.len - (size_t)(at - w->at);
    *got = there < n ? there : n;
    return w->buf.data + (at - w->at);
}

bool record_failed(const struct record_scan *sc, stk_error *e)
{
    const int os_error = sc->window->os_error;
    if (sc->window->refused.code)
        *e = sc->window->refused;
    else if (os_error)
        error_os(e, os_error, "open", "cannot be read");
    return os_error != 0;
}
