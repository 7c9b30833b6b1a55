/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_chunks.h -- what the chunks of a PNG say, apart from its pixels.
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
    const uint8_t *chunk; /* if compressed: the chunk from its length to its end; */
    size_t chunk_bytes;   /* p and n are not set */
};

struct png_chunks {
    int32_t w, h;
    int bits, colour, samples; /* of a pixel */
    bool interlaced, transparent, animated, icc;
    const uint8_t *palette; /* RGB */
    size_t palette_bytes;
    size_t idat; /* where the first chunk of pixels starts, at its length */
    struct png_string exif, raw_exif, xmp;
};

bool png_signature(const uint8_t *bytes, size_t n);
/* Reads up to the pixels; with `all` also the texts after them. */
int png_chunks_read(const uint8_t *bytes, size_t n, bool all, struct png_chunks *out, stk_error *e);
/* Where the chunk of pixels starts in which the file ends; 0: none. */
size_t png_cut(const uint8_t *bytes, size_t n, const struct png_chunks *c);
/* How many chunks of pixels that start before `end` have a wrong checksum. */
int png_wrong_sums(const uint8_t *bytes, size_t end, size_t n, const struct png_chunks *c);

/* Iterates over the chunks of pixels. */
struct png_walk {
    const uint8_t *bytes;
    size_t n, at;
    bool odd; /* a chunk is incomplete, or longer than allowed */
};
struct png_walk png_walk_begin(const uint8_t *bytes, size_t n, const struct png_chunks *c);
/* Sets *p to the data of the next one. Its name is before the data, its checksum after it. Returns false if there is
 * none. */
bool png_walk_next(struct png_walk *w, const uint8_t **p, size_t *n);

/* Whether no chunk, from the pixels on, is cut off; of an animation, only its first image is checked. A missing IEND
 * is forgiven, as in Pillow. */
bool png_tail_whole(const uint8_t *bytes, size_t n, const struct png_chunks *c);
/* Appends the bytes of ImageMagick's "Raw profile type exif": a line break, a line with a name, a line with a
 * length, then hex digits. Skips what it cannot read. */
void png_hex_profile(const uint8_t *text, size_t n, struct buf *out);

#endif
