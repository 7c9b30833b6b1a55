/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c -- a record of what has been written.
 *
 * A line is 16 hexadecimal digits, a space, a text and a newline; the digits are the hash of the text. The first line
 * with a wrong hash ends the journal: the program was killed while writing it. A shard is renamed before its line is
 * written, so every line belongs to an existing shard.
 */
#include "pack/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"

const char journal_name[] = ".stoker-pack.journal";

enum { MOST = 1 << 30, DIGITS = 16 };

static int failed(int why, const char *what, stk_error *e)
{
    const int rc = error_os(e, why, "write", "%s", what);
    error_at(e, journal_name, -1);
    return rc;
}

static int append(struct journal *j, const char *text, stk_error *e)
{
    struct buf line = {0};
    int rc = STK_OK;
    const size_t n = strlen(text);
    if (buf_printf(&line, "%016" PRIx64 " ", hash_bytes(text, n, 0)) || buf_add(&line, text, n) ||
        buf_add(&line, "\n", 1))
        rc = error_nomem(e, "write", n);
    const int why = rc == STK_OK ? file_write_at(j->fd, line.data, line.len, j->end) : 0;
    if (why)
        rc = failed(why, "cannot write", e);
    else if (rc == STK_OK && fsync(j->fd))
        rc = failed(errno, "cannot sync to disk", e);
    if (rc == STK_OK)
        j->end += (int64_t)line.len;
    buf_done(&line);
    return rc;
}

static int keep(struct journal *j, const struct shard_line *s, stk_error *e)
{
    if (j->n == j->room) {
        const int64_t room = j->room ? 2 * j->room : 64;
        struct shard_line *more = realloc(j->shards, (size_t)room * sizeof *more);
        if (!more)
            return error_nomem(e, "write", (size_t)room * sizeof *more);
        j->shards = more;
        j->room = room;
    }
    j->shards[j->n++] = *s;
    return STK_OK;
}

int journal_add(struct journal *j, const struct shard_line *s, stk_error *e)
{
    char text[OUTFILE_NAME + 160];
    snprintf(text, sizeof text, "%s %" PRId64 " %" PRId64 " %016" PRIx64 " %" PRId64 " %" PRId64 " %" PRId64, s->name,
             s->samples, s->bytes, s->sum, s->next, s->bad, s->bytes_in);
    const int rc = append(j, text, e);
    return rc == STK_OK ? keep(j, s, e) : rc;
}

int journal_differs(const char *then, const char *now, stk_error *e)
{
    while (*then && *now) {
        const size_t a = strcspn(then, "\t"), b = strcspn(now, "\t");
        if (a != b || memcmp(then, now, a) != 0)
            return error_set(e, STK_EUSAGE, "open",
                             "was started with %.*s, but now it is %.*s; use the same options to continue, --force to "
                             "start again, or another folder",
                             (int)(a < 200 ? a : 200), then, (int)(b < 200 ? b : 200), now);
        then += a + (then[a] != 0);
        now += b + (now[b] != 0);
    }
    return error_set(e, STK_EUSAGE, "open", "was started by another version; --force starts again");
}

/* Parses a line in place. Returns its text and sets *next. NULL: the hash is wrong, or the line is incomplete. */
static char *take_line(char *p, char *end, char **next)
{
    char *newline = memchr(p, '\n', (size_t)(end - p));
    if (!newline || newline - p <= DIGITS || p[DIGITS] != ' ')
        return NULL;
    char *text = p + DIGITS + 1;
    *newline = 0;
    *next = newline + 1;
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%016" PRIx64, hash_bytes(text, strlen(text), 0));
    return memcmp(digits, p, DIGITS) == 0 ? text : NULL;
}

static int read_shards(struct journal *j, char *from, char *p, char *end, stk_error *e)
{
    for (char *next; p < end; p = next) {
        struct shard_line s;
        const char *text = take_line(p, end, &next);
        if (!text || sscanf(text, "%95s %" SCNd64 " %" SCNd64 " %" SCNx64 " %" SCNd64 " %" SCNd64 " %" SCNd64, s.name,
                            &s.samples, &s.bytes, &s.sum, &s.next, &s.bad, &s.bytes_in) != 7)
            break;
        const int rc = keep(j, &s, e);
        if (rc != STK_OK)
            return rc;
        j->end = next - from;
    }
    return STK_OK;
}

static int read_all(struct journal *j, char *text, size_t n, const char *recipe, stk_error *e)
{
    char *next = text;
    const char *then = n ? take_line(text, text + n, &next) : NULL;
    if (!then)
        return append(j, recipe, e); /* the last run was killed before it wrote the first line */
    if (strcmp(then, recipe) != 0)
        return journal_differs(then, recipe, e);
    j->end = next - text;
    return read_shards(j, text, next, text + n, e);
}

int journal_open(struct journal *j, int dir, const char *recipe, stk_error *e)
{
    struct stat st;
    *j = (struct journal){.dir = dir};
    j->fd = openat(dir, journal_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (j->fd < 0)
        return failed(errno, "cannot create", e);
    j->open = 1;
    if (flock(j->fd, LOCK_EX | LOCK_NB))
        return error_set(e, STK_EUSAGE, "open",
                         "another process is packing into this folder; wait for it, or choose another folder");
    if (fstat(j->fd, &st) || st.st_size > MOST)
        return failed(EFBIG, "cannot read", e);
    char *text = malloc((size_t)st.st_size + 1);
    if (!text)
        return error_nomem(e, "open", (size_t)st.st_size);
    const int rc = file_read_at(j->fd, text, (size_t)st.st_size, 0) ? read_all(j, text, (size_t)st.st_size, recipe, e)
                                                                    : failed(EIO, "cannot read", e);
    free(text);
    return rc;
}

int journal_cut(struct journal *j, int64_t n, stk_error *e)
{
    /* Lines differ in length, so count them to find the new end. */
    char *text = malloc((size_t)j->end + 1);
    if (!text)
        return error_nomem(e, "open", (size_t)j->end);
    int64_t at = 0;
    if (file_read_at(j->fd, text, (size_t)j->end, 0))
        for (int64_t i = 0; i <= n && at < j->end; i++)
            at += (const char *)memchr(text + at, '\n', (size_t)(j->end - at)) - (text + at) + 1;
    free(text);
    j->n = n;
    j->end = at;
    return ftruncate(j->fd, at) ? failed(errno, "cannot truncate", e) : STK_OK;
}

void journal_remove(struct journal *j)
{
    unlinkat(j->dir, journal_name, 0);
    journal_done(j);
}

void journal_done(struct journal *j)
{
    if (j->open)
        close(j->fd);
    free(j->shards);
    *j = (struct journal){0};
}
