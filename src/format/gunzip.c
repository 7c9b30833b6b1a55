/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gunzip.c -- decompresses with zlib.
 */
#include "format/gunzip.h"

#ifdef HAVE_ZLIB

#define ZLIB_CONST
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

struct gunzip {
    z_stream stream;
};

bool gunzip_here(void)
{
    return true;
}

const char *gunzip_version(void)
{
    return zlibVersion();
}

struct gunzip *gunzip_new(enum gunzip_kind kind)
{
    static const int bits[] = {
        [GUNZIP_GZIP] = MAX_WBITS + 16, [GUNZIP_ZLIB] = MAX_WBITS, [GUNZIP_DEFLATE] = -MAX_WBITS};
    struct gunzip *z = calloc(1, sizeof *z);
    if (z && inflateInit2(&z->stream, bits[kind]) != Z_OK) {
        free(z);
        return NULL;
    }
    return z;
}

void gunzip_free(struct gunzip *z)
{
    if (z)
        inflateEnd(&z->stream);
    free(z);
}

void gunzip_again(struct gunzip *z)
{
    inflateReset(&z->stream);
}

static unsigned step(size_t n)
{
    return n < UINT_MAX ? (unsigned)n : UINT_MAX;
}

static enum gunzip_state state_of(int rc)
{
    if (rc == Z_STREAM_END)
        return GUNZIP_END;
    if (rc == Z_OK || rc == Z_BUF_ERROR)
        return GUNZIP_MORE;
    return rc == Z_MEM_ERROR ? GUNZIP_NOMEM : GUNZIP_BAD;
}

/* zlib counts in 32 bits. */
enum gunzip_state gunzip_run(struct gunzip *z, const uint8_t **in, size_t *n_in, uint8_t **out, size_t *n_out)
{
    for (;;) {
        const unsigned take = step(*n_in), room = step(*n_out);
        z->stream.next_in = *in;
        z->stream.avail_in = take;
        z->stream.next_out = *out;
        z->stream.avail_out = room;
        const enum gunzip_state state = state_of(inflate(&z->stream, Z_NO_FLUSH));
        const size_t taken = take - z->stream.avail_in, made = room - z->stream.avail_out;
        *in += taken;
        *n_in -= taken;
        *out += made;
        *n_out -= made;
        if (state != GUNZIP_MORE || *n_in == 0 || *n_out == 0 || (taken == 0 && made == 0))
            return state;
    }
}

int64_t gunzip_whole(struct gunzip *z, const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out)
{
    const uint8_t *const begin = out;
    gunzip_again(z);
    return gunzip_run(z, &in, &n_in, &out, &n_out) == GUNZIP_END ? out - begin : -1;
}

#else

bool gunzip_here(void)
{
    return false;
}

const char *gunzip_version(void)
{
    return NULL;
}

struct gunzip *gunzip_new(enum gunzip_kind kind)
{
    (void)kind;
    return NULL;
}

void gunzip_free(struct gunzip *z)
{
    (void)z;
}

void gunzip_again(struct gunzip *z)
{
    (void)z;
}

enum gunzip_state gunzip_run(struct gunzip *z, const uint8_t **in, size_t *n_in, uint8_t **out, size_t *n_out)
{
    (void)z, (void)in, (void)n_in, (void)out, (void)n_out;
    return GUNZIP_BAD;
}

int64_t gunzip_whole(struct gunzip *z, const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out)
{
    (void)z, (void)in, (void)n_in, (void)out, (void)n_out;
    return -1;
}

#endif
