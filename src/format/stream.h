/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h -- reads a compressed file (gzip, zlib, zstd) at any offset of its decompressed bytes.
 *
 *     struct stream_cache *c = stream_cache_new(64 << 20, 64 << 20);
 *     struct stream *s = stream_new(c, STREAM_GZIP, false);
 *     stream_read(s, fd, to, n, at, &got, e);          from any thread
 *     stream_free(s);
 *     stream_cache_free(c);
 *
 * Reading forward costs the decompression. Reading back costs nothing within the pieces that are kept; further back,
 * decompression starts again at the gzip member or zstd frame before the offset, or at the beginning.
 */
#ifndef STREAM_H
#define STREAM_H

#include "format/decompress.h"
#include "stoker.h"

/* Reads up to n decompressed bytes from the start of a file. Returns how many; 0 if the file is not compressed. */
size_t stream_first(const char *path, uint8_t *to, size_t n);

/* What several streams share: the pieces that were decompressed last, up to `kept` bytes, and `work` bytes of memory
 * for decompressing. Streams take turns if their decompressors do not fit into it together. A stream that needs more
 * than `work` for itself ends there with an error. */
enum { STREAM_WORK_LEAST = 1 << 20, STREAM_WORK_MOST = 512 << 20 };
enum { STREAM_WORK_SHARE = 8 }; /* work is 1/8 of the loader's memory */
struct stream_cache;
struct stream_cache *stream_cache_new(size_t kept, size_t work); /* NULL: no memory */
void stream_cache_free(struct stream_cache *c);                  /* accepts NULL; call it after freeing its streams */
void stream_cache_memory(struct stream_cache *c, size_t *held, size_t *most);

/* stays: the stream is read from start to end and keeps its decompressor until then. */
struct stream;
struct stream *stream_new(struct stream_cache *c, enum stream_form form, bool stays); /* NULL: no memory */
void stream_free(struct stream *s);                                                   /* accepts NULL */

/* Reads n decompressed bytes of the file fd from offset `at`; *got is smaller only at the end. Everything before damage
 * can be read. Reading damaged bytes is STK_EDATA, with *got bytes before them. If the only obstacle is too little
 * memory, a stream that stays returns STK_EUSAGE. */
int stream_read(struct stream *s, int fd, void *to, size_t n, int64_t at, size_t *got, stk_error *e);
/* Decompressed size up to the end or to damage; -1: not known yet. */
int64_t stream_end(struct stream *s);
/* Frees the decompressor until the next read. */
void stream_rest(struct stream *s);

#endif
