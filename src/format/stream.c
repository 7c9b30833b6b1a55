/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c -- decompresses a file in pieces of 1 MiB and keeps the last ones.
 *
 *     compressed:    | member ............ | member ....... |     members: where members (frames) start
 *                              ^ the decompressor, at the end of a piece
 *     decompressed:  | 0 | 1 | 2 | 3 | 4 | 5 |                    pieces: those of all streams are in one cache
 *
 * A thread that needs a piece which is not kept decompresses up to it. Threads that need the same stream wait for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "format/stream_inner.h"

enum {
    MEMBERS_MAX = 4096 /* at least STREAM_PIECE bytes apart */
};

/* ------------------------------------------------------------------ streams */

struct stream *stream_new(struct stream_cache *c, enum stream_form form, bool stays)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->cache = c;
    s->form = form;
    s->stays = stays;
    s->need = STREAM_INPUT + decompress_needs(form, NULL, 0);
    s->end = -1;
    return s;
}

static bool is_open(const struct stream *s)
{
    return decompress_is_open(&s->decompressor);
}

int64_t stream_end(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    const int64_t end = s->end;
    stream_let_go(s);
    return end;
}

void stream_rest(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    stream_close_decompressor(s);
    pthread_mutex_unlock(&s->lock);
}

void stream_free(struct stream *s)
{
    if (!s)
        return;
    stream_close_decompressor(s);
    pieces_forget(s->cache->pieces, s); /* a later stream may get the same address */
    pthread_mutex_destroy(&s->lock);
    free(s->members);
    free(s);
}

/* ------------------------------------------------------------------ where members start */

/* The last member that starts at or before raw. */
static struct stream_member member_before(const struct stream *s, int64_t raw)
{
    struct stream_member p = {0};
    for (int i = 0; i < s->n_members && s->members[i].raw <= raw; i++)
        p = s->members[i];
    return p;
}

/* Remembers that a member starts here. Without memory it is left out. */
static void add_member(struct stream *s)
{
    const struct stream_member p = {s->compressed - (int64_t)(s->input_n - s->input_at), s->raw};
    if (s->n_members == MEMBERS_MAX || p.raw < (s->n_members ? s->members[s->n_members - 1].raw : 0) + STREAM_PIECE)
        return;
    if ((s->n_members & (s->n_members - 1)) == 0) {
        struct stream_member *more = realloc(s->members, (s->n_members ? 2 * (size_t)s->n_members : 1) * sizeof *more);
        if (!more)
            return;
        s->members = more;
    }
    s->members[s->n_members++] = p;
}

/* Moves the decompressor to an offset at or before raw. */
static int begin(struct stream *s, int64_t raw, stk_error *e)
{
    const struct stream_member p = member_before(s, raw);
    if (is_open(s) && s->raw <= raw && s->raw >= p.raw)
        return STK_OK;
    if (is_open(s)) {
        decompress_again(&s->decompressor);
    } else {
        const int rc = stream_open_decompressor(s, e);
        if (rc != STK_OK)
            return rc;
    }
    s->input_at = s->input_n = 0;
    s->compressed = p.compressed;
    s->raw = p.raw;
    s->between = true;
    return STK_OK;
}

/* ------------------------------------------------------------------ decompressing */

static void ended(struct stream *s, const char *what)
{
    s->end = s->raw;
    if (what)
        snprintf(s->broken, sizeof s->broken, "the %s stream %s after %lld bytes", stream_form_name(s->form), what,
                 (long long)s->raw);
    stream_close_decompressor(s);
}

/* Reads more input if all was used. *none: the file has no more. */
static int refill(struct stream *s, int fd, bool *none, stk_error *e)
{
    *none = false;
    if (s->input_at < s->input_n)
        return STK_OK;
    const ssize_t got = io_pread(fd, s->input, STREAM_INPUT, s->compressed);
    if (got < 0)
        return error_os(e, errno, "read", "cannot be read at byte %lld", (long long)s->compressed);
    s->input_at = 0;
    s->input_n = (size_t)got;
    s->compressed += got;
    *none = got == 0;
    return STK_OK;
}

/* Zeros may follow the last member, to fill a block of a tape or disk. */
static bool only_zeros(const struct stream *s)
{
    for (size_t i = s->input_at; i < s->input_n; i++)
        if (s->input[i])
            return false;
    return true;
}

static size_t mib(size_t bytes)
{
    return (bytes + (1 << 20) - 1) >> 20;
}

/* Ends the stream here, because there will never be room for what follows. */
static void refuse(struct stream *s, size_t need)
{
    const size_t most = s->cache->most;
    snprintf(s->broken, sizeof s->broken,
             "decompressing the %s stream needs %zu MiB, but the memory limit leaves %zu MiB for it; raise memory by "
             "%zu MiB",
             stream_form_name(s->form), mib(need), most >> 20, STREAM_WORK_SHARE * mib(need - most));
    s->refused = true;
    ended(s, NULL);
}

/* Bytes of memory that the member needs which starts here. */
static size_t needs(const struct stream *s, int fd)
{
    uint8_t first[DECOMPRESS_HEAD];
    const size_t left = s->input_n - s->input_at;
    const ssize_t got =
        left < DECOMPRESS_HEAD ? io_pread(fd, first, DECOMPRESS_HEAD, s->compressed - (int64_t)left) : (ssize_t)left;
    const uint8_t *p = left < DECOMPRESS_HEAD ? first : s->input + s->input_at;
    return STREAM_INPUT + decompress_needs(s->form, p, got > 0 ? (size_t)got : 0);
}

/* Whether the open decompressor has enough memory for the member that starts here. If it can never have enough, the
 * stream is refused. */
static bool fits(struct stream *s, int fd)
{
    const size_t need = needs(s, fd);
    if (need > s->cache->most)
        refuse(s, need);
    else if (need > s->need)
        s->need = need;
    return need <= s->cost;
}

/* Decompresses until the room is full or the stream ends, which closes the decompressor. STK_AGAIN: a decompressor with
 * more memory is needed. */
static int decompress(struct stream *s, int fd, uint8_t *room, size_t n_room, stk_error *e)
{
    while (n_room > 0) {
        bool none;
        const int rc = refill(s, fd, &none, e);
        if (rc != STK_OK)
            return rc;
        if (none) {
            ended(s, s->between && s->raw + s->compressed > 0 ? NULL : "was cut short");
            return STK_OK;
        }
        if (s->between && s->raw > 0 && only_zeros(s)) {
            s->input_at = s->input_n;
            continue;
        }
        if (s->between && !fits(s, fd))
            return is_open(s) ? STK_AGAIN : STK_OK;
        const uint8_t *in = s->input + s->input_at;
        size_t n_in = s->input_n - s->input_at;
        const size_t before = n_room;
        const enum gunzip_state state = decompress_run(&s->decompressor, &in, &n_in, &room, &n_room);
        s->input_at = s->input_n - n_in;
        s->raw += (int64_t)(before - n_room);
        s->between = state == GUNZIP_END;
        if (state == GUNZIP_NOMEM)
            return error_nomem(e, "read", STREAM_PIECE);
        if (state == GUNZIP_BAD) {
            ended(s, "is damaged");
            return STK_OK;
        }
        if (s->between) {
            add_member(s);
            decompress_again(&s->decompressor);
        }
    }
    return STK_OK;
}

/* Decompresses the next whole piece into the cache. *out is pinned; NULL: the stream ends before it. */
static int next_piece(struct stream *s, int fd, struct piece **out, stk_error *e)
{
    struct piece *p = pieces_take(s->cache->pieces, STREAM_PIECE);
    if (!p)
        return error_nomem(e, "read", STREAM_PIECE);
    int rc = STK_OK;
    if (s->raw % STREAM_PIECE != 0)
        rc = decompress(s, fd, p->bytes, (size_t)(STREAM_PIECE - s->raw % STREAM_PIECE), e);
    const int64_t from = s->raw;
    if (rc == STK_OK && is_open(s))
        rc = decompress(s, fd, p->bytes, STREAM_PIECE, e);
    if (rc == STK_OK && s->raw > from) {
        pieces_publish(s->cache->pieces, p, s, from / STREAM_PIECE, (size_t)(s->raw - from));
        *out = p;
        return STK_OK;
    }
    pieces_unpin(s->cache->pieces, p);
    if (rc != STK_OK)
        stream_close_decompressor(s); /* its offset is not known */
    *out = NULL;
    return rc;
}

/* Decompresses up to and including a piece. *out is pinned; NULL: the stream ends before it. */
static int decompress_to(struct stream *s, int fd, int64_t index, struct piece **out, stk_error *e)
{
    *out = NULL;
    if (s->end >= 0 && index * STREAM_PIECE >= s->end)
        return STK_OK;
    int rc = begin(s, index * STREAM_PIECE, e);
    while (rc == STK_OK) {
        rc = next_piece(s, fd, out, e);
        if (rc == STK_AGAIN) {
            rc = begin(s, index * STREAM_PIECE, e);
            continue;
        }
        if (rc != STK_OK || !*out || (*out)->index == index)
            return rc;
        pieces_unpin(s->cache->pieces, *out);
    }
    return rc;
}

static int get(struct stream *s, int fd, int64_t index, struct piece **out, stk_error *e)
{
    *out = pieces_find(s->cache->pieces, s, index);
    if (*out)
        return STK_OK;
    pthread_mutex_lock(&s->lock);
    int rc = STK_OK;
    *out = pieces_find(s->cache->pieces, s, index); /* another thread may have decompressed it meanwhile */
    if (!*out)
        rc = decompress_to(s, fd, index, out, e);
    stream_let_go(s);
    return rc;
}

static int at_end(struct stream *s, stk_error *e)
{
    pthread_mutex_lock(&s->lock);
    /* A stream that stays is being indexed. For want of memory it must not be indexed as damaged. */
    const int code = s->refused && s->stays ? STK_EUSAGE : STK_EDATA;
    const int rc = s->broken[0] ? error_set(e, code, "read", "%s", s->broken) : STK_OK;
    stream_let_go(s);
    return rc;
}

int stream_read(struct stream *s, int fd, void *to, size_t n, int64_t at, size_t *got, stk_error *e)
{
    *got = 0;
    while (*got < n) {
        struct piece *p;
        const int64_t offset = at + (int64_t)*got;
        const int rc = get(s, fd, offset / STREAM_PIECE, &p, e);
        if (rc != STK_OK)
            return rc;
        const size_t from = (size_t)(offset % STREAM_PIECE);
        const size_t here = p && p->n > from ? p->n - from : 0, left = n - *got, take = here < left ? here : left;
        if (take > 0)
            memcpy((uint8_t *)to + *got, p->bytes + from, take);
        if (p)
            pieces_unpin(s->cache->pieces, p);
        if (take == 0)
            return at_end(s, e);
        *got += take;
    }
    return STK_OK;
}

static size_t first_of(int fd, uint8_t *to, size_t n)
{
    const ssize_t k = io_pread(fd, to, n < STREAM_FIRST ? n : STREAM_FIRST, 0);
    const enum stream_form form = k > 0 ? stream_form_of(to, (size_t)k) : STREAM_PLAIN;
    struct stream_cache *c =
        form != STREAM_PLAIN && !stream_missing(form) ? stream_cache_new(0, STREAM_WORK_MOST) : NULL;
    struct stream *s = c ? stream_new(c, form, false) : NULL;
    size_t got = 0;
    if (s)
        stream_read(s, fd, to, n, 0, &got, NULL);
    stream_free(s);
    stream_cache_free(c);
    return got;
}

size_t stream_first(const char *path, uint8_t *to, size_t n)
{
    const int fd = io_open(AT_FDCWD, path);
    const size_t got = fd >= 0 ? first_of(fd, to, n) : 0;
    if (fd >= 0)
        close(fd);
    return got;
}
