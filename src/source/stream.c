/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c -- unpacks in pieces of a MiB, kept for a while.
 *
 *     packed:    | member ............ | member ....... |        points: where members (frames) begin
 *                          ^ unpacker, at a piece's end
 *     unpacked:  | 0 | 1 | 2 | 3 | 4 | 5 |                       pieces: of all streams in one cache
 *
 * Whoever needs a piece that is not kept unpacks up to it, and everybody else who wants the same stream waits for him.
 *
 * Invariants:
 *   (1) a stream's unpacker, points and end are its lock's; which streams have an unpacker is the cache's lock's.
 *   (2) the cache's lock is taken inside a stream's; another stream's lock inside one's own is only tried.
 *   (3) a piece is pinned for as long as it is copied or filled, and for nothing else.
 */
#include "source/stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "source/io.h"
#include "source/pieces.h"
#include "source/unpack.h"

enum {
    PIECE = PIECE_BYTES,
    INPUT = 1 << 17,
    OPEN_MAX = 8,     /* unpackers; a large zstd window is 128 MiB */
    POINTS_MAX = 4096 /* at a PIECE's distance at the least */
};

enum stream_form stream_form_of(const uint8_t *first, size_t n)
{
    if (n >= 3 && memcmp(first, "\x1f\x8b\x08", 3) == 0)
        return STREAM_GZIP;
    return n >= 4 && memcmp(first, "\x28\xb5\x2f\xfd", 4) == 0 ? STREAM_ZSTD : STREAM_PLAIN;
}

const char *stream_missing(enum stream_form form)
{
    return form == STREAM_PLAIN || unpack_by(form)->here() ? NULL : unpack_by(form)->library;
}

/* ------------------------------------------------------------------ what streams share */

struct stream_cache {
    pthread_mutex_t lock;
    struct pieces *pieces;
    struct stream *open[OPEN_MAX]; /* with an unpacker; the lock's */
    uint64_t clock;
};

struct stream_cache *stream_cache_new(size_t bytes)
{
    struct stream_cache *c = calloc(1, sizeof *c);
    if (!c || !(c->pieces = pieces_new(bytes))) {
        free(c);
        return NULL;
    }
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void stream_cache_free(struct stream_cache *c)
{
    if (!c)
        return;
    pieces_free(c->pieces);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ------------------------------------------------------------------ streams */

struct point {
    int64_t packed, raw;
};

struct stream {
    pthread_mutex_t lock;
    struct stream_cache *cache;
    const struct unpacker *how;
    void *unpacker;  /* NULL: not open */
    uint64_t opened; /* by the cache's clock; its lock's */
    uint8_t *input;
    size_t input_at, input_n;
    int64_t packed; /* behind the input */
    int64_t raw;    /* unpacked so far */
    bool between;   /* at the beginning of a member */
    int64_t end;    /* where it ends or breaks off; -1: not known */
    char broken[96];
    struct point *points; /* ascending; beside the beginning */
    int n_points;
};

struct stream *stream_new(struct stream_cache *c, enum stream_form form)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->cache = c;
    s->how = unpack_by(form);
    s->end = -1;
    return s;
}

static void close_unpacker(struct stream *s)
{
    if (!s->unpacker)
        return;
    s->how->close(s->unpacker);
    free(s->input);
    s->unpacker = NULL;
    s->input = NULL;
    struct stream_cache *c = s->cache;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < OPEN_MAX; i++)
        if (c->open[i] == s)
            c->open[i] = NULL;
    pthread_mutex_unlock(&c->lock);
}

int64_t stream_end(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    const int64_t end = s->end;
    pthread_mutex_unlock(&s->lock);
    return end;
}

void stream_rest(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    close_unpacker(s);
    pthread_mutex_unlock(&s->lock);
}

void stream_free(struct stream *s)
{
    if (!s)
        return;
    close_unpacker(s);
    pieces_forget(s->cache->pieces, s); /* another stream may come to the same address */
    pthread_mutex_destroy(&s->lock);
    free(s->points);
    free(s);
}

/* The stream whose unpacker was opened first; *room instead where there is some. */
static struct stream *rival(struct stream_cache *c, struct stream *s, bool *room)
{
    struct stream *r = NULL;
    *room = false;
    for (int i = 0; i < OPEN_MAX && !*room; i++) {
        if (!c->open[i]) {
            c->open[i] = s;
            s->opened = ++c->clock;
            *room = true;
        } else if (!r || c->open[i]->opened < r->opened)
            r = c->open[i];
    }
    return r;
}

/* Enters s among the open ones; another makes room, unless it is at work: then there is one more for a while. */
static void enter(struct stream *s)
{
    struct stream_cache *c = s->cache;
    bool room;
    pthread_mutex_lock(&c->lock);
    struct stream *r = rival(c, s, &room);
    const bool locked = !room && pthread_mutex_trylock(&r->lock) == 0;
    pthread_mutex_unlock(&c->lock);
    if (!locked)
        return;
    close_unpacker(r);
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_lock(&c->lock);
    rival(c, s, &room);
    pthread_mutex_unlock(&c->lock);
}

/* The last point that is not behind raw. */
static struct point point_before(const struct stream *s, int64_t raw)
{
    struct point p = {0};
    for (int i = 0; i < s->n_points && s->points[i].raw <= raw; i++)
        p = s->points[i];
    return p;
}

/* A member begins here. Without memory there is one place less to begin at. */
static void note_point(struct stream *s)
{
    const struct point p = {s->packed - (int64_t)(s->input_n - s->input_at), s->raw};
    if (s->n_points == POINTS_MAX || p.raw < (s->n_points ? s->points[s->n_points - 1].raw : 0) + PIECE)
        return;
    if ((s->n_points & (s->n_points - 1)) == 0) {
        struct point *more = realloc(s->points, (s->n_points ? 2 * (size_t)s->n_points : 1) * sizeof *more);
        if (!more)
            return;
        s->points = more;
    }
    s->points[s->n_points++] = p;
}

/* Makes the unpacker stand at a place not behind raw. */
static int begin(struct stream *s, int64_t raw, stk_error *e)
{
    const struct point p = point_before(s, raw);
    if (s->unpacker && s->raw <= raw && s->raw >= p.raw)
        return STK_OK;
    if (s->unpacker) {
        s->how->again(s->unpacker);
    } else {
        s->input = malloc(INPUT);
        s->unpacker = s->input ? s->how->open() : NULL;
        if (!s->unpacker) {
            free(s->input);
            s->input = NULL;
            return error_nomem(e, "read", INPUT);
        }
        enter(s);
    }
    s->input_at = s->input_n = 0;
    s->packed = p.packed;
    s->raw = p.raw;
    s->between = true;
    return STK_OK;
}

/* ------------------------------------------------------------------ unpacking */

static void ended(struct stream *s, const char *what)
{
    s->end = s->raw;
    if (what)
        snprintf(s->broken, sizeof s->broken, "the %s stream %s after %lld bytes", s->how->name, what,
                 (long long)s->raw);
    close_unpacker(s);
}

/* More input; *none: there is no more. */
static int refill(struct stream *s, int fd, bool *none, stk_error *e)
{
    *none = false;
    if (s->input_at < s->input_n)
        return STK_OK;
    const ssize_t got = io_pread(fd, s->input, INPUT, s->packed);
    if (got < 0)
        return error_os(e, errno, "read", "cannot be read at byte %lld", (long long)s->packed);
    s->input_at = 0;
    s->input_n = (size_t)got;
    s->packed += got;
    *none = got == 0;
    return STK_OK;
}

/* Zeros may follow the last member: tapes and disks had blocks to fill. */
static bool only_zeros(const struct stream *s)
{
    for (size_t i = s->input_at; i < s->input_n; i++)
        if (s->input[i])
            return false;
    return true;
}

/* Unpacks into room until it is full or the stream ends: then there is no unpacker any more. */
static int unpack(struct stream *s, int fd, uint8_t *room, size_t n_room, stk_error *e)
{
    while (n_room > 0) {
        bool none;
        const int rc = refill(s, fd, &none, e);
        if (rc != STK_OK)
            return rc;
        if (none) {
            ended(s, s->between && s->raw + s->packed > 0 ? NULL : "was cut short");
            return STK_OK;
        }
        if (s->between && s->raw > 0 && only_zeros(s)) {
            s->input_at = s->input_n;
            continue;
        }
        const uint8_t *in = s->input + s->input_at;
        size_t n_in = s->input_n - s->input_at;
        const size_t before = n_room;
        const enum gunzip_state state = s->how->run(s->unpacker, &in, &n_in, &room, &n_room);
        s->input_at = s->input_n - n_in;
        s->raw += (int64_t)(before - n_room);
        s->between = state == GUNZIP_END;
        if (state == GUNZIP_NOMEM)
            return error_nomem(e, "read", PIECE);
        if (state == GUNZIP_BAD) {
            ended(s, "is damaged");
            return STK_OK;
        }
        if (s->between) {
            note_point(s);
            s->how->again(s->unpacker);
        }
    }
    return STK_OK;
}

/* The next piece that begins at its boundary, pinned, into the cache. */
static int next_piece(struct stream *s, int fd, struct piece **out, stk_error *e)
{
    struct piece *p = pieces_take(s->cache->pieces);
    if (!p)
        return error_nomem(e, "read", PIECE);
    int rc = STK_OK;
    if (s->raw % PIECE != 0)
        rc = unpack(s, fd, p->bytes, (size_t)(PIECE - s->raw % PIECE), e);
    const int64_t from = s->raw;
    if (rc == STK_OK && s->unpacker)
        rc = unpack(s, fd, p->bytes, PIECE, e);
    if (rc == STK_OK && s->raw > from) {
        pieces_publish(s->cache->pieces, p, s, from / PIECE, (size_t)(s->raw - from));
        *out = p;
        return STK_OK;
    }
    pieces_unpin(s->cache->pieces, p);
    if (rc != STK_OK)
        close_unpacker(s); /* it is not known where it stands */
    *out = NULL;
    return rc;
}

/* The piece, pinned; NULL: the stream ends before it. */
static int unpack_to(struct stream *s, int fd, int64_t number, struct piece **out, stk_error *e)
{
    *out = NULL;
    if (s->end >= 0 && number * PIECE >= s->end)
        return STK_OK;
    int rc = begin(s, number * PIECE, e);
    while (rc == STK_OK) {
        rc = next_piece(s, fd, out, e);
        if (rc != STK_OK || !*out || (*out)->number == number)
            return rc;
        pieces_unpin(s->cache->pieces, *out);
    }
    return rc;
}

static int get(struct stream *s, int fd, int64_t number, struct piece **out, stk_error *e)
{
    *out = pieces_find(s->cache->pieces, s, number);
    if (*out)
        return STK_OK;
    pthread_mutex_lock(&s->lock);
    int rc = STK_OK;
    *out = pieces_find(s->cache->pieces, s, number); /* someone may have been faster */
    if (!*out)
        rc = unpack_to(s, fd, number, out, e);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static int at_end(struct stream *s, stk_error *e)
{
    pthread_mutex_lock(&s->lock);
    const int rc = s->broken[0] ? error_set(e, STK_EDATA, "read", "%s", s->broken) : STK_OK;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int stream_read(struct stream *s, int fd, void *to, size_t n, int64_t at, size_t *got, stk_error *e)
{
    *got = 0;
    while (*got < n) {
        struct piece *p;
        const int64_t place = at + (int64_t)*got;
        const int rc = get(s, fd, place / PIECE, &p, e);
        if (rc != STK_OK)
            return rc;
        const size_t from = (size_t)(place % PIECE);
        const size_t here = p && p->n > from ? p->n - from : 0, left = n - *got, part = here < left ? here : left;
        if (part > 0)
            memcpy((uint8_t *)to + *got, p->bytes + from, part);
        if (p)
            pieces_unpin(s->cache->pieces, p);
        if (part == 0)
            return at_end(s, e);
        *got += part;
    }
    return STK_OK;
}

static size_t first_of(int fd, uint8_t *to, size_t n)
{
    const ssize_t k = io_pread(fd, to, n < STREAM_FIRST ? n : STREAM_FIRST, 0);
    const enum stream_form form = k > 0 ? stream_form_of(to, (size_t)k) : STREAM_PLAIN;
    struct stream_cache *c = form != STREAM_PLAIN && !stream_missing(form) ? stream_cache_new(0) : NULL;
    struct stream *s = c ? stream_new(c, form) : NULL;
    size_t got = 0;
    if (s)
        stream_read(s, fd, to, n, 0, &got, NULL);
    stream_free(s);
    stream_cache_free(c);
    return got;
}

size_t stream_first(const char *path, uint8_t *to, size_t n)
{
    const int fd = open(path, IO_OPEN_FLAGS);
    const size_t got = fd >= 0 ? first_of(fd, to, n) : 0;
    if (fd >= 0)
        close(fd);
    return got;
}
