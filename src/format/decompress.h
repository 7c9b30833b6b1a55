/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decompress.h -- decompresses a stream of bytes, whatever it was compressed with.
 */
#ifndef DECOMPRESS_H
#define DECOMPRESS_H

#include "format/gunzip.h"
#include "format/unzstd.h"

enum stream_form { STREAM_PLAIN, STREAM_GZIP, STREAM_ZLIB, STREAM_ZSTD };

enum { STREAM_FIRST = 16 }; /* bytes that stream_form_of() needs */
/* Recognises gzip and zstd by their first bytes. A zlib stream cannot be recognised. */
enum stream_form stream_form_of(const uint8_t *first, size_t n);
/* "gzip", "zlib" or "zstd". */
const char *stream_form_name(enum stream_form form);
/* The library that this build lacks for the form; NULL: it can be read. */
const char *stream_missing(enum stream_form form);

/* Zeroed: closed. Not for STREAM_PLAIN. */
struct decompressor {
    struct gunzip *gunzip;
    struct unzstd *unzstd;
};

bool decompress_open(struct decompressor *d, enum stream_form form); /* false: no memory */
bool decompress_is_open(const struct decompressor *d);
void decompress_close(struct decompressor *d);
/* Prepares for another gzip member or zstd frame. */
void decompress_again(struct decompressor *d);
enum gunzip_state decompress_run(struct decompressor *d, const uint8_t **in, size_t *n_in, uint8_t **out,
                                 size_t *n_out);

/* Bytes of memory that decompressing a member needs. p: its first DECOMPRESS_HEAD bytes, or fewer at the end of the
 * file. */
enum { DECOMPRESS_HEAD = 18 };
size_t decompress_needs(enum stream_form form, const uint8_t *p, size_t n);

#endif
