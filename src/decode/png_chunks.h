/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_chunks.h -- what the chunks of a PNG say, besides its pixels.
 */
#ifndef PNG_CHUNKS_H
#define PNG_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "stoker.h"

enum png_colour { PNG_GREY = 0, PNG_RGB = 2, PNG_INDEXED = 3, PNG_GREY_ALPHA = 4, PNG_RGBA = 6 };

/* A text in a file. */
struct png_string {
    const uint8_t *p;
    size_t n;
    const uint8_t *chunk; /* when it is compressed: the chunk from its length to its end, */
    size_t chunk_bytes;   /* and p, n are not set */
};

struct png_chunks {
    int32_t w, h;
    int bits, colour, samples; /* of a pixel */
    bool interlaced, transparent, animated, icc;
    const uint8_t *palette; /* RGB */
    size_t palette_bytes;
    size_t idat; /* where the first chunk of pixels begins, at its length */
    struct png_string exif, raw_exif, xmp;
};

bool png_signature(const uint8_t *bytes, size_t n);
/* Up to the pixels; with all also the texts behind them. */
int png_chunks_read(const uint8_t *bytes, size_t n, bool all, struct png_chunks *out, stk_error *e);
/* Where the chunk of pixels begins that the file ends in; 0: none. */
size_t png_cut(const uint8_t *bytes, size_t n, const struct png_chunks *c);
/* How many of the chunks of pixels that begin in front of `end` have a wrong checksum. */
int png_wrong_sums(const uint8_t *bytes, size_t end, size_t n, const struct png_chunks *c);

/* Goes over the chunks of pixels. */
struct png_walk {
    const uint8_t *bytes;
    size_t n, at;
    bool odd; /* one is not whole, or longer than a chunk may be */
};
struct png_walk png_walk_begin(const uint8_t *bytes, size_t n, const struct png_chunks *c);
/* The data of the next one, with its name in front and its checksum behind it; false when there is none. */
bool png_walk_next(struct png_walk *w, const uint8_t **p, size_t *n);

/* Whether no chunk of the picture (of an animation: the first) is cut off, from the pixels on. An end without IEND is
 * forgiven, as Pillow forgives it. */
bool png_tail_whole(const uint8_t *bytes, size_t n, const struct png_chunks *c);
/* The bytes of ImageMagick's "Raw profile type exif": a line break, a name and a length, each on a line, then hex
 * digits. What cannot be read is left out. */
void png_hex_profile(const uint8_t *text, size_t n, struct buf *out);

#endif
