/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stream.c -- compressed files read at any offset, by several threads, whole and damaged. The files consist of
 * stored blocks, so that their bytes are known here.
 */
#include "format/stream.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "format/unzstd.h"
#include "support/gzips.h"
#include "test.h"

static uint8_t byte_at(int64_t at)
{
    return (uint8_t)hash_mix((uint64_t)at / 8, (uint64_t)at % 8);
}

static uint8_t *content(int64_t from, size_t n)
{
    uint8_t *p = malloc(n);
    for (size_t i = 0; p && i < n; i++)
        p[i] = byte_at(from + (int64_t)i);
    return p;
}

/* A member of gzip with the bytes [from, from + n). */
static void gzip_member(struct buf *b, int64_t from, size_t n)
{
    uint8_t *p = content(from, n);
    gzips_member(b, p, n);
    free(p);
}

/* A frame of zstd: no checksum, a window of 1 KiB times 2^log, blocks that are only stored. */
static void zstd_frame_of(struct buf *b, int64_t from, size_t n, uint32_t log)
{
    uint8_t *p = content(from, n);
    gzips_add(b, "\x28\xb5\x2f\xfd\0", 5);
    gzips_put(b, log << 3, 1);
    for (size_t at = 0; at < n; at += 100000) {
        const size_t k = n - at < 100000 ? n - at : 100000;
        gzips_put(b, (uint32_t)(k << 3 | (at + k == n)), 3);
        gzips_add(b, p + at, k);
    }
    free(p);
}

static void zstd_frame(struct buf *b, int64_t from, size_t n)
{
    zstd_frame_of(b, from, n, 7);
}

static int file_of(const struct buf *b)
{
    const int fd = memfd_create("stream", MFD_CLOEXEC);
    if (fd < 0 || write(fd, b->data, b->len) != (ssize_t)b->len)
        abort();
    return fd;
}

/* Whether n bytes from `at` are right; *got is how many were read. */
static bool right(struct stream *s, int fd, int64_t at, size_t n, size_t *got, stk_error *e)
{
    uint8_t *to = malloc(n ? n : 1);
    const int rc = stream_read(s, fd, to, n, at, got, e);
    bool same = true;
    for (size_t i = 0; i < *got; i++)
        same = same && to[i] == byte_at(at + (int64_t)i);
    free(to);
    CHECK(rc == STK_OK || (e->code == rc && e->text[0]));
    return same && rc == STK_OK;
}

enum { MIB = 1 << 20, WHOLE = 7 * MIB + 12345 };

struct made {
    enum stream_form form;
    struct buf file;
    int fd;
};

/* Three members or frames: a large, a small, the rest. */
static void make(struct made *m, enum stream_form form)
{
    *m = (struct made){.form = form};
    void (*const member)(struct buf *, int64_t, size_t) = form == STREAM_GZIP ? gzip_member : zstd_frame;
    member(&m->file, 0, 3 * MIB + 77);
    member(&m->file, 3 * MIB + 77, 5);
    member(&m->file, 3 * MIB + 82, WHOLE - 3 * MIB - 82);
    m->fd = file_of(&m->file);
}

static void unmake(struct made *m)
{
    buf_done(&m->file);
    close(m->fd);
}

static void read_anywhere(enum stream_form form)
{
    struct made m;
    make(&m, form);
    CHECK_EQ(stream_form_of(m.file.data, m.file.len), form);
    struct stream_cache *c = stream_cache_new(0, 0); /* four pieces */
    struct stream *s = stream_new(c, form, false);
    stk_error e;
    size_t got;
    for (int64_t at = 0; at < WHOLE; at += 300001) {
        const size_t n = WHOLE - at < 300001 ? (size_t)(WHOLE - at) : 300001;
        CHECK(right(s, m.fd, at, n, &got, &e) && got == n);
    }
    for (int i = 0; i < 60; i++) {
        const int64_t at = (int64_t)(hash_mix(1, (uint64_t)i) % WHOLE);
        const size_t n = (size_t)(hash_mix(2, (uint64_t)i) % (2 * MIB)), left = (size_t)(WHOLE - at);
        CHECK(right(s, m.fd, at, n, &got, &e) && got == (n < left ? n : left));
        if (i % 7 == 0)
            stream_rest(s);
    }
    CHECK(right(s, m.fd, WHOLE, 1, &got, &e) && got == 0);
    CHECK(right(s, m.fd, (int64_t)1 << 50, 1, &got, &e) && got == 0);
    stream_free(s);
    stream_cache_free(c);
    unmake(&m);
}

static void gzip_anywhere(void)
{
    if (stream_missing(STREAM_GZIP))
        SKIP("no zlib in this build");
    read_anywhere(STREAM_GZIP);
}

static void zstd_anywhere(void)
{
    if (stream_missing(STREAM_ZSTD))
        SKIP("no libzstd in this build");
    read_anywhere(STREAM_ZSTD);
}

/* The bytes before the damage can be read. Reading later bytes is an error with a reason. */
static void expect_until(const struct buf *file, size_t until, const char *words)
{
    const int fd = file_of(file);
    struct stream_cache *c = stream_cache_new(0, 0);
    struct stream *s = stream_new(c, STREAM_GZIP, false);
    stk_error e = {0};
    size_t got;
    CHECK(right(s, fd, 0, until, &got, &e) && got == until);
    for (int again = 0; again < 2; again++) {
        CHECK(!right(s, fd, 0, until + 1, &got, &e) && e.code == STK_EDATA && strstr(e.reason, words));
        CHECK_EQ(got, until);
    }
    CHECK(right(s, fd, 0, until, &got, &e) && got == until);
    stream_free(s);
    stream_cache_free(c);
    close(fd);
}

static void damaged(void)
{
    if (stream_missing(STREAM_GZIP))
        SKIP("no zlib in this build");
    struct buf b = {0};
    expect_until(&b, 0, "cut short");
    gzip_member(&b, 0, 1500000);
    const size_t one = b.len;
    b.len = one - 1;
    expect_until(&b, 1500000, "cut short");
    b.len = one;
    b.data[one - 5] ^= 1; /* the checksum */
    expect_until(&b, 1500000, "damaged");
    b.data[one - 5] ^= 1;
    gzips_add(&b, "\0\0\0\0", 4); /* zeros behind it are nothing */
    const int fd = file_of(&b);
    struct stream_cache *c = stream_cache_new(0, 0);
    struct stream *s = stream_new(c, STREAM_GZIP, false);
    size_t got;
    stk_error e;
    CHECK(right(s, fd, 0, 1500001, &got, &e) && got == 1500000);
    stream_free(s);
    stream_cache_free(c);
    close(fd);
    b.len = one;
    gzips_add(&b, "not gzip", 8);
    expect_until(&b, 1500000, "damaged");
    b.data[1200000] ^= 1;       /* content: only the checksum shows that this byte is wrong */
    b.data[10 + 3 * 65540] = 7; /* a kind of block that there is not */
    b.len = one;
    expect_until(&b, 3 * 65535, "damaged");
    b.len = 1000;
    expect_until(&b, 1000 - 15, "cut short");
    buf_done(&b);
}

/* Many threads at one stream, and more streams than may be open. */
enum { THREADS = 6, STREAMS = 12 };

struct crowd {
    struct made m;
    struct stream_cache *cache;
    struct stream *streams[STREAMS];
    int number;
};

static void *reader(void *user)
{
    struct crowd *w = user;
    stk_error e;
    size_t got, held, most;
    for (int i = 0; i < 40; i++) {
        const uint64_t r = hash_mix((uint64_t)w->number, (uint64_t)i);
        CHECK(right(w->streams[r % STREAMS], w->m.fd, (int64_t)(r / 16 % (WHOLE - 70000)), 70000, &got, &e));
        stream_cache_memory(w->cache, &held, &most);
        CHECK(held <= most);
    }
    return NULL;
}

static void run_crowd(struct crowd *crowds)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        crowds[i] = crowds[0];
        crowds[i].number = i;
        pthread_create(&threads[i], NULL, reader, &crowds[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void crowded(void)
{
    if (stream_missing(STREAM_GZIP))
        SKIP("no zlib in this build");
    struct crowd crowds[THREADS] = {0};
    struct stream_cache *c = stream_cache_new(0, 0);
    make(&crowds[0].m, STREAM_GZIP);
    for (int i = 0; i < STREAMS; i++)
        crowds[0].streams[i] = stream_new(c, STREAM_GZIP, false);
    crowds[0].cache = c;
    run_crowd(crowds);
    for (int i = 0; i < STREAMS; i++)
        stream_free(crowds[0].streams[i]);
    stream_cache_free(c);
    unmake(&crowds[0].m);
}

/* Windows of 128 KiB and 4 MiB fit. One of 256 MiB does not, and only the bytes after it are lost. */
static void windows_have_a_limit(void)
{
    enum { SMALL = 7, MIDDLE = 12, LARGE = 18, FIRST = 3 * MIB, ALL = FIRST + 2 * MIB + 5 };
    if (stream_missing(STREAM_ZSTD))
        SKIP("no libzstd in this build");
    struct buf b = {0};
    zstd_frame_of(&b, 0, FIRST, SMALL);
    zstd_frame_of(&b, FIRST, ALL - FIRST, MIDDLE);
    zstd_frame_of(&b, ALL, 1000, LARGE);
    const int fd = file_of(&b);
    for (int stays = 0; stays < 2; stays++) {
        struct stream_cache *c = stream_cache_new(0, 8 * MIB);
        struct stream *s = stream_new(c, STREAM_ZSTD, stays);
        size_t got, held, most;
        stk_error e = {0};
        CHECK(right(s, fd, FIRST - 10, 100, &got, &e) && got == 100);
        stream_cache_memory(c, &held, &most);
        CHECK(held > 4 * MIB && held <= most && most == 12 * MIB);
        CHECK(!right(s, fd, ALL - 10, 100, &got, &e) && got == 10);
        CHECK_EQ(e.code, stays ? STK_EUSAGE : STK_EDATA);
        CHECK(strstr(e.text, "decompressing the zstd stream needs 257 MiB, but the memory limit leaves 8 MiB for it; "
                             "raise memory by 1992 MiB") != NULL);
        CHECK_EQ(stream_end(s), ALL);
        CHECK(right(s, fd, 5, 100, &got, &e) && got == 100); /* earlier bytes can still be read */
        stream_free(s);
        stream_cache_memory(c, &held, &most);
        CHECK_EQ(held, 4 * MIB);
        stream_cache_free(c);
    }
    close(fd);
    buf_done(&b);
}

/* Only one of them fits at a time. */
static void windows_in_turn(void)
{
    if (stream_missing(STREAM_ZSTD))
        SKIP("no libzstd in this build");
    struct crowd crowds[THREADS] = {0};
    struct stream_cache *c = stream_cache_new(0, 6 * MIB);
    zstd_frame_of(&crowds[0].m.file, 0, WHOLE, 12);
    crowds[0].m.fd = file_of(&crowds[0].m.file);
    crowds[0].cache = c;
    for (int i = 0; i < STREAMS; i++)
        crowds[0].streams[i] = stream_new(c, STREAM_ZSTD, false);
    run_crowd(crowds);
    for (int i = 0; i < STREAMS; i++)
        stream_free(crowds[0].streams[i]);
    stream_cache_free(c);
    unmake(&crowds[0].m);
}

static void nothing(void)
{
    stream_free(NULL);
    stream_cache_free(NULL);
    CHECK_EQ(stream_form_of((const uint8_t *)"", 0), STREAM_PLAIN);
    CHECK_EQ(stream_form_of((const uint8_t *)"plain text", 10), STREAM_PLAIN);
    CHECK(stream_missing(STREAM_PLAIN) == NULL);
    if (stream_missing(STREAM_GZIP))
        return;
    struct stream_cache *c = stream_cache_new(0, 0);
    struct stream *s = stream_new(c, STREAM_GZIP, false);
    stk_error e;
    size_t got;
    CHECK_EQ(stream_read(s, -1, &got, 1, 0, &got, &e), STK_EIO);
    stream_free(s);
    stream_cache_free(c);
}

int main(int argc, char **argv)
{
    TESTS(T(gzip_anywhere), T(zstd_anywhere), T(damaged), T(crowded), T(windows_have_a_limit), T(windows_in_turn),
          T(nothing))
}
