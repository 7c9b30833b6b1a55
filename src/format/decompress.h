/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decompress.h -- what unpacks a stream of bytes, as a table of functions.
 */
#ifndef DECOMPRESS_H
#define DECOMPRESS_H

#include "format/gunzip.h"
#include "format/stream.h"

enum { DECOMPRESS_HEAD = 18 };

struct decompressor {
    const char *name, *library;
    bool (*here)(void);
    void *(*open)(void); /* NULL: no memory */
    void (*close)(void *z);
    void (*again)(void *z); /* before another member, or from the beginning */
    /* How much of memory the member takes that begins so, with DECOMPRESS_HEAD bytes where there are as many. */
    size_t (*needs)(const uint8_t *p, size_t n);
    enum gunzip_state (*run)(void *z, const uint8_t **in, size_t *n_in, uint8_t **out, size_t *n_out);
};

const struct decompressor *decompress_by(enum stream_form form); /* not for STREAM_PLAIN */

#endif
