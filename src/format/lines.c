/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.c -- reads the records of a text file through a window that moves along it.
 *
 * A list is never in memory as a whole.
 */
#include "format/lines.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"

enum { STEP = 1 << 16, RECORD_MAX = 1 << 20 };

static int fail(struct lines *l, const char *problem, int os_error)
{
    l->problem = problem;
    l->os_error = os_error;
    return -1;
}

/* Moves the window so that it starts with the next record, and reads more. */
static int more(struct lines *l)
{
    l->window.len -= l->pos;
    if (l->pos > 0)
        memmove(l->window.data, l->window.data + l->pos, l->window.len);
    l->pos = 0;
    if (buf_reserve(&l->window, l->window.len + STEP))
        return fail(l, "no memory", ENOMEM);
    const ssize_t got = io_pread(l->fd, l->window.data + l->window.len, STEP, l->offset);
    if (got < 0)
        return fail(l, "cannot be read", errno);
    l->window.len += (size_t)got;
    l->offset += got;
    l->end = got < STEP;
    return 0;
}

void lines_rewind(struct lines *l)
{
    l->pos = 0;
    l->line = 0;
    l->next_line = 1;
    l->offset = 0;
    l->end = false;
    l->window.len = 0;
}

static bool begins_with(const struct lines *l, const char *mark, size_t n)
{
    return l->window.len - l->pos >= n && memcmp(l->window.data + l->pos, mark, n) == 0;
}

static int begin(struct lines *l)
{
    if (more(l))
        return -1;
    if (begins_with(l, "\xff\xfe", 2) || begins_with(l, "\xfe\xff", 2))
        return fail(l, "is UTF-16 text; save it as UTF-8", 0);
    if (begins_with(l, "\xef\xbb\xbf", 3))
        l->pos += 3;
    return 0;
}

/* The state within a record: at the start of a cell, in it, in quotes, after them. */
enum state { START, TEXT, QUOTED, BEHIND };

static enum state step(enum state s, char c, char delimiter)
{
    if (s == QUOTED)
        return c == '"' ? BEHIND : QUOTED;
    if (c == '"' && s != TEXT)
        return QUOTED; /* an opening quote, or the second of two that mean one */
    if (c == delimiter)
        return START;
    return s == START && c == ' ' ? START : TEXT;
}

static int give(struct lines *l, size_t n, size_t with_end, struct slice *out)
{
    char *p = (char *)l->window.data + l->pos;
    l->pos += with_end;
    while (n > 0 && p[n - 1] == '\r')
        n--;
    *out = (struct slice){p, n};
    return 1;
}

int lines_next(struct lines *l, char delimiter, struct slice *out)
{
    if (l->line == 0 && l->next_line == 1 && l->pos == 0 && begin(l))
        return -1;
    l->line = l->next_line;
    enum state state = START;
    for (size_t seen = 0;;) {
        const char *p = (const char *)l->window.data + l->pos;
        const size_t n = l->window.len - l->pos;
        const char *newline = n > seen ? memchr(p + seen, '\n', n - seen) : NULL;
        const size_t upto = newline ? (size_t)(newline - p) : n;
        /* The usual case: a whole line without a quote. */
        const bool plain = newline && state != QUOTED && !memchr(p + seen, '"', upto - seen);
        for (size_t i = seen; delimiter && !plain && i < upto; i++)
            state = step(state, p[i], delimiter);
        seen = upto;
        if (newline) {
            l->next_line++;
            seen++;
            if (state != QUOTED)
                return give(l, upto, seen, out);
        } else if (l->end) {
            if (state == QUOTED)
                return fail(l, "a quote is opened and never closed", 0);
            return n > 0 ? give(l, n, n, out) : 0;
        } else if (n > RECORD_MAX) {
            return fail(l, "the line is longer than 1 MiB", 0);
        } else if (more(l)) {
            return -1;
        }
    }
}

void lines_done(struct lines *l)
{
    buf_done(&l->window);
}
