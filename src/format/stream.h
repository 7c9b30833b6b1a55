/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h -- a file that is packed as a whole (gzip, zlib, zstd), read at any place of what it unpacks to.
 *
 *     struct stream_cache *c = stream_cache_new(64 << 20, 64 << 20);
 *     struct stream *s = stream_new(c, STREAM_GZIP, false);
 *     stream_read(s, fd, to, n, at, &got, e);          from any thread
 *     stream_free(s);
 *     stream_cache_free(c);
 *
 * Going forward costs the unpacking; going back further than what is kept costs unpacking from the beginning, or from
 * the member or frame before the place. So whoever reads such files in some order keeps near to theirs.
 */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

enum stream_form { STREAM_PLAIN, STREAM_GZIP, STREAM_ZLIB, STREAM_ZSTD };

enum { STREAM_FIRST = 16 }; /* bytes that are enough for the next */
/* By the first bytes: gzip, zstd; zlib has no sure mark, and must be told. */
enum stream_form stream_form_of(const uint8_t *first, size_t n);
/* The library that this build lacks for it; NULL: it can be read. */
const char *stream_missing(enum stream_form form);

/* The first bytes of what a file unpacks to; how many there are, at most n. */
size_t stream_first(const char *path, uint8_t *to, size_t n);

/* What was unpacked last, of all the streams that share it, up to `kept` bytes; and the memory that unpacking takes,
 * `work` bytes for all of them: a stream that needs more ends there, and those that do not fit together take turns.
 */
enum { STREAM_WORK_LEAST = 1 << 20, STREAM_WORK_MOST = 512 << 20 };
enum { STREAM_WORK_SHARE = 8 }; /* of memory that all has */
struct stream_cache;
struct stream_cache *stream_cache_new(size_t kept, size_t work); /* NULL: no memory */
void stream_cache_free(struct stream_cache *c);                  /* also NULL; after its streams */
void stream_cache_memory(struct stream_cache *c, size_t *held, size_t *most);

/* stays: it is read from its beginning to its end, and keeps what it has until then. */
struct stream;
struct stream *stream_new(struct stream_cache *c, enum stream_form form, bool stays); /* NULL: no memory */
void stream_free(struct stream *s);                                                   /* also NULL */

/* n bytes from `at` of what the file fd unpacks to; fewer, *got, only where it ends. What lies before damage can be
 * read; what lies behind is STK_EDATA, and *got tells how much came before. Of one that stays it is STK_EUSAGE where
 * the memory for it is all that is wanting. */
int stream_read(struct stream *s, int fd, void *to, size_t n, int64_t at, size_t *got, stk_error *e);
/* Where it ends, or breaks off; -1: nobody has come there yet. */
int64_t stream_end(struct stream *s);
/* Gives back what going on from here would need. */
void stream_rest(struct stream *s);

#endif
