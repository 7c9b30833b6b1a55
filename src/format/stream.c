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
 *   (4) the cost of all open unpackers is at most `most`. Who has no room closes one that nobody is at work with, or
 *       waits until there is one: without an unpacker of his own, and without a piece. So whoever lets go of a
 *       stream's lock that may have one open says so (let_go).
 */
#include "format/stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "format/decompress.h"
#include "format/pieces.h"

enum {
    PIECE = PIECE_BYTES,
    INPUT = 1 << 17,
    OPEN_MAX = 32,    /* unpackers */
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
    return form == STREAM_PLAIN || decompress_by(form)->here() ? NULL : decompress_by(form)->library;
}

/* ------------------------------------------------------------------ what streams share */

struct stream_cache {
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t rested;
    struct pieces *pieces;
    struct stream *open[OPEN_MAX]; /* with an unpacker */
    uint64_t clock;
    size_t cost, most; /* of all unpackers */
    int waiting;
};

struct stream_cache *stream_cache_new(size_t kept, size_t work)
{
    struct stream_cache *c = calloc(1, sizeof *c);
    if (!c || !(c->pieces = pieces_new(kept))) {
        free(c);
        return NULL;
    }
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->rested, NULL);
    c->most = work > STREAM_WORK_MOST ? STREAM_WORK_MOST : work < STREAM_WORK_LEAST ? STREAM_WORK_LEAST : work;
    return c;
}

void stream_cache_memory(struct stream_cache *c, size_t *held, size_t *most)
{
    pthread_mutex_lock(&c->lock);
    *held = pieces_held(c->pieces) + c->cost;
    *most = pieces_most(c->pieces) + c->most;
    pthread_mutex_unlock(&c->lock);
}

void stream_cache_free(struct stream_cache *c)
{
    if (!c)
        return;
    pieces_free(c->pieces);
    pthread_cond_destroy(&c->rested);
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
    const struct decompressor *how;
    void *unpacker;  /* NULL: not open */
    uint64_t opened; /* by the cache's clock; its lock's */
    bool stays;      /* nobody may close it */
    size_t cost;     /* of the unpacker; 0: none is open */
    size_t need;     /* the most that a member was seen to take */
    uint8_t *input;
    size_t input_at, input_n;
    int64_t packed; /* behind the input */
    int64_t raw;    /* unpacked so far */
    bool between;   /* at the beginning of a member */
    int64_t end;    /* where it ends or breaks off; -1: not known */
    char broken[160];
    bool refused;         /* broken off for want of memory */
    struct point *points; /* ascending; beside the beginning */
    int n_points;
};

struct stream *stream_new(struct stream_cache *c, enum stream_form form, bool stays)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->cache = c;
    s->how = decompress_by(form);
    s->stays = stays;
    s->need = INPUT + s->how->needs(NULL, 0);
    s->end = -1;
    return s;
}

static void leave(struct stream *s)
{
    struct stream_cache *c = s->cache;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < OPEN_MAX; i++)
        if (c->open[i] == s)
            c->open[i] = NULL;
    c->cost -= s->cost;
    s->cost = 0;
    pthread_cond_broadcast(&c->rested);
    pthread_mutex_unlock(&c->lock);
}

static void close_unpacker(struct stream *s)
{
    if (!s->unpacker)
        return;
    s->how->close(s->unpacker);
    free(s->input);
    s->unpacker = NULL;
    s->input = NULL;
    leave(s);
}

/* Whoever waits for room may close this one now. */
static void let_go(struct stream *s)
{
    struct stream_cache *c = s->cache;
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_lock(&c->lock);
    if (c->waiting > 0)
        pthread_cond_broadcast(&c->rested);
    pthread_mutex_unlock(&c->lock);
}

int64_t stream_end(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    const int64_t end = s->end;
    let_go(s);
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

/* Enters s among the open ones, if there is room. */
static bool admit(struct stream_cache *c, struct stream *s)
{
    for (int i = 0; i < OPEN_MAX && s->need <= c->most - c->cost; i++)
        if (!c->open[i]) {
            c->open[i] = s;
            s->opened = ++c->clock;
            s->cost = s->need;
            c->cost += s->cost;
            return true;
        }
    return false;
}

/* The stream whose unpacker was opened first, of those nobody is at work with, locked; NULL: there is none. */
static struct stream *find_idle(const struct stream_cache *c)
{
    struct stream *best = NULL;
    for (int i = 0; i < OPEN_MAX; i++) {
        struct stream *r = c->open[i];
        if (!r || r->stays || (best && r->opened > best->opened) || pthread_mutex_trylock(&r->lock) != 0)
            continue;
        if (best)
            pthread_mutex_unlock(&best->lock);
        best = r;
    }
    return best;
}

/* Makes room for another by closing one, or waits until someone is done. The lock is let go of meanwhile. */
static void make_room(struct stream_cache *c)
{
    struct stream *r = find_idle(c);
    if (!r) {
        c->waiting++;
        pthread_cond_wait(&c->rested, &c->lock);
        c->waiting--;
        return;
    }
    pthread_mutex_unlock(&c->lock);
    close_unpacker(r);
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_lock(&c->lock);
}

static void enter(struct stream *s)
{
    struct stream_cache *c = s->cache;
    pthread_mutex_lock(&c->lock);
    while (!admit(c, s))
        make_room(c);
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

static int open_unpacker(struct stream *s, stk_error *e)
{
    enter(s);
    s->input = malloc(INPUT);
    s->unpacker = s->input ? s->how->open() : NULL;
    if (s->unpacker)
        return STK_OK;
    free(s->input);
    s->input = NULL;
    leave(s);
    return error_nomem(e, "read", INPUT);
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
        const int rc = open_unpacker(s, e);
        if (rc != STK_OK)
            return rc;
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

static size_t mib(size_t bytes)
{
    return (bytes + (1 << 20) - 1) >> 20;
}

/* There will never be room for what follows: the stream ends here. */
static void refuse(struct stream *s, size_t need)
{
    const size_t most = s->cache->most;
    snprintf(s->broken, sizeof s->broken,
             "the %s stream needs %zu MiB to be unpacked, and memory leaves %zu MiB for that; %zu MiB more memory "
             "would do",
             s->how->name, mib(need), most >> 20, STREAM_WORK_SHARE * mib(need - most));
    s->refused = true;
    ended(s, NULL);
}

/* Bytes that the member takes that begins here. */
static size_t needs(const struct stream *s, int fd)
{
    uint8_t first[DECOMPRESS_HEAD];
    const size_t left = s->input_n - s->input_at;
    const ssize_t got =
        left < DECOMPRESS_HEAD ? io_pread(fd, first, DECOMPRESS_HEAD, s->packed - (int64_t)left) : (ssize_t)left;
    const uint8_t *p = left < DECOMPRESS_HEAD ? first : s->input + s->input_at;
    return INPUT + s->how->needs(p, got > 0 ? (size_t)got : 0);
}

/* Whether the member that begins here can be unpacked with what was had for it; false: with more, or not at all, and
 * then there is no unpacker any more. */
static bool fits(struct stream *s, int fd)
{
    const size_t need = needs(s, fd);
    if (need > s->cache->most)
        refuse(s, need);
    else if (need > s->need)
        s->need = need;
    return need <= s->cost;
}

/* Unpacks into room until it is full or the stream ends: then there is no unpacker any more. STK_AGAIN: one with more
 * memory is needed. */
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
        if (s->between && !fits(s, fd))
            return s->unpacker ? STK_AGAIN : STK_OK;
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
        if (rc == STK_AGAIN) {
            rc = begin(s, number * PIECE, e);
            continue;
        }
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
    let_go(s);
    return rc;
}

static int at_end(struct stream *s, stk_error *e)
{
    pthread_mutex_lock(&s->lock);
    /* One that is scanned is not to be known as broken ever after. */
    const int code = s->refused && s->stays ? STK_EUSAGE : STK_EDATA;
    const int rc = s->broken[0] ? error_set(e, code, "read", "%s", s->broken) : STK_OK;
    let_go(s);
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
    const int fd = open(path, IO_OPEN_FLAGS);
    const size_t got = fd >= 0 ? first_of(fd, to, n) : 0;
    if (fd >= 0)
        close(fd);
    return got;
}
