/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h -- the data that stages hand to each other.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

struct rect {
    int32_t x, y, w, h;
};

/*
 * 8-bit pixels, interleaved, 1 or 3 channels. Kernels may read up to IMAGE_SLACK bytes past the last
 * pixel, so whoever makes an image leaves as much room behind it (arena_alloc does).
 */
enum { IMAGE_SLACK = 64 };

struct image {
    uint8_t *px;
    size_t stride; /* bytes from row to row */
    int32_t w, h, channels;
};

/* What the first bytes of a picture say. */
struct head {
    stk_format format;
    int32_t w, h;       /* as stored */
    int channels, bits; /* as stored */
    int orientation;    /* EXIF, 1 to 8; 1 when EXIF is to be left alone */
    unsigned odd;       /* STK_ODD_* */
    bool packed;        /* a JPEG's coefficients without their codes (decode/pack_file.h) */
};

struct byte_range {
    uint64_t from, to;
};

/* Parts of a file, in order. */
enum { PARTS_MAX = 8 };

struct parts {
    int n;
    struct byte_range at[PARTS_MAX];
};

/* Where a sample lies within a larger file. */
struct extent {
    int fd;           /* open for as long as the source; -1: the file is to be opened */
    const char *path; /* for that; lives as long */
    int64_t at;
    size_t bytes;
    bool direct; /* the descriptor is, or the file is to be, one that passes the page cache by */
};

/* What the transform wants of a picture, in the coordinates of the upright (EXIF applied) picture. */
struct want {
    struct rect crop;
    int shrink;     /* 2, 4 or 8: the crop is one of the picture at that fraction of its size (sides rounded up) */
    bool whole;     /* decode all of it and read to its end, also where the crop ends above: for verify */
    bool reference; /* by the format's library alone: what a decoder of our own is compared with */
    const struct parts *parts; /* of the file that were read, with anything in between; NULL: all of it was */
};

/* Size of the upright picture. */
static inline int32_t head_width(const struct head *h)
{
    return h->orientation > 4 ? h->h : h->w;
}
static inline int32_t head_height(const struct head *h)
{
    return h->orientation > 4 ? h->w : h->h;
}

/* What names one random decision; the op and the draw within it come on top. */
struct draw {
    uint64_t seed, epoch, sample, repeat, view;
};

/* Bytes of names, with the 0 at their end: of a field, and of what a container calls a column. */
enum { FIELD_MAX = 64, FIELD_DIMS = 8, FIELD_NAME = 64, COLUMN_NAME = 1024 };

/* One field of a sample, as a source has it. */
enum field_kind {
    FIELD_ENCODED, /* bytes of a picture, to be decoded */
    FIELD_PIXELS,  /* uint8 rows x columns x channels, to be transformed */
    FIELD_TENSOR,  /* of a fixed shape */
    FIELD_RAGGED,  /* as many elements as the sample has: numbers, text, bytes */
    FIELD_OFFSETS, /* of a batch alone: where the rows of a ragged field begin, and where the last one ends */
    FIELD_OPEN     /* of a batch of one row alone: pixels, in a shape that is known when they are made */
};

struct field {
    char name[FIELD_NAME + 8]; /* with room for ".offsets" */
    enum field_kind kind;
    stk_dtype dtype;
    int ndim;                  /* of one sample */
    int64_t shape[FIELD_DIMS]; /* of one sample; rows, columns, channels for pixels */
    size_t bytes;              /* of one sample; 0 for encoded; of one element for ragged, of one pixel for open */
    stk_kind what;             /* to the caller: ragged uint8 may be text, bytes or JSON */
    int column;      /* of the source, where it is read into a cell; -1: the source knows better (copy, label) */
    bool label;      /* is the label that the source knows */
    bool named;      /* numbers of classes */
    bool words;      /* words, which the source turns into numbers of classes */
    bool pad;        /* ragged: rows of the longest one's length, and lengths; else values and offsets */
    int beside;      /* of a batch: the number of its offsets or lengths, and behind them of its shapes */
    bool text;       /* numbers that the source has as text: its cells are marked so */
    bool has_fill;   /* a sample without a value gets the next */
    uint8_t fill[8]; /* one element: for that, and for padding */
};

/* What a source has read for a field, lent until the next read: bytes as stored, or numbers of a type, dense, in this
 * machine's order. */
struct cell {
    const uint8_t *bytes; /* NULL: the sample has none */
    size_t n;             /* bytes */
    stk_dtype dtype;      /* of the numbers; 0: bytes, text, an encoded picture */
    bool text;            /* bytes that are text: numbers are parsed from it, never taken as they are stored */
    int ndim;             /* of the numbers; shape[0] is what the bytes make of it where it is -1 */
    int64_t shape[FIELD_DIMS];
};

/* The form of one sample as the caller describes it: name, type, shape; f->kind is left alone. */
int field_of(struct field *f, const stk_array *a, stk_error *e);

size_t dtype_bytes(stk_dtype t); /* 0 for what is no type */
const char *dtype_name(stk_dtype t);
int64_t dtype_integer(stk_dtype t, const void *p); /* a whole number of this type, as int64 */

#endif
